//! The users were replaced: every open connection at once has the rights that its user has now.

use rustc_hash::FxHashSet;
use testigo_core::{Command, Name, SessionId, Ticket};

use super::{Blocked, Cancelled, ClientId, House, Seat, Waiter};
use crate::users::{Deed, User};

impl House {
    /// The users were replaced. Connections whose user is gone or has another password are closed, and so is a process whose
    /// user may no longer be it. Waits that are no longer allowed end; what is held stays held.
    pub(crate) fn users_changed(&mut self) {
        let mut ids: Vec<ClientId> = self.connections.ids().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(client) = self.connections.client_mut(id) else {
                continue;
            };
            let Some(before) = &client.user else {
                // It has not authenticated, and may no longer need to.
                client.user = self.users.anybody();
                continue;
            };
            let Some(user) = self.users.current(before) else {
                self.turn_out(id, "its user is gone, or has another password");
                continue;
            };
            let process = client.presented.as_ref();
            let process = process.map(|who| format!("{}/{}", who.flow, who.process));
            let may = process.is_none_or(|process| user.may(Deed::Use, &process));
            client.user = Some(user);
            if !may {
                self.turn_out(id, "its user may not be this process any more");
            }
        }
        self.end_forbidden_takes();
        self.end_forbidden_waits();
        self.end_forbidden_slots();
        self.pass_on();
    }

    /// Closes a connection whose user has lost its right to it. Its jobs wait again, without counting a death.
    fn turn_out(&mut self, id: ClientId, why: &str) {
        log::info!("connection {} is closed: {why}", id.0);
        let Some(client) = self.connections.client_mut(id) else {
            return;
        };
        let (session, blocked) = (client.session(), client.blocked);
        client.unit = None;
        if let Some(Blocked::Waiting { .. }) = blocked {
            self.cancel_wait(id);
        }
        if let Some(session) = session {
            self.give_back_all(session);
        }
        self.pass_on();
        self.connections.dismiss(id);
    }

    /// Tells a blocked connection that it waits in vain.
    fn cancel_wait(&mut self, id: ClientId) {
        let Some(client) = self.connections.client_mut(id) else {
            return;
        };
        let Some(Blocked::Waiting { ticket, .. }) = client.blocked else {
            return;
        };
        client.blocked = Some(Blocked::Waiting {
            ticket,
            cancelled: Cancelled::Denied,
        });
        let session = self.identity(id);
        let _ = self.ask(session, &Command::Cancel { ticket });
    }

    /// Ends every wait for a gate that the session's user may no longer use.
    fn end_forbidden_waits(&mut self) {
        let forbidden = |(session, _, gates): &(SessionId, Ticket, Vec<&str>)| {
            let user = self.user_of(*session);
            user.is_some_and(|user| gates.iter().any(|gate| !user.may(Deed::Use, gate)))
        };
        let waits = self.local().waits().filter(forbidden);
        let waits: Vec<(SessionId, Ticket)> = waits.map(|(s, ticket, _)| (s, ticket)).collect();
        for (session, ticket) in waits {
            let blocked = match self.tickets.get(&ticket) {
                Some(Waiter::Blocked(id)) => Some(*id),
                _ => None,
            };
            match blocked {
                Some(id) => self.cancel_wait(id),
                None => drop(self.ask(session, &Command::Cancel { ticket })),
            }
        }
    }

    /// Ends every wait for slots of a pool that the connection's user may no longer use.
    fn end_forbidden_slots(&mut self) {
        let forbidden = |(pool, ticket): &(&Name, Ticket)| {
            let Some(Waiter::Blocked(id) | Waiter::Pushed(id)) = self.tickets.get(ticket) else {
                return false;
            };
            let client = self.connections.client(*id);
            let user = client.and_then(|client| client.user.as_deref());
            user.is_some_and(|user| !user.may(Deed::Use, pool))
        };
        let waits = self.services.desk().waits().filter(forbidden);
        let tickets: FxHashSet<Ticket> = waits.map(|(_, ticket)| ticket).collect();
        for &ticket in &tickets {
            if let Some(Waiter::Blocked(id)) = self.tickets.get(&ticket)
                && let Some(client) = self.connections.client_mut(*id)
            {
                let cancelled = Cancelled::Denied;
                client.blocked = Some(Blocked::Waiting { ticket, cancelled });
            }
        }
        self.services.cancel_all_slots(&tickets);
    }

    /// The user of the connection that acts for a session; `None` if a caller in this process does, or nobody.
    fn user_of(&self, session: SessionId) -> Option<&User> {
        match self.seat(session)? {
            Seat::Client(id) => self.connections.client(*id)?.user.as_deref(),
            Seat::Embedded(_) => None,
        }
    }
}
