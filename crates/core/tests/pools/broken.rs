//! What is wrong on purpose in a random run, which must find it.

use crate::deleted;

/// What the random runs must find.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Broken {
    /// A client takes whatever a node answers for a sign that it has all its slots, those of other nodes included.
    AnyAnswerKeeps,
    /// A node gives out what a session had that ended while the node was cut off, before the session's client can know.
    FreedAtOnce,
    /// A client does not number its resumes.
    Unnumbered,
    /// A node that comes back has the log forget which sessions ended meanwhile, before their clients can know.
    ForgottenAtOnce,
    /// Pools are deleted as they must not be.
    Deletes(deleted::Fault),
}
