//! The problems of shared memory, as the laboratory finds them by name.

use std::sync::{Arc, LazyLock};

use testigo_memory::{
    Claimed, Plan, PlanError, Program, ThreadAlgorithm, ThreadProfile, algorithms,
};
use testigo_protocol::{Channels, Claim, Profile, Setup, Shape, Telling};

use super::passage::Passage;
use super::{check, replay, simulate, stage};
use crate::check::{CheckPlan, Checked};
use crate::claims::Finding;
use crate::family::{Family, LabError, Labeller};
use crate::run::Run;
use crate::trace::{Replayed, Trace};
use crate::world::{Progress, World};

/// The algorithms of one problem.
pub(crate) struct Threads {
    problem: &'static str,
    algorithms: Vec<(&'static Profile, &'static ThreadAlgorithm)>,
}

/// The problems that threads have, in the order of their algorithms.
pub(crate) fn threads_problems() -> impl Iterator<Item = &'static dyn Family> {
    static ALL: LazyLock<Vec<Threads>> = LazyLock::new(|| {
        let mut all: Vec<Threads> = Vec::new();
        for algorithm in algorithms() {
            let problem = algorithm.profile.problem;
            let known = all.iter().position(|threads| threads.problem == problem);
            let at = known.unwrap_or(all.len());
            if known.is_none() {
                all.push(Threads {
                    problem,
                    algorithms: Vec::new(),
                });
            }
            // Made once, and there for as long as the program runs.
            let profile: &'static Profile = Box::leak(Box::new(profile(&algorithm.profile)));
            all[at].algorithms.push((profile, algorithm));
        }
        all
    });
    ALL.iter().map(|threads| threads as &dyn Family)
}

/// What the laboratory knows of every algorithm, in its words.
fn profile(of: &ThreadProfile) -> Profile {
    let claim = |claimed: &Claimed| match claimed {
        Claimed::Exclusion => Claim::Safety,
        Claimed::DeadlockFreedom => Claim::DeadlockFreedom,
        Claimed::LockoutFreedom => Claim::LockoutFreedom,
    };
    Profile {
        name: of.name,
        title: of.title,
        source: of.source,
        specimen: of.specimen,
        channels: Channels::Fifo,
        needs_delay_bound: of.needs_time_bound,
        claims: Vec::leak(of.claims.iter().map(claim).collect()),
        telling: Telling {
            nodes: of.telling.processes,
            entries: of.telling.entries,
        },
        telling_groups: (of.problem == "threads-rooms").then_some(of.telling.rooms),
        telling_proposers: None,
        telling_timeouts: None,
        ..Profile::PLAIN
    }
}

impl Threads {
    fn found(&self, name: &str) -> (&'static Profile, &'static ThreadAlgorithm) {
        let found = self
            .algorithms
            .iter()
            .find(|(profile, _)| profile.name == name);
        *found.expect("a known algorithm names one of its own family")
    }

    fn program(&self, name: &str, setup: &Setup) -> Result<Arc<dyn Program>, LabError> {
        let made = (self.found(name).1.program)(&plan(setup));
        made.map(Arc::from)
            .map_err(|PlanError(why)| LabError::new(format!("{name}: {why}")))
    }

    /// The accesses of an entry with nobody else there, and the registers, against what is published.
    fn counted(&self, name: &str, users: usize) -> Result<Vec<Finding>, LabError> {
        let (profile, algorithm) = self.found(name);
        let setup = Setup::new(users);
        let Ok(program) = self.program(name, &setup) else {
            return Ok(Vec::new());
        };
        let apart = 100 * (users * users) as u64;
        let items: Vec<String> = (0..users as u64)
            .map(|user| format!("{user}@{}", user * apart))
            .collect();
        let arrivals = format!("script:{}", items.join(","));
        let world = World {
            entries: users as u64,
            arrivals: arrivals
                .parse()
                .map_err(|why| LabError::new(format!("{why}")))?,
            ..World::default()
        };
        let run = simulate::run(
            profile,
            self.problem,
            &*program,
            &setup,
            &world,
            false,
            |_| {},
        )?;
        // Nobody is in its way, but it may wait for the actor behind its room.
        let passages = run.passages.iter().map(|passage| passage.once as usize);
        let [least, most] = [passages.clone().min(), passages.max()].map(Option::unwrap_or_default);
        let registers = program.registers().len();
        let counts = [
            (
                "accesses of a lone entry",
                algorithm.profile.lone,
                [least, most],
            ),
            (
                "registers",
                algorithm.profile.registers,
                [registers, registers],
            ),
        ];
        let findings = counts.into_iter().filter_map(|(claim, published, found)| {
            let published = published?;
            let range = (published.range)(&plan(&setup));
            let words = |[least, most]: [usize; 2]| match least == most {
                true => least.to_string(),
                false => format!("{least} to {most}"),
            };
            Some(Finding {
                algorithm: profile.name,
                claim: claim.into(),
                published: match (published.formula == words(range), published.is_derived) {
                    (true, false) => words(range),
                    (true, true) => format!("{}, derived", words(range)),
                    (false, false) => format!("{} = {}", published.formula, words(range)),
                    (false, true) => format!("{} = {}, derived", published.formula, words(range)),
                },
                published_min: Some(range[0] as f64),
                published_max: Some(range[1] as f64),
                measured: words(found),
                measured_value: Some(found[1] as f64),
                nodes: users,
                holds: range[0] <= found[0] && found[1] <= range[1],
            })
        });
        Ok(findings.collect())
    }
}

/// An algorithm of threads by its name, and its program.
pub(super) fn found(
    name: &str,
    setup: &Setup,
) -> Result<(&'static Profile, &'static ThreadAlgorithm, Box<dyn Program>), LabError> {
    let profile = crate::KnownAlgorithm::find(name)?.profile;
    let algorithm = algorithms().find(|one| one.profile.name == name);
    let why = || {
        LabError::new(format!(
            "{name} sends messages of its own: it shares no memory"
        ))
    };
    let algorithm = algorithm.ok_or_else(why)?;
    let program = (algorithm.program)(&plan(setup));
    let program = program.map_err(|PlanError(why)| LabError::new(format!("{name}: {why}")))?;
    Ok((profile, algorithm, program))
}

/// Every passage of a run.
pub(super) fn passages(name: &str, setup: &Setup, world: &World) -> Result<Vec<Passage>, LabError> {
    let (profile, algorithm, program) = found(name, setup)?;
    let problem = algorithm.profile.problem;
    let run = simulate::run(profile, problem, &*program, setup, world, false, |_| {})?;
    Ok(run.passages)
}

/// A setup in the words of programs.
fn plan(setup: &Setup) -> Plan {
    let usual = Plan::new(setup.users);
    Plan {
        rooms: setup.groups.unwrap_or(usual.rooms),
        permits: setup
            .permits
            .map_or(usual.permits, |permits| permits as usize),
        ..usual
    }
}

/// The sizes at which accesses are counted; `peterson-2` has one of its own.
const SIZES: [usize; 5] = [2, 4, 5, 8, 13];

impl Family for Threads {
    fn problem(&self) -> &'static str {
        self.problem
    }

    fn sends_messages(&self) -> bool {
        false
    }

    fn profiles(&self) -> Vec<&'static Profile> {
        self.algorithms
            .iter()
            .map(|(profile, _)| *profile)
            .collect()
    }

    fn shape(&self, name: &str, setup: &Setup) -> Result<Shape, LabError> {
        Ok(stage::shape(&*self.program(name, setup)?))
    }

    fn run(
        &self,
        name: &str,
        setup: &Setup,
        world: &World,
        keep_trace: bool,
        progress: fn(Progress),
    ) -> Result<Run, LabError> {
        let program = self.program(name, setup)?;
        let (profile, _) = self.found(name);
        let problem = self.problem;
        let run = simulate::run(
            profile, problem, &*program, setup, world, keep_trace, progress,
        )?;
        Ok(run.run)
    }

    fn check(&self, name: &str, setup: &Setup, plan: &CheckPlan) -> Result<Checked, LabError> {
        let program = self.program(name, setup)?;
        let (profile, algorithm) = self.found(name);
        let telling = &algorithm.profile.telling;
        let present = match setup.users == telling.processes {
            true => telling.present,
            false => &[],
        };
        let grows = algorithm.profile.grows;
        check::check(profile, &program, present, grows, setup, plan)
    }

    fn replay(&self, name: &str, setup: &Setup, trace: &Trace) -> Result<Replayed, LabError> {
        let program = self.program(name, setup)?;
        let (profile, _) = self.found(name);
        replay::replay(&*program, trace, profile).map_err(LabError::Differs)
    }

    fn labeller(&self, name: &str, _: &Setup) -> Result<Labeller, LabError> {
        Err(LabError::new(format!("{name} sends no messages")))
    }

    fn counts(&self, name: &str) -> Result<Vec<Finding>, LabError> {
        if self.found(name).0.specimen.is_some() {
            return Ok(Vec::new());
        }
        let mut findings = Vec::new();
        for users in SIZES {
            findings.extend(self.counted(name, users)?);
        }
        Ok(findings)
    }
}
