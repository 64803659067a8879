//! Chang with the token's word taken at once: a node that gets the token points to whoever is expected to
//! hold it last. By then somebody else may have asked, and the node's next request goes to the wrong one, or
//! to itself and so to nobody.
//!
//! Source: message exclusion §4.5, "token field".

use crate::mutex::Mutex;
use crate::mutex::chang::{self, Chang, Config};
use crate::{Algorithm, Profile, Shape, Telling, erase};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "chang-adopting",
        title: "Chang, pointing where the token says",
        specimen: Some(
            "deadlock: a node that was the last to ask is pointed to itself, and asks nobody",
        ),
        telling: Telling {
            nodes: 2,
            entries: 2,
        },
        ..chang::ALGORITHM.profile
    },
    machine: |setup| {
        let users = setup.at_least(2)?;
        Ok(erase::<Chang>(
            Shape::users(users),
            Config { adopts_last: true },
        ))
    },
};
