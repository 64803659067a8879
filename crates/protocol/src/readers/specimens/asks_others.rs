//! Whoever is of a lesser class than the last asks the others for a token that its own node has.
//!
//! Source: box office §9, W1 and R3.

use super::unless_chosen;
use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-asks-others",
        title: "The box office, asking others",
        source: "box office §9, W1 and R3",
        specimen: Some("deadlock: a node asks the others for the token that it has"),
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        with_flaw(
            &unless_chosen(setup, "cancel,reservation", None, None)?,
            Some(Flaw::AsksOthers),
        )
    },
};
