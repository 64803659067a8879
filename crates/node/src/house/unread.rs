//! Answers and events that clients have not read. There is a limit per connection and one for all together. If the latter is
//! exceeded, the connections that have taken nothing for longest are closed first.

use std::collections::BTreeSet;

use super::{ClientId, Closing, Connections};
use crate::wire::{Reply, encode};

/// The bytes of all outboxes, and of all sockets' unsent output.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// In the outboxes: not offered to a socket yet.
    pub(super) outboxes: usize,
    /// Sockets that took only a part, by when they last took something.
    slow: BTreeSet<(u64, ClientId)>,
    unwritten: usize,
    writes: u64,
}

impl Unread {
    /// Bytes that wait for their clients.
    pub(crate) fn bytes(&self) -> usize {
        self.outboxes + self.unwritten
    }

    /// Bytes not offered to a socket yet.
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

impl Connections {
    /// A socket has `unwritten` bytes left; `took` says whether it has just taken any.
    pub(crate) fn note_unwritten(&mut self, id: ClientId, unwritten: usize, took: bool) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let unread = &mut self.unread;
        let known = unread.slow.remove(&(client.took, id));
        if known {
            unread.unwritten -= client.unwritten;
        }
        client.unwritten = unwritten;
        if unwritten > 0 {
            if took || !known {
                unread.writes += 1;
                client.took = unread.writes;
            }
            unread.slow.insert((client.took, id));
            unread.unwritten += unwritten;
        }
        self.close_slowest();
    }

    /// Closes the slowest readers until the rest is within `output_bytes_total`.
    fn close_slowest(&mut self) {
        while self.unread.bytes() > self.wire.output_bytes_total {
            let Some((_, id)) = self.unread.slow.first().copied() else {
                return;
            };
            self.expel(id, Closing::OutputTotal, None);
        }
    }

    /// Closes a connection at once, even if it has not read everything. It is told why if its socket takes that at once.
    pub(crate) fn expel(&mut self, id: ClientId, why: Closing, told: Option<Reply>) {
        self.count_closing(id, why);
        self.cut_off(id, told);
    }

    /// Like [`Connections::expel`], if the connection is not to blame.
    pub(super) fn cut_off(&mut self, id: ClientId, told: Option<Reply>) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let outbox = std::mem::take(&mut client.outbox).len();
        let unwritten = std::mem::take(&mut client.unwritten);
        self.unread.forget(id, outbox, unwritten, client.took);
        if let Some(told) = told {
            encode(&told, client.protocol, &mut client.outbox);
            self.unread.outboxes += client.outbox.len();
        }
        client.leaving = true;
        client.overrun = true;
        self.note(id);
    }
}
