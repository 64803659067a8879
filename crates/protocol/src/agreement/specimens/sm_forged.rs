//! SM(1) whose signatures anybody can forge (coordination and agreement §6: the first thing to break).

use super::super::om::GENERALS;
use super::super::sm::with_signatures;
use super::super::user::Agreement;
use crate::{Algorithm, Faults, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "sm-forged",
        title: "Signed messages with forged signatures",
        source: "coordination and agreement §5.2.2, §6",
        specimen: Some(
            "a lieutenant signs for the commander: its lie stands beside the order, and both are dropped",
        ),
        tolerates: |_| Faults::liars(1),
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..GENERALS
    },
    machine: |setup| with_signatures(setup, false),
};
