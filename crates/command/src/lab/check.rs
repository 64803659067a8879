//! `testigo lab check`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use testigo_lab::{CheckPlan, Checked, KnownAlgorithm, Timing, Verdict, narrate};
use testigo_sim::Time;

use super::check_faults::{FaultOptions, TimingOption, faults_in_words};
use super::check_slots::{self, SlotsOptions};
use super::draw::ViewOptions;
use super::options::{SetupOptions, print_json, write};
use super::progress;
use super::table::members;
use crate::exit::{Outcome, good_if};

/// Explore every interleaving, up to a bound.
///
/// Exit code 0: nothing refuted; 2: bad input;
/// 1: safety, rest, bounded bypass, deadlock freedom or lockout freedom is refuted.
/// A refutation is printed as its shortest schedule and saved as a trace.
///
/// `slots` is checked too: every order of takes, gives and deliveries in a group of 2 to 8 members
/// (--nodes or --members, 3), with one fault. Then safety means that no slot can be used at two
/// members, and rest that nothing is open, lost or disputed once everything was delivered; a
/// refutation is printed step by step, and not saved.
///
/// Where an algorithm says which faults it tolerates, these are tried, each so many times in a run;
/// --crashes, --restarts, --losses, --duplicates and --liars say how many instead. A crash may take
/// messages of its node with it that are still under way. A liar sends any lie that its algorithm
/// has for a message, the truth, or nothing.
///
/// Examples: testigo lab check maekawa-slides
///           testigo lab check central --nodes 2 --crashes 1
///           testigo lab check slots --mode paper --fault crash
///           testigo lab check slots --mode directed
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Check {
    /// The algorithm's name, as `testigo lab list` shows them, or slots.
    name: String,
    /// How many nodes have a user. Without it, the smallest configuration that tells.
    #[arg(long, value_name = "N", alias = "members")]
    nodes: Option<usize>,
    /// How often each user asks: entries, elections, multicasts or decisions (default 1, or what tells where no --nodes is given).
    #[arg(long, value_name = "E")]
    entries: Option<u32>,
    /// How many timers may fire in a run (asynchronous 3, synchronous any number).
    #[arg(long, value_name = "T")]
    timeouts: Option<u32>,
    #[command(flatten)]
    faults: FaultOptions,
    /// Give up after so many generated states (20000000; of slots 2000000).
    #[arg(long, value_name = "M", alias = "states-max")]
    max_states: Option<usize>,
    /// Make states one that no later step can tell apart: orders of messages on links that have none, clocks that
    /// differ by as much everywhere, and equal nodes that have changed places; and try no other order where a
    /// message makes the same difference in any. The whole search is made first, and the states that this saves
    /// are shown beside it.
    #[arg(long)]
    reduce: bool,
    /// As --reduce, without the whole search: for what only the reductions bring within reach.
    #[arg(long, conflicts_with = "reduce")]
    reduced_only: bool,
    /// Look for unsafe states alone, and go on where somebody is stuck: two-phase commit blocks when a node crashes.
    #[arg(long)]
    safety_only: bool,
    #[command(flatten)]
    setup: SetupOptions,
    /// Where a counterexample is saved (default NAME.counterexample.trace).
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Draw a counterexample.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    view: ViewOptions,
    #[command(flatten)]
    slots: SlotsOptions,
    /// Print one object with the verdicts.
    #[arg(long)]
    json: bool,
}

/// Its field names are a contract with scripts.
#[derive(Serialize)]
struct Json {
    algorithm: &'static str,
    nodes: usize,
    entries: u32,
    states: usize,
    complete: bool,
    safety: Verdict,
    /// Bounded bypass; null where it is not claimed.
    bounds: Option<Verdict>,
    deadlock_freedom: Verdict,
    lockout_freedom: Verdict,
    counterexample: Option<PathBuf>,
    counterexample_steps: Option<usize>,
    generated: usize,
    lockout_states: usize,
    notes: Vec<String>,
    /// How many faults there could be.
    crashes: u32,
    restarts: u32,
    losses: u32,
    duplicates: u32,
    liars: u32,
    /// Whether a node that crashed had lost its stable storage.
    forget: bool,
    timing: Timing,
    /// The states without reductions, where there were reductions.
    states_whole: Option<usize>,
    /// How many timers could fire; null where there was no bound.
    timeouts: Option<u32>,
}

impl Check {
    pub(crate) fn run(self) -> Outcome {
        if self.name == check_slots::NAME {
            if self.entries.is_some() || self.trace.is_some() || self.svg.is_some() {
                return Err("slots have no --entries, --trace or --svg".into());
            }
            if self.faults.is_given() || self.timeouts.is_some() {
                return Err("slots have --fault in place of the faults of algorithms".into());
            }
            return self.slots.run(self.nodes, self.max_states, self.json);
        }
        self.slots.none()?;
        let algorithm = KnownAlgorithm::find(&self.name)?;
        let telling = algorithm.profile.telling;
        let entries = match (self.entries, self.nodes) {
            (Some(entries), _) => entries,
            (None, Some(_)) => 1,
            (None, None) => telling.entries as u32,
        };
        let nodes = self.nodes.unwrap_or(telling.nodes);
        let mut setup = self.setup.only(nodes, Time::units(1))?;
        if self.nodes.is_none() {
            setup.groups = setup.groups.or(algorithm.profile.telling_groups);
            setup.proposers = setup.proposers.or(algorithm.profile.telling_proposers);
        }
        let plan = CheckPlan {
            entries,
            timeouts: self.timeouts.or(match self.nodes {
                Some(_) => None,
                None => algorithm.profile.telling_timeouts,
            }),
            timing: self.faults.timing.map(TimingOption::timing),
            faults: self.faults.faults((algorithm.profile.tolerates)(&setup)),
            forget: self.faults.forget,
            reduces: false,
            safety_only: self.safety_only,
            states_max: self.max_states.unwrap_or(CheckPlan::STATES_MAX_DEFAULT),
            progress: progress::of_check(),
        };
        let whole = match self.reduce {
            true => Some(algorithm.check(&setup, &plan)?),
            false => None,
        };
        let plan = CheckPlan {
            reduces: self.reduce || self.reduced_only,
            ..plan
        };
        let checked = algorithm.check(&setup, &plan)?;
        progress::clear();
        let saved = self.save(&algorithm, &checked)?;
        if self.json {
            print_json(&Json {
                algorithm: checked.algorithm,
                nodes: checked.nodes,
                entries: checked.entries,
                states: checked.states,
                complete: checked.complete,
                safety: checked.safety,
                bounds: checked.bounds,
                deadlock_freedom: checked.deadlock_freedom,
                lockout_freedom: checked.lockout_freedom,
                counterexample_steps: checked.counterexample.as_ref().map(|found| found.steps),
                counterexample: saved,
                generated: checked.generated,
                lockout_states: checked.liveness_states,
                notes: checked.notes.clone(),
                crashes: checked.faults.crashes,
                restarts: checked.faults.restarts,
                losses: checked.faults.losses,
                duplicates: checked.faults.copies,
                liars: checked.faults.liars,
                forget: checked.forget,
                timing: checked.timing,
                states_whole: whole.as_ref().map(|whole| whole.states),
                timeouts: checked.timeouts,
            })?;
        } else {
            print(&algorithm, &checked, whole.as_ref(), saved);
        }
        Ok(good_if(!checked.refuted()))
    }

    fn save(
        &self,
        algorithm: &KnownAlgorithm,
        checked: &Checked,
    ) -> Result<Option<PathBuf>, crate::exit::Failure> {
        let Some(found) = &checked.counterexample else {
            return Ok(None);
        };
        let default = || PathBuf::from(format!("{}.counterexample.trace", algorithm.profile.name));
        let path = self.trace.clone().unwrap_or_else(default);
        write(&path, &found.trace.to_string())?;
        if let Some(svg) = &self.svg {
            write(svg, &testigo_lab::picture(&found.trace, self.view.view()))?;
        }
        Ok(Some(path))
    }
}

/// A schedule of more steps is for the trace, not for the screen.
const STEPS_PRINTED_MAX: usize = 60;

fn print(
    algorithm: &KnownAlgorithm,
    checked: &Checked,
    whole: Option<&Checked>,
    saved: Option<PathBuf>,
) {
    println!(
        "{}: {}, {} each",
        algorithm.profile.title,
        members(checked.nodes, !algorithm.sends_messages()),
        algorithm.counted().of(u64::from(checked.entries))
    );
    if let Some(faults) = faults_in_words(checked) {
        println!("  faults             {faults}");
    }
    if checked.timing == Timing::Synchronous {
        println!("  timing             synchronous: timers fire when no message is under way");
    }
    let scope = if checked.complete {
        "all of them"
    } else {
        "not all of them"
    };
    println!(
        "  states             {} ({} generated), {scope}",
        checked.states, checked.generated
    );
    if let Some(whole) = whole {
        let all = match whole.complete || whole.refuted() {
            true => format!("{} without reductions", whole.states),
            false => format!("more than {} without reductions", whole.states),
        };
        let saved = whole.states.saturating_sub(checked.states);
        println!("  reductions         save {saved} states: {all}");
    }
    println!("  safety             {}", checked.safety.word());
    if let Some(bounds) = checked.bounds {
        println!("  bounded bypass     {}", bounds.word());
    }
    println!("  deadlock freedom   {}", checked.deadlock_freedom.word());
    let asked = match checked.liveness_states {
        0 => String::new(),
        states if algorithm.counted().has_inside() => {
            format!(" ({states} states with users that ask for ever)")
        }
        states => format!(" ({states} states)"),
    };
    println!(
        "  lockout freedom    {}{asked}",
        checked.lockout_freedom.word()
    );
    for note in &checked.notes {
        println!("  note               {note}");
    }
    if let Some(found) = &checked.counterexample {
        println!("\n{}, in {} steps:", found.what, found.steps);
        println!("{}", narrate(&found.trace, STEPS_PRINTED_MAX));
    }
    if let Some(path) = saved {
        println!(
            "\nsaved as {0}; see it with: testigo lab draw {0} --svg picture.svg",
            path.display()
        );
    }
}
