//! What a home remembers about its clients' calls: the answers to their IDs, and that a client blocked in a call is not
//! silent.

use super::Estate;
use super::table::ask_of;
use crate::command::{Answer, Command};
use crate::error::Refusal;
use crate::replicated::Replicated;
use crate::session::{Memo, SessionId};

impl Estate {
    /// The answer to an ID that was seen before. Asking again for an asynchronous wait blocks the client from now on.
    pub(super) fn answered_before(
        &mut self,
        session: SessionId,
        id: Option<&str>,
        asynchronous: bool,
    ) -> Result<Option<Answer>, Refusal> {
        let Some(memo) = id.and_then(|id| self.table.recall(session, id)) else {
            return Ok(None);
        };
        let ticket = match memo {
            Memo::Settled(settled) => return Ok(Some(Answer::Settled(settled.clone()))),
            Memo::Waiting(ticket) => *ticket,
        };
        if !asynchronous && let Some(number) = ask_of(ticket) {
            let ask = self.table.sets.block(number).unwrap_or(Some(number));
            if let Some(ask) = ask {
                let here = self.table.ask(ask).and_then(|asked| asked.ticket);
                if let Some(here) = here {
                    self.local.block_on(session, here)?;
                }
                self.table.set_blocking(ask, true);
            }
        }
        Ok(Some(Answer::Waiting(ticket)))
    }

    /// Remembers the answer to an ID. A refusal is forgotten, so that the client can try again under the same ID.
    pub(super) fn remember(
        &mut self,
        session: SessionId,
        id: Option<&str>,
        answer: &Result<Answer, Refusal>,
    ) {
        let (Some(id), ids_max) = (id, self.local.ids_max()) else {
            return;
        };
        let memo = match answer {
            Ok(Answer::Settled(settled)) => Memo::Settled(settled.clone()),
            Ok(Answer::Waiting(ticket)) => Memo::Waiting(*ticket),
            _ => return self.table.forget_id(session, id),
        };
        self.table.remember(session, id, memo, ids_max);
    }

    /// A client that is blocked in a call to another owner is not silent as long as its connection is there.
    pub(super) fn hear_blocked(&mut self, replicated: &Replicated) {
        if self.local.next_silence().is_none_or(|at| at > self.now) {
            return;
        }
        let mut blocked = self.table.blocked();
        blocked.extend(self.resuming.keys());
        for session in blocked {
            if self.table.hosts(session) {
                let _ = self.in_books(replicated, session, &Command::Renew);
            }
        }
    }
}
