//! Sanders as the thesis prints it: a request is told `Failed` only when the vote's owner is older,
//! and an `Inquire` that comes before a `Failed` is forgotten. Both lose the recall that would have
//! ended the wait.
//!
//! Source: message exclusion §3.2, "seed text".

use crate::mutex::Mutex;
use crate::mutex::arbiter::{Rules, on_quorums};
use crate::mutex::sanders;
use crate::{Algorithm, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "sanders-printed",
        title: "Sanders as the thesis prints it",
        source: "message exclusion §3.2",
        specimen: Some("deadlock: an inquiry answered too early is never answered again"),
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        ..sanders::ALGORITHM.profile
    },
    machine: |setup| on_quorums(setup, Rules::ThesisPrint),
};
