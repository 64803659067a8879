//! Published counts, each held against what is counted in runs.

mod agreement;
mod cases;
mod elections;
mod experiment;
mod phases;

pub use experiment::{CountExperiment, CountReproduction, CountRow, PropertyRow};

pub(crate) use experiment::{Found, Measured, chart};

/// Those of messages.
pub const MESSAGE_EXPERIMENTS: &[CountExperiment] = &[
    elections::TABLE,
    elections::MESSAGES,
    phases::TABLE,
    agreement::MESSAGES,
];
