//! Paxos without back-off: two proposers refuse each other for ever (coordination and agreement §5.4). The smallest
//! duel has two proposers and one acceptor, which is the last node here.

use super::super::paxos::{Config, Flaw, PAXOS, machine};
use super::super::user::Agreement;
use crate::{Algorithm, Claim, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "paxos-duel",
        title: "Paxos with duelling proposers",
        source: "coordination and agreement §5.4",
        specimen: Some(
            "a refused proposer tries again at once: two of them refuse each other for ever",
        ),
        tolerates: |_| Faults::NONE,
        claims: &[Claim::Safety, Claim::DeadlockFreedom, Claim::LockoutFreedom],
        ..PAXOS
    },
    machine: |setup| {
        setup.at_least(3)?;
        let config = Config {
            flaw: Some(Flaw::NoBackOff),
            first_acceptor: setup.users as u32 - 1,
            instances: 1,
            ..Config::new(setup)?
        };
        machine(setup, config)
    },
};
