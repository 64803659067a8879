//! Rooms whose groups let in whoever comes while they still compete.
//!
//! Source: group exclusion §4, rule 2.

use crate::mutex::central;
use crate::rooms::Rooms;
use crate::rooms::hall::Flaw;
use crate::rooms::over::over;
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Rooms> = Algorithm {
    profile: Profile {
        name: "rooms-impatient",
        title: "Rooms with impatient groups",
        source: "group exclusion §4, rule 2",
        specimen: Some("unsafe: a group that competes lets a process in beside another room's"),
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..Profile::PLAIN
    },
    machine: |setup| over(&central::ALGORITHM, setup, Some(Flaw::Impatient)),
};
