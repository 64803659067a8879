//! The list of query tokens holds one entry: an earlier one is forgotten, and the token leaves too early.
//!
//! Source: box office §9, C2.

use super::unless_chosen;
use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-forgetful-list",
        title: "The box office, a list of one",
        source: "box office §9, C2",
        specimen: Some("unsafe: the first of two query tokens is forgotten"),
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        with_flaw(
            &unless_chosen(setup, "query/query/query,reservation", None, None)?,
            Some(Flaw::ForgetfulList),
        )
    },
};
