//! `testigo lab claims`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Args;
use testigo_lab::{Finding, KnownAlgorithm, LabError, claims};

use super::options::print_json;
use super::progress;
use super::table::{Table, yes};
use crate::exit::{Outcome, good_if};

/// Hold what is published against what is measured, for all algorithms or for some.
///
/// A claim that does not hold is reported, and is no failure of this command.
/// Exit code 0: done; 2: bad input.
///
/// Example: testigo lab claims sanders
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Claims {
    /// The algorithms' names; without any, all of them.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print a list of objects: algorithm, claim, published, measured, nodes, holds.
    #[arg(long)]
    json: bool,
}

impl Claims {
    pub(crate) fn run(self) -> Outcome {
        let algorithms = match self.names.is_empty() {
            true => KnownAlgorithm::all(),
            false => self
                .names
                .iter()
                .map(|name| KnownAlgorithm::find(name))
                .collect::<Result<_, _>>()?,
        };
        let findings = find_all(&algorithms)?;
        if self.json {
            print_json(&findings)?;
            return Ok(good_if(true));
        }
        let mut table = Table::new(&[
            "ALGORITHM",
            "CLAIM",
            "NODES",
            "PUBLISHED",
            "MEASURED",
            "HOLDS",
        ]);
        for finding in &findings {
            table.row([
                finding.algorithm.to_owned(),
                finding.claim.clone(),
                finding.nodes.to_string(),
                finding.published.clone(),
                finding.measured.clone(),
                yes(finding.holds),
            ]);
        }
        table.print();
        Ok(good_if(true))
    }
}

/// Everything that is found, in the order of the algorithms. Every core works on one of them at a time.
fn find_all(algorithms: &[KnownAlgorithm]) -> Result<Vec<Finding>, LabError> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut found = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            match algorithms.get(at) {
                None => return found,
                Some(algorithm) => {
                    found.push((at, claims(algorithm)));
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    progress::of_parts(done, algorithms.len(), "algorithms");
                }
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut found: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let found = workers.into_iter().map(|worker| worker.join());
        let found = found.map(|found| found.expect("claims are held against runs without a panic"));
        found.flatten().collect()
    });
    progress::clear();
    found.sort_by_key(|(at, _)| *at);
    let findings = found.into_iter().map(|(_, findings)| findings);
    let findings: Result<Vec<Vec<Finding>>, LabError> = findings.collect();
    Ok(findings?.into_iter().flatten().collect())
}
