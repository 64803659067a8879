//! The first reader to leave returns the query token under which others of its node still read.
//!
//! Source: box office §9, R6.

use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-early-return",
        title: "The box office, query tokens returned early",
        source: "box office §9, R6",
        specimen: Some("unsafe: the token leaves while readers of a lent query token are inside"),
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| with_flaw(setup, Some(Flaw::FirstReaderReturns)),
};
