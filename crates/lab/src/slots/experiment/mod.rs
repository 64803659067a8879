//! The experiment of the SLOTS paper: members, a load and a broadcast node, round after round.

mod columns;
mod directed;
mod load;
mod measures;
mod over_time;
mod player;
mod reproduce;
mod response;
mod rounds;
mod sample;
mod sweeps;
mod table_1;
mod words;

pub use columns::Column;
pub use load::{Arrival, Load};
pub use measures::{LITTLE_MAX, Response, RoundsReport};
pub use reproduce::{EXPERIMENTS, Number, PublishedExperiment, Reproduction};
pub use rounds::{Allocation, Rounds};
pub use sample::{Case, Effort, run_cases};
pub use words::{LIFETIME, Open};
