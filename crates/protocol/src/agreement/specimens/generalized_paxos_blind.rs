//! Generalized Paxos that takes no commands for conflicting (coordination and agreement §5.5.4).

use super::super::generalized_paxos::machine;
use super::super::paxos::PAXOS;
use super::super::user::Agreement;
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "generalized-paxos-blind",
        title: "Generalized Paxos that sees no conflicts",
        source: "coordination and agreement §5.5.4",
        telling_timeouts: Some(0),
        specimen: Some("two writes of one key are learned in different orders"),
        tolerates: |_| Faults::NONE,
        ..PAXOS
    },
    machine: |setup| machine(setup, |_, _| false),
};
