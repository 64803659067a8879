//! What happens when the lease is over: the node is neither owner nor home, answers nobody as if it were, and keeps nobody
//! waiting.

use super::table::What;
use super::{Broken, Estate, Out, Tell};
use crate::command::{Answer, Command};
use crate::error::{Refusal, Word};
use crate::event::Loss;
use crate::replicated::Replicated;
use crate::session::SessionId;

impl Estate {
    /// The lease is over. Implicit sessions lose what they hold here and now, because nobody will wait for them; opened ones
    /// may still resume elsewhere. All waits end.
    pub(super) fn suspend(&mut self, replicated: &Replicated, out: &mut Out) {
        if std::mem::replace(&mut self.suspended, true) || self.breaks(Broken::CutOffHolder) {
            return;
        }
        self.walks.end();
        self.end_asks(replicated, out);
        self.end_takers(out);
        for session in self.own_sessions() {
            match session.is_implicit() {
                true => {
                    let holds = self.local.holds_of(session);
                    let holds = holds.iter().chain(self.table.holds_of(session));
                    let told = holds.filter(|hold| !hold.reserved);
                    for (gate, fence) in told.map(|hold| (hold.gate.clone(), hold.fence)) {
                        out.tells.push(Tell::Lost {
                            session,
                            gate,
                            fence,
                            loss: Loss::Claim,
                        });
                    }
                    out.tells.push(Tell::Closed { session });
                    self.table.ending.push(session);
                }
                false => out.tells.push(Tell::Suspect { session }),
            }
        }
    }

    /// Answers everybody who waits. What was given up stays given up, whenever its owner hears of it; what is granted later
    /// is given back.
    fn end_asks(&mut self, replicated: &Replicated, out: &mut Out) {
        for (ask, leaves) in self.table.all_asks() {
            let refusal = match leaves {
                What::Enter(_) => {
                    self.call_off(replicated, ask);
                    Estate::unavailable(NO_LEASE)
                }
                What::Leave | What::Downgrade => Refusal::new(
                    Word::Unknown,
                    format!("{NO_LEASE}; whether its owner has heard of it shows later"),
                ),
            };
            self.finish(replicated, ask, Err(refusal), out);
        }
        for (session, resuming) in &self.resuming {
            // The session may still move here. Then it waits at this home to be resumed again.
            out.tells.push(Tell::Answered {
                session: *session,
                ticket: resuming.ticket,
                answer: Err(Estate::unavailable(NO_LEASE)),
            });
        }
    }

    /// Answers a client's request while the lease is over.
    pub(super) fn ask_without_lease(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        command: &Command<'_>,
    ) -> Result<Answer, Refusal> {
        match command {
            // The client does not know of this job, so giving it back promises nothing to anybody.
            Command::GiveBack(taken) if self.table.is_untold(session, *taken) => {
                self.return_take(replicated, session, *taken);
                Ok(Answer::Done)
            }
            Command::Disconnect if session.is_implicit() => {
                // The books hear of it when the node acts again.
                self.table.ending.push(session);
                Ok(Answer::Done)
            }
            Command::Disconnect => self.in_books(replicated, session, command),
            _ => Err(Estate::unavailable(NO_LEASE)),
        }
    }

    /// The sessions of this home that have a connection or a record here.
    fn own_sessions(&self) -> Vec<SessionId> {
        let mut own = self.local.session_list();
        own.retain(|session| self.table.hosts(*session));
        own.sort_unstable();
        own
    }
}

/// What clients are told meanwhile.
pub(super) const NO_LEASE: &str =
    "this node has not heard from a majority for a whole lease; try another one";
