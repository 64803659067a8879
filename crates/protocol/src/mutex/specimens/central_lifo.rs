//! A deliberately unfair mutex: a central server that serves the newest request first. It is safe
//! and never stuck, and somebody can wait for ever.

use std::collections::VecDeque;

use crate::mutex::Mutex;
use crate::mutex::central;
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "central-lifo",
        title: "Central server, newest request first",
        specimen: Some("not free of lockout: two others can pass a third for ever"),
        ..central::ALGORITHM.profile
    },
    machine: |setup| central::with_server(setup, VecDeque::pop_back),
};
