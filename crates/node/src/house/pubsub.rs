//! Channels: every gate has one, `gate:NAME`, on which what happens at it is told to whoever subscribed.

use std::collections::BTreeMap;

use testigo_core::fits;

use super::{ClientId, House};
use crate::users::Deed;
use crate::wire::Reply;

/// Who listens to what.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    exact: BTreeMap<Box<str>, Vec<ClientId>>,
    patterns: BTreeMap<Box<str>, Vec<ClientId>>,
}

impl Channels {
    pub(crate) fn any(&self) -> bool {
        !self.exact.is_empty() || !self.patterns.is_empty()
    }

    pub(crate) fn join(&mut self, channel: &str, client: ClientId) {
        join(&mut self.exact, channel, client);
    }

    pub(crate) fn leave(&mut self, channel: &str, client: ClientId) {
        leave(&mut self.exact, channel, client);
    }

    pub(crate) fn join_pattern(&mut self, pattern: &str, client: ClientId) {
        join(&mut self.patterns, pattern, client);
    }

    pub(crate) fn leave_pattern(&mut self, pattern: &str, client: ClientId) {
        leave(&mut self.patterns, pattern, client);
    }
}

fn join(map: &mut BTreeMap<Box<str>, Vec<ClientId>>, key: &str, client: ClientId) {
    match map.get_mut(key) {
        Some(clients) if clients.contains(&client) => {}
        Some(clients) => clients.push(client),
        None => drop(map.insert(key.into(), vec![client])),
    }
}

fn leave(map: &mut BTreeMap<Box<str>, Vec<ClientId>>, key: &str, client: ClientId) {
    if let Some(clients) = map.get_mut(key) {
        clients.retain(|other| *other != client);
        if clients.is_empty() {
            map.remove(key);
        }
    }
}

impl House {
    /// Tells everybody who listens to a gate. The text starts with a word that says what happened.
    pub(super) fn publish(&mut self, gate: &str, message: impl FnOnce() -> String) {
        if !self.connections.channels.any() && !self.listened_to() {
            return;
        }
        let message = message();
        self.publish_away(gate, &message);
        self.publish_here(gate, &message);
    }

    /// Tells the clients of this node who listen to a gate, wherever it is owned.
    pub(super) fn publish_here(&mut self, gate: &str, message: &str) {
        let channel = format!("gate:{gate}");
        let mut letters = Vec::new();
        if let Some(clients) = self.connections.channels.exact.get(&*channel) {
            for client in clients.iter().filter(|id| self.sees(**id, gate)) {
                let letter = ["message", &channel, message].map(Reply::text);
                letters.push((*client, letter.to_vec()));
            }
        }
        for (pattern, clients) in &self.connections.channels.patterns {
            if !fits(&channel, pattern) {
                continue;
            }
            for client in clients.iter().filter(|id| self.sees(**id, gate)) {
                let letter = ["pmessage", pattern, &channel, message].map(Reply::text);
                letters.push((*client, letter.to_vec()));
            }
        }
        for (client, letter) in letters {
            self.connections.send(client, Reply::Push(letter));
        }
    }

    fn sees(&self, id: ClientId, gate: &str) -> bool {
        let user = self
            .connections
            .client(id)
            .and_then(|client| client.user.as_ref());
        user.is_some_and(|user| user.may(Deed::Show, gate))
    }

    /// The local half tells entries and exits only while somebody listens.
    pub(crate) fn observe(&mut self) {
        let listens = self.connections.channels.any() || self.listened_to();
        self.services.observe(listens);
    }
}
