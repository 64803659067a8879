//! Whoever has a query token lets readers in although a writer has asked, and the writer waits for as long
//! as readers come.
//!
//! Source: box office §9, R5.

use super::unless_chosen;
use crate::readers::Readers;
use crate::readers::box_office::{self, with_flaw};
use crate::readers::flaw::Flaw;
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-ignores-stop",
        title: "The box office, deaf to the stop",
        source: "box office §9, R5",
        specimen: Some(
            "unfair: readers of a lent query token pass a writer that their node knows of",
        ),
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        with_flaw(
            &unless_chosen(setup, "query/query,query,cancel", None, None)?,
            Some(Flaw::IgnoresStop),
        )
    },
};
