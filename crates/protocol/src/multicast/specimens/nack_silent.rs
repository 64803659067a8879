//! Negative acknowledgements as printed: nothing is said after the last message, so nobody notices its loss (§4.4).

use crate::multicast::layer::Flaw;
use crate::multicast::{Multicast, nack};
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "nack-multicast-silent",
        title: "Negative acknowledgements, without empty messages",
        specimen: Some("no agreement: the loss of the last message is never noticed"),
        tolerates: |_| Faults {
            losses: 1,
            ..Faults::NONE
        },
        ..nack::ALGORITHM.profile
    },
    machine: |setup| nack::machine(setup, Some(Flaw::Silence)),
};
