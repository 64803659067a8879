//! `testigo flow check`.

use std::path::PathBuf;

use clap::Args;
use testigo_flow::Summary;

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
/// name, limit, order, retries, reject, rights, data.
///
/// Exit code 0: the flow may run; 1: it is invalid; 2: the file cannot be read.
///
/// Example: testigo flow check orders.flow
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Check {
    /// The flow's file; - is standard input.
    file: PathBuf,
    /// Print one object with all that was found.
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(self) -> Outcome {
        let file = FlowFile::open(&self.file)?;
        let reading = file.read();
        let valid = reading.flow.is_some();
        if self.json {
            print_json(&Summary::of(&reading))?;
            return Ok(good_if(valid));
        }
        if !reading.findings.is_empty() {
            println!("{}\n", file.report(&reading.findings));
        }
        let (processes, queues) = (reading.graph.processes.len(), reading.graph.queues.len());
        match valid {
            true => println!(
                "{}: valid, {processes} processes, {queues} queues",
                file.name
            ),
            false => println!("{}: not valid", file.name),
        }
        Ok(good_if(valid))
    }
}
