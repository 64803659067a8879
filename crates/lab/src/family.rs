//! The problems and their algorithms, with the problem's types erased: what a command needs to find
//! an algorithm by name and to do with it all that the laboratory can.

use std::fmt;

use testigo_protocol::agreement::{replicated_log, turns};
use testigo_protocol::{
    Algorithm, Counted, Machine, NodeId, PacketError, Problem, Profile, Setup, SetupError,
    agreement, election, multicast, mutex, readers, rooms,
};

use crate::check::{CheckPlan, Checked, Verdict, check};
use crate::claims::Finding;
use crate::run::{Run, run};
use crate::threads::threads_problems;
use crate::trace::{Clock, Difference, Replayed, Trace, replay};
use crate::world::{Progress, World};

/// All problems of nodes that send messages.
static FAMILIES: &[&dyn Family] = &[
    &Of::<mutex::Mutex> {
        algorithms: &[mutex::ALGORITHMS, mutex::specimens::ALGORITHMS],
    },
    &Of::<readers::Readers> {
        algorithms: &[readers::ALGORITHMS, readers::specimens::ALGORITHMS],
    },
    &Of::<rooms::Rooms> {
        algorithms: &[rooms::ALGORITHMS, rooms::OVER, rooms::specimens::ALGORITHMS],
    },
    &Of::<multicast::Multicast> {
        algorithms: &[multicast::ALGORITHMS, multicast::specimens::ALGORITHMS],
    },
    &Of::<agreement::Agreement> {
        algorithms: &[agreement::ALGORITHMS, agreement::specimens::ALGORITHMS],
    },
    &Of::<replicated_log::ReplicatedLog> {
        algorithms: &[replicated_log::ALGORITHMS, replicated_log::SPECIMENS],
    },
    &Of::<turns::Turns> {
        algorithms: &[turns::ALGORITHMS, turns::SPECIMENS],
    },
    &Of::<election::Election> {
        algorithms: &[election::ALGORITHMS, election::specimens::ALGORITHMS],
    },
];

/// A problem and its algorithms.
pub(crate) trait Family: Sync {
    fn problem(&self) -> &'static str;
    /// The word for what users get.
    fn counted(&self) -> Counted {
        Counted::ENTRIES
    }
    /// Whether its algorithms send messages; else they share memory.
    fn sends_messages(&self) -> bool {
        true
    }
    fn profiles(&self) -> Vec<&'static Profile>;
    fn shape(&self, name: &str, setup: &Setup) -> Result<testigo_protocol::Shape, LabError>;
    fn run(
        &self,
        name: &str,
        setup: &Setup,
        world: &World,
        keep_trace: bool,
        progress: fn(Progress),
    ) -> Result<Run, LabError>;
    fn check(&self, name: &str, setup: &Setup, plan: &CheckPlan) -> Result<Checked, LabError>;
    fn replay(&self, name: &str, setup: &Setup, trace: &Trace) -> Result<Replayed, LabError>;
    fn labeller(&self, name: &str, setup: &Setup) -> Result<Labeller, LabError>;
    /// What is published of an algorithm beside its profile, held against what is counted.
    fn counts(&self, _name: &str) -> Result<Vec<Finding>, LabError> {
        Ok(Vec::new())
    }
}

/// Says what a message reads as, from its bytes.
pub(crate) type Labeller = Box<dyn Fn(&[u8]) -> Result<String, PacketError>>;

struct Of<Q: Problem> {
    algorithms: &'static [&'static [&'static Algorithm<Q>]],
}

impl<Q: Problem> Of<Q> {
    fn all(&self) -> impl Iterator<Item = &'static Algorithm<Q>> {
        self.algorithms.iter().flat_map(|list| list.iter().copied())
    }

    fn machine(
        &self,
        name: &str,
        setup: &Setup,
    ) -> Result<(&'static Profile, Box<dyn Machine<Q>>), LabError> {
        let algorithm = self.all().find(|algorithm| algorithm.profile.name == name);
        let algorithm = algorithm.expect("a known algorithm names one of its own family");
        let machine = (algorithm.machine)(setup)
            .map_err(|SetupError(why)| LabError::new(format!("{name}: {why}")))?;
        Ok((&algorithm.profile, machine))
    }
}

impl<Q: Problem> Family for Of<Q> {
    fn problem(&self) -> &'static str {
        Q::NAME
    }

    fn counted(&self) -> Counted {
        Q::COUNTED
    }

    fn profiles(&self) -> Vec<&'static Profile> {
        self.all().map(|algorithm| &algorithm.profile).collect()
    }

    fn shape(&self, name: &str, setup: &Setup) -> Result<testigo_protocol::Shape, LabError> {
        Ok(self.machine(name, setup)?.1.shape().clone())
    }

    fn run(
        &self,
        name: &str,
        setup: &Setup,
        world: &World,
        keep_trace: bool,
        progress: fn(Progress),
    ) -> Result<Run, LabError> {
        let (profile, machine) = self.machine(name, setup)?;
        run(profile, &*machine, setup, world, keep_trace, progress)
    }

    fn check(&self, name: &str, setup: &Setup, plan: &CheckPlan) -> Result<Checked, LabError> {
        let (profile, machine) = self.machine(name, setup)?;
        check(profile, &*machine, setup, plan)
    }

    fn replay(&self, name: &str, setup: &Setup, trace: &Trace) -> Result<Replayed, LabError> {
        let (profile, machine) = self.machine(name, setup)?;
        let (shape, header) = (machine.shape(), &trace.header);
        // In a live run the nodes have names of their own.
        let names = NodeId::all(shape.nodes()).map(|node| shape.name(node));
        let named = match header.clock {
            Clock::Milliseconds => shape.nodes() == header.names.len(),
            Clock::Units | Clock::Steps => names.eq(header.names.iter().cloned()),
        };
        if !named || (shape.users, shape.seats()) != (header.users, &header.seats) {
            let named = header.names.len();
            let nodes = shape.nodes();
            return Err(LabError::new(format!(
                "the trace names {named} nodes and {} users, and {name} has {nodes} and {}: the names and \
                 seats of a trace are those of its run",
                header.users, shape.users
            )));
        }
        replay(&*machine, trace, profile).map_err(LabError::Differs)
    }

    fn labeller(&self, name: &str, setup: &Setup) -> Result<Labeller, LabError> {
        let (_, machine) = self.machine(name, setup)?;
        Ok(Box::new(move |message| machine.label(message)))
    }
}

/// An algorithm that the laboratory knows.
#[derive(Clone, Copy)]
pub struct KnownAlgorithm {
    pub profile: &'static Profile,
    family: &'static dyn Family,
}

impl fmt::Debug for KnownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.profile.name, self.problem())
    }
}

impl KnownAlgorithm {
    /// Every algorithm, by problem; specimens last.
    pub fn all() -> Vec<KnownAlgorithm> {
        let known = |family: &'static dyn Family| {
            family
                .profiles()
                .into_iter()
                .map(move |profile| KnownAlgorithm { profile, family })
        };
        let families = FAMILIES.iter().copied().chain(threads_problems());
        families.flat_map(known).collect()
    }

    /// The algorithm of this name, or an error that suggests the nearest ones.
    pub fn find(name: &str) -> Result<KnownAlgorithm, LabError> {
        let all = KnownAlgorithm::all();
        if let Some(algorithm) = all.iter().find(|algorithm| algorithm.profile.name == name) {
            return Ok(*algorithm);
        }
        let mut near: Vec<(usize, &str)> = all
            .iter()
            .map(|e| {
                (
                    strsim::damerau_levenshtein(name, e.profile.name),
                    e.profile.name,
                )
            })
            .collect();
        near.sort_unstable();
        let close = |(distance, known): &&(usize, &str)| {
            *distance <= 1 + name.len() / 3
                || known.contains(name)
                || (known.len() > 3 && name.contains(known))
        };
        let close: Vec<&str> = near
            .iter()
            .filter(close)
            .take(3)
            .map(|(_, known)| *known)
            .collect();
        let hint = if close.is_empty() {
            "`testigo lab list` shows them all".to_owned()
        } else {
            format!("did you mean {}?", close.join(" or "))
        };
        Err(LabError::new(format!(
            "there is no algorithm `{name}`: {hint}"
        )))
    }

    pub fn problem(&self) -> &'static str {
        self.family.problem()
    }

    /// The word for what its users get.
    pub fn counted(&self) -> Counted {
        self.family.counted()
    }

    /// Whether its nodes send messages; else its processes share memory.
    pub fn sends_messages(&self) -> bool {
        self.family.sends_messages()
    }

    pub(crate) fn counts(&self) -> Result<Vec<Finding>, LabError> {
        self.family.counts(self.profile.name)
    }

    /// The nodes that it has with this setup, or why it cannot have it.
    pub fn shape(&self, setup: &Setup) -> Result<testigo_protocol::Shape, LabError> {
        self.family.shape(self.profile.name, setup)
    }

    pub(crate) fn labeller(&self, setup: &Setup) -> Result<Labeller, LabError> {
        self.family.labeller(self.profile.name, setup)
    }

    /// Simulates it. Where the setup has no delay bound, it is the world's.
    pub fn run(&self, setup: &Setup, world: &World, keep_trace: bool) -> Result<Run, LabError> {
        self.run_showing(setup, world, keep_trace, |_| {})
    }

    /// The same, told now and then how far it is.
    pub fn run_showing(
        &self,
        setup: &Setup,
        world: &World,
        keep_trace: bool,
        progress: fn(Progress),
    ) -> Result<Run, LabError> {
        let mut setup = setup.clone();
        if setup.delay_bound == 0 {
            setup.delay_bound = world.delay_bound().0;
        }
        let name = self.profile.name;
        self.family.run(name, &setup, world, keep_trace, progress)
    }

    /// Checks every interleaving. Where users that ask for ever make too many states, fewer users
    /// are tried, and what that showed is noted.
    pub fn check(&self, setup: &Setup, plan: &CheckPlan) -> Result<Checked, LabError> {
        let mut checked = self.family.check(self.profile.name, setup, plan)?;
        if checked.deadlock_freedom == Verdict::Refuted {
            // Whoever is in a deadlock is locked out, too.
            checked.lockout_freedom = Verdict::Refuted;
        }
        let covered = checked.lockout_freedom != Verdict::NotCovered;
        // The numbers of threads that wait grow with every entry, however few they are.
        let few = !self.sends_messages() && setup.users <= 2;
        let histories = !self.counted().has_inside();
        if checked.refuted() || !checked.complete || covered || few || histories {
            return Ok(checked);
        }
        let shared = self.shape(setup)?.is_shared();
        let fewer = match setup.classes.fewer().filter(|_| shared) {
            Some(classes) => Setup {
                classes,
                ..setup.clone()
            },
            None => Setup {
                users: setup.users - 1,
                ..setup.clone()
            },
        };
        let once = CheckPlan {
            entries: 1,
            ..*plan
        };
        if let Ok(smaller) = self.check(&fewer, &once) {
            let (word, users) = (smaller.lockout_freedom.word(), smaller.nodes);
            match smaller.lockout_freedom {
                Verdict::NotCovered => checked.notes.extend(smaller.notes.into_iter().skip(1)),
                _ if shared => checked.notes.push(format!(
                    "lockout freedom {word} with {users} nodes, users {}",
                    fewer.classes
                )),
                _ => checked
                    .notes
                    .push(format!("lockout freedom {word} with {users} nodes")),
            }
        }
        Ok(checked)
    }
}

impl Trace {
    /// Runs the trace again; fails at the first difference.
    pub fn replay(&self) -> Result<Replayed, LabError> {
        let algorithm = KnownAlgorithm::find(&self.header.algorithm)?;
        let setup = self
            .header
            .setup()
            .map_err(|SetupError(why)| LabError::new(why))?;
        algorithm
            .family
            .replay(algorithm.profile.name, &setup, self)
    }
}

/// Why the laboratory cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabError {
    /// What was asked cannot be done: the message says why, and what could.
    BadInput(String),
    /// A replay did something else than its trace.
    Differs(Difference),
}

impl LabError {
    pub(crate) fn new(what: impl Into<String>) -> LabError {
        LabError::BadInput(what.into())
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::BadInput(what) => f.write_str(what),
            LabError::Differs(difference) => difference.fmt(f),
        }
    }
}

impl std::error::Error for LabError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        for (typed, meant) in [
            ("ricart-agrawal", "ricart-agrawala"),
            ("ring", "token-ring"),
            ("sander", "sanders"),
        ] {
            let error = KnownAlgorithm::find(typed).expect_err(typed).to_string();
            assert!(error.contains(meant), "{error}");
        }
        assert!(
            KnownAlgorithm::find("xyzzy")
                .expect_err("unknown")
                .to_string()
                .contains("lab list")
        );
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = KnownAlgorithm::all()
            .iter()
            .map(|algorithm| algorithm.profile.name)
            .collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
