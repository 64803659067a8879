//! The next node is searched for from the holder on, in every class: a node behind two that take turns is
//! never reached.
//!
//! Source: box office §9, W13.

use super::unless_chosen;
use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-ring-from-holder",
        title: "The box office, a ring from the holder",
        source: "box office §9, W13",
        specimen: Some(
            "unfair: a reservation is passed more often than its turn in the ring allows",
        ),
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        with_flaw(
            &unless_chosen(
                setup,
                "cancel,cancel/reservation,reservation,reservation/reservation",
                None,
                Some(1),
            )?,
            Some(Flaw::RingFromHolder),
        )
    },
};
