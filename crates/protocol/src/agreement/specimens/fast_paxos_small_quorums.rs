//! Fast Paxos with three acceptors and quorums of two (coordination and agreement §5.5.3): after a collision two values
//! look as if they had been chosen, and one of them has.

use super::super::fast_paxos::{Quorums, machine};
use super::super::paxos::PAXOS;
use super::super::user::Agreement;
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "fast-paxos-small-quorums",
        title: "Fast Paxos with majorities in the fast round",
        source: "coordination and agreement §5.5.3",
        telling_timeouts: Some(1),
        specimen: Some(
            "fast quorums are majorities: a recovery cannot know which of two values was chosen",
        ),
        tolerates: |_| Faults::NONE,
        ..PAXOS
    },
    machine: |setup| {
        let faults = setup.users.saturating_sub(1) / 2;
        let quorums = Quorums {
            fast_faults: faults,
            classic_faults: faults,
        };
        machine(setup, quorums, 1)
    },
};
