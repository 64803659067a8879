//! Rooms whose doors stay open after the leader has left, whoever else waits.
//!
//! Source: group exclusion §4, rule 4.

use crate::mutex::central;
use crate::rooms::Rooms;
use crate::rooms::hall::Flaw;
use crate::rooms::over::over;
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Rooms> = Algorithm {
    profile: Profile {
        name: "rooms-open-door",
        title: "Rooms with open doors",
        source: "group exclusion §4, rule 4",
        specimen: Some("not free of lockout: two processes keep a room in use for ever"),
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..Profile::PLAIN
    },
    machine: |setup| over(&central::ALGORITHM, setup, Some(Flaw::OpenDoor)),
};
