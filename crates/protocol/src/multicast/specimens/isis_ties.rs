//! ISIS with ties by arrival: two messages with the same number are delivered as they came, which differs (§4.8).

use crate::multicast::layer::Flaw;
use crate::multicast::{Multicast, isis};
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "isis-ties-by-arrival",
        title: "ISIS, equal numbers in the order of arrival",
        specimen: Some(
            "no total order: two messages with the same number are delivered as they arrived",
        ),
        ..isis::ALGORITHM.profile
    },
    machine: |setup| isis::machine(setup, Some(Flaw::TiesByArrival)),
};
