//! A sequencer whose words are taken as they come: nothing puts them in order on links that do not.

use crate::multicast::isis::in_total_order;
use crate::multicast::layer::{Carry, stand};
use crate::multicast::sequencer::{self, Sequencer};
use crate::multicast::{Cast, Multicast, OverBasic};
use crate::{Algorithm, Profile};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "sequencer-unnumbered",
        title: "Sequencer over basic instead of FIFO multicast",
        specimen: Some("no total order: the sequencer's words overtake each other"),
        ..sequencer::ALGORITHM.profile
    },
    machine: |setup| {
        stand::<Sequencer<Cast, OverBasic>>(setup, in_total_order(OverBasic::PROMISES), None)
    },
};
