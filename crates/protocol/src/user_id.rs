//! The name of a user: a number from 0. Where every user has a node to itself, it is the node's number too.

use std::fmt;

/// A user of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub u32);

impl UserId {
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The first `n` users.
    pub fn all(n: usize) -> impl Iterator<Item = UserId> + Clone {
        (0..n as u32).map(UserId)
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
