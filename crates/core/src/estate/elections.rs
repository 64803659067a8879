//! Elections across nodes. A candidacy is an ask to enter, and a leadership is a hold recorded twice, as at every gate. This
//! file does what a home must do when a candidate changes its mind.

use super::ask::Call;
use super::frame::Ask;
use super::table::ticket_of;
use super::{Broken, Estate, Out, Peer};
use crate::codec::OwnedCommand;
use crate::command::{Answer, Command, Lock, Settled, WaitEnd};
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::gate::{Ask as Asks, Definition};
use crate::local::no_candidate;
use crate::name::Name;
use crate::replicated::Replicated;
use crate::session::SessionId;

impl Estate {
    /// A candidate campaigns again, which may change its rank and so its place in line. `None` if the session has no campaign
    /// in that election.
    pub(super) fn campaign_again(
        &mut self,
        replicated: &Replicated,
        call: &Call<'_>,
        lock: &Lock<'_>,
        gate: &Name,
    ) -> Option<Result<Answer, Refusal>> {
        if !matches!(lock.ask, Asks::Lead { .. }) {
            return None;
        }
        let mode = match Definition::election().mode(gate, true, lock.ask) {
            Ok(mode) => mode,
            Err(refusal) => return Some(Err(refusal)),
        };
        let ask = self.table.entering(call.session, gate)?;
        let here = self.table.ask(ask)?.ticket.is_some();
        // The wait limit is that of the first call, and ends here.
        let command = Command::Lock(Lock {
            wait_ms: None,
            asynchronous: true,
            id: None,
            ..lock.clone()
        });
        if here && let Err(refusal) = self.in_books(replicated, call.session, &command) {
            return Some(Err(refusal));
        }
        let command = OwnedCommand::from(&command);
        self.table.rephrase(ask, mode, command);
        if !here && let Ok(owner) = self.owner_of(replicated, gate) {
            self.repeat_ask(replicated, owner, ask);
        }
        if lock.wait_ms == Some(0) {
            let ended = Settled::Ended(WaitEnd::TimedOut);
            return Some(Ok(Answer::Settled(ended)));
        }
        self.table.set_blocking(ask, call.blocking);
        Some(Ok(Answer::Waiting(ticket_of(ask))))
    }

    /// Whether the client wants a term although nobody waits for this answer. A leader that has changed its value is answered
    /// with the term it has; a candidate that has cancelled one campaign and begun another gets it.
    pub(super) fn still_leads(&self, session: SessionId, gate: &Name, term: Fence) -> bool {
        let known = self.table.hold(session, gate);
        let again = gate.as_election().is_some() && self.table.entering(session, gate).is_some();
        known.is_some_and(|hold| hold.fence == term) || again && !self.breaks(Broken::TermReturned)
    }

    /// A broken rule: the table is not told that a leader has changed its value.
    pub(super) fn keeps_old_value(&self, session: SessionId, gate: &Name, term: Fence) -> bool {
        let known = self.table.hold(session, gate);
        self.breaks(Broken::OldValue) && known.is_some_and(|hold| hold.fence == term)
    }

    /// `ELECT RESIGN`: as the leader, as a candidate, or as both when a leader has just changed its value.
    pub(super) fn resign(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        election: &str,
        out: &mut Out,
    ) -> Result<Answer, Refusal> {
        let name = Name::known(election)?;
        let candidacy = self.table.entering(session, &name);
        if let Some(ask) = candidacy {
            self.cancel(replicated, session, Some(ask), out)?;
        }
        match self.unlock(replicated, session, election, None) {
            Err(refusal) if refusal.word == Word::NotHeld => match candidacy {
                Some(_) => Ok(Answer::Done),
                None => Err(no_candidate(session, election)),
            },
            resigned => resigned,
        }
    }
}

/// The rank of a candidate; 0 for anything but an election.
pub(super) fn rank_of(ask: &Ask) -> i64 {
    match ask.command.command() {
        Command::Lock(lock) => match lock.ask {
            Asks::Lead { rank, .. } => rank,
            _ => 0,
        },
        _ => 0,
    }
}

/// A candidate's new ask replaces its earlier ones.
pub(super) fn forget_earlier(asks: &mut Vec<(u64, Peer, Ask)>, home: Peer, ask: &Ask) {
    if ask.gate.as_election().is_some() {
        asks.retain(|(_, of, asked)| (*of, asked.ask) != (home, ask.ask));
    }
}
