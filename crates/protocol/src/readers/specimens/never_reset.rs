//! The counter of overtakes stays full after queries have had their turn, and from then on they go before
//! every reservation.
//!
//! Source: box office §5.

use super::unless_chosen;
use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-never-reset",
        title: "The box office, a counter that stays full",
        source: "box office §5",
        specimen: Some("unfair: queries go before a reservation that passed nobody"),
        telling: Telling {
            nodes: 1,
            entries: 2,
        },
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        with_flaw(
            &unless_chosen(setup, "reservation,reservation,query", Some(1), None)?,
            Some(Flaw::NeverReset),
        )
    },
};
