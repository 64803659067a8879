//! Causal multicast as printed: a sender's own copy waits for a number that it already has (§4.7).

use crate::multicast::layer::Flaw;
use crate::multicast::{Multicast, causal};
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "causal-multicast-printed",
        title: "Causal multicast, with the printed guard",
        specimen: Some("no validity: a sender's own copy is held for ever"),
        telling: Telling {
            nodes: 1,
            entries: 1,
        },
        ..causal::ALGORITHM.profile
    },
    machine: |setup| causal::machine(setup, Some(Flaw::OwnCopyHeld)),
};
