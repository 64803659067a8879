//! Does what a cluster member's estate wants done, and answers those who wait for another node.

use std::sync::Arc;

use testigo_core::estate::Tell;
use testigo_core::pool::NamedSlot;
use testigo_core::{
    Answer, Change, ClaimEnd, Fence, Name, Refusal, Resumed, SessionId, Settled, Ticket, WaitEnd,
    Word, bare_name,
};
use testigo_engine::Peer;

use super::letters::{Letter, payloads};
use super::{ActsFor, Answers, Blocked, ClientId, Form, House, Seat, Waiter, fence_reply};
use crate::completion::Completion;
use crate::mailbox::SessionEvent;
use crate::wire::{Reply, refuse};

/// What a connection has asked another node for.
#[derive(Debug)]
pub(crate) enum Asking {
    /// To give something back.
    Unlock,
    /// To become a reader.
    Downgrade { gate: Box<str>, form: Option<Form> },
    /// To resume a session, with claims whose receipts match or do not.
    Resume {
        fits: Vec<bool>,
        /// The slots that it has named.
        slots: Option<Vec<NamedSlot>>,
    },
}

impl House {
    /// Does what the estate wants done.
    pub(super) fn pass_on_estate(&mut self) {
        let (out, frames) = self.services.take_out();
        for (to, frame) in frames {
            self.say(to, &Letter::Estate(frame));
        }
        for change in out.changes {
            let _ = self.submit(change, Answers::Nobody);
        }
        for tell in out.tells {
            self.pass_on_tell(tell);
        }
        for event in out.events {
            self.pass_on_one(event);
        }
    }

    /// Sends a letter to another member.
    pub(super) fn say(&mut self, to: testigo_core::estate::Peer, letter: &Letter) {
        let (node, start) = (to.0.0, to.1.0);
        for payload in payloads(letter) {
            self.submissions.say(Peer { node, start }, payload);
        }
    }

    fn pass_on_tell(&mut self, tell: Tell) {
        match tell {
            Tell::Answered {
                session,
                ticket,
                answer,
            } => self.answered(session, ticket, answer),
            Tell::Wanted {
                session,
                gate,
                fence,
            } => self.tell_holder(session, SessionEvent::Wanted { gate, fence }),
            Tell::Lost {
                session,
                gate,
                fence,
                loss,
            } => self.tell_holder(session, SessionEvent::Lost { gate, fence, loss }),
            Tell::Suspect { session } => self.tell_holder(session, SessionEvent::Suspect),
            Tell::Closed { session } => self.closed(session),
            Tell::Moved { ticket, .. } if self.visit_moved(ticket) => {}
            Tell::Moved { session, ticket } => {
                let why = "the queue is owned by another node now; take again";
                self.answered(session, ticket, Err(refuse(Word::Unavailable, why)));
            }
            Tell::Died { jobs } => {
                let lost = self.by_worker(jobs);
                let _ = self.submit(Change::Jobs(lost), Answers::Nobody);
            }
        }
    }

    /// A session no longer belongs here: it has ended, has moved, or its connection must not go on.
    fn closed(&mut self, session: SessionId) {
        let over = !session.is_implicit() && self.replicated().session(session).is_none();
        if over {
            return self.session_ended(session);
        }
        let home = self.replicated().session(session).map(|record| record.home);
        let moved = home.is_some_and(|home| (home.node, home.start) != self.own);
        match self.seats.remove(&session) {
            // Nobody else can use its slots, so a connection that holds nothing else goes on, unless its session moved
            // elsewhere.
            Some(Seat::Client(id)) if !moved && self.has_only_slots(session) => {
                self.seats.insert(session, Seat::Client(id));
            }
            Some(Seat::Client(id)) => self.unseat(id),
            Some(Seat::Embedded(mailbox)) => mailbox.put(SessionEvent::Ended),
            None => {}
        }
    }

    fn has_only_slots(&self, session: SessionId) -> bool {
        self.services.desk().has(session) && !self.services.is_busy(session)
    }

    /// The log says that a session has another home: whoever sits here for it did not take it there.
    pub(super) fn moved(&mut self, session: SessionId) {
        let home = self.replicated().session(session).map(|record| record.home);
        if home.is_some_and(|home| (home.node, home.start) != self.own) {
            self.closed(session);
        }
    }

    /// A session's request is answered.
    fn answered(&mut self, session: SessionId, ticket: Ticket, answer: Result<Answer, Refusal>) {
        let answer = match answer {
            Ok(Answer::Settled(settled)) => return self.settled(session, ticket, settled),
            answer => answer,
        };
        let resumed = matches!(answer, Ok(Answer::Resumed(_)));
        self.wanted.remove(&ticket);
        match self.tickets.remove(&ticket) {
            Some(Waiter::Asking(client, asking)) => {
                let reply = match answer {
                    Ok(answer) => self.asked_reply(session, client, asking, answer),
                    Err(refusal) => refusal.into(),
                };
                self.connections.unblock(client, reply);
            }
            Some(Waiter::EmbeddedAsking(completion)) => completion.give(answer),
            Some(Waiter::Blocked(client)) => {
                let reply = match answer {
                    Ok(_) => Reply::Null,
                    Err(refusal) => refusal.into(),
                };
                self.connections.unblock(client, reply);
            }
            Some(Waiter::Embedded(completion)) => {
                completion.give(Settled::Ended(WaitEnd::Cancelled));
            }
            Some(Waiter::EmbeddedSlots(completion)) => completion.give(Vec::new()),
            Some(Waiter::Pushed(client)) => self.push_slots(client, ticket.0, &[]),
            None => {
                if let (Err(refusal), Some(Seat::Client(id))) = (&answer, self.seat(session)) {
                    let (id, why) = (*id, refusal.to_string());
                    let ticket = Reply::number(ticket.0);
                    self.push(id, vec![Reply::text("gone"), ticket, Reply::text(why)]);
                }
                if resumed {
                    // The client that resumed it has gone.
                    self.nobody_there(session);
                }
            }
        }
    }

    fn asked_reply(
        &mut self,
        session: SessionId,
        client: ClientId,
        asking: Asking,
        answer: Answer,
    ) -> Reply {
        match (asking, answer) {
            (Asking::Downgrade { gate, form }, Answer::Downgraded(fence)) => match form {
                Some(form) => self.form_reply(session, &gate, fence, form),
                None => fence_reply(fence),
            },
            (Asking::Resume { fits, slots }, Answer::Resumed(resumed)) => {
                self.take_seat(session, client);
                self.resumed_reply(client, session, with_misfits(resumed, fits), slots)
            }
            _ => Reply::Ok,
        }
    }

    /// A connection waits for another node's answer to a request that does not wait for a gate or a job.
    pub(crate) fn block_on_asking(&mut self, id: ClientId, ticket: Ticket, asking: Asking) {
        self.tickets.insert(ticket, Waiter::Asking(id, asking));
        if let Some(client) = self.connections.client_mut(id) {
            client.blocked = Some(Blocked::Asking(ticket));
        }
    }

    /// The same for a caller in this process.
    pub(crate) fn answer_embedded(
        &mut self,
        ticket: Ticket,
    ) -> Arc<Completion<Result<Answer, Refusal>>> {
        let completion = Completion::new();
        let waiter = Waiter::EmbeddedAsking(Arc::clone(&completion));
        self.tickets.insert(ticket, waiter);
        completion
    }

    /// The log has refused what the estate wanted.
    pub(super) fn not_done(&mut self, change: &Change, refusal: &Refusal) {
        let (Change::MoveSession { session, .. } | Change::ResumeSession { session, .. }) = change
        else {
            return;
        };
        // If another connection has brought the session here meanwhile, it is here, but still has to be told about the slots
        // it named.
        if let Change::ResumeSession {
            serial: None,
            slots: Some(slots),
            ..
        } = change
            && !slots.is_empty()
            && self.services.is_home(*session)
        {
            let claims = self.replicated().pools().find(slots);
            let claim = Change::ClaimSlots {
                session: *session,
                claims,
                all: false,
            };
            let _ = self.submit(claim, Answers::Nobody);
        }
        let serial = match change {
            Change::ResumeSession { serial, .. } => *serial,
            _ => None,
        };
        self.services.not_moved(*session, serial, refusal.clone());
    }

    /// A connection has resumed a session. It is told which of the slots that it named it does not have, then which slots of
    /// this node it has.
    pub(crate) fn resumed_reply(
        &mut self,
        id: ClientId,
        session: SessionId,
        resumed: Resumed,
        slots: Option<Vec<NamedSlot>>,
    ) -> Reply {
        let lost = slots.map(|slots| self.services.claim_slots(session, slots));
        for (pool, slot, fence) in lost.into_iter().flatten() {
            self.push_lost_slot(id, &pool, &slot, fence);
        }
        resumed_reply(resumed, self.services.own_slots(session))
    }

    /// The sessions whose connections are blocked: they are not silent.
    pub(super) fn blocked_sessions(&self) -> Vec<SessionId> {
        let blocked = self.tickets.values().filter_map(|waiter| match waiter {
            Waiter::Blocked(id) | Waiter::Asking(id, _) => Some(*id),
            Waiter::Embedded(_)
            | Waiter::EmbeddedAsking(_)
            | Waiter::EmbeddedSlots(_)
            | Waiter::Pushed(_) => None,
        });
        let blocked = blocked.chain(self.visits.clients());
        let acts_for = blocked.filter_map(|id| Some(self.connections.client(id)?.acts_for));
        let sessions = acts_for.filter_map(|acts_for| match acts_for {
            ActsFor::Opened(session) => Some(session),
            _ => None,
        });
        sessions.collect()
    }
}

/// The outcomes of all claims, including those that were skipped because their receipts do not match.
pub(crate) fn with_misfits(mut resumed: Resumed, fits: Vec<bool>) -> Resumed {
    let mut ends = std::mem::take(&mut resumed.claims).into_iter();
    let misfit = || {
        ClaimEnd::Refused(
            "the receipt is not for this session, gate, mode and fence, or not this node's".into(),
        )
    };
    let end = |fits| match fits {
        true => ends.next(),
        false => Some(misfit()),
    };
    resumed.claims = fits.into_iter().filter_map(end).collect();
    resumed
}

/// The reply to `SESSION RESUME`.
fn resumed_reply(resumed: Resumed, own: Vec<NamedSlot>) -> Reply {
    let claims = resumed.claims.into_iter().map(|end| {
        Reply::text(match end {
            ClaimEnd::Held => "HELD".to_owned(),
            ClaimEnd::Lost => "LOST".to_owned(),
            ClaimEnd::Refused(why) => format!("REFUSED {why}"),
        })
    });
    let held = resumed.holds.into_iter();
    let (leads, holds): (Vec<_>, Vec<_>) = held.partition(|(name, _)| name.as_election().is_some());
    let rows = |held: Vec<(Name, Fence)>| {
        let rows = held.into_iter().map(|(name, fence)| {
            let name = Reply::text(bare_name(&name));
            Reply::Array(vec![name, fence_reply(fence)])
        });
        Reply::Array(rows.collect())
    };
    let mut fields = vec![
        ("claims", Reply::Array(claims.collect())),
        ("holds", rows(holds)),
    ];
    if !leads.is_empty() {
        fields.push(("leads", rows(leads)));
    }
    if !own.is_empty() {
        let own = own.into_iter().map(|(pool, slot, fence)| {
            Reply::Array(vec![
                Reply::Name(pool),
                Reply::text(slot),
                fence_reply(fence),
            ])
        });
        fields.push(("slots", Reply::Array(own.collect())));
    }
    Reply::Map(fields)
}
