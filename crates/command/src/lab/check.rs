//! `testigo lab check`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use testigo_lab::{CheckPlan, Checked, KnownAlgorithm, Verdict, narrate};
use testigo_sim::Time;

use super::draw::ViewOptions;
use super::options::{SetupOptions, print_json, write};
use super::progress;
use crate::exit::{Outcome, good_if};

/// Explore every interleaving, up to a bound.
///
/// Exit code 0: nothing refuted; 2: bad input;
/// 1: safety, bounded bypass, deadlock freedom or lockout freedom is refuted.
/// A refutation is printed as its shortest schedule and saved as a trace.
///
/// Example: testigo lab check maekawa-slides
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Check {
    /// The algorithm's name; `testigo lab list` shows them.
    name: String,
    /// How many nodes have a user. Without it, the smallest configuration that tells.
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// How often each user enters (default 1, or what tells where no --nodes is given).
    #[arg(long, value_name = "E")]
    entries: Option<u32>,
    /// How many timers may fire in a run.
    #[arg(long, value_name = "T", default_value_t = CheckPlan::TIMEOUTS_DEFAULT)]
    timeouts: u32,
    /// Give up after so many generated states.
    #[arg(long, value_name = "M", default_value_t = CheckPlan::STATES_MAX_DEFAULT)]
    max_states: usize,
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
}

impl Check {
    pub(crate) fn run(self) -> Outcome {
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
        }
        let plan = CheckPlan {
            entries,
            timeouts: self.timeouts,
            states_max: self.max_states,
            progress: progress::of_check(),
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
            })?;
        } else {
            print(&algorithm, &checked, saved);
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

fn print(algorithm: &KnownAlgorithm, checked: &Checked, saved: Option<PathBuf>) {
    let (nodes, entries) = (checked.nodes, checked.entries);
    let noun = if entries == 1 { "entry" } else { "entries" };
    println!(
        "{}: {nodes} nodes, {entries} {noun} each",
        algorithm.profile.title
    );
    let scope = if checked.complete {
        "all of them"
    } else {
        "not all of them"
    };
    println!(
        "  states             {} ({} generated), {scope}",
        checked.states, checked.generated
    );
    println!("  safety             {}", checked.safety.word());
    if let Some(bounds) = checked.bounds {
        println!("  bounded bypass     {}", bounds.word());
    }
    println!("  deadlock freedom   {}", checked.deadlock_freedom.word());
    let asked = match checked.liveness_states {
        0 => String::new(),
        states => format!(" ({states} states with users that ask for ever)"),
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
