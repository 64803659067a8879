//! `testigo lab run`.

use std::path::PathBuf;

use clap::Args;
use testigo_lab::{Entry, Report};

use super::options::{SetupOptions, WorldOptions, print_json, write};
use super::table::{bound, number};
use crate::exit::{Outcome, good_if};

/// Simulate one algorithm, count its messages and watch its promises.
///
/// Exit code 0: safe and live; 1: not; 2: bad input.
///
/// Example: testigo lab run ricart-agrawala --nodes 5 --entries 20 --svg run.svg
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Run {
    /// The algorithm's name; `testigo lab list` shows them.
    name: String,
    /// How many nodes have a user. An algorithm may add nodes of its own, such as a server.
    #[arg(long, value_name = "N")]
    nodes: usize,
    #[command(flatten)]
    world: WorldOptions,
    #[command(flatten)]
    setup: SetupOptions,
    /// Draw the run as a space-time diagram.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Save the run, for `testigo lab replay` and `testigo lab draw`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print one object with all that was measured.
    #[arg(long)]
    json: bool,
}

impl Run {
    pub(crate) fn run(self) -> Outcome {
        let entry = Entry::find(&self.name)?;
        let world = self.world.world();
        let setup = self.setup.setup(self.nodes, world.delay_bound());
        let run = entry.run(&setup, &world, self.trace.is_some() || self.svg.is_some())?;
        if let Some(trace) = &run.trace {
            if let Some(path) = &self.trace {
                write(path, &trace.to_string())?;
            }
            if let Some(path) = &self.svg {
                write(path, &testigo_lab::picture(trace))?;
            }
        }
        if self.json {
            print_json(&run.report)?;
        } else {
            print(&entry, &run.report);
        }
        Ok(good_if(run.report.is_good()))
    }
}

fn print(entry: &Entry, report: &Report) {
    let Report {
        nodes,
        seed,
        entries,
        ..
    } = report;
    println!(
        "{}: {nodes} nodes, {entries} entries, seed {seed}",
        entry.profile.title
    );
    let promise = |name: &str, kept: bool| format!("{name} {}", if kept { "yes" } else { "NO" });
    let mut promises = vec![promise("safe", report.safe), promise("live", report.live)];
    promises.extend(report.ordered.map(|ordered| promise("ordered", ordered)));
    promises.push(promise("well-formed", report.well_formed));
    println!("  promises           {}", promises.join(", "));
    let published = match report.published_messages_per_entry {
        Some(range) if range.min == range.max => format!("   published {}", bound(range.min)),
        Some(range) => format!("   published {} to {}", bound(range.min), bound(range.max)),
        None => String::new(),
    };
    println!(
        "  messages an entry  {}{published}",
        number(report.messages_per_entry)
    );
    let kinds = report
        .messages_by_kind
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"));
    let kinds: Vec<String> = kinds.collect();
    println!(
        "  messages           {} of {} bytes: {}",
        report.messages,
        number(report.message_bytes),
        kinds.join(", ")
    );
    println!(
        "  in message times   entry delay {}, waiting {}, response {}, synchronisation delay {}",
        number(report.entry_delay),
        number(report.waiting_time),
        number(report.response_time),
        number(report.synchronisation_delay)
    );
    println!(
        "  longest bypass     {} later requests",
        report.overtakes_max
    );
    if report.inside_max > 1 || report.switches > 0 {
        println!(
            "  together           at most {} inside, {} rounds, {} of them for another kind than before",
            report.inside_max, report.rounds, report.switches
        );
    }
    for kind in &report.kinds {
        println!(
            "  {:<17}  {} entries, waiting {}",
            kind.kind,
            kind.entries,
            number(kind.waiting_time)
        );
    }
    for violation in &report.violations {
        println!("  VIOLATION          {violation}");
    }
}
