//! What the workers of the test believe, and what must be true of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

#[derive(Debug, Default)]
pub(crate) struct Belief {
    /// Who believes to be inside.
    inside: BTreeMap<&'static str, u64>,
    highest: BTreeMap<&'static str, i64>,
    pub(crate) grants: u64,
    pub(crate) resumed: u64,
    /// Holds that were claimed after a crash and kept.
    pub(crate) kept: u64,
    /// Gates whose creation was acknowledged.
    pub(crate) created: VecDeque<String>,
    /// Gates whose deletion was acknowledged.
    pub(crate) deleted: VecDeque<String>,
    /// Where the present node is, and the how manieth it is.
    pub(crate) node: Option<(SocketAddr, u64)>,
    /// Who has come back to the present node.
    pub(crate) back: BTreeSet<u64>,
    pub(crate) over: bool,
}

impl Belief {
    /// A worker was told that it is inside.
    pub(crate) fn enters(
        &mut self,
        gate: &'static str,
        worker: u64,
        fence: i64,
    ) -> Result<(), String> {
        if let Some(other) = self.inside.insert(gate, worker) {
            return Err(format!("{other} and {worker} are inside {gate}"));
        }
        let before = self.highest.insert(gate, fence).unwrap_or(0);
        if fence <= before {
            return Err(format!("{gate}: fence {fence} after {before}"));
        }
        self.grants += 1;
        Ok(())
    }

    /// A worker does nothing more that the gate protects.
    pub(crate) fn leaves(&mut self, gate: &str) {
        self.inside.remove(gate);
    }

    /// Held against the gates that a node knows after its start.
    pub(crate) fn knows(&self, known: &BTreeSet<String>) -> Result<(), String> {
        let lost = self.created.iter().find(|gate| !known.contains(*gate));
        let back = self.deleted.iter().find(|gate| known.contains(*gate));
        match (lost, back) {
            (Some(gate), _) => Err(format!("{gate} was acknowledged and is lost")),
            (_, Some(gate)) => Err(format!("{gate} was deleted and is back")),
            (None, None) => Ok(()),
        }
    }
}

/// Nodes that are wrong on purpose: each must be seen.
#[test]
fn two_holders_and_fences_that_do_not_grow_are_seen() {
    let after = |events: &[(u64, i64, bool)]| {
        let mut belief = Belief::default();
        let mut result = Ok(());
        for (worker, fence, leaves) in events {
            result = result.and_then(|()| belief.enters("a", *worker, *fence));
            if *leaves {
                belief.leaves("a");
            }
        }
        result
    };
    assert_eq!(after(&[(1, 5, true), (2, 6, true), (1, 9, false)]), Ok(()));
    for (wrong, why) in [
        ([(1, 5, false), (2, 6, true)], "1 and 2 are inside a"),
        ([(1, 5, true), (2, 5, true)], "fence 5 after 5"),
        ([(1, 5, true), (2, 4, true)], "fence 4 after 5"),
    ] {
        assert!(after(&wrong).is_err_and(|found| found.contains(why)));
    }
}

#[test]
fn lost_gates_and_gates_that_come_back_are_seen() {
    let belief = Belief {
        created: ["a".to_owned()].into(),
        deleted: ["b".to_owned()].into(),
        ..Belief::default()
    };
    let after = |known: &[&str]| {
        let known = known.iter().map(|gate| (*gate).to_owned());
        belief.knows(&known.collect())
    };
    assert_eq!(after(&["a", "c"]), Ok(()));
    assert!(after(&["c"]).is_err_and(|why| why.contains("lost")));
    assert!(after(&["a", "b"]).is_err_and(|why| why.contains("is back")));
}
