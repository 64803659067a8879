//! FIFO multicast that holds nothing back: a later message that arrives first is delivered first (§4.6).

use crate::multicast::layer::Flaw;
use crate::multicast::{Multicast, fifo};
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "fifo-multicast-unheld",
        title: "FIFO multicast, nothing held back",
        specimen: Some(
            "not FIFO: a later message overtakes an earlier one, which is then discarded",
        ),
        tolerates: |_| Faults::NONE,
        ..fifo::ALGORITHM.profile
    },
    machine: |setup| fifo::machine(setup, Some(Flaw::NoHoldBack)),
};
