//! Replies that are held back for a while.

use std::collections::BTreeMap;

use super::{ClientId, House, Member};
use crate::commands::Attempt;
use crate::wire::Reply;

/// Held-back replies by when they are due. A blocked connection has at most one.
#[derive(Debug, Default)]
pub(super) struct HeldBack {
    answers: BTreeMap<(u64, ClientId), Due>,
}

#[derive(Debug)]
enum Due {
    /// A reply, and whether the connection is closed then.
    Answer(Reply, bool),
    /// A password to be checked then.
    Attempt(Attempt),
}

impl House {
    /// Answers a blocked connection at a later time, and perhaps closes it then.
    pub(crate) fn answer_later(&mut self, due: u64, id: ClientId, reply: Reply, close: bool) {
        let due = (due, id);
        self.held_back
            .answers
            .insert(due, Due::Answer(reply, close));
    }

    /// Checks a blocked connection's password at a later time.
    pub(crate) fn attempt_later(&mut self, due: u64, id: ClientId, attempt: Attempt) {
        let due = (due, id);
        self.held_back.answers.insert(due, Due::Attempt(attempt));
    }

    /// Answers those whose time has come.
    pub(super) fn answer_due(&mut self) {
        while let Some(entry) = self.held_back.answers.first_entry()
            && entry.key().0 <= self.now
        {
            let ((_, id), due) = entry.remove_entry();
            match due {
                Due::Attempt(attempt) if self.connections.client(id).is_some() => {
                    self.attempt(id, attempt);
                }
                Due::Attempt(_) => {}
                Due::Answer(reply, close) => {
                    self.connections.unblock(id, reply);
                    if close {
                        self.connections.dismiss(id);
                    }
                }
            }
        }
    }

    /// When something is next due, if nothing happens before.
    pub(crate) fn next_deadline(&mut self) -> Option<u64> {
        let held_back = self.held_back.answers.keys().next().map(|(due, _)| *due);
        // A node that has given its lease back asks for none.
        let gave_back = self.member().is_some_and(Member::gave_back);
        let local = self.services.next_deadline().filter(|_| !gave_back);
        let own = self.submissions.own_due(self.now);
        let member = self.member_deadline();
        let visits = self.visits.next_deadline();
        let strangers = self.connections.strangers.next_due();
        [held_back, local, own, member, visits, strangers]
            .into_iter()
            .flatten()
            .min()
    }
}
