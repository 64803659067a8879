//! Turn-locking without its timeout, and without its lock, kept in order to be refuted: coordination and agreement §5.9.

use super::{Flaw, Turns, players};
use crate::{Algorithm, Faults, Profile, Telling};

pub(crate) const PATIENT: Algorithm<Turns> = Algorithm {
    profile: Profile {
        name: "commit-reveal-patient",
        title: "Turn-locking that waits for everybody",
        source: "coordination and agreement §5.9, as printed",
        specimen: Some("deadlock: a player that is silent blocks the turn"),
        tolerates: |_| Faults::crashes(1),
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        ..super::ALGORITHM.profile
    },
    machine: |setup| players(setup, Some(Flaw::Patient)),
};

pub(crate) const EAGER: Algorithm<Turns> = Algorithm {
    profile: Profile {
        name: "commit-reveal-eager",
        title: "Turn-locking that does not lock",
        source: "coordination and agreement §5.9",
        specimen: Some("unsafe: an action is shown before everybody is committed"),
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        ..super::ALGORITHM.profile
    },
    machine: |setup| players(setup, Some(Flaw::Eager)),
};
