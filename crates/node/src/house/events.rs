//! Passes on what the local half reports: answers to those who wait, pushes to holders, messages to channels, and to the log
//! what only the log can do.

use testigo_core::{
    Change, Event, Fence, Index, Loss, Mode, SessionId, Settled, Shard, Span, Start, Ticket,
    WaitEnd,
};

use super::{ActsFor, Answers, ClientId, House, Seat, Waiter, Wanted};
use crate::mailbox::SessionEvent;
use crate::wire::{Protocol, Reply};

impl House {
    /// Passes on everything that has happened since the last call.
    pub(crate) fn pass_on(&mut self) {
        self.pass_on_slots();
        self.pass_on_chapters();
        if self.services.estate().is_some() {
            while self.services.has_told() {
                self.pass_on_estate();
                self.send_replies();
            }
            return self.send_replies();
        }
        if !self.services.has_told() {
            return;
        }
        let mut events = self.services.take_events();
        self.keep_touches(&events);
        for event in events.drain(..) {
            self.pass_on_one(event);
        }
        self.services.put_back(events);
    }

    pub(super) fn pass_on_one(&mut self, event: Event) {
        match event {
            Event::Settled {
                session,
                ticket,
                settled,
            } => self.settled(session, ticket, settled),
            Event::Wanted {
                session,
                gate,
                fence,
            } => {
                self.tell_holder(
                    session,
                    SessionEvent::Wanted {
                        gate: gate.clone(),
                        fence,
                    },
                );
                self.publish(&gate, || format!("wanted {fence} {session}"));
            }
            Event::Lost {
                session,
                gate,
                fence,
                loss,
            } => {
                self.tell_holder(
                    session,
                    SessionEvent::Lost {
                        gate: gate.clone(),
                        fence,
                        loss,
                    },
                );
                self.publish(&gate, || {
                    format!("lost {fence} {session} {}", loss_word(loss))
                });
            }
            Event::RunOut { session } => {
                log::info!("session {session} was silent for its whole TTL");
                let _ = self.submit(self.close_change(session), Answers::Nobody);
            }
            Event::FencesLow { shard } => self.renew_title(shard),
            Event::Died { jobs } => {
                let lost = self.lost_jobs(&jobs);
                let _ = self.submit(Change::Jobs(lost), Answers::Nobody);
            }
            Event::SessionEnded { session } => self.session_ended(session),
            Event::Recovered => log::info!("recovered: all gates grant again"),
            Event::Touched(_) => {}
            Event::Waits {
                session,
                ticket,
                gate,
                mode,
                class,
                ..
            } => self.publish(&gate, || {
                format!(
                    "waits {ticket} {session} {} class {class}",
                    mode_words(&mode)
                )
            }),
            Event::Entered {
                session,
                gate,
                mode,
                fence,
                ..
            } => self.publish(&gate, || {
                format!("entered {fence} {session} {}", mode_words(&mode))
            }),
            Event::Left {
                session,
                gate,
                fence,
            } => self.publish(&gate, || format!("left {fence} {session}")),
            Event::Gone { .. } => {}
            Event::Elected { .. } | Event::Vacant { .. } => self.pass_on_election(event),
        }
    }

    /// This node's start.
    pub(crate) fn start(&self) -> Start {
        self.own.1
    }

    /// A wait ended, with or without entering.
    pub(super) fn settled(&mut self, session: SessionId, ticket: Ticket, settled: Settled) {
        let wanted = self.wanted.remove(&ticket);
        match self.tickets.remove(&ticket) {
            Some(Waiter::Blocked(client)) => {
                let reply = match settled {
                    Settled::Ended(end) => self.connections.end_reply(client, end),
                    Settled::Taken(taken) => self.taken_reply(client, taken),
                    granted => self.grant_reply(session, &granted, wanted.as_ref()),
                };
                self.connections.unblock(client, reply);
            }
            Some(Waiter::Embedded(completion)) => completion.give(settled),
            Some(
                Waiter::Asking(..)
                | Waiter::EmbeddedAsking(_)
                | Waiter::EmbeddedSlots(_)
                | Waiter::Pushed(_),
            ) => {
                unreachable!("what needs no wait is not settled")
            }
            None => self.push_settled(session, ticket.0, &settled, wanted.as_ref()),
        }
    }

    /// The fences of a shard run low: its owner hands it to itself, under the next number.
    fn renew_title(&mut self, shard: Shard) {
        let Some(title) = self.replicated().ownership().title(shard) else {
            return;
        };
        let renewed = Change::Titles {
            shards: vec![Span::of(shard, title.number)],
            taker: title.owner,
            start: title.start,
        };
        let _ = self.submit(renewed, Answers::Nobody);
    }

    /// The end of a session that was silent for too long, resting on its present home.
    fn close_change(&self, session: SessionId) -> Change {
        let home = self.home_index(session);
        Change::CloseSession { session, home }
    }

    /// The end of a session that its client, or somebody else, asks for.
    pub(crate) fn end_change(&self, session: SessionId, asked: bool) -> Change {
        let home = self.home_index(session);
        Change::EndSession {
            session,
            home,
            asked,
        }
    }

    fn home_index(&self, session: SessionId) -> Index {
        let record = self.replicated().session(session);
        record.map_or(Index::default(), |record| record.home.index)
    }

    /// A session has ended; tells whoever sits there. A connection that has only slots keeps them: it held nothing else when
    /// the node's lease was over.
    pub(super) fn session_ended(&mut self, session: SessionId) {
        let goes_on = session.is_implicit() && self.services.desk().has(session);
        match self.seats.remove(&session) {
            Some(Seat::Client(id)) if goes_on => {
                if let Some(client) = self.connections.client_mut(id) {
                    client.acts_for = ActsFor::Nobody;
                }
            }
            Some(Seat::Client(id)) => {
                if let Some(client) = self.connections.client_mut(id)
                    && client.session() == Some(session)
                {
                    client.acts_for = ActsFor::Ended(session);
                }
                let ended = vec![Reply::text("ended"), Reply::number(session.number())];
                self.push(id, ended);
            }
            Some(Seat::Embedded(mailbox)) => mailbox.put(SessionEvent::Ended),
            None => {}
        }
    }

    /// Pushes the end of a wait that blocks nobody.
    pub(crate) fn push_settled(
        &mut self,
        session: SessionId,
        ticket: u64,
        settled: &Settled,
        wanted: Option<&Wanted>,
    ) {
        if let Some(Seat::Client(id)) = self.seat(session) {
            let id = *id;
            let (what, how) = match settled {
                Settled::Ended(end) => ("gone", Reply::text(end_word(*end))),
                granted => ("grant", self.grant_reply(session, granted, wanted)),
            };
            let words = vec![Reply::text(what), Reply::number(ticket), how];
            self.push(id, words);
        }
    }

    pub(super) fn tell_holder(&mut self, session: SessionId, event: SessionEvent) {
        let event = event.of_election();
        match self.seat(session) {
            Some(Seat::Embedded(mailbox)) => mailbox.put(event),
            Some(Seat::Client(id)) => {
                let id = *id;
                let words = match event {
                    SessionEvent::Wanted { gate, fence } => {
                        vec![Reply::text("wanted"), Reply::text(gate), fence_reply(fence)]
                    }
                    SessionEvent::Lost { gate, fence, loss } => vec![
                        Reply::text("lost"),
                        Reply::text(gate),
                        fence_reply(fence),
                        Reply::text(loss_word(loss)),
                    ],
                    SessionEvent::Deposed { election, term } => vec![
                        Reply::text("deposed"),
                        Reply::text(election),
                        fence_reply(term),
                    ],
                    SessionEvent::Suspect => {
                        vec![Reply::text("suspect"), Reply::number(session.number())]
                    }
                    // A connection hears of groups on their channels.
                    SessionEvent::Group(_) | SessionEvent::Ended => return,
                };
                self.push(id, words);
            }
            None => {}
        }
    }

    /// Only version 3 has room for what nobody asked for.
    pub(super) fn push(&mut self, id: ClientId, words: Vec<Reply>) {
        let client = self.connections.client(id);
        if client.is_some_and(|client| client.protocol == Protocol::Resp3) {
            self.connections.send(id, Reply::Push(words));
        }
    }
}

pub(crate) fn fence_reply(fence: Fence) -> Reply {
    Reply::number(fence.0)
}

/// A mode in the words of its request; one without words is exclusive.
pub(crate) fn mode_words(mode: &Mode) -> String {
    match mode {
        Mode::Exclusive => "EXCLUSIVE".into(),
        Mode::Shared => "SHARED".into(),
        Mode::Permits(h) => format!("PERMITS {h}"),
        Mode::Room(room) => format!("ROOM {room}"),
        Mode::Lead(of) => format!("RANK {}", of.rank),
    }
}

fn loss_word(loss: Loss) -> &'static str {
    match loss {
        Loss::Lease => "lease",
        Loss::Claim => "claim",
    }
}

fn end_word(end: WaitEnd) -> &'static str {
    match end {
        WaitEnd::TimedOut => "timeout",
        WaitEnd::Cancelled => "cancelled",
        WaitEnd::SessionEnded => "session",
    }
}
