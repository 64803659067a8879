//! Negative acknowledgements with the printed start values: S and R both 0, so the first message looks delivered (§4.4).

use crate::multicast::layer::Flaw;
use crate::multicast::{Multicast, nack};
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "nack-multicast-from-zero",
        title: "Negative acknowledgements, numbered from 0 as printed",
        specimen: Some(
            "no agreement: the first message of every sender is discarded as an old one",
        ),
        tolerates: |_| Faults::NONE,
        ..nack::ALGORITHM.profile
    },
    machine: |setup| nack::machine(setup, Some(Flaw::FirstNumberZero)),
};
