//! Channels: every gate has one, `gate:NAME`, every election, `elect:NAME`, and every group, `group:NAME`. Subscribers are
//! told what happens there.

use std::collections::BTreeMap;

use bytes::Bytes;
use testigo_core::{Name, Pattern, bare_name};

use super::{ClientId, House};
use crate::users::Deed;
use crate::wire::Reply;

/// Who listens to which channels and patterns.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    exact: BTreeMap<Box<str>, Vec<ClientId>>,
    /// As they were written, and as they are matched.
    patterns: BTreeMap<Box<str>, (Pattern, Vec<ClientId>)>,
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

    /// A pattern as it was written, and what was read from it.
    pub(crate) fn join_pattern(&mut self, written: &str, pattern: Pattern, client: ClientId) {
        match self.patterns.get_mut(written) {
            Some((_, clients)) if clients.contains(&client) => {}
            Some((_, clients)) => clients.push(client),
            None => drop(
                self.patterns
                    .insert(written.into(), (pattern, vec![client])),
            ),
        }
    }

    pub(crate) fn leave_pattern(&mut self, written: &str, client: ClientId) {
        if let Some((_, clients)) = self.patterns.get_mut(written) {
            clients.retain(|other| *other != client);
            if clients.is_empty() {
                self.patterns.remove(written);
            }
        }
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
    /// Tells all listeners of a gate. The text starts with a word that says what happened.
    pub(super) fn publish(&mut self, gate: &Name, message: impl FnOnce() -> String) {
        // For elections, only who leads is told.
        if gate.as_election().is_none() {
            self.announce(gate, || message().into());
        }
    }

    /// Tells all listeners of a gate or an election.
    pub(super) fn announce(&mut self, gate: &Name, message: impl FnOnce() -> Vec<u8>) {
        if !self.connections.channels.any() && !self.listened_to() {
            return;
        }
        let message = message();
        self.publish_away(gate, &message);
        self.publish_here(gate, &message);
    }

    /// Tells this node's listeners of a gate or an election, wherever it is owned.
    pub(super) fn publish_here(&mut self, gate: &str, message: &[u8]) {
        let name = bare_name(gate);
        let channel = match name.len() == gate.len() {
            true => format!("gate:{gate}"),
            false => format!("elect:{name}"),
        };
        self.publish_on(&channel, gate, message);
    }

    /// Tells this node's listeners of a channel that may see what it is about.
    pub(super) fn publish_on(&mut self, channel: &str, gate: &str, message: &[u8]) {
        let message = || Reply::Text(Bytes::copy_from_slice(message));
        let mut letters = Vec::new();
        let patterns = self.connections.channels.patterns.len();
        self.connections.cost.spend(patterns as u64);
        if let Some(clients) = self.connections.channels.exact.get(channel) {
            for client in clients.iter().filter(|id| self.sees(**id, gate)) {
                let mut letter = ["message", channel].map(Reply::text).to_vec();
                letter.push(message());
                letters.push((*client, letter));
            }
        }
        for (written, (pattern, clients)) in &self.connections.channels.patterns {
            let mut seeing = clients.iter().filter(|id| self.sees(**id, gate));
            // Who may not see the name does not make the node match it.
            let Some(first) = seeing.next().filter(|_| pattern.fits(channel)) else {
                continue;
            };
            for client in [first].into_iter().chain(seeing) {
                let mut letter = ["pmessage", written, channel].map(Reply::text).to_vec();
                letter.push(message());
                letters.push((*client, letter));
            }
        }
        for (client, letter) in letters {
            self.connections.tell(client, Reply::Push(letter));
        }
    }

    fn sees(&self, id: ClientId, gate: &str) -> bool {
        let user = self
            .connections
            .client(id)
            .and_then(|client| client.user.as_ref());
        user.is_some_and(|user| user.may(Deed::Show, gate))
    }

    /// The local half reports entries and exits only while somebody listens.
    pub(crate) fn observe(&mut self) {
        let listens = self.connections.channels.any() || self.listened_to();
        self.services.observe(listens);
    }
}
