//! A check from its plan to its verdicts.

use serde::Serialize;
use stateright::{Checker, HasDiscoveries, Model as _};
use testigo_protocol::{Claim, Machine, Problem, Profile, Setup, UserId};

use super::liveness::{Liveness, liveness};
use super::model::{BOUNDS, Bounds, DEADLOCK_FREEDOM, Model, SAFETY, Step};
use super::schedule::{Schedule, play};
use crate::family::LabError;
use crate::trace::Trace;

/// How much is checked.
#[derive(Clone, Copy, Debug)]
pub struct CheckPlan {
    /// How often each user asks.
    pub entries: u32,
    /// How many timers may fire in a run.
    pub timeouts: u32,
    /// After so many generated states the search ends, and what it did not reach is not covered.
    pub states_max: usize,
    /// Told now and then how many states there have been, so that long work can show progress.
    pub progress: fn(usize),
}

impl CheckPlan {
    pub const STATES_MAX_DEFAULT: usize = 20_000_000;
    pub const TIMEOUTS_DEFAULT: u32 = 3;

    pub fn new(entries: u32) -> CheckPlan {
        CheckPlan {
            entries,
            timeouts: Self::TIMEOUTS_DEFAULT,
            states_max: Self::STATES_MAX_DEFAULT,
            progress: |_| {},
        }
    }
}

/// What a check says of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    #[serde(rename = "holds")]
    Holds,
    #[serde(rename = "refuted")]
    Refuted,
    #[serde(rename = "not covered")]
    NotCovered,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Refuted => "refuted",
            Verdict::NotCovered => "not covered",
        }
    }
}

/// A finished check.
#[derive(Clone, Debug)]
pub struct Checked {
    pub algorithm: &'static str,
    pub nodes: usize,
    pub entries: u32,
    /// Distinct states with bounded entries.
    pub states: usize,
    /// States generated, repeated ones included.
    pub generated: usize,
    /// Whether every interleaving was explored.
    pub complete: bool,
    pub safety: Verdict,
    /// Bounded bypass; none where it is not claimed.
    pub bounds: Option<Verdict>,
    pub deadlock_freedom: Verdict,
    pub lockout_freedom: Verdict,
    /// Distinct states with users that ask for ever.
    pub liveness_states: usize,
    /// What was not covered, and why.
    pub notes: Vec<String>,
    pub counterexample: Option<Counterexample>,
}

impl Checked {
    pub fn refuted(&self) -> bool {
        [self.safety, self.deadlock_freedom, self.lockout_freedom].contains(&Verdict::Refuted)
            || self.bounds == Some(Verdict::Refuted)
    }
}

/// A schedule that refutes a property.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// What it refutes, and how, in words.
    pub what: String,
    pub steps: usize,
    pub trace: Trace,
}

pub(crate) fn check<Q: Problem>(
    profile: &'static Profile,
    machine: &dyn Machine<Q>,
    setup: &Setup,
    plan: &CheckPlan,
) -> Result<Checked, LabError> {
    if plan.entries == 0 || plan.states_max == 0 {
        return Err(LabError::new(
            "nothing to check: --entries and --max-states must be at least 1",
        ));
    }
    let bounds = Bounds {
        entries: Some(plan.entries),
        timeouts: plan.timeouts,
        channels: profile.channels,
        bypass: profile.claims.contains(&Claim::Bypass),
    };
    let checker = Model::new(machine, bounds, plan.progress)
        .checker()
        .threads(1)
        .finish_when(HasDiscoveries::Any)
        .target_state_count(plan.states_max)
        .spawn_bfs()
        .join();
    let discoveries = checker.discoveries();
    let complete = discoveries.is_empty() && checker.state_count() < plan.states_max;
    let verdict = |name| match (discoveries.contains_key(name), complete) {
        (true, _) => Verdict::Refuted,
        (false, true) => Verdict::Holds,
        (false, false) => Verdict::NotCovered,
    };
    let mut checked = Checked {
        algorithm: profile.name,
        nodes: setup.users,
        entries: plan.entries,
        states: checker.unique_state_count(),
        generated: checker.state_count(),
        complete,
        safety: verdict(SAFETY),
        bounds: bounds.bypass.then(|| verdict(BOUNDS)),
        deadlock_freedom: verdict(DEADLOCK_FREEDOM),
        lockout_freedom: Verdict::NotCovered,
        liveness_states: 0,
        notes: Vec::new(),
        counterexample: None,
    };
    let refute = |what: &str, steps: &[Step], cycle: Option<(&[Step], UserId)>, ends: bool| {
        let made_by = format!(
            "check of {} with {} entries a user: {what}",
            profile.name, plan.entries
        );
        let trace = play(
            profile,
            machine,
            setup,
            &Schedule {
                steps,
                cycle,
                ends,
                made_by,
            },
        );
        let length = steps.len() + cycle.map_or(0, |(cycle, _)| cycle.len());
        Some(Counterexample {
            what: what.into(),
            steps: length,
            trace,
        })
    };
    for name in [SAFETY, BOUNDS, DEADLOCK_FREEDOM] {
        if let Some(path) = discoveries.get(name) {
            let steps: Vec<Step> = path.clone().into_actions();
            let (model, last) = (checker.model(), path.last_state());
            let what = match name {
                SAFETY => model.violation(last).unwrap_or_default(),
                BOUNDS => model.broken_bound(last).unwrap_or_default(),
                _ => "deadlock: somebody waits and nothing can happen".to_owned(),
            };
            checked.counterexample = refute(&what, &steps, None, name == DEADLOCK_FREEDOM);
            break;
        }
    }
    if checked.counterexample.is_some() {
        checked
            .notes
            .push("the search ended with the first refutation".into());
        return Ok(checked);
    }
    if checked.deadlock_freedom == Verdict::Holds && checker.model().was_cut_by_timers() {
        checked.deadlock_freedom = Verdict::NotCovered;
        let why = "deadlock freedom is not covered: somebody waits for a timer after the last that may fire";
        checked
            .notes
            .push(format!("{why}; raise --timeouts above {}", plan.timeouts));
    }
    if !complete {
        checked.notes.push(format!(
            "the search ended after {} generated states",
            plan.states_max
        ));
        return Ok(checked);
    }
    judge_liveness(profile, machine, plan, &mut checked, refute);
    Ok(checked)
}

fn judge_liveness<Q: Problem>(
    profile: &Profile,
    machine: &dyn Machine<Q>,
    plan: &CheckPlan,
    checked: &mut Checked,
    refute: impl Fn(&str, &[Step], Option<(&[Step], UserId)>, bool) -> Option<Counterexample>,
) {
    let bounds = Bounds {
        entries: None,
        timeouts: 0,
        channels: profile.channels,
        bypass: false,
    };
    let model = Model::new(machine, bounds, plan.progress);
    match liveness(
        &model,
        profile.channels,
        plan.states_max.min(STATES_KEPT_MAX),
    ) {
        Liveness::Holds { states } => {
            checked.liveness_states = states;
            checked.lockout_freedom = Verdict::Holds;
        }
        Liveness::Starves {
            states,
            victim,
            lasso,
        } => {
            checked.liveness_states = states;
            checked.lockout_freedom = Verdict::Refuted;
            let what = format!("lockout: p{victim} waits for ever while others are served");
            checked.counterexample =
                refute(&what, &lasso.stem, Some((&lasso.cycle, victim)), false);
        }
        Liveness::Wrong {
            states,
            steps,
            stuck,
        } => {
            checked.liveness_states = states;
            let verdict = if stuck {
                &mut checked.deadlock_freedom
            } else {
                &mut checked.safety
            };
            *verdict = Verdict::Refuted;
            let what = if stuck {
                "deadlock, after several entries"
            } else {
                "unsafe, after several entries"
            };
            checked.counterexample = refute(what, &steps, None, stuck);
        }
        Liveness::NotCovered { states, why } => {
            checked.liveness_states = states;
            checked
                .notes
                .push(format!("lockout freedom is not covered: {why}"));
        }
    }
}

/// The liveness pass keeps every state and step in memory.
const STATES_KEPT_MAX: usize = 500_000;
