//! Answers and events that clients have not read. One connection's are bounded, and so are all of them together: where
//! that is exceeded, those are closed first that have not taken anything for longest.

use std::collections::BTreeSet;

use super::ClientId;

/// The bytes of all outboxes and of all sockets' unsent output.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// In the outboxes: nobody has tried to send it yet.
    pub(super) outboxes: usize,
    /// Sockets that took only a part, by when they last took something.
    pub(super) slow: BTreeSet<(u64, ClientId)>,
    pub(super) unwritten: usize,
    pub(super) writes: u64,
}

impl Unread {
    /// Bytes that wait for their clients.
    pub(crate) fn bytes(&self) -> usize {
        self.outboxes + self.unwritten
    }

    /// Bytes that nobody has tried to send yet.
    pub(crate) fn in_outboxes(&self) -> usize {
        self.outboxes
    }

    /// A connection is gone.
    pub(super) fn forget(&mut self, id: ClientId, outbox: usize, unwritten: usize, took: u64) {
        self.outboxes -= outbox;
        if self.slow.remove(&(took, id)) {
            self.unwritten -= unwritten;
        }
    }
}
