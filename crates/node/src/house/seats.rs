//! Which connection or embedded caller acts for which session. A session has one seat; a client that resumes it elsewhere
//! takes the seat over.

use std::sync::Arc;

use testigo_core::{Answer, Command, Refusal, SessionId, Settled, Ticket, Word};

use super::client::{ActsFor, ClientId};
use super::present::{has_ended, there};
use super::{Blocked, House, Waiter};
use crate::completion::Completion;
use crate::mailbox::{Mailbox, SessionEvent};
use crate::wire::{Reply, bad_arg, refuse};

/// Who acts for a session.
#[derive(Clone, Debug)]
pub(crate) enum Seat {
    /// A connection.
    Client(ClientId),
    /// A caller in this process.
    Embedded(Arc<Mailbox>),
}

impl House {
    /// A connection's session. Its implicit one begins when it is first needed, if its user may have one.
    pub(crate) fn session_of(&mut self, id: ClientId) -> Result<SessionId, Refusal> {
        there(self.connections.client(id))?.opened_first()?;
        self.any_session_of(id)
    }

    /// Like [`House::session_of`], where a hold that the session has lost is noticed in any case: a job is named with its attempt.
    pub(crate) fn any_session_of(&mut self, id: ClientId) -> Result<SessionId, Refusal> {
        match there(self.connections.client(id))?.acts_for {
            ActsFor::Opened(session) | ActsFor::Implicit(session) | ActsFor::Guest(session) => {
                return Ok(session);
            }
            ActsFor::Ended(session) => return Err(has_ended(session)),
            ActsFor::Nobody => {}
        }
        let session = self.implicit_of(id);
        self.ask(session, &Command::Connect)?;
        if let Some(client) = self.connections.client_mut(id) {
            client.acts_for = ActsFor::Implicit(session);
        }
        self.seats.insert(session, Seat::Client(id));
        Ok(session)
    }

    /// Carries out a session's command. The caller answers, and then passes on what else has happened.
    pub(crate) fn ask(
        &mut self,
        session: SessionId,
        command: &Command<'_>,
    ) -> Result<Answer, Refusal> {
        self.services.ask(self.now, session, command)
    }

    /// Who asks when no session is needed: a name, whether or not a session of that name exists.
    pub(crate) fn identity(&self, id: ClientId) -> SessionId {
        match self.connections.client(id).map(|client| client.acts_for) {
            Some(
                ActsFor::Opened(session) | ActsFor::Implicit(session) | ActsFor::Guest(session),
            ) => session,
            _ => self.implicit_of(id),
        }
    }

    /// A sign of life for an opened session, whatever the connection asked for.
    pub(crate) fn renew(&mut self, id: ClientId) {
        if let Some(client) = self.connections.client(id)
            && let ActsFor::Opened(session) = client.acts_for
        {
            let _ = self.ask(session, &Command::Renew);
        }
    }

    pub(crate) fn sit_down(&mut self, session: SessionId, seat: Seat) {
        self.seats.insert(session, seat);
    }

    pub(crate) fn seat(&self, session: SessionId) -> Option<&Seat> {
        self.seats.get(&session)
    }

    /// Whoever acted for a session is gone.
    pub(crate) fn stand_up(&mut self, session: SessionId) {
        if self.seats.remove(&session).is_some() {
            self.nobody_there(session);
        }
    }

    /// A session's connection is gone, or was never told that the session is open. An opened session lives on until it runs
    /// out.
    pub(super) fn nobody_there(&mut self, session: SessionId) {
        if session.is_implicit() {
            self.services.end_slots(session);
        }
        // The session may have ended already.
        let _ = self.ask(session, &Command::Disconnect);
    }

    /// Before a connection takes another session, its own must have no holds and no waits, or they would be lost silently.
    pub(crate) fn leave_implicit(&mut self, id: ClientId) -> Result<(), Refusal> {
        let slots_of = self.implicit_of(id);
        let Some(client) = self.connections.client_mut(id) else {
            return Ok(());
        };
        match client.acts_for {
            ActsFor::Nobody if self.services.desk().has(slots_of) => Err(refuse(
                Word::Busy,
                "the connection's implicit session has slots; give them back first",
            )),
            ActsFor::Nobody | ActsFor::Guest(_) | ActsFor::Ended(_) => {
                client.acts_for = ActsFor::Nobody;
                Ok(())
            }
            ActsFor::Opened(session) => Err(bad_arg(format!(
                "this connection has session {session} already; close it first"
            ))),
            ActsFor::Implicit(session) => {
                let view = self.services.session_view(session);
                let busy =
                    view.is_some_and(|view| !view.holds.is_empty() || !view.waits.is_empty());
                let slots = self.services.desk().has(session);
                if busy || slots || !self.services.local().jobs_of(session).is_empty() {
                    return Err(refuse(
                        Word::Busy,
                        "the connection's implicit session holds or waits; give everything back first",
                    ));
                }
                client.acts_for = ActsFor::Nobody;
                self.stand_up(session);
                Ok(())
            }
        }
    }

    /// Gives a connection the seat of an opened session.
    pub(crate) fn take_seat(&mut self, session: SessionId, id: ClientId) {
        self.take_over(session, Seat::Client(id));
        if let Some(client) = self.connections.client_mut(id) {
            client.acts_for = ActsFor::Opened(session);
        }
    }

    /// Gives the seat of an opened session to somebody else. The previous connection is closed, because it must not go on
    /// believing that it has what the session holds.
    pub(crate) fn take_over(&mut self, session: SessionId, seat: Seat) {
        match (self.seats.insert(session, seat), self.seats.get(&session)) {
            (Some(Seat::Client(before)), Some(Seat::Client(now))) if before == *now => {}
            (Some(Seat::Client(before)), _) => self.unseat(before),
            (Some(Seat::Embedded(before)), Some(Seat::Embedded(now)))
                if Arc::ptr_eq(&before, now) => {}
            (Some(Seat::Embedded(mailbox)), _) => mailbox.put(SessionEvent::Ended),
            (None, _) => {}
        }
    }

    pub(super) fn unseat(&mut self, id: ClientId) {
        self.forget_pushed(id);
        if let Some(client) = self.connections.client_mut(id) {
            let session = client.session();
            client.acts_for = ActsFor::Nobody;
            if let (Some(session), Some(Blocked::Waiting { ticket, .. })) =
                (session, client.blocked)
            {
                self.services.cancel_slots(ticket);
                match self.local().take_queues(ticket) {
                    // Nobody could resume the take, and the next job would have a holder that does nothing.
                    Some(_) => drop(self.ask(session, &Command::Cancel { ticket })),
                    None => drop(self.tickets.remove(&ticket)),
                }
                let error = "STALE the session was resumed on another connection";
                self.connections.send(id, Reply::Error(error.into()));
            }
        }
        self.connections.dismiss(id);
    }

    /// An embedded caller is gone; its seat is free unless somebody else has taken it.
    pub(crate) fn stand_up_from(&mut self, session: SessionId, mailbox: &Arc<Mailbox>) {
        if let Some(Seat::Embedded(mine)) = self.seats.get(&session)
            && Arc::ptr_eq(mine, mailbox)
        {
            self.stand_up(session);
        }
    }

    /// Tells a caller in this process how a wait ends.
    pub(crate) fn complete_later(&mut self, ticket: Ticket) -> Arc<Completion<Settled>> {
        let completion = Completion::new();
        let waiter = Waiter::Embedded(Arc::clone(&completion));
        self.tickets.insert(ticket, waiter);
        completion
    }
}
