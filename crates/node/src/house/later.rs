//! Answers that are held back for a while.

use std::collections::BTreeMap;

use super::{ClientId, House};
use crate::wire::Reply;

/// Held back answers, by when they are due. A blocked connection has at most one.
#[derive(Debug, Default)]
pub(super) struct HeldBack {
    answers: BTreeMap<(u64, ClientId), (Reply, bool)>,
}

impl House {
    /// Answers a blocked connection at a later time, and closes it then if it is to be closed.
    pub(crate) fn answer_later(&mut self, due: u64, id: ClientId, reply: Reply, close: bool) {
        self.held_back.answers.insert((due, id), (reply, close));
    }

    /// Answers those whose time has come.
    pub(super) fn answer_due(&mut self) {
        while let Some(entry) = self.held_back.answers.first_entry()
            && entry.key().0 <= self.now
        {
            let ((_, id), (reply, close)) = entry.remove_entry();
            self.unblock(id, reply);
            if close {
                self.dismiss(id);
            }
        }
    }

    /// When something is due next, if nothing happens before.
    pub(crate) fn next_deadline(&mut self) -> Option<u64> {
        let held_back = self.held_back.answers.keys().next().map(|(due, _)| *due);
        let local = self.local.next_deadline();
        [held_back, local, self.own_due(), self.strangers.next_due()]
            .into_iter()
            .flatten()
            .min()
    }
}
