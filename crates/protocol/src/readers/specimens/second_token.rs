//! Whoever has returned a query token goes on as if it had the real one, and there are two.
//!
//! Source: box office §9, R8.

use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Claim, Profile};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-second-token",
        title: "The box office, two tokens",
        source: "box office §9, R8",
        specimen: Some("unsafe: a node that returned its query token makes a token of its own"),
        // Its runs need not end.
        claims: &[Claim::Safety],
        costs: &[],
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| with_flaw(setup, Some(Flaw::SecondToken)),
};
