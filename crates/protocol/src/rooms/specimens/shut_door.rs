//! Rooms whose doors are shut once a round has begun, although the leader is inside.
//!
//! Source: group exclusion §4, rule 4.

use crate::mutex::central;
use crate::rooms::Rooms;
use crate::rooms::hall::Flaw;
use crate::rooms::over::over;
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Rooms> = Algorithm {
    profile: Profile {
        name: "rooms-shut-door",
        title: "Rooms with shut doors",
        source: "group exclusion §4, rule 4",
        specimen: Some(
            "no concurrent entering: a process waits although the leader of its room is inside",
        ),
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        ..Profile::PLAIN
    },
    machine: |setup| over(&central::ALGORITHM, setup, Some(Flaw::ShutDoor)),
};
