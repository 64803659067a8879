//! The counter of overtakes is kept and never looked at, and reservations pass a query for ever.
//!
//! Source: box office §9, W14.

use super::unless_chosen;
use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-no-limit",
        title: "The box office, no limit",
        source: "box office §9, W14",
        specimen: Some("unfair: reservations pass a query without a limit"),
        telling: Telling {
            nodes: 2,
            entries: 2,
        },
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        with_flaw(
            &unless_chosen(setup, "reservation,reservation/query", Some(1), None)?,
            Some(Flaw::NoLimit),
        )
    },
};
