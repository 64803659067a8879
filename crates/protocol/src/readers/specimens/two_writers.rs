//! The box office without exclusion at home: where the token is, any number of writers walk in.
//!
//! Source: box office §9, W8.

use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Claim, Profile};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-two-writers",
        title: "The box office, any writers at home",
        source: "box office §9, W8",
        specimen: Some("unsafe: two writers of one node walk in"),
        // Its runs need not end.
        claims: &[Claim::Safety],
        costs: &[],
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| with_flaw(setup, Some(Flaw::NoLocalExclusion)),
};
