//! Every interleaving of single accesses, up to a bound.

use std::sync::Arc;

use stateright::{Checker, HasDiscoveries, Model as _};
use testigo_memory::Program;
use testigo_protocol::{Faults, Profile, Setup, UserId};
use testigo_sim::Time;

use super::graph::{ThreadGraph, ThreadLasso, ThreadLiveness};
use super::model::{SAFETY, ThreadModel, ThreadState, ThreadStep};
use super::stage::ThreadStage;
use crate::check::{CheckPlan, Checked, Counterexample, Timing, Verdict};
use crate::family::LabError;
use crate::trace::{Clock, Event, Header, Trace};

/// The graph keeps every state and step in memory.
const STATES_KEPT_MAX: usize = 1_500_000;

pub(crate) fn check(
    profile: &'static Profile,
    program: &Arc<dyn Program>,
    present: &[usize],
    grows: bool,
    setup: &Setup,
    plan: &CheckPlan,
) -> Result<Checked, LabError> {
    if plan.entries == 0 || plan.states_max == 0 {
        let why = "nothing to check: --entries and --max-states must be at least 1";
        return Err(LabError::new(why));
    }
    if plan.faults.is_some_and(|faults| faults != Faults::NONE) {
        let why = "threads have no such faults: leave out --crashes, --restarts, --losses, --duplicates and --liars";
        return Err(LabError::new(why));
    }
    let model = |entries| ThreadModel::new(Arc::clone(program), present, entries, plan.progress);
    let player = Player {
        profile,
        program,
        setup,
        entries: plan.entries,
    };
    let checker = model(Some(plan.entries))
        .checker()
        .threads(1)
        .finish_when(HasDiscoveries::Any)
        .target_state_count(plan.states_max)
        .spawn_bfs()
        .join();
    let found = checker.discovery(SAFETY);
    let within = checker.state_count() < plan.states_max;
    let complete = found.is_none() && within && checker.model().tries_all_firsts();
    let mut checked = Checked {
        faults: Faults::NONE,
        forget: false,
        keeps_storage: profile.keeps_storage,
        timing: Timing::Asynchronous,
        timeouts: plan.timeouts,
        algorithm: profile.name,
        nodes: setup.users,
        entries: plan.entries,
        states: checker.unique_state_count(),
        generated: checker.state_count(),
        complete,
        safety: match (&found, complete) {
            (Some(_), _) => Verdict::Refuted,
            (None, true) => Verdict::Holds,
            (None, false) => Verdict::NotCovered,
        },
        bounds: None,
        deadlock_freedom: Verdict::NotCovered,
        lockout_freedom: Verdict::NotCovered,
        liveness_states: 0,
        notes: Vec::new(),
        counterexample: None,
    };
    if let Some(path) = found {
        let what = checker.model().violation(path.last_state());
        let begins = path.clone().into_states().swap_remove(0);
        let steps: Vec<ThreadStep> = path.into_actions();
        let what = what.unwrap_or_default();
        let ends = Ends::Here;
        checked.counterexample = Some(player.play(&what, &begins, &steps, &[], ends));
        let note = "the search ended with the first refutation";
        checked.notes.push(note.into());
        return Ok(checked);
    }
    if !within {
        let generated = checked.generated;
        let note = format!("the search ended after {generated} generated states");
        checked.notes.push(note);
    }
    if !checker.model().tries_all_firsts() {
        let all = checker.model().combinations();
        let note = format!("it began with 1 of {all} combinations of first values");
        checked.notes.push(note);
    }
    if !complete {
        return Ok(checked);
    }
    let kept = plan.states_max.min(STATES_KEPT_MAX);
    let for_ever = model(None);
    let explored = match grows {
        true => None,
        false => ThreadGraph::explore(&for_ever, kept),
    };
    if let Some(graph) = explored {
        checked.liveness_states = graph.states.len();
        if let Some(state) = graph
            .states
            .iter()
            .find(|s| for_ever.violation(s).is_some())
        {
            let what = for_ever.violation(state).unwrap_or_default();
            let note = format!("unsafe after more than {} entries: {what}", plan.entries);
            checked.safety = Verdict::Refuted;
            checked.notes.push(note);
            return Ok(checked);
        }
        player.judge(&graph, &for_ever, &mut checked);
        return Ok(checked);
    }
    let bounded = model(Some(plan.entries));
    match ThreadGraph::explore(&bounded, kept) {
        Some(graph) => {
            player.judge(&graph, &bounded, &mut checked);
            if checked.lockout_freedom == Verdict::Holds {
                checked.lockout_freedom = Verdict::NotCovered;
                let entries = plan.entries;
                let why = match grows {
                    true => "its numbers grow for ever".to_owned(),
                    false => format!("there are more than {kept} states"),
                };
                let noun = if entries == 1 { "entry" } else { "entries" };
                checked.notes.push(format!(
                    "lockout freedom holds with {entries} {noun} each; with processes that ask for ever, {why}"
                ));
            }
        }
        None => checked.notes.push(format!(
            "deadlock and lockout freedom are not covered: more than {kept} states"
        )),
    }
    Ok(checked)
}

/// Turns what was found into a trace.
struct Player<'a> {
    profile: &'static Profile,
    program: &'a Arc<dyn Program>,
    setup: &'a Setup,
    entries: u32,
}

/// How a schedule ends.
#[derive(Clone, Copy)]
enum Ends {
    /// With a state that is wrong.
    Here,
    /// With a cycle on which nobody gets in.
    Stuck,
    /// With a cycle on which this process is never served.
    Starving(usize),
}

impl Player<'_> {
    fn judge(&self, graph: &ThreadGraph, model: &ThreadModel, checked: &mut Checked) {
        let lasso = |what: &str, lasso: &ThreadLasso, ends| {
            Some(self.play(what, &lasso.begins, &lasso.stem, &lasso.cycle, ends))
        };
        match graph.judge(model) {
            ThreadLiveness::Holds => {
                (checked.deadlock_freedom, checked.lockout_freedom) =
                    (Verdict::Holds, Verdict::Holds);
            }
            ThreadLiveness::Stuck(found) => {
                checked.deadlock_freedom = Verdict::Refuted;
                let what = "deadlock: somebody waits, and nobody ever gets in";
                checked.counterexample = lasso(what, &found, Ends::Stuck);
            }
            ThreadLiveness::Starves(victim, found) => {
                checked.deadlock_freedom = Verdict::Holds;
                checked.lockout_freedom = Verdict::Refuted;
                let what = format!("lockout: p{victim} waits for ever while others are served");
                checked.counterexample = lasso(&what, &found, Ends::Starving(victim));
            }
        }
    }

    fn play(
        &self,
        what: &str,
        begins: &ThreadState,
        steps: &[ThreadStep],
        cycle: &[ThreadStep],
        ends: Ends,
    ) -> Counterexample {
        let mut stage = ThreadStage::new(&**self.program, true);
        let model = ThreadModel::new(Arc::clone(self.program), &[], None, |_| {});
        for (register, &word) in model.memory(begins).iter().enumerate() {
            if u64::from(word) != stage.memory.words[register] {
                stage.set(register, u64::from(word));
            }
        }
        let mut now = 0;
        for (index, step) in steps.iter().chain(cycle).enumerate() {
            now += 1;
            if index == steps.len() {
                stage.record(Time::units(now), || Event::Cycle);
            }
            stage.step(Time::units(now), usize::from(step.actor), step.room);
        }
        match ends {
            Ends::Here => {}
            Ends::Stuck => stage.stuck(Time::units(now + 1)),
            Ends::Starving(victim) => stage.repeat(Time::units(now + 1), UserId(victim as u32)),
        }
        let (name, entries) = (self.profile.name, self.entries);
        let made_by = format!("check of {name} with {entries} entries a process: {what}");
        let header = Header::new(self.profile, &stage.shape, self.setup, made_by);
        Counterexample {
            what: what.into(),
            steps: steps.len() + cycle.len(),
            trace: Trace {
                header: Header {
                    clock: Clock::Steps,
                    ..header
                },
                events: stage.into_trace().unwrap_or_default(),
            },
        }
    }
}
