//! A check from its plan to its verdicts.

use serde::Serialize;
use stateright::{Checker, HasDiscoveries, Model as _};
use testigo_protocol::{Claim, Faults, Machine, Problem, Profile, Setup, UserId};

use super::faults::NODES_MAX;
use super::liveness::{Liveness, liveness};
use super::model::{Bounds, Model, Step, Timing};
use super::schedule::{Schedule, play};
use super::search::{BOUNDS, DEADLOCK_FREEDOM, SAFETY};
use testigo_sim::Memory;

use crate::family::LabError;
use crate::trace::Trace;

/// How much is checked.
#[derive(Clone, Copy, Debug)]
pub struct CheckPlan {
    /// How often each user asks.
    pub entries: u32,
    /// How many timers may fire in a run; without it [`CheckPlan::TIMEOUTS_DEFAULT`] of asynchronous ones, and any
    /// number of synchronous ones.
    pub timeouts: Option<u32>,
    /// When timers fire; without it synchronous where the algorithm needs a delay bound.
    pub timing: Option<Timing>,
    /// How many faults there may be; without it those that the algorithm says it tolerates.
    pub faults: Option<Faults>,
    /// Whether a node that crashes loses its stable storage, too.
    pub forget: bool,
    /// Whether states are one that no later step can tell apart.
    pub reduces: bool,
    /// Whether only unsafe states are looked for: the search goes on where somebody is stuck.
    pub safety_only: bool,
    /// After so many generated states the search ends, and what it did not reach is not covered.
    pub states_max: usize,
    /// Told now and then how many states there have been, so that long work can show progress.
    pub progress: fn(usize),
}

impl CheckPlan {
    pub const STATES_MAX_DEFAULT: usize = 20_000_000;
    pub const TIMEOUTS_DEFAULT: u32 = 3;

    /// The plan of the configuration that an algorithm says is telling.
    pub fn telling(profile: &Profile) -> CheckPlan {
        CheckPlan {
            timeouts: profile.telling_timeouts,
            ..CheckPlan::new(profile.telling.entries as u32)
        }
    }

    pub fn new(entries: u32) -> CheckPlan {
        CheckPlan {
            entries,
            timeouts: None,
            timing: None,
            faults: None,
            forget: false,
            reduces: false,
            safety_only: false,
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
    /// How many faults of each kind there could be, and what a crash left.
    pub faults: Faults,
    pub forget: bool,
    /// Whether there was anything that a crash could leave.
    pub keeps_storage: bool,
    pub timing: Timing,
    /// How many timers could fire; none where there was no bound.
    pub timeouts: Option<u32>,
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
    let bounds = bounds(profile, machine, setup, plan)?;
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
        _ if name == DEADLOCK_FREEDOM && plan.safety_only => Verdict::NotCovered,
        (false, true) => Verdict::Holds,
        (false, false) => Verdict::NotCovered,
    };
    let mut checked = Checked {
        algorithm: profile.name,
        nodes: setup.users,
        entries: plan.entries,
        faults: bounds.faults,
        forget: bounds.forget,
        keeps_storage: profile.keeps_storage,
        timing: bounds.timing,
        timeouts: bounds.timeouts,
        states: checker.unique_state_count(),
        generated: checker.state_count(),
        complete,
        safety: verdict(SAFETY),
        bounds: profile
            .claims
            .contains(&Claim::Bypass)
            .then(|| match bounds.bypass {
                true => verdict(BOUNDS),
                false => Verdict::NotCovered,
            }),
        deadlock_freedom: verdict(DEADLOCK_FREEDOM),
        lockout_freedom: Verdict::NotCovered,
        liveness_states: 0,
        notes: Vec::new(),
        counterexample: None,
    };
    let refute = |what: &str, steps: &[Step], cycle: Option<(&[Step], UserId)>, ends: bool| {
        let made_by = format!(
            "check of {} with {} a user: {what}",
            profile.name,
            Q::COUNTED.of(u64::from(plan.entries))
        );
        let trace = play(
            profile,
            machine,
            setup,
            &Schedule {
                steps,
                cycle,
                ends,
                faults: bounds.faults,
                memory: match bounds.forget {
                    true => Memory::Nothing,
                    false => Memory::Stable,
                },
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
            let (model, last) = (checker.model(), path.last_state());
            let steps: Vec<Step> = path.clone().into_actions();
            let steps = match bounds.reduced {
                true => model.as_played(&steps),
                false => steps,
            };
            let what = match name {
                SAFETY => model.violation(last).unwrap_or_default(),
                BOUNDS => model.broken_bound(last).unwrap_or_default(),
                _ => model.stuck(last).unwrap_or_default(),
            };
            let ends = name == DEADLOCK_FREEDOM || name == SAFETY && model.is_wrong_at_rest(last);
            checked.counterexample = refute(&what, &steps, None, ends);
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
        checked.notes.push(format!(
            "{why}; raise --timeouts above {}",
            bounds.timeouts.unwrap_or(0)
        ));
    }
    if !complete {
        // The first state has depth 1, and states are taken in order of depth.
        checked.notes.push(format!(
            "the search ended after {} generated states: every schedule of up to {} steps was tried",
            checked.generated,
            checker.max_depth().saturating_sub(2)
        ));
        return Ok(checked);
    }
    if plan.safety_only {
        let note =
            "deadlock and lockout freedom are not covered: only unsafe states were looked for";
        checked.notes.push(note.into());
        return Ok(checked);
    }
    let forever = match Q::COUNTED.has_inside() {
        true => Bounds {
            entries: None,
            timeouts: Some(0),
            timing: Timing::Asynchronous,
            faults: Faults::NONE,
            bypass: false,
            reduced: false,
            renames: false,
            alone: false,
            ..bounds
        },
        // Users that remember what they were told never repeat themselves, so they ask as often as they did.
        false => Bounds {
            // Timers that fire in an order of their own may do so for ever.
            timeouts: bounds
                .timeouts
                .filter(|_| bounds.timing == Timing::Asynchronous),
            bypass: false,
            reduced: false,
            renames: false,
            alone: false,
            ..bounds
        },
    };
    if forever.faults != bounds.faults {
        let note = "lockout freedom is judged without faults";
        checked.notes.push(note.into());
    }
    judge_liveness(machine, plan, forever, &mut checked, refute);
    Ok(checked)
}

/// What is explored: what the plan says, and for the rest what the algorithm says of itself.
pub(super) fn bounds<Q: Problem>(
    profile: &Profile,
    machine: &dyn Machine<Q>,
    setup: &Setup,
    plan: &CheckPlan,
) -> Result<Bounds, LabError> {
    let faults = plan.faults.unwrap_or((profile.tolerates)(setup));
    let (name, nodes) = (profile.name, machine.shape().nodes());
    if faults != Faults::NONE && nodes > NODES_MAX {
        return Err(LabError::new(format!(
            "{nodes} nodes are too many to check with faults: at most {NODES_MAX}"
        )));
    }
    if faults.restarts > 0 && faults.crashes == 0 {
        return Err(LabError::new(
            "nobody comes back who has not crashed: --restarts needs --crashes",
        ));
    }
    if faults.liars > 0 && !profile.survives_lies {
        return Err(LabError::new(format!(
            "{name} is not meant to stand liars, so it does not say what one could send"
        )));
    }
    let needed = match profile.needs_delay_bound {
        true => Timing::Synchronous,
        false => Timing::Asynchronous,
    };
    let timing = plan.timing.unwrap_or(needed);
    let timeouts = match timing {
        Timing::Asynchronous => Some(CheckPlan::TIMEOUTS_DEFAULT),
        Timing::Synchronous => None,
    };
    Ok(Bounds {
        entries: Some(plan.entries),
        timeouts: plan.timeouts.or(timeouts),
        timing,
        faults,
        forget: plan.forget,
        channels: profile.channels,
        // What nodes know of requests is not followed through crashes and losses.
        bypass: profile.claims.contains(&Claim::Bypass) && faults == Faults::NONE,
        safety_only: plan.safety_only,
        // What nodes know of requests tells states apart that are equal otherwise.
        // And whoever forgets what it promised breaks what canonical states rely on.
        reduced: (plan.reduces || machine.explorer().searches_canonical())
            && !plan.forget
            && !profile.claims.contains(&Claim::Bypass),
        renames: plan.reduces && !plan.forget && !profile.claims.contains(&Claim::Bypass),
        // An algorithm speaks of its messages with timers as it needs them.
        alone: plan.reduces
            && !plan.forget
            && !profile.claims.contains(&Claim::Bypass)
            && timing == needed,
    })
}

fn judge_liveness<Q: Problem>(
    machine: &dyn Machine<Q>,
    plan: &CheckPlan,
    bounds: Bounds,
    checked: &mut Checked,
    refute: impl Fn(&str, &[Step], Option<(&[Step], UserId)>, bool) -> Option<Counterexample>,
) {
    let model = Model::new(machine, bounds, plan.progress);
    match liveness(
        &model,
        bounds.channels,
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
            let what = format!("lockout: p{victim} waits for ever");
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
