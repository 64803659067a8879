//! Paxos whose acceptors keep nothing over a crash (coordination and agreement §5.4: stable storage).

use super::super::paxos::{Config, Flaw, PAXOS, machine};
use super::super::user::Agreement;
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "paxos-forgetful",
        title: "Paxos without stable storage",
        source: "coordination and agreement §5.4",
        telling_timeouts: Some(0),
        keeps_storage: false,
        specimen: Some("an acceptor forgets its vote in a crash and votes again"),
        tolerates: |_| Faults {
            crashes: 1,
            restarts: 1,
            ..Faults::NONE
        },
        ..PAXOS
    },
    machine: |setup| {
        let config = Config {
            flaw: Some(Flaw::Forgetful),
            instances: 1,
            ..Config::new(setup)?
        };
        machine(setup, config)
    },
};
