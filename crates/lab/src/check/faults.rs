//! Faults in the states of the checker: what may befall a message, a node that crashes, one that comes back, and one
//! that lies. Each kind may happen a bounded number of times.

use testigo_protocol::{Channels, Faults, MessageId, Move, NodeId, Problem, StateId, User};

use super::model::{Model, Step};
use super::state::{Draft, ILL_FORMED, View};
use super::tables::Tables;
use crate::line::UserLine;

/// What becomes of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fate {
    Delivered,
    /// It is lost on its link.
    Lost,
    /// It is delivered, and will arrive once more.
    Copied,
    /// It reaches a node that is down.
    Missed,
    /// It is lost with its sender, which has crashed.
    Dropped,
    /// Its sender is a liar, and does not send it.
    Silenced,
    /// Its sender is a liar, and sends this lie instead.
    Lied(u32),
}

// Places among the words of faults.
const DOWN: usize = 0;
const LIARS: usize = 1;
const CRASHES: usize = 2;
const RESTARTS: usize = 3;
const LOSSES: usize = 4;
const COPIES: usize = 5;

/// Nodes that are down and liars are bits of a word.
pub(crate) const NODES_MAX: usize = 32;

/// The words of faults before anything has happened; none where there are none.
pub(super) fn first(faults: Faults) -> Vec<u32> {
    match faults == Faults::NONE {
        true => Vec::new(),
        false => vec![
            0,
            0,
            faults.crashes,
            faults.restarts,
            faults.losses,
            faults.copies,
        ],
    }
}

fn has(words: &[u32], kind: usize, node: NodeId) -> bool {
    words.get(kind).is_some_and(|bits| bits & 1 << node.0 != 0)
}

fn left(words: &[u32], kind: usize) -> bool {
    words.get(kind).is_some_and(|left| *left > 0)
}

impl View<'_> {
    pub(super) fn is_down(&self, node: NodeId) -> bool {
        has(self.faults, DOWN, node)
    }
}

impl Draft {
    /// Gives the nodes that are down, and the liars, their new names.
    pub(super) fn rename_faults(&mut self, names: &[NodeId]) {
        for kind in [DOWN, LIARS] {
            if let Some(bits) = self.faults.get_mut(kind) {
                let old = *bits;
                let set = (0..names.len()).filter(|node| old & 1 << node != 0);
                *bits = set.map(|node| 1 << names[node].0).sum();
            }
        }
    }
}

impl<Q: Problem> Model<Q> {
    /// What may become of the messages under way.
    pub(super) fn message_steps(&self, view: &View<'_>, steps: &mut Vec<Step>) {
        let mut place = 0;
        for (index, &[link, message]) in view.messages.iter().enumerate() {
            place = match index > 0 && view.messages[index - 1][0] == link {
                true => place + 1,
                false => 0,
            };
            let mut earlier = index - place as usize..index;
            // The same message with the same word of others.
            let same = |other: usize| {
                view.messages[other][1] == message
                    && view.word_of.get(other) == view.word_of.get(index)
            };
            let (from, to) = self.ends(link);
            let mut push = |fate| {
                steps.push(Step::Carry {
                    from,
                    to,
                    place,
                    fate,
                });
            };
            let arrives = match self.bounds.channels {
                Channels::Fifo => place == 0,
                Channels::AnyOrder => !earlier.any(same),
            };
            let down = |node| has(view.faults, DOWN, node);
            let is_last = || {
                let next = view.messages.get(index + 1);
                next.is_none_or(|[other, _]| *other != link)
            };
            // What a crash takes with it is the end of what was sent.
            let drops = match self.bounds.channels {
                Channels::Fifo => is_last(),
                Channels::AnyOrder => arrives,
            };
            if down(from) && drops && !down(to) {
                push(Fate::Dropped);
            }
            if !arrives {
                continue;
            }
            if down(to) {
                push(Fate::Missed);
                continue;
            }
            push(Fate::Delivered);
            if left(view.faults, LOSSES) {
                push(Fate::Lost);
            }
            if left(view.faults, COPIES) {
                push(Fate::Copied);
            }
            let liars = view.faults.get(LIARS).map_or(0, |liars| liars.count_ones());
            if has(view.faults, LIARS, from) || liars < self.bounds.faults.liars {
                push(Fate::Silenced);
                let lies = self.tables().explorer.lies(MessageId(message));
                let is_new = |at: usize| lies[at].0 != message && !lies[..at].contains(&lies[at]);
                for choice in (0..lies.len()).filter(|&at| is_new(at)) {
                    push(Fate::Lied(choice as u32));
                }
            }
        }
    }

    /// Whether something else than being delivered may befall a message of this sender, or its receiver.
    pub(super) fn is_endangered(&self, view: &View<'_>, from: NodeId) -> bool {
        let liars = view.faults.get(LIARS).map_or(0, |liars| liars.count_ones());
        let may_lie = has(view.faults, LIARS, from) || liars < self.bounds.faults.liars;
        let spent = [CRASHES, LOSSES, COPIES]
            .iter()
            .all(|&kind| !left(view.faults, kind));
        may_lie || !spent || view.is_down(from)
    }

    /// Which nodes may crash and come back.
    pub(super) fn outage_steps(&self, view: &View<'_>, steps: &mut Vec<Step>) {
        for node in NodeId::all(self.nodes).filter(|_| !view.faults.is_empty()) {
            match view.is_down(node) {
                true if left(view.faults, RESTARTS) => steps.push(Step::Restart(node)),
                false if left(view.faults, CRASHES) => steps.push(Step::Crash(node)),
                _ => {}
            }
        }
    }

    /// What befalls a message besides being delivered; returns what is delivered, if anything is.
    pub(super) fn befall(
        &self,
        tables: &mut Tables<Q>,
        draft: &mut Draft,
        from: NodeId,
        place: usize,
        fate: Fate,
    ) -> Option<MessageId> {
        let [link, message] = draft.messages[place];
        match fate {
            Fate::Lost => draft.faults[LOSSES] -= 1,
            Fate::Copied => {
                draft.faults[COPIES] -= 1;
                draft.messages.insert(place, [link, message]);
            }
            Fate::Silenced | Fate::Lied(_) => {
                draft.faults[LIARS] |= 1 << from.0;
                self.change_users(tables, draft, from, |user, _| user.deceived());
            }
            Fate::Delivered | Fate::Missed | Fate::Dropped => {}
        }
        draft.messages.remove(place);
        match fate {
            Fate::Delivered | Fate::Copied => Some(MessageId(message)),
            Fate::Lied(choice) => {
                let lies = tables.explorer.lies(MessageId(message));
                Some(lies[choice as usize])
            }
            Fate::Lost | Fate::Missed | Fate::Dropped | Fate::Silenced => None,
        }
    }

    pub(super) fn crash(&self, tables: &mut Tables<Q>, draft: &mut Draft, node: NodeId) {
        draft.faults[CRASHES] -= 1;
        draft.faults[DOWN] |= 1 << node.0;
        let state = &mut draft.nodes[node.index()];
        *state = match self.bounds.forget {
            true => tables.explorer.initial(node).0,
            false => tables.explorer.restarted(node, StateId(*state)).0,
        };
        draft.timers.retain(|timer| timer[0] != node.0);
        self.change_users(tables, draft, node, |user, first| {
            *user = user.crashed(first);
        });
        for user in self.shape.users_at(node) {
            UserLine::new(&self.shape, &mut draft.places).leave(user);
        }
        self.forget_the_gone(draft);
    }

    pub(super) fn restart(&self, tables: &mut Tables<Q>, draft: &mut Draft, node: NodeId) {
        draft.faults[RESTARTS] -= 1;
        draft.faults[DOWN] &= !(1 << node.0);
        self.change_users(tables, draft, node, |user, _| user.restarted());
        self.advance(tables, draft, node, Move::Start, None);
        self.forget_the_gone(draft);
    }

    /// Where nobody comes back any more, messages to nodes that are down will never be received.
    pub(super) fn forget_the_gone(&self, draft: &mut Draft) {
        if draft.faults.is_empty() || left(&draft.faults, RESTARTS) {
            return;
        }
        let faults = &draft.faults;
        let messages = &mut draft.messages;
        messages.retain(|[link, _]| !has(faults, DOWN, self.ends(*link).1));
    }

    pub(super) fn change_users(
        &self,
        tables: &mut Tables<Q>,
        draft: &mut Draft,
        node: NodeId,
        change: impl Fn(&mut Q::User, &Q::User),
    ) {
        for user in self.shape.users_at(node) {
            let number = &mut draft.users[user.index()];
            if *number != ILL_FORMED {
                let mut changed = tables.users[*number as usize].clone();
                change(&mut changed, &self.first[user.index()]);
                *number = tables.user(changed);
            }
        }
    }
}
