//! Pools: carries out what the node's desk wants, and answers takes that waited for slots.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use testigo_core::pool::{PoolAnswer, PoolTake, SlotTaken};
use testigo_core::{Change, Fence, Name, Refusal, SessionId, Ticket, WaitEnd};

use super::client::{ActsFor, ClientId};
use super::present::{has_ended, there};
use super::{Answers, House, Waiter, fence_reply};
use crate::completion::Completion;
use crate::wire::Reply;

impl House {
    /// Hands what the members of pools say to the log or the group, and answers takes that have waited.
    pub(super) fn pass_on_slots(&mut self) {
        while let Some(out) = self.services.take_desk_out() {
            for change in out.changes {
                match (&mut self.services.group, change) {
                    (
                        Some(group),
                        Change::PoolLetter {
                            pool,
                            created,
                            letter,
                        },
                    ) => group.send(pool, created.0, letter),
                    (_, change) => {
                        let _ = self.submit(change, Answers::Nobody);
                    }
                }
            }
            for (ticket, taken) in out.answers {
                self.answer_take(ticket, taken);
            }
            for (session, pool, slot, fence) in out.lost {
                let seated = match self.seat(session) {
                    Some(super::Seat::Client(id)) => Some(*id),
                    Some(super::Seat::Embedded(_)) => None,
                    // A session that only takes slots has no place in the books.
                    None if session.is_implicit() => {
                        let mut ids = self.connections.ids();
                        ids.find(|id| self.identity(*id) == session)
                    }
                    None => None,
                };
                if let Some(id) = seated {
                    self.push_lost_slot(id, &pool, &slot, fence);
                }
            }
        }
        self.pass_on_group();
    }

    /// Tells a connection that its session no longer has a slot.
    pub(crate) fn push_lost_slot(&mut self, id: ClientId, pool: &Name, slot: &str, fence: Fence) {
        let [lost, slot, why] = ["lost", &format!("{pool}/{slot}"), "removed"].map(Reply::text);
        self.push(id, vec![lost, slot, fence_reply(fence), why]);
    }

    fn answer_take(&mut self, ticket: Ticket, taken: Vec<SlotTaken>) {
        match self.tickets.remove(&ticket) {
            Some(Waiter::Blocked(client)) => {
                let reply = match taken.is_empty() {
                    true => self.connections.end_reply(client, WaitEnd::Cancelled),
                    false => taken_slots_reply(&taken),
                };
                self.connections.unblock(client, reply);
            }
            Some(Waiter::Pushed(client)) => self.push_slots(client, ticket.0, &taken),
            Some(Waiter::EmbeddedSlots(completion)) => completion.give(taken),
            _ => {}
        }
    }

    /// Tells a connection the outcome of a take that it did not block on.
    pub(crate) fn push_slots(&mut self, id: ClientId, ticket: u64, taken: &[SlotTaken]) {
        let ticket = Reply::number(ticket);
        let words = match taken.is_empty() {
            true => vec![Reply::text("gone"), ticket, Reply::text("timeout")],
            false => vec![Reply::text("slots"), ticket, taken_slots_reply(taken)],
        };
        self.push(id, words);
    }

    /// A push will tell the connection when this wait ends.
    pub(crate) fn push_later(&mut self, id: ClientId, ticket: Ticket) {
        self.tickets.insert(ticket, Waiter::Pushed(id));
        if let Some(client) = self.connections.client_mut(id) {
            client.pushed = true;
        }
    }

    /// Drops these waits: nobody would hear what they bring.
    pub(crate) fn forget_pushed(&mut self, id: ClientId) {
        let waits = self.tickets.iter();
        let waits = waits.filter(|(_, waiter)| matches!(waiter, Waiter::Pushed(of) if *of == id));
        let waits: FxHashSet<Ticket> = waits.map(|(ticket, _)| *ticket).collect();
        if !waits.is_empty() {
            self.tickets.retain(|ticket, _| !waits.contains(ticket));
            self.services.cancel_all_slots(&waits);
        }
    }

    /// The session for which a connection takes and gives slots. It needs no lease and no place in the books.
    pub(crate) fn slots_session(&self, id: ClientId) -> Result<SessionId, Refusal> {
        let client = there(self.connections.client(id))?;
        client.opened_first()?;
        match client.acts_for {
            ActsFor::Ended(session) => Err(has_ended(session)),
            _ => Ok(self.identity(id)),
        }
    }

    /// Takes slots for a session.
    pub(crate) fn take_slots(
        &mut self,
        session: SessionId,
        take: PoolTake<'_>,
    ) -> Result<PoolAnswer, Refusal> {
        self.services.take_slots(self.now, session, take)
    }

    /// Gives slots back. Returns a change for the log if some were taken at another node.
    pub(crate) fn give_slots(
        &mut self,
        session: SessionId,
        pool: &str,
        slots: &[&str],
    ) -> Result<Option<Change>, Refusal> {
        self.services.give_slots(self.now, session, pool, slots)
    }

    /// Lets a caller in this process wait for what it gets.
    pub(crate) fn slots_later(&mut self, ticket: Ticket) -> Arc<Completion<Vec<SlotTaken>>> {
        let completion = Completion::new();
        let waiter = Waiter::EmbeddedSlots(Arc::clone(&completion));
        self.tickets.insert(ticket, waiter);
        completion
    }
}

/// Slot, fence, slot, fence…
pub(crate) fn taken_slots_reply(taken: &[SlotTaken]) -> Reply {
    let pairs = taken
        .iter()
        .flat_map(|taken| [Reply::text(&taken.slot), fence_reply(taken.fence)]);
    Reply::Array(pairs.collect())
}
