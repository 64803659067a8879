//! OM(0) with a liar among four: a commander that tells everybody something else is believed by everybody.

use super::super::om::{self, with_rounds};
use super::super::user::Agreement;
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "om-one-round",
        title: "Oral messages that nobody repeats",
        source: "coordination and agreement §5.2: f + 1 rounds are the least",
        specimen: Some(
            "one round does not stand a liar: lieutenants obey a lying commander, each in its own way",
        ),
        tolerates: |_| Faults::liars(1),
        ..om::GENERALS
    },
    machine: |setup| with_rounds(setup, 0),
};
