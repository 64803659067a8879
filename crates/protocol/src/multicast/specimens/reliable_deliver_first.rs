//! Reliable multicast that delivers before it passes on: who crashes in between is the only one that delivered (§4.3).

use crate::multicast::layer::Flaw;
use crate::multicast::{Multicast, reliable};
use crate::{Algorithm, Faults, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "reliable-multicast-deliver-first",
        title: "Reliable multicast, delivering before passing on",
        specimen: Some(
            "no uniform agreement: a member delivers, and crashes before what it passes on is out",
        ),
        tolerates: |_| Faults::crashes(1),
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..reliable::ALGORITHM.profile
    },
    machine: |setup| reliable::machine(setup, Some(Flaw::DeliverFirst)),
};
