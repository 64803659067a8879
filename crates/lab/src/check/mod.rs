//! Checking: every interleaving up to a bound. Safety and stuck states are searched for by
//! stateright; starvation by our own pass over the same model, because it needs cycles.

mod canonical;
mod grants;
mod knowledge;
mod lasso;
mod liveness;
mod model;
mod report;
mod schedule;
mod state;

pub use report::{CheckPlan, Checked, Counterexample, Verdict};

pub(crate) use report::check;
