//! Checking: every interleaving up to a bound. Safety and stuck states are searched for by
//! stateright; starvation by our own pass over the same model, because it needs cycles.

mod alone;
mod canonical;
mod faults;
mod grants;
mod knowledge;
mod lasso;
mod liveness;
mod model;
mod report;
mod schedule;
mod search;
mod state;
mod symmetry;
mod tables;

pub use model::Timing;
pub use report::{CheckPlan, Checked, Counterexample, Verdict};

pub(crate) use liveness::components;
pub(crate) use report::check;

/// The first states of a search that leaves nothing out.
#[cfg(test)]
fn reached<Q: testigo_protocol::Problem>(model: &model::Model<Q>) -> Vec<state::State> {
    const STATES_MAX: usize = 4_000;
    let mut states = indexmap::IndexSet::from([model.canonical(model.first())]);
    let (mut at, mut steps) = (0, Vec::new());
    while at < states.len() && states.len() < STATES_MAX {
        let state = states[at].clone();
        steps.clear();
        model.steps(&state, &mut steps);
        let next = steps.iter().map(|step| model.take(&state, *step));
        states.extend(next.map(|next| model.canonical(next)));
        at += 1;
    }
    states.into_iter().collect()
}
