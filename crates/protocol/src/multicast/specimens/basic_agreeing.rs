//! Basic multicast with a claim that it does not make: agreement. The sender crashes between two sends (§4.2).

use crate::multicast::layer::Carry;
use crate::multicast::{Multicast, OverBasic, Promises, basic};
use crate::{Algorithm, Faults, Profile};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "basic-multicast-agreeing",
        title: "Basic multicast that claims agreement",
        specimen: Some("no agreement: a sender that crashes between two sends leaves members out"),
        tolerates: |_| Faults::crashes(1),
        ..basic::ALGORITHM.profile
    },
    machine: |setup| {
        let promises = Promises {
            agreement: true,
            ..OverBasic::PROMISES
        };
        basic::machine(setup, promises)
    },
};
