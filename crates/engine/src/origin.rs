//! Who proposed an entry: what a start of a node proposes is numbered, so that a proposal can be recognised wherever it
//! comes out.

use std::fmt;

/// The name of a proposal. No two proposals have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The node that proposed it.
    pub node: u64,
    /// The node's start; see [`Engine::epoch`](crate::Engine::epoch).
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
