//! The connections: who they are, what they are to be sent, and which of them go on. Nothing here knows what a command means.

use std::collections::VecDeque;
use std::ops::Index;

use bytes::BytesMut;
use rustc_hash::FxHashMap;
use testigo_core::WaitEnd;

use super::client::{Blocked, Cancelled, Client, ClientId, Noted, UnderWay};
use super::closings::{Closing, Closings};
use super::cost::Cost;
use super::pubsub::Channels;
use super::strangers::Strangers;
use super::unread::Unread;
use crate::output::Output;
use crate::wire::{Reply, WireLimits};

/// All connections.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(super) clients: FxHashMap<ClientId, Client>,
    next: u64,
    /// How many there have ever been.
    ever: u64,
    pub(super) wire: WireLimits,
    /// The time of the present turn.
    pub(super) now: u64,
    /// Connections with something to send, or to be closed.
    unsent: Vec<ClientId>,
    /// Listeners that were told something and are owed nothing else, in order.
    told: VecDeque<ClientId>,
    /// Connections that were blocked and go on with what they have sent meanwhile.
    unblocked: Vec<ClientId>,
    pub(super) unread: Unread,
    pub(super) strangers: Strangers,
    pub(super) closings: Closings,
    /// Who listens to which channels.
    pub(crate) channels: Channels,
    /// Bytes kept of unfinished commands, as of the last turn.
    unfinished_bytes: usize,
    /// What all commands have cost.
    pub(crate) cost: Cost,
    /// Visitors whose answer is written.
    answered_visits: Vec<ClientId>,
}

impl Connections {
    pub(super) fn new(wire: WireLimits, now: u64) -> Connections {
        Connections {
            clients: FxHashMap::default(),
            next: 0,
            ever: 0,
            wire,
            now,
            unsent: Vec::new(),
            told: VecDeque::new(),
            unblocked: Vec::new(),
            unread: Unread::default(),
            strangers: Strangers::default(),
            closings: Closings::default(),
            channels: Channels::default(),
            unfinished_bytes: 0,
            cost: Cost::default(),
            answered_visits: Vec::new(),
        }
    }

    /// Continues the numbers of `before`, so that no connection is mistaken for one of those.
    pub(super) fn count_on_from(&mut self, before: &Connections) {
        (self.next, self.ever) = (before.next, before.ever);
    }

    /// A number for a connection or an embedded caller.
    pub(super) fn next_id(&mut self) -> ClientId {
        self.next += 1;
        ClientId(self.next)
    }

    pub(super) fn add(&mut self, client: Client) {
        let id = client.id;
        self.ever += 1;
        self.clients.insert(id, client);
        self.await_auth(id);
    }

    /// Adds a visitor, whom its own node knows.
    pub(super) fn add_visit(&mut self, visit: Client) {
        self.clients.insert(visit.id, visit);
    }

    /// A visitor no longer needs an answer.
    pub(super) fn forget_visit(&mut self, id: ClientId) {
        self.answered_visits.retain(|other| *other != id);
        self.unblocked.retain(|other| *other != id);
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, id: ClientId) -> Option<Client> {
        let client = self.clients.remove(&id)?;
        self.strangers.forget(client.auth_due, id);
        self.unread.forget(&client);
        for channel in &client.channels {
            self.channels.leave(channel, id);
        }
        for pattern in &client.patterns {
            self.channels.leave_pattern(pattern, id);
        }
        Some(client)
    }

    pub(crate) fn client(&self, id: ClientId) -> Option<&Client> {
        self.clients.get(&id)
    }

    pub(crate) fn client_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Client> {
        self.clients.values().filter(|client| !client.is_visit())
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ClientId> {
        self.iter().map(|client| client.id)
    }

    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }

    /// How many there have ever been.
    pub(crate) fn ever(&self) -> u64 {
        self.ever
    }

    pub(crate) fn wire(&self) -> &WireLimits {
        &self.wire
    }

    pub(crate) fn closings(&self) -> &Closings {
        &self.closings
    }

    pub(crate) fn unread(&self) -> &Unread {
        &self.unread
    }

    /// Bytes kept of unfinished commands, as of the last turn.
    pub(crate) fn unfinished_bytes(&self) -> usize {
        self.unfinished_bytes
    }

    /// A turn begins.
    pub(super) fn tell_time(&mut self, now: u64) {
        self.now = now;
    }

    pub(crate) fn note_unfinished(&mut self, bytes: usize) {
        self.unfinished_bytes = bytes;
    }

    /// Connections with something to send, or to be closed, each once.
    pub(crate) fn take_unsent(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.unsent)
    }

    /// A connection was sent everything.
    pub(crate) fn was_sent(&mut self, id: ClientId) {
        self.unsent.retain(|other| *other != id);
    }

    /// Connections that go on with what they have sent meanwhile.
    pub(crate) fn take_unblocked(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.unblocked)
    }

    /// Lets a connection go on.
    pub(crate) fn let_go_on(&mut self, id: ClientId) {
        self.unblocked.push(id);
    }

    /// Whether a connection is about to go on.
    pub(crate) fn goes_on(&self, id: ClientId) -> bool {
        self.unblocked.contains(&id)
    }

    /// Whether there is nothing to send and nobody to let go on.
    pub(crate) fn is_quiet(&self) -> bool {
        self.unsent.is_empty() && self.unblocked.is_empty()
    }

    /// A listener was told something. It is written to after those that wait for an answer.
    pub(super) fn note_told(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id)
            && client.noted == Noted::No
        {
            client.noted = Noted::Told;
            self.told.push_back(id);
        }
    }

    /// Some of the listeners that were told something, each once.
    pub(crate) fn take_told(&mut self, most: usize) -> Vec<ClientId> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(id) = self.told.pop_front()
        {
            // It may have been answered, or be gone.
            let waits = |client: &Client| client.noted == Noted::Told;
            taken.extend(
                self.clients
                    .get(&id)
                    .filter(|client| waits(client))
                    .map(|_| id),
            );
        }
        taken
    }

    /// Whether no listener has yet to be written what it was told.
    pub(crate) fn are_told(&self) -> bool {
        self.told.is_empty()
    }

    /// Appends a reply to a connection's outbox. A connection that does not read what it asked for is closed.
    pub(crate) fn send(&mut self, id: ClientId, reply: Reply) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.leaving {
            return;
        }
        self.unread.outboxes -= client.outbox.amount();
        let written = client.outbox.encode(&reply, client.protocol);
        self.unread.outboxes += client.outbox.amount();
        self.cost.say(written);
        self.note(id);
        self.check_unread(id);
    }

    /// Appends a reply that is already encoded.
    fn send_written(&mut self, id: ClientId, bytes: BytesMut) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.leaving {
            return;
        }
        self.unread.outboxes -= client.outbox.amount();
        client.outbox.take_over(bytes);
        self.unread.outboxes += client.outbox.amount();
        self.note(id);
        self.check_unread(id);
    }

    pub(super) fn check_unread(&mut self, id: ClientId) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        if client.unread() > self.wire.output_bytes {
            self.expel(id, Closing::Output, None);
        }
    }

    /// Tells the reactor that a connection needs attention.
    pub(crate) fn note(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id)
            && client.noted != Noted::Unsent
        {
            client.noted = Noted::Unsent;
            match client.is_visit() {
                true => self.answered_visits.push(id),
                false => self.unsent.push(id),
            }
        }
    }

    /// Visitors whose answer is written.
    pub(super) fn take_answered_visits(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.answered_visits)
    }

    /// Takes a connection's output.
    pub(crate) fn take_outbox(&mut self, id: ClientId, into: &mut Output) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.noted = Noted::No;
        self.unread.outboxes -= client.outbox.amount();
        into.append(&mut client.outbox);
    }

    /// Takes the output of somebody without a socket.
    pub(super) fn take_written(&mut self, id: ClientId) -> BytesMut {
        let mut output = Output::default();
        self.take_outbox(id, &mut output);
        if let Some(client) = self.clients.get_mut(&id) {
            client.lent.clear();
        }
        output.into_bytes()
    }

    /// Closes a connection after sending what is in its outbox and what the log has yet to answer. It serves none of its
    /// further commands.
    pub(crate) fn dismiss(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.dismissed = true;
            client.leaving = !client.has_under_way();
            self.note(id);
        }
    }

    /// Answers a blocked connection and lets it go on.
    pub(crate) fn unblock(&mut self, id: ClientId, reply: Reply) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.blocked = None;
        self.unblocked.push(id);
        self.send(id, reply);
    }

    /// Like [`Connections::unblock`], with an answer that is already encoded.
    pub(crate) fn unblock_with(&mut self, id: ClientId, bytes: BytesMut) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.blocked = None;
        self.unblocked.push(id);
        self.send_written(id, bytes);
    }

    /// A change of a connection is on its way through the log; its further commands wait for it.
    pub(super) fn sent_to_the_log(&mut self, id: ClientId, tag: u64) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.under_way.push_back(UnderWay { tag, reply: None });
            client.blocked = Some(Blocked::Logging);
        }
    }

    /// The connection's next command must wait until the log has answered all that the connection has under way.
    pub(crate) fn wait_for_the_log(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.blocked = Some(Blocked::Logging);
        }
    }

    /// The connection's next command may be served before the log has answered.
    pub(crate) fn go_on_behind(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id)
            && client.blocked == Some(Blocked::Logging)
        {
            client.blocked = None;
        }
    }

    /// A connection gives a command. Says whether the log has yet to answer it.
    pub(crate) fn hear(&mut self, id: ClientId) -> bool {
        self.clients.get_mut(&id).is_some_and(|client| {
            client.heard = self.now;
            client.has_under_way()
        })
    }

    /// Whether the log has yet to answer a connection.
    pub(crate) fn has_under_way(&self, id: ClientId) -> bool {
        self.clients.get(&id).is_some_and(Client::has_under_way)
    }

    /// The log has answered a connection's change. Replies are sent in the order of the commands.
    pub(super) fn answer_under_way(&mut self, id: ClientId, tag: u64, reply: Reply) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        // Nearly always it is the first.
        if let Some(change) = client.under_way.iter_mut().find(|change| change.tag == tag) {
            change.reply = Some(reply);
        }
        while let Some(reply) = self.next_reply(id) {
            self.send(id, reply);
        }
        if let Some(client) = self.clients.get_mut(&id)
            && client.dismissed
            && !client.has_under_way()
        {
            client.leaving = true;
            self.note(id);
        }
    }

    /// A change of a connection is done and needs no reply, as if the connection had not asked for it. False if it is gone.
    pub(super) fn forget_under_way(&mut self, id: ClientId, tag: u64) -> bool {
        let Some(client) = self.clients.get_mut(&id) else {
            return false;
        };
        client.under_way.retain(|change| change.tag != tag);
        if client.blocked == Some(Blocked::Logging) {
            client.blocked = None;
        }
        true
    }

    fn next_reply(&mut self, id: ClientId) -> Option<Reply> {
        let client = self.clients.get_mut(&id)?;
        let reply = client.under_way.front_mut()?.reply.take()?;
        client.under_way.pop_front();
        if client.under_way.is_empty() {
            if client.blocked == Some(Blocked::Logging) {
                client.blocked = None;
            }
            self.unblocked.push(id);
        }
        Some(reply)
    }

    /// The reply to a blocked connection whose wait ended without entering.
    pub(super) fn end_reply(&self, id: ClientId, end: WaitEnd) -> Reply {
        let blocked = self.clients.get(&id).and_then(|client| client.blocked);
        let cancelled = match blocked {
            Some(Blocked::Waiting { cancelled, .. }) => cancelled,
            _ => Cancelled::Null,
        };
        match (end, cancelled) {
            (WaitEnd::Cancelled, Cancelled::Unblocked) => {
                Reply::Error("UNBLOCKED client unblocked via CLIENT UNBLOCK".into())
            }
            (WaitEnd::Cancelled, Cancelled::Denied) => {
                Reply::Error("DENIED the right to wait for this was taken away".into())
            }
            (WaitEnd::TimedOut | WaitEnd::Cancelled, _) => Reply::Null,
            (WaitEnd::SessionEnded, _) => {
                Reply::Error("STALE the session ended while it waited".into())
            }
        }
    }
}

impl Index<ClientId> for Connections {
    type Output = Client;
    fn index(&self, id: ClientId) -> &Client {
        &self.clients[&id]
    }
}
