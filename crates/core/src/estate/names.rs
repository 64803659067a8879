//! Names whose definition is on its way through the log. A gate is created or deleted only while nobody is inside and nobody
//! waits, and that must still hold when the log has decided. So the owner reserves the name first; requests that come
//! meanwhile are served afterwards, by the gate that there is then.

use super::{Ask, Broken, Estate, Out, Peer};
use crate::error::{Refusal, Word};
use crate::name::Name;
use crate::ownership::{Number, Shard};
use crate::replicated::{Change, Replicated};
use crate::session::SessionId;

/// A name with changes on their way.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    /// How many changes.
    changes: u32,
    /// The number of its shard.
    number: Number,
    /// Whether nobody may enter before the log has decided.
    shut: bool,
    /// Asks that came meanwhile, and when.
    pub(super) asks: Vec<(u64, Peer, Ask)>,
}

/// The name that a change defines, and the number that the change rests on.
fn defined(change: &Change) -> Option<(&Name, Number)> {
    match change {
        Change::CreateGate { gate, number, .. } | Change::DeleteGate { gate, number } => {
            Some((gate, *number))
        }
        _ => None,
    }
}

impl Estate {
    /// Reserves the name that a change is about to create or delete. `BUSY` if the gate is in use. End every reservation with
    /// one [`Estate::release_name`] when the log has decided.
    pub fn reserve_name(
        &mut self,
        now: u64,
        replicated: &Replicated,
        change: &Change,
        out: &mut Out,
    ) -> Result<(), Refusal> {
        let Some((gate, number)) = defined(change) else {
            return Ok(());
        };
        if !self.acts(now) {
            return Err(Estate::no_lease());
        }
        let shard = Shard::of(gate);
        if !self.owns(replicated, shard) || !self.openings.is_open(shard) {
            return Err(Estate::unavailable(
                "this node does not own the gate, or does not know yet who is inside; try again",
            ));
        }
        let shut = self.is_reserved(gate);
        if !shut {
            // Asks that were called in from elsewhere to wait here do not stand in the books' queue.
            let waits = !self.table.parked_at(gate).is_empty() && self.is_spread(replicated, gate);
            let checked = match waits {
                true => Err(Refusal::new(
                    Word::Busy,
                    format!("gate {gate} is waited for; it can be deleted when it is idle"),
                )),
                false => self.local.check(change),
            };
            let deletes = matches!(change, Change::DeleteGate { .. });
            if checked.is_ok() && deletes && self.has_begun(gate) {
                let refusal = self.recall(replicated, gate);
                self.take_proposals(out);
                return Err(refusal);
            }
            self.spread.recalls.over(gate);
            if let Err(refusal) = checked {
                self.begin_instance(replicated, gate, out);
                self.go_on(replicated, out);
                return Err(refusal);
            }
        }
        // Creating a gate that exists changes nothing, whoever is inside.
        let there = matches!(change, Change::CreateGate { .. }) && replicated.gate(gate).is_some();
        let shuts = !there && !self.breaks(Broken::DeleteInUse);
        let reserved = self.reserved.entry(gate.clone()).or_default();
        reserved.changes += 1;
        reserved.number = number;
        reserved.shut |= shuts;
        Ok(())
    }

    /// The log has decided on a change whose name was reserved, or the change was not submitted after all.
    pub fn release_name(
        &mut self,
        now: u64,
        replicated: &Replicated,
        change: &Change,
        out: &mut Out,
    ) {
        let Some((gate, number)) = defined(change) else {
            return;
        };
        self.wake(now, replicated, out);
        let reserved = self.reserved.get_mut(gate);
        // The shard may have belonged to another node meanwhile.
        let Some(reserved) = reserved.filter(|reserved| reserved.number == number) else {
            return;
        };
        reserved.changes -= 1;
        if reserved.changes > 0 {
            return;
        }
        let reserved = self.reserved.remove(gate).expect("it was found");
        self.begin_instance(replicated, gate, out);
        for (_, home, ask) in reserved.asks {
            self.serve(replicated, home, ask, out);
        }
        self.go_on(replicated, out);
    }

    /// Whether nobody may enter a gate because its definition is on its way.
    pub(super) fn is_reserved(&self, gate: &Name) -> bool {
        !self.reserved.is_empty() && self.reserved.get(gate).is_some_and(|name| name.shut)
    }

    /// Whether the books here can answer a request for a gate now.
    pub(super) fn enters_here(&self, replicated: &Replicated, gate: &Name) -> bool {
        let shard = Shard::of(gate);
        self.owns(replicated, shard)
            && self.openings.is_open(shard)
            && !self.is_reserved(gate)
            && !self.is_spread(replicated, gate)
    }

    /// Forgets the asks for reserved names that are `gone`.
    pub(super) fn forget_parked(&mut self, gone: impl Fn(Peer, &Ask) -> bool) {
        for reserved in self.reserved.values_mut() {
            reserved.asks.retain(|(_, home, ask)| !gone(*home, ask));
        }
    }

    pub(super) fn forget_parked_of(&mut self, session: SessionId) {
        self.forget_parked(|_, ask| ask.session == session);
    }
}
