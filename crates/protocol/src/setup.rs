//! What a person may choose about a run of an algorithm, before it is a configuration.

use std::fmt;

use crate::quorum::Construction;

/// The choices. An algorithm reads those that it understands and refuses what it cannot use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The number of users, N. An algorithm may add nodes of its own (a server).
    pub users: usize,
    /// How quorums are built, where the algorithm has quorums.
    pub quorum: Option<Construction>,
    /// No message is slower, in the driver's ticks; for algorithms that assume a bound.
    pub delay_bound: u64,
}

impl Setup {
    /// More nodes than anybody simulates; a limit, so that a slip of a finger does not take the
    /// machine's memory.
    pub const USERS_MAX: usize = 100_000;

    pub fn new(users: usize) -> Setup {
        Setup {
            users,
            quorum: None,
            delay_bound: 0,
        }
    }

    /// Refuses fewer users than `least`.
    pub fn at_least(&self, least: usize) -> Result<usize, SetupError> {
        if self.users < least {
            return Err(SetupError(format!(
                "{} nodes are too few: it needs at least {least}",
                self.users
            )));
        }
        if self.users > Self::USERS_MAX {
            return Err(SetupError(format!(
                "{} nodes are too many: at most {}",
                self.users,
                Self::USERS_MAX
            )));
        }
        Ok(self.users)
    }
}

/// Why an algorithm cannot run with a setup, and what it could run with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetupError(pub String);

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SetupError {}
