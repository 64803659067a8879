//! The replicated half: what every node knows and what changes only in the order of the log. Definitions of gates,
//! opened sessions, who owns what in which epoch, once-keys. An acknowledged change is durable, because the node
//! applies only what is in the log. Nothing here knows who is inside a gate.

mod change;
mod once;

pub use change::{Applied, Change, Outcome};
pub use once::{OnceAnswer, OnceStart};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Refusal, Word};
use crate::fence::Epoch;
use crate::gate::Definition;
use crate::limits::Limits;
use crate::name::{Name, check_text};
use crate::ownership::{NodeId, Ownership};
use crate::session::SessionId;
use once::OnceKeys;

/// The replicated half. Two nodes that applied the same log are equal.
#[derive(Clone, Debug)]
pub struct Replicated {
    records: Records,
    limits: Limits,
}

/// Everything that a snapshot of the replicated half holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    epoch: Epoch,
    ownership: Ownership,
    gates: BTreeMap<Name, Definition>,
    sessions: BTreeMap<SessionId, SessionRecord>,
    once: OnceKeys,
}

/// An opened session, as the log knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// How long it may be silent.
    pub ttl_ms: u64,
    /// What people call it.
    pub label: Option<String>,
}

impl Replicated {
    /// An empty state, before the first entry of the log.
    pub fn new(limits: Limits) -> Replicated {
        Replicated::restore(limits, Records::default())
    }

    /// The state of a snapshot. All nodes of a cluster must use the same limits, or they would refuse differently.
    pub fn restore(limits: Limits, records: Records) -> Replicated {
        Replicated { records, limits }
    }

    /// What a snapshot must hold.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Applies the next entry of the log. `now` is the time in the entry, the same on every node; it is only noted, never
    /// compared. A refused change leaves the state as it was, on every node alike.
    pub fn apply(&mut self, now: u64, change: &Change) -> Result<Applied, Refusal> {
        let outcome = match change {
            Change::Reign { node, at_least } => self.reign(*node, *at_least)?,
            Change::CreateGate { gate, definition } => self.create_gate(gate, definition)?,
            Change::DeleteGate { gate } => {
                if self.records.gates.remove(gate).is_none() {
                    return Err(no_gate(gate));
                }
                Outcome::GateDeleted { gate: gate.clone() }
            }
            Change::OpenSession {
                session,
                ttl_ms,
                label,
            } => self.open_session(*session, *ttl_ms, label.as_deref())?,
            Change::CloseSession { session } => {
                if self.records.sessions.remove(session).is_none() {
                    return Err(no_session(*session));
                }
                Outcome::SessionClosed { session: *session }
            }
            Change::StartOnce(start) => {
                let Records { once, sessions, .. } = &mut self.records;
                let alive = |session| sessions.contains_key(&session);
                Outcome::Once(once.start(now, &self.limits, start, alive)?)
            }
            Change::FinishOnce {
                key,
                period,
                attempt,
            } => Outcome::Once(self.records.once.finish(now, key, *period, *attempt)?),
            Change::AbandonOnce { key, attempt } => {
                Outcome::Once(self.records.once.abandon(key, *attempt)?)
            }
            Change::ForgetOnce { key } => match self.records.once.forget(key) {
                true => Outcome::Once(OnceAnswer::Forgotten),
                false => Outcome::Unchanged,
            },
        };
        Ok(Applied(outcome))
    }

    /// The present epoch.
    pub fn epoch(&self) -> Epoch {
        self.records.epoch
    }

    /// Who owns what.
    pub fn ownership(&self) -> &Ownership {
        &self.records.ownership
    }

    /// A created gate's definition.
    pub fn gate(&self, name: &str) -> Option<&Definition> {
        self.records.gates.get(name)
    }

    /// All created gates, by name.
    pub fn gates(&self) -> impl ExactSizeIterator<Item = (&Name, &Definition)> {
        self.records.gates.iter()
    }

    /// All opened sessions, by identity.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = (SessionId, &SessionRecord)> {
        self.records
            .sessions
            .iter()
            .map(|(id, record)| (*id, record))
    }

    /// How many once-keys are on record.
    pub fn once_keys(&self) -> usize {
        self.records.once.len()
    }

    fn reign(&mut self, node: NodeId, at_least: Epoch) -> Result<Outcome, Refusal> {
        let epoch = Epoch(self.records.epoch.0 + 1).max(at_least);
        if epoch > Epoch::MAX {
            return Err(Refusal::new(
                Word::Limit,
                format!(
                    "epoch {epoch} is above {}; fences would exceed 2^53",
                    Epoch::MAX
                ),
            ));
        }
        let taken = self.records.ownership.take_everything(node, epoch);
        assert!(taken, "the log's epoch only rises");
        self.records.epoch = epoch;
        Ok(Outcome::Reigns { node, epoch })
    }

    fn create_gate(&mut self, gate: &Name, definition: &Definition) -> Result<Outcome, Refusal> {
        definition.check(&self.limits)?;
        match self.records.gates.get(gate) {
            Some(existing) if existing == definition => return Ok(Outcome::Unchanged),
            Some(existing) => {
                return Err(Refusal::new(
                    Word::Busy,
                    format!(
                        "gate {gate} exists as {} with another definition; delete it first",
                        existing.rule.word()
                    ),
                ));
            }
            None => {}
        }
        if self.records.gates.len() >= self.limits.gates {
            return Err(Refusal::new(
                Word::Limit,
                format!(
                    "{} gates exist, which is the limit gates",
                    self.limits.gates
                ),
            ));
        }
        self.records.gates.insert(gate.clone(), definition.clone());
        Ok(Outcome::GateCreated {
            gate: gate.clone(),
            definition: definition.clone(),
        })
    }

    fn open_session(
        &mut self,
        session: SessionId,
        ttl_ms: u64,
        label: Option<&str>,
    ) -> Result<Outcome, Refusal> {
        let (least, most) = (self.limits.ttl_ms_min, self.limits.ttl_ms_max);
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
        if self.records.sessions.len() >= self.limits.sessions {
            return Err(Refusal::new(
                Word::Limit,
                format!(
                    "{} sessions are open, which is the limit sessions",
                    self.limits.sessions
                ),
            ));
        }
        let label = label.map(str::to_owned);
        let record = SessionRecord {
            ttl_ms,
            label: label.clone(),
        };
        self.records.sessions.insert(session, record);
        Ok(Outcome::SessionOpened {
            session,
            ttl_ms,
            label,
        })
    }
}

pub(crate) fn no_gate(name: &str) -> Refusal {
    Refusal::new(
        Word::NoGate,
        format!("there is no gate {name}; GATE CREATE makes one, GATE LIST shows them"),
    )
}

pub(crate) fn no_session(session: SessionId) -> Refusal {
    Refusal::new(
        Word::Stale,
        format!("session {session} was never opened, was closed or ran out; open a new one"),
    )
}

#[cfg(test)]
mod tests;
