//! `testigo flow check`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use testigo_flow::{Deep, Summary, deep_check};

use super::file::FlowFile;
use crate::exit::{Outcome, good_if};
use crate::lab::options::print_json;

/// Check a flow: its language, the five rules, and that every job can come to an end
///
/// Reads the language of flows, the classic notation (PROCa COLAb PROCc) and configuration files
/// (config.server). Every finding shows its place, the rule that is broken, and how to mend it.
///
/// With --json, one object: valid; errors and warnings, lists of rule, line, column, message;
/// processes, a list of name, creates, takes, passes, deletes, limit, rights; queues, a list of
/// name, limit, order, retries, reject, rights, data; with --deep, deep, a list of kind (standstill
/// with cycle and trace, a list of times and moves, each a list of process, from, to, times; or
/// rejected with queue).
///
/// Exit code 0: the flow may run; 1: it is invalid, or with --deep, can stand still; 2: the file
/// cannot be read.
///
/// Example: testigo flow check orders.flow
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Check {
    /// The flow's file; - is standard input.
    file: PathBuf,
    /// Look also for cycles of queues that can all be full at once, and for parts that only rejected
    /// jobs reach.
    #[arg(long)]
    deep: bool,
    /// Print one object with all that was found.
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(self) -> Outcome {
        let file = FlowFile::open(&self.file)?;
        let reading = file.read();
        let valid = reading.flow.is_some();
        let looked = reading.flow.as_ref().filter(|_| self.deep);
        let deep = looked.map(deep_check);
        let good = valid && !deep.iter().flatten().any(Deep::is_grave);
        if self.json {
            let summary = Summary::of(&reading);
            print_json(&Answer { summary, deep })?;
            return Ok(good_if(good));
        }
        if !reading.findings.is_empty() {
            // With colours, and without anything else that a terminal would act on.
            std::println!("{}\n", file.report(&reading.findings));
        }
        let (processes, queues) = (reading.graph.processes.len(), reading.graph.queues.len());
        match valid {
            true => println!(
                "{}: valid, {processes} processes, {queues} queues",
                file.name
            ),
            false => println!("{}: not valid", file.name),
        }
        for finding in deep.iter().flatten() {
            println!("{finding}");
        }
        Ok(good_if(good))
    }
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    deep: Option<Vec<Deep>>,
}
