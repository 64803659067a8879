//! The requests that are known do not travel with the token: its next holder overtakes queries that the
//! last one knew of.
//!
//! Source: box office §10.2.

use super::unless_chosen;
use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-forgetful-token",
        title: "The box office, a forgetful token",
        source: "box office §10.2",
        specimen: Some("unfair: a query is passed more often than the limit allows"),
        telling: Telling {
            nodes: 3,
            entries: 2,
        },
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        with_flaw(
            &unless_chosen(setup, "reservation/reservation/query", Some(1), None)?,
            Some(Flaw::ForgetfulToken),
        )
    },
};
