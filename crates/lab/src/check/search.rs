//! The model as stateright searches it.

use std::sync::atomic::Ordering;

use stateright::Property;
use testigo_protocol::Problem;

use super::model::{Model, Step};
use super::state::State;

pub(crate) const SAFETY: &str = "safety";
pub(crate) const BOUNDS: &str = "bounds";
pub(crate) const DEADLOCK_FREEDOM: &str = "deadlock freedom";

impl<Q: Problem> stateright::Model for Model<Q> {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.reduced(self.first())]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        self.steps(state, actions);
        self.keep_one_alone(state, actions);
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        Some(self.reduced(self.take(last, step)))
    }

    /// A property counts as violated once: stateright would otherwise let a later, longer schedule
    /// take the place of the first.
    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties: Vec<Property<Self>> = vec![
            Property::always(SAFETY, |model, state| {
                model.violation(state).is_none() || model.unsafe_found.swap(true, Ordering::Relaxed)
            }),
            Property::always(BOUNDS, |model, state| {
                model.broken_bound(state).is_none()
                    || model.broken_found.swap(true, Ordering::Relaxed)
            }),
        ];
        if !self.bounds.safety_only {
            properties.push(Property::always(DEADLOCK_FREEDOM, |model, state| {
                model.stuck(state).is_none() || model.stuck_found.swap(true, Ordering::Relaxed)
            }));
        }
        properties
    }
}
