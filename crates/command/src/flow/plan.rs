//! `testigo flow plan`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use testigo_flow::{Name, plan};

use super::file::FlowFile;
use crate::exit::{Outcome, good_if};
use crate::lab::options::print_json;

/// Say what would change if a flow took the place of another
///
/// Lines with + come, lines with - go, lines with ~ change. A queue that would vanish with jobs in
/// it is an obstacle: drain it, or move its jobs first.
///
/// With --json, one object: changes, a list of kind (added, removed, changed) and what; stranded,
/// a list of queue and jobs.
///
/// Exit code 0: nothing stands in the way; 1: jobs would be stranded, or a flow is invalid; 2: a
/// file cannot be read.
///
/// Example: testigo flow plan new.flow --against old.flow --jobs orders=12
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Plan {
    /// The new flow's file; - is standard input.
    file: PathBuf,
    /// The file of the flow that it would replace.
    #[arg(long, value_name = "FILE")]
    against: PathBuf,
    /// How many jobs are in a queue of the old flow; may be repeated.
    #[arg(long, value_name = "QUEUE=N", value_parser = jobs)]
    jobs: Vec<(Name, u64)>,
    /// Print one object.
    #[arg(long)]
    json: bool,
}

fn jobs(text: &str) -> Result<(Name, u64), String> {
    let wanted = "a queue and its jobs, such as orders=12, are wanted";
    let (queue, jobs) = text.split_once('=').ok_or(wanted)?;
    let queue = Name::new(queue).map_err(|error| error.to_string())?;
    Ok((queue, jobs.parse().map_err(|_| wanted)?))
}

impl Plan {
    pub(crate) fn run(self) -> Outcome {
        let (new_file, old_file) = (FlowFile::open(&self.file)?, FlowFile::open(&self.against)?);
        let (new, old) = (new_file.read(), old_file.read());
        let Some(new) = &new.flow else {
            return Ok(new_file.refuse(&new.findings));
        };
        let Some(old) = &old.flow else {
            return Ok(old_file.refuse(&old.findings));
        };
        let jobs: BTreeMap<Name, u64> = self.jobs.into_iter().collect();
        let plan = plan(old, new, &jobs);
        let possible = plan.stranded.is_empty();
        if self.json {
            print_json(&plan)?;
            return Ok(good_if(possible));
        }
        for change in &plan.changes {
            println!("{change}");
        }
        for stranded in &plan.stranded {
            println!("{stranded}");
        }
        if plan.is_empty() {
            println!("nothing would change");
        }
        Ok(good_if(possible))
    }
}
