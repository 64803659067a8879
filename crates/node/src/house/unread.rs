//! Answers and events that clients have not read. There is a limit per connection and one for all together. If the latter is
//! exceeded, the connections that have taken nothing for longest are closed first.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::client::Client;
use super::{ClientId, Closing, Connections};
use crate::output::{Amount, Lent};
use crate::wire::Reply;

/// The bytes of all outboxes, and of all sockets' unsent output.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// In the outboxes: not offered to a socket yet.
    pub(super) outboxes: Amount,
    /// Sockets that took only a part, by when they last took something.
    slow: BTreeSet<(u64, ClientId)>,
    unwritten: usize,
    writes: u64,
    /// Bodies that several connections are sent, each counted once.
    lent: Arc<AtomicUsize>,
}

impl Unread {
    /// The memory of what waits for its clients.
    pub(crate) fn bytes(&self) -> usize {
        self.outboxes.own + self.unwritten + self.lent.load(Ordering::Relaxed)
    }

    /// A body that several connections will be sent.
    pub(super) fn lend(&self, body: Bytes) -> Lent {
        Lent::new(body, &self.lent)
    }

    /// Bytes not offered to a socket yet.
    pub(crate) fn in_outboxes(&self) -> usize {
        self.outboxes.all
    }

    /// A connection is gone.
    pub(super) fn forget(&mut self, client: &Client) {
        self.outboxes -= client.outbox.amount();
        if self.slow.remove(&(client.took, client.id)) {
            self.unwritten -= client.unwritten_own;
        }
    }
}

impl Connections {
    /// A socket has `unwritten` left; `took` says whether it has just taken any.
    pub(crate) fn note_unwritten(&mut self, id: ClientId, unwritten: Amount, took: bool) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let unread = &mut self.unread;
        let known = unread.slow.remove(&(client.took, id));
        if known {
            unread.unwritten -= client.unwritten_own;
        }
        (client.unwritten, client.unwritten_own) = (unwritten.all, unwritten.own);
        let lent = unwritten.lent + client.outbox.amount().lent;
        client.lent.drain(..client.lent.len().saturating_sub(lent));
        if unwritten.all > 0 {
            if took || !known {
                unread.writes += 1;
                client.took = unread.writes;
            }
            unread.slow.insert((client.took, id));
            unread.unwritten += unwritten.own;
        }
        self.close_slowest();
    }

    /// Closes the slowest readers until the rest is within `output_bytes_total`.
    pub(super) fn close_slowest(&mut self) {
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
    pub(crate) fn cut_off(&mut self, id: ClientId, told: Option<Reply>) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        self.unread.forget(client);
        client.outbox.clear();
        client.lent.clear();
        (client.unwritten, client.unwritten_own) = (0, 0);
        if let Some(told) = told {
            client.outbox.encode(&told, client.protocol);
            self.unread.outboxes += client.outbox.amount();
        }
        client.leaving = true;
        client.overrun = true;
        self.note(id);
    }
}
