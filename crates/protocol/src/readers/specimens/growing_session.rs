//! Readers join a session while writers wait, and the writers wait for as long as readers come.
//!
//! Source: box office §9, C5.

use super::unless_chosen;
use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-growing-session",
        title: "The box office, a session that grows",
        source: "box office §9, C5",
        specimen: Some("unfair: readers are let in before a writer that is known to wait"),
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        with_flaw(
            &unless_chosen(setup, "query,query/cancel", None, None)?,
            Some(Flaw::GrowingSession),
        )
    },
};
