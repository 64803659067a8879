//! `LOCKALL`: several gates entered together, all or none. A set stands in the queue of each of its gates at once and enters
//! when its turn has come at all of them. Sets without a common gate share no queue, so neither delays the other. Two that
//! meet stand in the same order at every gate they share, so they cannot block each other.

use super::Local;
use super::request::{Terms, Wanted};
use crate::command::{Answer, LockAll};
use crate::error::{Refusal, Word};
use crate::event::Event;
use crate::session::SessionId;

impl Local {
    pub(super) fn lock_all(
        &mut self,
        session: SessionId,
        set: &LockAll<'_>,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let (s, now) = (self.acting(session)?, self.now);
        let terms = Terms {
            set: true,
            needs_ms: None,
            wait_ms: set.wait_ms,
            reason: set.reason,
            id: set.id,
            asynchronous: set.asynchronous,
        };
        if let Some(answer) = self.answered_before(now, s, &terms)? {
            return Ok(answer);
        }
        self.check_set(set)?;
        self.check_terms(s, set.gates.len(), &terms)?;
        let wanted = set
            .gates
            .iter()
            .map(|(name, ask)| self.find_gate(s, name, *ask, None, &terms))
            .collect::<Result<Vec<Wanted>, Refusal>>()?;
        self.ask_for(now, s, wanted, terms, out)
    }

    /// Checks what can be checked without knowing the gates.
    pub(crate) fn check_set(&self, set: &LockAll<'_>) -> Result<(), Refusal> {
        let bad = |sentence| Err(Refusal::new(Word::BadArg, sentence));
        let most = self.limits.set_size;
        if !(1..=most).contains(&set.gates.len()) {
            let gates = set.gates.len();
            return bad(format!("a set of {gates} gates is not in 1..={most}"));
        }
        for (at, (name, _)) in set.gates.iter().enumerate() {
            if set.gates[..at].iter().any(|(other, _)| other == name) {
                return bad(format!("gate {name} is named twice in one set"));
            }
        }
        Ok(())
    }
}
