//! Algorithms of shared memory in the laboratory: one access to one register is one step, and a scheduler
//! chooses whose step is next.

mod check;
mod family;
mod graph;
mod model;
mod passage;
mod replay;
mod replicated;
mod reproduce;
mod requests;
mod simulate;
mod stage;

pub(crate) use family::threads_problems;
pub use passage::{AccessReport, Passage};
pub use replicated::run_replicated;
pub use reproduce::ACCESS_EXPERIMENTS;
