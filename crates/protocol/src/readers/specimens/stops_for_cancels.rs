//! A query token stops for cancellations and not for reservations, which wait for as long as readers come.
//!
//! Source: box office §10.3, stop().

use super::unless_chosen;
use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-stops-for-cancels",
        title: "The box office, a stop for cancellations only",
        source: "box office §10.3, stop()",
        specimen: Some(
            "unfair: readers of a lent query token pass a reservation that their node knows of",
        ),
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        with_flaw(
            &unless_chosen(setup, "query/query,query,reservation", None, None)?,
            Some(Flaw::StopsForCancels),
        )
    },
};
