//! States that no later step can tell apart, made equal: runs that repeat but for their clocks and numbers
//! are seen to repeat.

use testigo_protocol::{Channels, MessageId, NodeId, Problem, StateId, UnderWay, User};

use super::model::{Model, Step};
use super::state::State;
use super::symmetry::before_renaming;

impl<Q: Problem> Model<Q> {
    /// The state that stands for this one in the search.
    pub(super) fn reduced(&self, state: State) -> State {
        match self.bounds.reduced {
            true => self.canonical(state),
            false => state,
        }
    }

    /// The state with its smallest logical time at zero, and whatever else its algorithm makes equal.
    pub(crate) fn canonical(&self, state: State) -> State {
        self.canonical_places(state).0
    }

    /// The same, with the place that each message had in the state given, and the new name of each node where
    /// equal nodes have changed places.
    fn canonical_places(&self, state: State) -> (State, Vec<usize>, Option<&[NodeId]>) {
        let tables = &mut *self.tables();
        let view = self.view(&state);
        let (explorer, draft) = (&mut tables.explorer, &mut tables.draft);
        let users = view.users.iter().zip(view.left);
        let mut users =
            users.filter_map(|(&user, &left)| Some((tables.users.get_index(user as usize)?, left)));
        let fixes_times = |(user, left): (&Q::User, u32)| {
            user.knows_a_time() || left > 0 && user.asks_from_zero()
        };
        let moves_times = !users.any(fixes_times);
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
        if let Some(by) = oldest.filter(|&by| by > 0 && moves_times) {
            for node in &mut nodes {
                *node = explorer.state_rebased(*node, by);
            }
            for flight in &mut messages {
                flight.message = explorer.message_rebased(flight.message, by);
            }
            changed = true;
        }
        let key =
            |flight: &UnderWay<MessageId>| (self.link(flight.from, flight.to), flight.message);
        if self.bounds.channels == Channels::AnyOrder {
            // Where order does not count, it must not tell states apart.
            changed |= !messages.is_sorted_by_key(key);
            messages.sort_by_key(key);
        }
        let mut places: Vec<usize> = messages.iter().map(|flight| flight.place).collect();
        let mut canonical = state.clone();
        if changed {
            draft.copy(&view);
            draft.nodes.clear();
            draft.nodes.extend(nodes.iter().map(|node| node.0));
            draft.messages.clear();
            let words = |flight: &UnderWay<MessageId>| {
                [self.link(flight.from, flight.to), flight.message.0]
            };
            draft.messages.extend(messages.iter().map(words));
            canonical = draft.done();
        }
        let Some(renamings) = &self.renamings else {
            return (canonical, places, None);
        };
        let (renamed, before, names) = self.smallest(tables, &canonical, renamings);
        places = before.iter().map(|&place| places[place]).collect();
        (renamed, places, Some(names))
    }

    /// A schedule found among canonical states, as it goes from the first state without making anything
    /// equal: there, a message has its place among all of its link.
    pub(crate) fn as_played(&self, steps: &[Step]) -> Vec<Step> {
        let mut state = self.first();
        let mut played = Vec::new();
        for &step in steps {
            let (canonical, places, names) = self.canonical_places(state.clone());
            let old = match names {
                Some(names) => before_renaming(names, step),
                None => step,
            };
            let step = match (step, old) {
                (
                    Step::Carry {
                        from, to, place, ..
                    },
                    Step::Carry {
                        from: old_from,
                        to: old_to,
                        fate,
                        ..
                    },
                ) => {
                    let first = |state: &State, link: u32| {
                        let messages = self.view(state).messages;
                        messages.partition_point(|[other, _]| *other < link)
                    };
                    let found = places[first(&canonical, self.link(from, to)) + place as usize];
                    let place = (found - first(&state, self.link(old_from, old_to))) as u32;
                    Step::Carry {
                        from: old_from,
                        to: old_to,
                        place,
                        fate,
                    }
                }
                _ => old,
            };
            state = self.take(&state, step);
            played.push(step);
        }
        played
    }
}

#[cfg(test)]
mod tests;
