//! OM(1) with three generals: one of them lies, and nobody can tell which (coordination and agreement §5.2.1).

use super::super::om::{self, with_rounds};
use super::super::user::Agreement;
use crate::{Algorithm, Faults, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "om-three",
        title: "Oral messages among three generals",
        source: "coordination and agreement §5.2.1",
        specimen: Some(
            "three generals do not stand a liar: a lying lieutenant overrules a loyal commander",
        ),
        tolerates: |_| Faults::liars(1),
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..om::GENERALS
    },
    machine: |setup| with_rounds(setup, 1),
};
