//! Channels: every gate has one, `gate:NAME`, every election, `elect:NAME`, and every group, `group:NAME`. Subscribers are
//! told what happens there.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{BufMut, BytesMut};
use testigo_core::{Name, Pattern, Refusal, Word, bare_name};

use super::{ClientId, Closing, Connections, House};
use crate::output::{LENT_BYTES_MIN, Lent};
use crate::users::Deed;
use crate::wire::{Protocol, Reply, encode, push_head, refuse, text_head};

/// Who listens to which channels and patterns.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    exact: BTreeMap<Box<str>, BTreeSet<ClientId>>,
    /// As they were written, and as they are matched.
    patterns: BTreeMap<Box<str>, (Pattern, BTreeSet<ClientId>)>,
    /// How many subscriptions these are.
    total: usize,
    /// Bytes of the patterns, of each as often as somebody listens to it.
    pattern_bytes: usize,
}

impl Channels {
    pub(crate) fn any(&self) -> bool {
        self.total > 0
    }

    /// How many subscriptions there are.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn join(&mut self, channel: &str, client: ClientId) {
        self.total += usize::from(join(&mut self.exact, channel, client));
    }

    pub(crate) fn leave(&mut self, channel: &str, client: ClientId) {
        self.total -= usize::from(leave(&mut self.exact, channel, client));
    }

    /// A pattern as it was written, and what was read from it.
    pub(crate) fn join_pattern(&mut self, written: &str, pattern: Pattern, client: ClientId) {
        let known = self.patterns.entry(written.into());
        let (_, clients) = known.or_insert_with(|| (pattern, BTreeSet::new()));
        if clients.insert(client) {
            self.total += 1;
            self.pattern_bytes += written.len();
        }
    }

    pub(crate) fn leave_pattern(&mut self, written: &str, client: ClientId) {
        let Some((_, clients)) = self.patterns.get_mut(written) else {
            return;
        };
        if clients.remove(&client) {
            self.total -= 1;
            self.pattern_bytes -= written.len();
        }
        if clients.is_empty() {
            self.patterns.remove(written);
        }
    }
}

/// Says whether the client did not listen yet.
fn join(map: &mut BTreeMap<Box<str>, BTreeSet<ClientId>>, key: &str, client: ClientId) -> bool {
    match map.get_mut(key) {
        Some(clients) => clients.insert(client),
        None => map.insert(key.into(), BTreeSet::from([client])).is_none(),
    }
}

/// Says whether the client listened.
fn leave(map: &mut BTreeMap<Box<str>, BTreeSet<ClientId>>, key: &str, client: ClientId) -> bool {
    let Some(clients) = map.get_mut(key) else {
        return false;
    };
    let listened = clients.remove(&client);
    if clients.is_empty() {
        map.remove(key);
    }
    listened
}

/// A message as those are sent it who listen in one way: written once for each version of the protocol.
struct Letter<'a> {
    words: Vec<&'a str>,
    body: &'a Body<'a>,
    heads: [Option<BytesMut>; 2],
}

/// The body of a message. A long one is in memory once, however many listen.
enum Body<'a> {
    Short(&'a [u8]),
    Long { bytes: usize, line: Lent },
}

impl Letter<'_> {
    /// Everything, or everything before a long body.
    fn head(&mut self, protocol: Protocol) -> &BytesMut {
        let Letter { words, body, heads } = self;
        heads[usize::from(protocol == Protocol::Resp3)].get_or_insert_with(|| {
            let mut head = push_head(words.len() + 1, protocol);
            for word in words {
                encode(&Reply::text(*word), protocol, &mut head);
            }
            match body {
                Body::Long { bytes, .. } => head.unsplit(text_head(*bytes)),
                Body::Short(text) => {
                    head.unsplit(text_head(text.len()));
                    head.put_slice(text);
                    head.put_slice(LINE_END);
                }
            }
            head
        })
    }
}

const LINE_END: &[u8] = b"\r\n";

impl Connections {
    /// Appends a message to a connection's outbox. If all unread output is too much then, the slowest readers are closed; if
    /// nobody is slow, this one.
    fn deliver(&mut self, id: ClientId, letter: &mut Letter<'_>) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.leaving {
            return;
        }
        self.unread.outboxes -= client.outbox.amount();
        let head = letter.head(client.protocol);
        self.cost.say(head.len());
        client.outbox.copy(head);
        if let Body::Long { line, .. } = letter.body {
            client.outbox.share(line);
            client.lent.push_back(line.clone());
        }
        self.unread.outboxes += client.outbox.amount();
        self.note_told(id);
        self.check_unread(id);
        self.close_slowest();
        let stays = self.clients.get(&id).is_some_and(|client| !client.leaving);
        if stays && self.unread.bytes() > self.wire.output_bytes_total {
            self.expel(id, Closing::OutputTotal, None);
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
        let Channels {
            exact, patterns, ..
        } = &self.connections.channels;
        let looks = patterns.len() as u64;
        let seeing = |clients: &BTreeSet<ClientId>| -> Vec<ClientId> {
            let clients = clients.iter().copied();
            clients.filter(|id| self.sees(*id, gate)).collect()
        };
        let mut listeners = Vec::new();
        if let Some(clients) = exact.get(channel) {
            listeners.push((None, seeing(clients)));
        }
        for (written, (pattern, clients)) in patterns {
            // Who may not see the name does not make the node match it.
            let clients = seeing(clients);
            if !clients.is_empty() && pattern.fits(channel) {
                listeners.push((Some(written.clone()), clients));
            }
        }
        listeners.retain(|(_, clients)| !clients.is_empty());
        self.connections.cost.spend(looks);
        if listeners.is_empty() {
            return;
        }
        let body = match message.len() < LENT_BYTES_MIN {
            true => Body::Short(message),
            false => Body::Long {
                bytes: message.len(),
                line: self
                    .connections
                    .unread
                    .lend([message, LINE_END].concat().into()),
            },
        };
        for (pattern, clients) in &listeners {
            let words = match pattern {
                None => vec!["message", channel],
                Some(pattern) => vec!["pmessage", pattern, channel],
            };
            let mut letter = Letter {
                words,
                body: &body,
                heads: [None, None],
            };
            for client in clients {
                self.connections.deliver(*client, &mut letter);
            }
        }
    }

    /// Whether a connection may have one more subscription; of a pattern, its text is given.
    pub(crate) fn check_subscription(
        &self,
        id: ClientId,
        pattern: Option<&str>,
    ) -> Result<(), Refusal> {
        let Some(client) = self.connections.client(id) else {
            return Ok(());
        };
        let (wire, channels) = (self.connections.wire(), &self.connections.channels);
        let bytes = pattern.map_or(0, str::len);
        let patterns = client.patterns.len() + usize::from(pattern.is_some());
        let after = [
            (
                "subscriptions",
                client.subscriptions() + 1,
                wire.subscriptions,
            ),
            ("patterns", patterns, wire.patterns),
            (
                "subscriptions_total",
                channels.total + 1,
                wire.subscriptions_total,
            ),
            (
                "pattern_bytes_total",
                channels.pattern_bytes + bytes,
                wire.pattern_bytes_total,
            ),
        ];
        match after.into_iter().find(|(_, after, most)| after > most) {
            None => Ok(()),
            Some((name, _, most)) => Err(refuse(
                Word::Limit,
                format!("the limit {name} of {most} is reached"),
            )),
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
