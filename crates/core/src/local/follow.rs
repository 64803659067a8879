//! How the local half follows the log. It accepts only an [`Applied`] change, so nothing that must be durable is done before
//! it is.

use super::Local;
use crate::error::{Refusal, Word};
use crate::event::Event;
use crate::gate::{Definition, Standing};
use crate::name::Name;
use crate::replicated::{Applied, Change, Outcome, Replicated, no_gate};
use crate::session::State;

impl Local {
    /// Whether a change is worth logging, as far as only the local half can tell: a gate in use is neither created again nor
    /// deleted. Things may change between this and [`Local::follow`], which copes with that.
    pub fn check(&self, change: &Change) -> Result<(), Refusal> {
        let (gate, doing) = match change {
            Change::CreateGate { gate, .. } => (gate, "created"),
            Change::DeleteGate { gate, .. } => (gate, "deleted"),
            _ => return Ok(()),
        };
        let Some(standing) = self.names.get(gate).map(|g| &self.gates[*g]) else {
            return match change {
                Change::DeleteGate { gate, .. } => Err(no_gate(gate)),
                _ => Ok(()),
            };
        };
        if doing == "created" && !standing.implicit() || standing.idle() {
            return Ok(());
        }
        Err(Refusal::new(
            Word::Busy,
            format!(
                "gate {gate} has {} inside and {} waiting; it can be {doing} when it is idle",
                standing.inside.len(),
                standing.queue.len()
            ),
        ))
    }

    /// Carries out what an applied change means for the local half.
    pub fn follow(
        &mut self,
        now: u64,
        replicated: &Replicated,
        applied: &Applied,
        out: &mut Vec<Event>,
    ) {
        self.expire(now, out);
        let now = self.now;
        match applied.outcome() {
            // What this node owned it still owns, so its books stay. Some requests may have waited for fences.
            Outcome::Viewed | Outcome::Entitled => {
                self.fences.raise(replicated.ownership());
                self.serve_all_takers(replicated, out);
                self.advance_all(now, out);
            }
            Outcome::GateCreated { gate, definition } => self.create_gate(gate, definition),
            Outcome::GateDeleted { gate } => self.delete_gate(gate),
            Outcome::SessionOpened {
                session,
                ttl_ms,
                label,
            } => {
                if !self.session_ids.contains_key(session) {
                    self.add_session(now, *session, *ttl_ms, label.as_deref(), State::Connected);
                }
            }
            Outcome::SessionClosed { session, .. } => {
                if let Some(&s) = self.session_ids.get(session) {
                    self.end_session(now, s, out);
                }
            }
            Outcome::FlowApplied { .. } | Outcome::FlowDeleted { .. } => {
                self.follow_flow(replicated, out);
            }
            Outcome::Jobs(outcomes) => self.follow_jobs(replicated, outcomes, out),
            Outcome::SessionMoved { .. }
            | Outcome::Once(_)
            | Outcome::LimitsChanged
            | Outcome::ReceiptKeyShared
            | Outcome::ClusterChanged
            | Outcome::PoolCreated { .. }
            | Outcome::PoolClosing { .. }
            | Outcome::PoolKept { .. }
            | Outcome::PoolDeleted { .. }
            | Outcome::PoolHeard
            | Outcome::SlotsClaimed { .. }
            | Outcome::SlotsGiven { .. }
            | Outcome::Decided { .. }
            | Outcome::DecisionForgotten { .. }
            | Outcome::GroupJoined(_)
            | Outcome::GroupSent { .. }
            | Outcome::GroupLeft { .. }
            | Outcome::EndsWaited { .. }
            | Outcome::Unchanged => {}
        }
    }

    /// If a gate without a definition is in use under the same name, it is drained first.
    fn create_gate(&mut self, name: &Name, definition: &Definition) {
        match self.names.get(name) {
            None => {
                self.create(name.clone(), definition.clone(), Standing::Created);
            }
            Some(&g) => {
                if let Standing::Implicit { successor } = &mut self.gates[g].standing {
                    *successor = Some(Box::new(definition.clone()));
                }
            }
        }
    }

    /// A gate that is in use outlives its definition, like an implicit one, until it is idle.
    fn delete_gate(&mut self, name: &Name) {
        if let Some(&g) = self.names.get(name) {
            self.gates[g].standing = Standing::Implicit { successor: None };
            self.retire(g);
        }
    }

    pub(super) fn advance_all(&mut self, now: u64, out: &mut Vec<Event>) {
        let mut gates: Vec<_> = self.gates.iter().map(|(g, _)| g).collect();
        gates.retain(|g| !self.gates[*g].queue.is_empty());
        for g in gates {
            self.advance(now, g, out);
        }
    }
}
