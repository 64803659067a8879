//! A deliberately unfair mutex: a central server that serves the newest request first. It is safe
//! and never stuck, and somebody can wait for ever.

use std::collections::VecDeque;

use crate::mutex::Mutex;
use crate::mutex::central::{self, Central, Config};
use crate::{Algorithm, Profile, Shape, erase};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "central-lifo",
        title: "Central server, newest request first",
        specimen: Some("not free of lockout: two others can pass a third for ever"),
        ..central::ALGORITHM.profile
    },
    machine: |setup| {
        let users = setup.at_least(1)?;
        let shape = Shape {
            users,
            extra: vec!["server".into()],
        };
        Ok(erase::<Central>(
            shape,
            Config {
                users,
                next: VecDeque::pop_back,
            },
        ))
    },
};
