//! Elections that are wrong on purpose, one for each property.

use super::Election;
use super::bully::{self, Flaw as BullyFlaw};
use super::ring_election::{self, Flaw as RingFlaw};
use crate::{Algorithm, Profile};

/// Every specimen.
pub static ALGORITHMS: &[&Algorithm<Election>] = &[
    &RING_FORWARDING,
    &RING_SILENT,
    &BULLY_IMPATIENT,
    &BULLY_WAITING,
];

const RING_FORWARDING: Algorithm<Election> = Algorithm {
    profile: Profile {
        name: "ring-election-forwarding",
        title: "A ring that passes smaller ids on",
        specimen: Some("not safe: every id comes home, and every caller is elected"),
        ..ring_election::PROFILE
    },
    machine: |setup| ring_election::with(setup, RingFlaw::ForwardsSmaller),
};

const RING_SILENT: Algorithm<Election> = Algorithm {
    profile: Profile {
        name: "ring-election-silent",
        title: "A ring whose winner tells nobody",
        specimen: Some("not live: nobody but the winner learns who is elected"),
        ..ring_election::PROFILE
    },
    machine: |setup| ring_election::with(setup, RingFlaw::TellsNobody),
};

const BULLY_IMPATIENT: Algorithm<Election> = Algorithm {
    profile: Profile {
        name: "bully-impatient",
        title: "A bully that does not wait for answers",
        specimen: Some("not safe: a smaller process announces itself beside the largest"),
        ..bully::PROFILE
    },
    machine: |setup| bully::with(setup, BullyFlaw::Impatient),
};

const BULLY_WAITING: Algorithm<Election> = Algorithm {
    profile: Profile {
        name: "bully-waiting",
        title: "A bully that waits for ever after an answer",
        specimen: Some("not live: it waits for a process that crashed after it had answered"),
        ..bully::PROFILE
    },
    machine: |setup| bully::with(setup, BullyFlaw::NoSecondTimeout),
};
