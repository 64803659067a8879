//! What the box office's source publishes for situations of their own: §2, and §11, "Cost" and F2.

use super::Class;
use super::seats::OVERTAKES_DEFAULT;
use crate::{Experiment, Figure, Range};

const WRITERS: &[(&str, &str)] = &[("classes", "reservation")];
const READERS: &[(&str, &str)] = &[("classes", "query")];
const BOTH: &[(&str, &str)] = &[("classes", "reservation,query")];
const SIZES: &[usize] = &[3, 5, 8];

pub(super) const FIGURES: [Figure; 5] = [
    Figure {
        what: "messages of a writer, idle token at hand",
        formula: "0",
        range: |_| Range::exactly(0),
        sizes: SIZES,
        chosen: WRITERS,
        experiment: Experiment::LoneEntryLeast,
    },
    Figure {
        what: "messages of a writer elsewhere",
        formula: "N",
        range: |setup| Range::exactly(setup.users as u32),
        sizes: SIZES,
        chosen: WRITERS,
        experiment: Experiment::LoneEntryMost,
    },
    Figure {
        what: "messages of a reader, idle token at hand",
        formula: "0",
        range: |_| Range::exactly(0),
        sizes: SIZES,
        chosen: READERS,
        experiment: Experiment::LoneEntryLeast,
    },
    Figure {
        what: "messages of a reader beside another, by query token",
        formula: "N+1",
        range: |setup| Range::exactly(setup.users as u32 + 1),
        sizes: SIZES,
        chosen: READERS,
        experiment: Experiment::SecondEntryMost,
    },
    Figure {
        what: "reservations that passed one known query, most",
        formula: "at most MAX_OVT",
        range: |setup| Range::new(0, setup.overtakes.unwrap_or(OVERTAKES_DEFAULT)),
        sizes: SIZES,
        chosen: BOTH,
        experiment: Experiment::PassedMost(Class::Query as u32),
    },
];
