//! The thesis' rooms with an arbiter that remembers, and counters that a lock does not bring: a group that
//! seldom competes has a small counter, and its requests go first until it has caught up.
//!
//! Source: group exclusion §7, defect (c).

use crate::rooms::Rooms;
use crate::rooms::maekawa::{self, with_locks};
use crate::{Algorithm, Profile, Setup, Telling};

pub(crate) const ALGORITHM: Algorithm<Rooms> = Algorithm {
    profile: Profile {
        name: "rooms-maekawa-unmerged",
        title: "Rooms over Maekawa quorums, counters apart",
        specimen: Some("unfair: a group with a small counter passes the others again and again"),
        telling: Telling {
            nodes: 2,
            entries: 5,
        },
        telling_groups: Some(3),
        costs: &[],
        ..maekawa::ALGORITHM.profile
    },
    machine: |setup| {
        let groups = setup.groups.or(Some(3));
        with_locks(
            &Setup {
                groups,
                ..setup.clone()
            },
            false,
        )
    },
};
