//! Whether a gate could be created or a session opened.

use super::{Records, Replicated};
use crate::error::{Refusal, Word};
use crate::gate::Definition;
use crate::limits::Limits;
use crate::name::{Name, check_text};
use crate::session::SessionId;

impl Replicated {
    pub(super) fn check_create(&self, gate: &Name, definition: &Definition) -> Result<(), Refusal> {
        let Records { gates, limits, .. } = &self.records;
        match gates.get(gate) {
            // An existing gate stays as it is, whatever the limits are now.
            Some(existing) if existing == definition => return Ok(()),
            _ => definition.check(limits)?,
        }
        match gates.get(gate) {
            Some(existing) => Err(Refusal::new(
                Word::Busy,
                format!(
                    "gate {gate} exists as {} with another definition; delete it first",
                    existing.rule.word()
                ),
            )),
            None => below("gates", gates.len(), limits.gates),
        }
    }

    pub(super) fn check_open(
        &self,
        session: SessionId,
        ttl_ms: u64,
        label: Option<&str>,
    ) -> Result<(), Refusal> {
        let limits = &self.records.limits;
        let (least, most) = (limits.ttl_ms_min, limits.ttl_ms_max);
        if !(least..=most).contains(&ttl_ms) {
            return Err(Refusal::new(
                Word::BadArg,
                format!("TTL {ttl_ms} is not in {least}..={most} milliseconds"),
            ));
        }
        if let Some(label) = label {
            check_text("LABEL", label, Limits::LABEL_BYTES)?;
        }
        if session.is_implicit() {
            return Err(Refusal::new(
                Word::BadArg,
                format!("session {session} has the identity of an implicit one"),
            ));
        }
        if self.records.sessions.contains_key(&session) {
            return Err(Refusal::new(
                Word::Busy,
                format!("session {session} is open already; draw another identity"),
            ));
        }
        let open = self.records.sessions.len();
        below("sessions", open, limits.sessions)
    }
}

pub(super) fn below(limit: &str, count: usize, most: usize) -> Result<(), Refusal> {
    if count < most {
        return Ok(());
    }
    Err(Refusal::new(
        Word::Limit,
        format!("{count} {limit} exist, and the limit {limit} is {most}"),
    ))
}
