//! Maekawa as published: a request is told `Failed` only when it arrives. One that was the best then, and is
//! passed by an older one while its `Inquire` is under way, keeps the votes that the older one needs.
//!
//! Source: message exclusion §3.1.

use crate::mutex::Mutex;
use crate::mutex::arbiter::{Rules, on_quorums};
use crate::mutex::maekawa;
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "maekawa-published",
        title: "Maekawa as published in 1985",
        source: "message exclusion §3.1",
        specimen: Some("deadlock: a request that is passed in a queue is not told so"),
        telling: Telling {
            nodes: 4,
            entries: 1,
        },
        ..maekawa::ALGORITHM.profile
    },
    machine: |setup| on_quorums(setup, Rules::ToldOnArrival),
};
