//! The flow in virtual time: jobs are created, taken, passed and deleted one by one, with any distribution of times, workers
//! that die, and queues that are full. One seed gives one run.

mod run;
mod standstill;
mod state;
mod tally;

pub use tally::{CreatorRun, ProcessRun, QueueRun, Simulation};

use crate::{Flow, Load};

/// Jobs in the flow at a time; a load that no worker can keep up with ends there.
pub const JOBS_MAX: usize = 1_000_000;
/// Events of a run.
pub const EVENTS_MAX: u64 = 100_000_000;

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub seed: u64,
    /// How long, in seconds of virtual time.
    pub seconds: f64,
    /// What happens before is not counted: an empty flow is not what one asks about.
    pub warm_up: f64,
}

/// Runs a flow under a load.
pub fn simulate(flow: &Flow, load: &Load, span: Span) -> Simulation {
    state::Run::new(flow, load, span).run()
}
