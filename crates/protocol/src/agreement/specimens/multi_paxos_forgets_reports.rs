//! Multi-Paxos whose new leader begins with an empty log (coordination and agreement §5.5.1).

use super::super::multi_paxos::{Flaw, machine};
use super::super::paxos::PAXOS;
use super::super::user::Agreement;
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "multi-paxos-forgets-reports",
        title: "Multi-Paxos without its reports",
        source: "coordination and agreement §5.5.1",
        telling_timeouts: Some(1),
        specimen: Some("a new leader fills with no-ops what an older one has chosen"),
        tolerates: |_| Faults::NONE,
        ..PAXOS
    },
    machine: |setup| machine(setup, Some(Flaw::ForgetsReports)),
};
