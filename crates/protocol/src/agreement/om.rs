//! Byzantine generals with oral messages: OM(m), which stands m liars among 3m + 1.
//!
//! Source: coordination and agreement §5.2.1 (Lamport, Shostak and Pease, 1982). Everybody repeats what it heard from
//! whom, m times over, and a general decides by majorities from the last repetition back to the first. What has not
//! come when its round must be over counts as the default, and so does a tie (§8, decision 16). Every user
//! commands instances of its own.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::instances::{Instances, exactly};
use super::promises::{ORDERS, Promises, Validity};
use super::user::{Agreement, Ask, Tell, User, Value};
use crate::{
    Algorithm, Channels, Claim, Cost, Experiment, Faults, Figure, Input, Machine, Message, NodeId,
    Output, Profile, Protocol, Range, Setup, SetupError, Shape, Telling, Timer, erase_for,
};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "om",
        title: "Byzantine generals with oral messages, 1982",
        source: "coordination and agreement §5.2.1; Lamport, Shostak and Pease, 1982",
        tolerates: |setup| Faults::liars(rounds(setup).min(liars_stood(setup)) as u32),
        costs: &[Cost::messages(FORMULA, |setup| {
            Range::exactly(messages(setup.users, rounds(setup)) as f64)
        })],
        figures: &[Figure {
            what: "messages per decision with m = (N-1)/3",
            formula: FORMULA,
            range: |setup| Range::exactly(messages(setup.users, rounds(setup)) as f64),
            sizes: &[4, 7],
            chosen: &[],
            experiment: Experiment::FullLoad,
        }],
        ..GENERALS
    },
    machine,
};

/// What holds for all generals.
pub(super) const GENERALS: Profile = Profile {
    channels: Channels::AnyOrder,
    needs_delay_bound: true,
    survives_lies: true,
    claims: &[Claim::Safety, Claim::DeadlockFreedom],
    telling: Telling {
        nodes: 4,
        entries: 1,
    },
    telling_proposers: Some(1),
    ..Profile::PLAIN
};

const FORMULA: &str = "(N-1) + (N-1)(N-2) + ..., m + 1 terms";

/// More messages for one decision are a slip of a finger: they grow as N to the power of m + 1.
const MESSAGES_MAX: u64 = 1_000_000;

/// More rounds only for whoever asks for them, for the same reason.
const ROUNDS_DEFAULT_MAX: usize = 2;

/// How many liars so many generals stand: N > 3m.
fn liars_stood(setup: &Setup) -> usize {
    setup.users.saturating_sub(1) / 3
}

/// The m of OM(m).
fn rounds(setup: &Setup) -> usize {
    let default = || liars_stood(setup).min(ROUNDS_DEFAULT_MAX);
    setup.faulty.unwrap_or_else(default)
}

fn messages(users: usize, rounds: usize) -> u64 {
    let mut term = 1;
    let mut sum = 0;
    for left in (1..users as u64).rev().take(rounds + 1) {
        term = left.saturating_mul(term);
        sum = term.saturating_add(sum);
    }
    sum
}

fn machine(setup: &Setup) -> Result<Box<dyn Machine<Agreement>>, SetupError> {
    with_rounds(setup, rounds(setup))
}

/// Generals that play OM(m).
pub(super) fn with_rounds(
    setup: &Setup,
    m: usize,
) -> Result<Box<dyn Machine<Agreement>>, SetupError> {
    let users = setup.at_least(3)?;
    if m + 2 > users || messages(users, m) > MESSAGES_MAX {
        return Err(SetupError(format!(
            "OM({m}) with {users} nodes: it takes at most {} rounds of repeating and {MESSAGES_MAX} messages; \
             choose fewer with --faulty",
            users - 2
        )));
    }
    let config = Config {
        users,
        commanders: setup.proposers.unwrap_or(users).min(users),
        m,
        delay_bound: setup.delay_bound,
    };
    Ok(erase_for::<Instances<Om>>(
        Shape::users(users),
        |user| User::new(user, users, promises(setup)),
        config,
    ))
}

pub(super) fn promises(setup: &Setup) -> Promises {
    Promises {
        validity: Validity::Commander,
        proposers: setup.proposers.map_or(u32::MAX, |count| count as u32),
        ..Promises::CONSENSUS
    }
}

#[derive(Debug)]
pub(super) struct Config {
    users: usize,
    /// How many of the users command.
    commanders: usize,
    m: usize,
    delay_bound: u64,
}

/// "k says that j says that the commander says v" is the path commander, j, k.
type Path = Vec<NodeId>;

/// A general in one instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Om {
    id: NodeId,
    /// What it heard, by who says that who says it.
    heard: BTreeMap<Path, Value>,
    /// The order of a commander, until the rounds are over.
    order: Option<Value>,
    decided: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Oral {
    /// The last of the path says so; its first is the commander.
    Says { path: Path, value: Value },
}

impl Message for Oral {
    fn rename(&mut self, new: &dyn Fn(NodeId) -> NodeId) {
        let Oral::Says { path, .. } = self;
        path.iter_mut().for_each(|node| *node = new(*node));
    }
}

/// As the source writes it: `2:0:v1` reads "2 says that 0 said v1".
impl fmt::Debug for Oral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Oral::Says { path, value } = self;
        let who: Vec<String> = path.iter().rev().map(|node| format!("{node}:")).collect();
        write!(f, "Says({}{value:?})", who.concat())
    }
}

/// No more can come.
const ROUNDS_OVER: Timer = Timer(0);

impl Protocol for Om {
    type Problem = Agreement;
    type Message = Oral;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        Om {
            id,
            heard: BTreeMap::new(),
            order: None,
            decided: false,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Propose { value, .. }) => {
                self.order = Some(value);
                self.says(vec![self.id], value, config, out);
                // A lieutenant hears of the instance at the latest when the last round is over, and waits for
                // as many rounds from then on.
                let all_over = 2 * round_ticks(config);
                out.after(exactly(all_over + 1), ROUNDS_OVER);
            }
            Input::Message { from, message } => {
                let Oral::Says { path, value } = message;
                self.hear(from, path, value, config, out);
            }
            Input::Timer(ROUNDS_OVER) => self.decide(config, out),
            Input::Timer(_) | Input::Start => {}
        }
    }

    /// Those who never command.
    fn equal_nodes(config: &Config) -> std::ops::Range<u32> {
        config.commanders as u32..config.users as u32
    }

    fn rename(&mut self, new: &dyn Fn(NodeId) -> NodeId) {
        self.id = new(self.id);
        let heard = std::mem::take(&mut self.heard).into_iter();
        let renamed = heard.map(|(path, value)| (path.into_iter().map(new).collect(), value));
        self.heard = renamed.collect();
    }

    /// What it hears it keeps and repeats, whatever else it has heard; its time is over only when no more can come. What it
    /// repeats has a longer path, and paths end.
    fn is_quiet(&self, _: NodeId, _: &Oral, _: &Config) -> bool {
        true
    }

    /// A liar says something else, or nothing; whoever hears it knows who says it, so the path is true.
    fn lies(Oral::Says { path, value }: &Oral, _: &Config) -> Vec<Oral> {
        let others = (1..=ORDERS).map(Value).filter(|other| other != value);
        others
            .map(|value| Oral::Says {
                path: path.clone(),
                value,
            })
            .collect()
    }
}

/// How long it takes until the last round is over, from the order on.
fn round_ticks(config: &Config) -> u64 {
    (config.m as u64 + 1) * config.delay_bound.max(1)
}

impl Om {
    /// Commands OM(m + 1 - length of the path) with this value.
    fn says(&self, path: Path, value: Value, config: &Config, out: &mut Output<Self>) {
        let lieutenants: Vec<NodeId> = NodeId::all(config.users)
            .filter(|node| !path.contains(node))
            .collect();
        out.send_all(lieutenants, &Oral::Says { path, value });
    }

    fn hear(
        &mut self,
        from: NodeId,
        path: Path,
        value: Value,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let distinct = (1..path.len()).all(|place| !path[..place].contains(&path[place]));
        let expected = path.last() == Some(&from) && distinct && !path.contains(&self.id);
        if !expected || path.len() > config.m + 1 || self.heard.contains_key(&path) {
            return;
        }
        if self.heard.is_empty() {
            out.after(exactly(round_ticks(config) + 1), ROUNDS_OVER);
        }
        if path.len() <= config.m {
            let mut longer = path.clone();
            longer.push(self.id);
            self.says(longer, value, config, out);
        }
        self.heard.insert(path, value);
        if self.heard.len() == paths(config) {
            self.decide(config, out);
        }
    }

    fn decide(&mut self, config: &Config, out: &mut Output<Self>) {
        if std::mem::replace(&mut self.decided, true) {
            return;
        }
        let value = self.order.unwrap_or_else(|| {
            let commander = self.heard.keys().next().map(|path| path[0]);
            let commander = commander.expect("a lieutenant waits from the first message on");
            self.resolve(vec![commander], config)
        });
        out.tell(Tell::Decided { instance: 0, value });
    }

    /// What this general makes of what the last of the path says.
    fn resolve(&self, path: Path, config: &Config) -> Value {
        let heard = self.heard.get(&path).copied().unwrap_or(Value::DEFAULT);
        if path.len() == config.m + 1 {
            return heard;
        }
        let others = NodeId::all(config.users).filter(|j| *j != self.id && !path.contains(j));
        let mut votes: BTreeMap<Value, usize> = BTreeMap::from([(heard, 1)]);
        let mut count = 1;
        for other in others {
            let longer = path.iter().copied().chain([other]).collect();
            *votes.entry(self.resolve(longer, config)).or_default() += 1;
            count += 1;
        }
        let majority = votes.into_iter().find(|(_, votes)| 2 * votes > count);
        majority.map_or(Value::DEFAULT, |(value, _)| value)
    }
}

/// How many messages a lieutenant gets when nobody is silent.
fn paths(config: &Config) -> usize {
    let mut term = 1;
    let mut sum = 1;
    for left in (1..=config.users - 2).rev().take(config.m) {
        term *= left;
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal::{Rehearsal, every_lie};
    use super::*;

    fn generals(users: usize, m: usize) -> Rehearsal {
        let setup = Setup {
            proposers: Some(1),
            ..Setup::new(users)
        };
        Rehearsal::new(&*with_rounds(&setup, m).expect("valid"))
    }

    /// §5.2.1: exact messages.
    #[test]
    fn exact_messages() {
        for (users, m, expected) in [(4, 1, 9), (7, 2, 156), (10, 3, 3609)] {
            let mut run = generals(users, m);
            run.propose(0);
            run.play();
            assert_eq!(run.messages(), expected, "N = {users}, m = {m}");
            assert_eq!(messages(users, m), expected);
            assert!(run.decisions(0).iter().all(|told| *told == Some(Value(1))));
        }
    }

    /// §5.2.1, 4 processes (a): p3 lies about what p0 said; the others hold v, v, u.
    #[test]
    fn four_with_a_lying_lieutenant() {
        let mut run = generals(4, 1);
        run.liar = Some(|from, _, label| (from == 3).then(|| label.replace("v1", "v2")));
        run.propose(0);
        run.play();
        assert_eq!(run.decisions(0)[1..3], [Some(Value(1)); 2]);
        assert_eq!(run.violation(), None);
    }

    /// §5.2.1, 4 processes (b): a commander that tells everybody something else; no majority.
    #[test]
    fn four_with_a_lying_commander() {
        let mut run = generals(4, 1);
        run.liar =
            Some(|from, to, label| (from == 0).then(|| label.replace("v1", &format!("v{to}"))));
        run.propose(0);
        run.play();
        assert_eq!(run.decisions(0)[1..], [Some(Value::DEFAULT); 3]);
        assert_eq!(run.violation(), None);
    }

    /// §5.2.1, 3 processes: with ties by default, a faulty lieutenant breaks IC2.
    #[test]
    fn three_with_a_lying_lieutenant() {
        let mut run = generals(3, 1);
        run.liar = Some(|from, _, label| (from == 2).then(|| label.replace("v1", "v2")));
        run.propose(0);
        run.play();
        assert_eq!(run.decisions(0)[1], Some(Value::DEFAULT));
        let what = run.violation().expect("IC2 is broken");
        assert!(what.contains("loyal commander ordered v1"), "{what}");
    }

    /// Every liar among four, with every lie in every message of its own: 4³ plays of a lying commander, 4² of each
    /// lieutenant.
    #[test]
    fn four_stand_every_lie() {
        assert_eq!(every_lie(|| generals(4, 1)), (64 + 3 * 16, None));
    }

    /// Of three, a lying commander breaks nothing while ties go to the default; a lying lieutenant breaks IC2.
    #[test]
    fn three_do_not_stand_a_lying_lieutenant() {
        let (_, broken) = every_lie(|| generals(3, 1));
        let (liar, what) = broken.expect("refuted");
        assert_eq!(liar, 1, "{what}");
        assert!(what.contains("loyal commander ordered"), "{what}");
    }

    /// A missing message is read as the default, and a silent liar does not stop the others.
    #[test]
    fn a_silent_lieutenant() {
        let mut run = generals(4, 1);
        run.silent = Some(2);
        run.propose(0);
        run.play();
        let told = run.decisions(0);
        assert_eq!((told[1], told[3]), (Some(Value(1)), Some(Value(1))));
    }

    #[test]
    fn too_many_rounds_are_refused() {
        let refused = |users, m| with_rounds(&Setup::new(users), m).err().expect("refused").0;
        assert!(refused(4, 3).contains("at most 2 rounds"));
        assert!(refused(100, 5).contains("1000000 messages"));
    }
}
