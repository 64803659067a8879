//! Happened-before among requests, through the algorithm's own messages: which request of every
//! user lies in the causal past of every node.

use testigo_protocol::{NodeId, Slot, UserId};

/// For every node, the number of the last request of each user that it can know of; the same for
/// every message under way, and for every request as it was made.
#[derive(Clone, Debug)]
pub(crate) struct HappenedBefore {
    users: usize,
    nodes: Vec<u32>,
    messages: Vec<u32>,
    requests: Vec<u32>,
}

impl HappenedBefore {
    /// Above this, the vectors would cost more than the run, and order is not watched.
    pub(crate) const USERS_MAX: usize = 256;

    pub(crate) fn new(nodes: usize, users: usize) -> HappenedBefore {
        HappenedBefore {
            users,
            nodes: vec![0; nodes * users],
            messages: Vec::new(),
            requests: vec![0; users * users],
        }
    }

    fn row(&self, index: usize) -> std::ops::Range<usize> {
        index * self.users..(index + 1) * self.users
    }

    pub(crate) fn requested(&mut self, home: NodeId, user: UserId) {
        let (row, request) = (self.row(home.index()), self.row(user.index()));
        self.nodes[row.start + user.index()] += 1;
        self.requests[request].copy_from_slice(&self.nodes[row]);
    }

    /// A message that carries all of its sender's past.
    pub(crate) fn sent(&mut self, from: NodeId, slot: Slot) {
        let (message, node) = (self.message(slot), self.row(from.index()));
        self.messages[message].copy_from_slice(&self.nodes[node]);
    }

    /// A message that brings word only of these users.
    pub(crate) fn sent_for(
        &mut self,
        from: NodeId,
        slot: Slot,
        users: impl Iterator<Item = UserId>,
    ) {
        let (message, node) = (self.message(slot), self.row(from.index()));
        self.messages[message.clone()].fill(0);
        for user in users {
            self.messages[message.start + user.index()] = self.nodes[node.start + user.index()];
        }
    }

    fn message(&mut self, slot: Slot) -> std::ops::Range<usize> {
        let message = self.row(slot.0 as usize);
        if self.messages.len() < message.end {
            self.messages.resize(message.end, 0);
        }
        message
    }

    pub(crate) fn delivered(&mut self, to: NodeId, slot: Slot) {
        let node = self.row(to.index());
        let known = &self.messages[self.row(slot.0 as usize)];
        for (mine, theirs) in self.nodes[node].iter_mut().zip(known) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Whether the current request of `first` happened before the current one of `second`.
    pub(crate) fn precedes(&self, first: UserId, second: UserId) -> bool {
        self.requests[self.row(second.index()).start + first.index()] >= self.current(first)
    }

    /// Whether a node can know of the current request of a user.
    pub(crate) fn knows(&self, node: NodeId, user: UserId) -> bool {
        self.nodes[self.row(node.index()).start + user.index()] >= self.current(user)
    }

    fn current(&self, user: UserId) -> u32 {
        self.requests[self.row(user.index()).start + user.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_carries_the_past_with_it() {
        let mut order = HappenedBefore::new(3, 3);
        order.requested(NodeId(0), UserId(0));
        order.sent(NodeId(0), Slot(0));
        order.requested(NodeId(2), UserId(2));
        order.delivered(NodeId(1), Slot(0));
        order.requested(NodeId(1), UserId(1));
        assert!(order.precedes(UserId(0), UserId(1)));
        assert!(!order.precedes(UserId(1), UserId(0)));
        assert!(!order.precedes(UserId(0), UserId(2)), "concurrent");
        assert!(order.knows(NodeId(1), UserId(0)));
        assert!(!order.knows(NodeId(0), UserId(1)));
    }
}
