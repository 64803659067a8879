//! Cheap Paxos read naively: a leader lowers its quorum by itself (coordination and agreement §5.5.2). Two main acceptors that
//! suspect each other choose two values.

use super::super::cheap_paxos::{CHEAP_PAXOS, Flaw, machine};
use super::super::user::Agreement;
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "cheap-paxos-alone",
        title: "Cheap Paxos with quorums that each leader lowers alone",
        source: "coordination and agreement §5.5.2",
        specimen: Some("a leader goes on without the acceptors that it suspects, and asks nobody"),
        tolerates: |_| Faults::NONE,
        telling_proposers: Some(2),
        telling_timeouts: Some(2),
        ..CHEAP_PAXOS
    },
    machine: |setup| machine(setup, Some(Flaw::LowersAlone)),
};
