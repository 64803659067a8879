//! Sessions that ended without their clients' knowledge: the majority ended them while their node was cut off, or somebody else
//! did. For a while their clients may still believe that node's answers. Its process knows what it gave them, and withholds it;
//! a process that begins meanwhile does not, so the log remembers for how long that one must withhold everything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::estate::Peer;
use crate::ownership::{Index, NodeId, Start};

/// The nodes whose sessions ended this way, until each says that nobody believes it any longer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedElsewhere(BTreeMap<NodeId, Ends>);

/// Such ends of one node's sessions, together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ends {
    /// The earliest start that was home to one of them.
    start: Start,
    /// The longest TTL among them.
    ttl_ms: u64,
    /// The entry of the last end.
    last: Index,
}

impl EndedElsewhere {
    pub(crate) fn end(&mut self, index: Index, (node, start): Peer, ttl_ms: u64) {
        let ends = self.0.entry(node).or_insert(Ends {
            start,
            ttl_ms,
            last: index,
        });
        ends.start = ends.start.min(start);
        ends.ttl_ms = ends.ttl_ms.max(ttl_ms);
        ends.last = index;
    }

    /// For how long clients may believe starts of a node before this one; `None` if no client does.
    pub(super) fn believed_ms(&self, (node, start): Peer) -> Option<u64> {
        let ends = self.0.get(&node).filter(|ends| ends.start < start)?;
        Some(ends.ttl_ms)
    }

    /// The entry of the last end.
    pub(super) fn last(&self, node: NodeId) -> Option<Index> {
        self.0.get(&node).map(|ends| ends.last)
    }

    /// A node has waited for all ends up to this entry.
    pub(crate) fn waited(&mut self, node: NodeId, last: Index) {
        if self.0.get(&node).is_some_and(|ends| ends.last <= last) {
            self.0.remove(&node);
        }
    }

    /// Nobody has slots of a node that was removed for good.
    pub(crate) fn remove(&mut self, node: NodeId) {
        self.0.remove(&node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ends_of_a_node_count_until_it_has_waited_for_the_last() {
        let (one, two) = (NodeId(1), NodeId(2));
        let mut ended = EndedElsewhere::default();
        ended.end(Index(10), (one, Start(3)), 900);
        ended.end(Index(11), (one, Start(5)), 100);
        ended.end(Index(12), (two, Start(1)), 100);
        let believed_ms = |start| ended.believed_ms((one, Start(start)));
        assert_eq!([3, 4, 6].map(believed_ms), [None, Some(900), Some(900)]);
        ended.waited(one, Index(10));
        assert_eq!(ended.last(one), Some(Index(11)));
        ended.waited(one, Index(11));
        assert_eq!(ended.last(one), None);
        ended.remove(two);
        assert_eq!(ended, EndedElsewhere::default());
    }
}
