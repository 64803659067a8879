//! Demonstrations: one small configuration each, what to look at in it, and what follows from it.
//!
//! A demonstration is data. Its schedule comes from the checker (the shortest one that refutes a property) or from
//! a simulation, so nothing that is shown is typed in; a remark is tied to the step that it speaks of by words of that step,
//! and a test demands that every remark finds its step.

mod agreement;
mod election;
mod exclusion;
mod multicast;
mod questions;
mod show;

pub use show::{Remarked, Shown};

use testigo_protocol::Faults;

/// One demonstration.
#[derive(Debug)]
pub struct Demo {
    /// As people type it: `maekawa-lost-request`.
    pub name: &'static str,
    pub title: &'static str,
    pub source: &'static str,
    /// What one would ask or believe before seeing it.
    pub question: &'static str,
    pub scene: Scene,
    /// Words of a step, and what to see there; in the order of the steps.
    pub look: &'static [(&'static str, &'static str)],
    /// What follows.
    pub answer: &'static str,
}

/// What is played.
#[derive(Clone, Copy, Debug)]
pub enum Scene {
    /// The checker must refute this, and its schedule is shown; or it must find nothing.
    Check {
        algorithm: &'static str,
        /// Without it, the algorithm's own smallest configuration that tells something.
        nodes: Option<usize>,
        /// The faults that are tried; without it, those that the algorithm says it tolerates.
        faults: Option<Faults>,
        /// How many timers may fire, where that is not as usual.
        timeouts: Option<u32>,
        /// When they fire, where that is not as usual.
        timing: Option<crate::Timing>,
        expect: Expect,
    },
    /// A simulated run, with this many messages.
    Run {
        algorithm: &'static str,
        nodes: usize,
        entries: u64,
        chosen: &'static [(&'static str, &'static str)],
        /// Who asks and when: `script:0@0`.
        arrivals: &'static str,
        /// What fails, as `testigo lab run --fault` takes it.
        faults: &'static [&'static str],
        /// Links with a latency of their own: from, to and how long a message takes.
        slow: &'static [(u32, u32, &'static str)],
        /// Where the source counts them.
        messages: Option<u64>,
        /// Whether entries follow the order of their requests, where that is what is shown.
        ordered: Option<bool>,
    },
    /// A check that must find nothing, and one run of the same to look at.
    Checked {
        check: &'static Scene,
        run: &'static Scene,
    },
    /// A question that is answered in words.
    Words,
}

/// What a check must say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// Nothing is refuted.
    Holds,
    Unsafe,
    /// Somebody waits, and nothing can happen.
    Stuck,
    /// Something repeats for ever, and somebody is never served.
    Endless,
}

impl Scene {
    /// A check of the configuration that the algorithm itself says is telling.
    const fn telling(algorithm: &'static str, expect: Expect) -> Scene {
        Scene::Check {
            algorithm,
            nodes: None,
            faults: None,
            timeouts: None,
            timing: None,
            expect,
        }
    }

    /// A run of one request of node 0 in which a node lies in every message.
    const fn lied(algorithm: &'static str, nodes: usize, liar: &'static [&'static str]) -> Scene {
        Scene::Run {
            algorithm,
            nodes,
            entries: 1,
            chosen: &[],
            arrivals: "script:0@0",
            faults: liar,
            slow: &[],
            messages: None,
            ordered: None,
        }
    }

    /// A check of so many nodes, with one request each.
    const fn check(algorithm: &'static str, nodes: usize, expect: Expect) -> Scene {
        Scene::Check {
            algorithm,
            nodes: Some(nodes),
            faults: None,
            timeouts: None,
            timing: None,
            expect,
        }
    }
}

impl Demo {
    /// All of them, the smallest of each problem first.
    pub fn all() -> impl Iterator<Item = &'static Demo> {
        let problems = [
            exclusion::DEMOS,
            election::DEMOS,
            multicast::DEMOS,
            agreement::DEMOS,
            questions::DEMOS,
        ];
        problems.into_iter().flatten()
    }

    /// The demonstration of this name, or an error that names the nearest.
    pub fn find(name: &str) -> Result<&'static Demo, crate::LabError> {
        if let Some(demo) = Demo::all().find(|demo| demo.name == name) {
            return Ok(demo);
        }
        let distance = |demo: &&Demo| strsim::damerau_levenshtein(name, demo.name);
        let is_near = |demo: &&Demo| {
            distance(demo) <= 1 + name.len() / 4 || name.len() > 3 && demo.name.contains(name)
        };
        let near = Demo::all().filter(is_near).min_by_key(distance);
        let hint = match near {
            Some(demo) => format!("did you mean {}?", demo.name),
            None => "`testigo lab demo --list` shows them all".to_owned(),
        };
        Err(crate::LabError::new(format!(
            "there is no demonstration `{name}`: {hint}"
        )))
    }
}
