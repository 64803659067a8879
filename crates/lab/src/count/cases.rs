//! One run for each published count.

use std::collections::BTreeMap;

use testigo_protocol::Setup;
use testigo_sim::ParseError;

use super::experiment::CountRow;
use crate::family::{KnownAlgorithm, LabError};
use crate::run::Run;
use crate::world::World;

/// A run in which something published is counted.
pub(super) struct Case {
    pub(super) algorithm: &'static str,
    pub(super) setup: Setup,
    /// Who asks, all at the beginning.
    pub(super) callers: Vec<usize>,
    /// What fails, as `testigo lab run --fault` takes it.
    pub(super) fault: Option<String>,
    pub(super) seed: u64,
}

/// The messages of each kind.
pub(super) type Kinds = BTreeMap<String, u64>;

impl Case {
    pub(super) fn new(algorithm: &'static str, nodes: usize, callers: &[usize]) -> Case {
        Case {
            algorithm,
            setup: Setup::new(nodes),
            callers: callers.to_vec(),
            fault: None,
            seed: 1,
        }
    }

    /// The same where this node is down from the beginning.
    pub(super) fn without(self, node: usize) -> Case {
        Case {
            fault: Some(format!("halt:{node}@0")),
            ..self
        }
    }

    pub(super) fn run(&self) -> Result<Run, LabError> {
        let read = |error: ParseError| LabError::new(error.to_string());
        let callers = self.callers.iter().map(|node| format!("{node}@0"));
        let callers: Vec<String> = callers.collect();
        let fault = self.fault.as_ref().map(|fault| fault.parse());
        let world = World {
            entries: self.callers.len() as u64,
            seed: self.seed,
            arrivals: format!("script:{}", callers.join(","))
                .parse()
                .map_err(read)?,
            faults: fault.transpose().map_err(read)?.into_iter().collect(),
            ..World::default()
        };
        let run = KnownAlgorithm::find(self.algorithm)?.run(&self.setup, &world, true)?;
        match run.report.is_good() {
            true => Ok(run),
            false => Err(LabError::new(format!(
                "{} broke a promise in a run that is to be counted: {}",
                self.algorithm,
                run.report.violations.join("; ")
            ))),
        }
    }

    pub(super) fn kinds(&self) -> Result<Kinds, LabError> {
        Ok(self.run()?.report.messages_by_kind)
    }
}

/// A published count, which is the sum of those of its kinds.
pub(super) fn published(
    what: impl Into<String>,
    size: usize,
    formula: &'static str,
    parts: &[(&str, usize)],
    kinds: Kinds,
) -> CountRow {
    let parts = parts.iter().filter(|(_, count)| *count > 0);
    let parts: Kinds = parts
        .map(|(kind, count)| ((*kind).to_owned(), *count as u64))
        .collect();
    CountRow {
        formula: Some(formula),
        published: Some(parts.values().sum::<u64>() as f64),
        reached: Some(parts == kinds),
        ..counted(what, size, kinds)
    }
}

/// A count of which only the sum is published.
pub(super) fn published_sum(
    what: impl Into<String>,
    size: usize,
    formula: &'static str,
    sum: usize,
    kinds: Kinds,
) -> CountRow {
    let row = counted(what, size, kinds);
    CountRow {
        formula: Some(formula),
        published: Some(sum as f64),
        reached: Some(row.counted == sum as f64),
        ..row
    }
}

/// A count of which nothing is published.
pub(super) fn counted(what: impl Into<String>, size: usize, kinds: Kinds) -> CountRow {
    CountRow {
        what: what.into(),
        size,
        formula: None,
        published: None,
        counted: kinds.values().sum::<u64>() as f64,
        kinds,
        reached: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_differs_is_not_reached() {
        let kinds = || Case::new("isis", 4, &[0]).kinds().expect("known");
        let all = ["Message", "Propose", "Agree"];
        let row = published("isis", 4, "3(N−1)", &all.map(|kind| (kind, 3)), kinds());
        assert_eq!((row.published, row.reached), (Some(9.0), Some(true)));
        let parts = [("Message", 2), ("Propose", 3), ("Agree", 4)];
        let row = published("isis", 4, "3(N−1)", &parts, kinds());
        assert_eq!((row.published, row.reached), (Some(9.0), Some(false)));
        let row = published_sum("isis", 4, "3N", 12, kinds());
        assert_eq!((row.counted, row.reached), (9.0, Some(false)));
    }

    /// The ring has nobody who passes a message over a node that is down.
    #[test]
    fn a_run_that_breaks_a_promise_is_not_counted() {
        let case = Case::new("ring-election", 3, &[0]).without(2);
        let error = case.kinds().expect_err("it waits for ever").to_string();
        assert!(error.contains("ring-election broke a promise"), "{error}");
    }
}
