//! States that no later step can tell apart, made equal: runs that repeat but for their clocks and numbers
//! are seen to repeat.

use testigo_protocol::{Channels, MessageId, Problem, StateId, UnderWay};

use super::model::{Model, Step};
use super::state::State;

impl<Q: Problem> Model<Q> {
    /// The state with its smallest logical time at zero, and whatever else its algorithm makes equal.
    pub(crate) fn canonical(&self, state: State) -> State {
        self.canonical_places(state).0
    }

    /// The same, with the place that each message had in the state given.
    fn canonical_places(&self, state: State) -> (State, Vec<usize>) {
        let tables = &mut *self.tables();
        let view = self.view(&state);
        let (explorer, draft) = (&mut tables.explorer, &mut tables.draft);
        let mut nodes: Vec<StateId> = view.nodes.iter().map(|&node| StateId(node)).collect();
        let flights = view.messages.iter().enumerate();
        let mut messages: Vec<UnderWay<MessageId>> = flights
            .map(|(place, &[link, message])| {
                let (from, to) = self.ends(link);
                UnderWay {
                    from,
                    to,
                    message: MessageId(message),
                    place,
                }
            })
            .collect();
        let mut changed = explorer.canonical(&mut nodes, &mut messages);
        let times = nodes.iter().filter_map(|&node| explorer.state_time(node));
        let oldest = times.min();
        let times = messages
            .iter()
            .filter_map(|m| explorer.message_time(m.message));
        let oldest = oldest.into_iter().chain(times).min();
        if let Some(by) = oldest.filter(|&by| by > 0) {
            for node in &mut nodes {
                *node = explorer.state_rebased(*node, by);
            }
            for flight in &mut messages {
                flight.message = explorer.message_rebased(flight.message, by);
            }
            changed = true;
        }
        if self.bounds.channels == Channels::AnyOrder {
            // Where order does not count, it must not tell states apart.
            let key =
                |flight: &UnderWay<MessageId>| (self.link(flight.from, flight.to), flight.message);
            changed |= !messages.is_sorted_by_key(key);
            messages.sort_by_key(key);
        }
        let places = messages.iter().map(|flight| flight.place).collect();
        if !changed {
            return (state, places);
        }
        draft.copy(&view);
        draft.nodes.clear();
        draft.nodes.extend(nodes.iter().map(|node| node.0));
        draft.messages.clear();
        let words =
            |flight: &UnderWay<MessageId>| [self.link(flight.from, flight.to), flight.message.0];
        draft.messages.extend(messages.iter().map(words));
        (draft.done(), places)
    }

    /// A schedule found among canonical states, as it goes from the first state without making anything
    /// equal: there, a message has its place among all of its link.
    pub(crate) fn as_played(&self, steps: &[Step]) -> Vec<Step> {
        let mut state = self.first();
        let mut played = Vec::new();
        for &step in steps {
            let step = match step {
                Step::Deliver { from, to, place } => {
                    let link = self.link(from, to);
                    let (canonical, places) = self.canonical_places(state.clone());
                    let first = |state: &State| {
                        let messages = self.view(state).messages;
                        messages.partition_point(|[other, _]| *other < link)
                    };
                    let found = places[first(&canonical) + place as usize];
                    let place = (found - first(&state)) as u32;
                    Step::Deliver { from, to, place }
                }
                step => step,
            };
            state = self.take(&state, step);
            played.push(step);
        }
        played
    }
}
