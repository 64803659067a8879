//! The return of the last query token wakes nobody, and a writer waits for ever.
//!
//! Source: box office §9, C3.

use super::unless_chosen;
use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-deaf-to-returns",
        title: "The box office, deaf to returns",
        source: "box office §9, C3",
        specimen: Some("deadlock: nobody looks who waits when a query token comes back"),
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        with_flaw(
            &unless_chosen(setup, "query/query,reservation", None, None)?,
            Some(Flaw::DeafToReturns),
        )
    },
};
