//! Ricart and Agrawala without the clock's update on receipt: a request can then be stamped older
//! than one that its node has already answered, and both get in.
//!
//! Source: coordination and agreement §2.4, the negative test.

use crate::mutex::Mutex;
use crate::mutex::ricart_agrawala::{self, Config, RicartAgrawala};
use crate::{Algorithm, Profile, Shape, Telling, erase};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "ricart-agrawala-no-update",
        title: "Ricart and Agrawala without the clock update",
        specimen: Some("unsafe: a later request can be stamped older than one already answered"),
        telling: Telling {
            nodes: 2,
            entries: 2,
        },
        ..ricart_agrawala::ALGORITHM.profile
    },
    machine: |setup| {
        let nodes = setup.at_least(2)?;
        Ok(erase::<RicartAgrawala>(
            Shape::users(nodes),
            Config {
                nodes,
                updates_clock: false,
            },
        ))
    },
};
