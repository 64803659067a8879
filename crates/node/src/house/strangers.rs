//! Connections that have not authenticated, on a node with users. They have a limited time to do so.

use std::collections::BTreeSet;

use testigo_core::Word;

use super::{Blocked, ClientId, Closing, Connections};
use crate::wire::refuse;

/// Who must have authenticated by when.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    due: BTreeSet<(u64, ClientId)>,
}

impl Strangers {
    pub(super) fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(super) fn forget(&mut self, due: u64, id: ClientId) {
        self.due.remove(&(due, id));
    }
}

impl Connections {
    /// Gives a connection that has not authenticated the time to do so.
    pub(crate) fn await_auth(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        self.strangers.forget(client.auth_due, id);
        if client.user.is_none() {
            client.auth_due = self.now + self.wire.preauth_ms.max(1);
            self.strangers.due.insert((client.auth_due, id));
        }
    }

    /// Closes those whose time was over at `heard_until`. Everything said before then has been heard, so a password that the
    /// node was slow to read counts. Says whether there were any.
    pub(crate) fn close_strangers(&mut self, heard_until: u64) -> bool {
        let mut closed = false;
        while let Some((due, id)) = self.strangers.due.first().copied()
            && due <= heard_until
        {
            self.strangers.forget(due, id);
            let stranger = self.clients.get(&id).filter(|client| client.user.is_none());
            match stranger.map(|client| (client.leaving, client.blocked)) {
                // Its password is being checked, or it is kept waiting after a wrong one; few connections are.
                Some((false, Some(Blocked::Password))) => self.await_auth(id),
                Some(_) => {
                    let most = self.wire.preauth_ms;
                    let why =
                        format!("nobody has authenticated within {most} ms, the limit preauth_ms");
                    self.expel(id, Closing::Preauth, Some(refuse(Word::Limit, why).into()));
                    closed = true;
                }
                None => {}
            }
        }
        closed
    }
}
