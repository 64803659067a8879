//! Symmetry: states that differ only in which of several equal nodes is which are one state. An algorithm whose
//! nodes compare ids, or stand in an order, has none.

use std::ops::Range;

use testigo_protocol::{Channels, MessageId, NodeId, Problem, Shape, StateId, UserId};

use super::model::{Model, Step};
use super::state::{Draft, State};
use super::tables::Tables;

/// All ways to rename the nodes that are equal; the others keep their names. The first changes nothing.
pub(crate) struct Renamings {
    pub(super) all: Vec<Vec<NodeId>>,
}

impl Renamings {
    /// There are as many renamings as orders of the equal nodes; more of them have none.
    const EQUAL_MAX: usize = 5;

    /// None where it would gain nothing, or where users share nodes.
    pub(crate) fn new(shape: &Shape, equal: Range<u32>) -> Option<Renamings> {
        if shape.is_shared() || !(2..=Self::EQUAL_MAX).contains(&equal.len()) {
            return None;
        }
        let mut orders = vec![Vec::new()];
        for node in equal.clone().map(NodeId) {
            let longer = |names: &Vec<NodeId>| {
                let names = names.clone();
                (0..=names.len()).rev().map(move |at| {
                    let mut longer = names.clone();
                    longer.insert(at, node);
                    longer
                })
            };
            orders = orders.iter().flat_map(longer).collect();
        }
        let names = |order: &Vec<NodeId>| {
            let mut names: Vec<NodeId> = NodeId::all(shape.nodes()).collect();
            names[equal.start as usize..equal.end as usize].copy_from_slice(order);
            names
        };
        Some(Renamings {
            all: orders.iter().map(names).collect(),
        })
    }
}

impl<Q: Problem> Model<Q> {
    /// The smallest of all renamed states, the place that each message had before, and its renaming: the new name of
    /// each node.
    pub(super) fn smallest<'a>(
        &self,
        tables: &mut Tables<Q>,
        state: &State,
        renamings: &'a Renamings,
    ) -> (State, Vec<usize>, &'a [NodeId]) {
        let renamed = renamings.all.iter().enumerate().map(|(number, names)| {
            let (renamed, places) = self.renamed(tables, state, number as u32, names);
            (renamed, places, names.as_slice())
        });
        let smallest = renamed.min_by(|(one, ..), (other, ..)| one.cmp(other));
        smallest.expect("changing nothing is one of them")
    }

    /// The state with new names for all nodes, and the place that each message had before.
    pub(super) fn renamed(
        &self,
        tables: &mut Tables<Q>,
        state: &State,
        number: u32,
        names: &[NodeId],
    ) -> (State, Vec<usize>) {
        let view = self.view(state);
        let mut draft = Draft::default();
        draft.copy(&view);
        for (old, new) in names.iter().enumerate() {
            let node = StateId(view.nodes[old]);
            draft.nodes[new.index()] = tables.explorer.state_renamed(node, number, names).0;
        }
        for old in UserId::all(self.users) {
            let new = UserId(names[old.index()].0);
            draft.users[new.index()] = tables.user_renamed(view.users[old.index()], new);
            draft.left[new.index()] = view.left[old.index()];
        }
        for timer in &mut draft.timers {
            timer[0] = names[timer[0] as usize].0;
        }
        draft.timers.sort_unstable();
        draft.rename_faults(names);
        let flights = view.messages.iter().enumerate();
        let mut flights: Vec<([u32; 2], usize)> = flights
            .map(|(place, &[link, message])| {
                let (from, to) = self.ends(link);
                let link = self.link(names[from.index()], names[to.index()]);
                let message = MessageId(message);
                let message = tables.explorer.message_renamed(message, number, names);
                ([link, message.0], place)
            })
            .collect();
        match self.bounds.channels {
            Channels::AnyOrder => flights.sort_by_key(|(words, _)| *words),
            Channels::Fifo => flights.sort_by_key(|([link, _], _)| *link),
        }
        draft.messages.clear();
        draft
            .messages
            .extend(flights.iter().map(|(words, _)| *words));
        let places = flights.iter().map(|(_, place)| *place).collect();
        (draft.done(), places)
    }
}

/// A step of a renamed state, as one of the state before.
pub(super) fn before_renaming(names: &[NodeId], step: Step) -> Step {
    let old = |new: NodeId| {
        let at = names.iter().position(|name| *name == new);
        at.map_or(new, |at| NodeId(at as u32))
    };
    match step {
        Step::Carry {
            from,
            to,
            place,
            fate,
        } => Step::Carry {
            from: old(from),
            to: old(to),
            place,
            fate,
        },
        // Equal nodes have one user each, of the same number.
        Step::Ask(user, choice) => Step::Ask(UserId(old(NodeId(user.0)).0), choice),
        Step::Fire(node, timer) => Step::Fire(old(node), timer),
        Step::Crash(node) => Step::Crash(old(node)),
        Step::Restart(node) => Step::Restart(old(node)),
    }
}

#[cfg(test)]
mod tests;
