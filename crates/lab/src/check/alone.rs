//! Partial order: where the delivery of a message makes the same difference before and after everything else that may
//! happen, no other order is tried.
//!
//! Why this keeps every verdict of the search for bad states. Let `d` be such a delivery, possible in a state, and let a
//! schedule lead from there to a wrong state. Whatever the schedule does, `d` stays possible and makes no difference to
//! the other steps: at its own node because the algorithm says so ([`Protocol::is_quiet`]), at the others because
//! they do not see it, and no fault can befall its message or its receiver. If the schedule has `d`, it leads to the
//! same state with `d` first. If not, nobody is wrong only because nothing more happens (a message is under way), and with
//! `d` after it users have been told more, which makes no wrong state right ([`Problem::violation`]). The schedule
//! is not put off for ever, because no chain of such deliveries is endless.
//!
//! [`Protocol::is_quiet`]: testigo_protocol::Protocol::is_quiet

use testigo_protocol::{Channels, MessageId, Move, Problem, StateId};

use super::faults::Fate;
use super::model::{Model, Step};
use super::state::{State, View};

impl<Q: Problem> Model<Q> {
    /// Leaves only one of the steps where that one can go first.
    pub(super) fn keep_one_alone(&self, state: &State, steps: &mut Vec<Step>) {
        if !self.bounds.alone {
            return;
        }
        let view = self.view(state);
        let alone = steps.iter().find(|step| self.goes_alone(&view, **step));
        if let Some(&alone) = alone {
            steps.clear();
            steps.push(alone);
        }
    }

    /// Whether this step makes the same difference whatever is done first.
    pub(super) fn goes_alone(&self, view: &View<'_>, step: Step) -> bool {
        let Step::Carry {
            from,
            to,
            place,
            fate: Fate::Delivered,
        } = step
        else {
            return false;
        };
        // Which of the users of a shared node hears a word depends on who asked before.
        if self.shape.is_shared() || self.is_endangered(view, from) {
            return false;
        }
        let link = self.link(from, to);
        let first = view.messages.partition_point(|[other, _]| *other < link);
        let message = MessageId(view.messages[first + place as usize][1]);
        let node = StateId(view.nodes[to.index()]);
        let explorer = &mut self.tables().explorer;
        if !explorer.is_quiet(node, from, message) {
            return false;
        }
        // Where links keep the order, what it sends could be sent before something else or after it.
        let outcome = explorer.step(to, node, Move::Message { from, message });
        self.bounds.channels == Channels::AnyOrder || outcome.sends.is_empty()
    }
}

#[cfg(test)]
mod tests;
