//! Who proposed an entry. The proposals of a start are numbered, so that each can be recognised wherever it comes out.

use std::collections::BTreeMap;
use std::fmt;

use crate::members::NODES_MAX;
use crate::seal::Fields;

/// The name of a proposal. No two proposals share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The node that proposed it.
    pub node: u64,
    /// The node's start; see [`Engine::start`](crate::Engine::start).
    pub start: u64,
    /// Counted from 1 through everything that this start has proposed.
    pub sequence: u64,
}

impl Origin {
    /// The proposal that comes `after` proposals later.
    pub(crate) fn later(self, after: u64) -> Self {
        Self {
            sequence: self.sequence + after,
            ..self
        }
    }
}

impl fmt::Display for Origin {
    /// Node, start and sequence: `2/5/1044`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.node, self.start, self.sequence)
    }
}

/// How far the log has come with each node's proposals. Only the next proposal of a node's latest start counts: what was
/// submitted twice, or by a start that has ended, is recognised on all nodes alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origins(BTreeMap<u64, Last>);

/// The last proposal of a node that counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Last {
    start: u64,
    sequence: u64,
}

impl Origins {
    /// Whether these proposals are next; if so, they count from now on.
    pub(crate) fn take(&mut self, first: Origin, count: u64) -> bool {
        let is_next = self.is_next(first) && count > 0;
        if is_next {
            let last = Last {
                start: first.start,
                sequence: first.sequence + (count - 1),
            };
            self.0.insert(first.node, last);
        }
        is_next
    }

    pub(crate) fn is_next(&self, origin: Origin) -> bool {
        if !(1..=NODES_MAX).contains(&origin.node) {
            return false;
        }
        match self.0.get(&origin.node) {
            Some(last) if last.start == origin.start => {
                last.sequence.checked_add(1) == Some(origin.sequence)
            }
            Some(last) if last.start > origin.start => false,
            _ => origin.sequence == 1,
        }
    }

    /// How much of what a start proposed has counted; 0 if a later start's has.
    pub(crate) fn of(&self, node: u64, start: u64) -> u64 {
        let last = self.0.get(&node).filter(|last| last.start == start);
        last.map_or(0, |last| last.sequence)
    }

    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        // There are at most `NODES_MAX`.
        into.push(self.0.len() as u8);
        for (node, last) in &self.0 {
            into.push(*node as u8);
            into.extend_from_slice(&last.start.to_le_bytes());
            into.extend_from_slice(&last.sequence.to_le_bytes());
        }
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let mut origins = BTreeMap::new();
        for _ in 0..fields.u8()? {
            let node = fields.u8()?.into();
            let (start, sequence) = (fields.u64()?, fields.u64()?);
            origins.insert(node, Last { start, sequence });
        }
        Some(Self(origins))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(start: u64, sequence: u64) -> Origin {
        Origin {
            node: 2,
            start,
            sequence,
        }
    }

    #[test]
    fn only_the_next_of_the_latest_start_counts() {
        let mut origins = Origins::default();
        assert!(!origins.take(origin(5, 2), 1), "a gap");
        assert!(origins.take(origin(5, 1), 3));
        assert!(!origins.take(origin(5, 1), 3), "again");
        assert!(!origins.take(origin(5, 5), 1), "a gap");
        assert!(origins.take(origin(5, 4), 1));
        assert_eq!((origins.of(2, 5), origins.of(2, 6)), (4, 0));
        assert!(!origins.take(origin(4, 1), 1), "an earlier start");
        assert!(
            !origins.take(origin(7, 4), 1),
            "a later one's first is missing"
        );
        assert!(origins.take(origin(7, 1), 1));
        assert!(!origins.take(origin(5, 5), 1), "its successor has begun");
        assert!(!origins.take(origin(7, 2), 0), "nothing");
        let nobody = Origin {
            node: NODES_MAX + 1,
            ..origin(1, 1)
        };
        assert!(!origins.take(nobody, 1));
    }

    #[test]
    fn what_was_written_is_read() {
        let mut origins = Origins::default();
        origins.take(origin(5, 1), 3);
        let mut bytes = Vec::new();
        origins.write(&mut bytes);
        assert_eq!(Origins::read(&mut Fields(&bytes)), Some(origins));
        bytes.pop();
        assert_eq!(Origins::read(&mut Fields(&bytes)), None);
    }
}
