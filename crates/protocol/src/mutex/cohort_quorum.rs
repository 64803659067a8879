//! Cohorts, Jiang, 1995: ask all of the last cohort; where one of it is dead, a live member of it and all
//! of the cohort before, and so on.
//!
//! Source: message exclusion §3.4, figure 4.5; the arbiter is `recall`. The smallest quorums that there are,
//! at the price of a last cohort that carries all the load.

use super::Mutex;
use super::recall::on_living;
use crate::quorum::{Cohorts, KCohorts, NodeSet};
use crate::{Algorithm, Cost, NodeId, Profile, Range, Setup, SetupError};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "cohort-quorum",
        title: "Cohorts (Jiang, 1995)",
        source: "message exclusion §3.4",
        survives_crashes: true,
        keeps_storage: true,
        needs_delay_bound: true,
        costs: &[
            Cost::messages(
                "3|Q|, less 3 for a member, and 3 for each permission recalled",
                |setup| {
                    let size = first_choice(setup).len() as u32;
                    Range::new(3 * (size.max(1) - 1), 6 * size)
                },
            ),
            Cost::entry_delay("2", |_| Range::exactly(2)),
            Cost::synchronisation_delay("2, or 1 by a permission of its own", |_| Range::new(1, 2)),
        ],
        ..Profile::PLAIN
    },
    machine: |setup| {
        let cohorts = cohorts(setup)?;
        let all = NodeSet::first(setup.users);
        on_living(
            setup,
            Box::new(move |_, living| {
                let live = all.iter().filter(|&node| living(NodeId(node as u32)));
                cohorts.quorum(live.collect()).map(NodeSet::to_vec)
            }),
        )
    },
};

/// One node, then cohorts of about three.
fn cohorts(setup: &Setup) -> Result<Cohorts, SetupError> {
    let most = NodeSet::NODES_MAX;
    if setup.users > most {
        return Err(SetupError(format!(
            "{} nodes are too many for cohorts: at most {most}",
            setup.users
        )));
    }
    let sizes = KCohorts::usual_sizes(setup.users, 1)?;
    let mut from = 0;
    let next = |size: usize| {
        let cohort = NodeSet::span(from, from + size);
        from += size;
        cohort
    };
    Cohorts::new(sizes.into_iter().map(next).collect())
}

/// The quorum of everybody while all are alive.
fn first_choice(setup: &Setup) -> NodeSet {
    let found = cohorts(setup).map(|cohorts| cohorts.quorum(NodeSet::first(setup.users)));
    found.ok().flatten().unwrap_or_default()
}
