//! Paxos as the slides print it: a promise carries a value without its number (coordination and agreement §5.4,
//! ambiguity A), so a proposer cannot know which of two values to take.

use super::super::paxos::{Config, Flaw, PAXOS, machine};
use super::super::user::Agreement;
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "paxos-any-accepted",
        title: "Paxos without the number of what was accepted",
        source: "coordination and agreement §5.4, ambiguity A",
        telling_timeouts: Some(1),
        specimen: Some(
            "a proposer takes any accepted value: the third ballot undoes what the second has chosen",
        ),
        tolerates: |_| Faults::NONE,
        ..PAXOS
    },
    machine: |setup| {
        let config = Config {
            flaw: Some(Flaw::AnyAccepted),
            instances: 1,
            ..Config::new(setup)?
        };
        machine(setup, config)
    },
};
