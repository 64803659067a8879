//! Query tokens are lent wherever the token is, while a writer is inside too.
//!
//! Source: box office §9, R1.

use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-reader-beside-writer",
        title: "The box office, readers beside writers",
        source: "box office §9, R1",
        specimen: Some("unsafe: a query token goes out while a writer is inside"),
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| with_flaw(setup, Some(Flaw::ReadersBesideWriters)),
};
