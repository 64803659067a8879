//! `SUBSCRIBE`, `UNSUBSCRIBE`, `PSUBSCRIBE`, `PUNSUBSCRIBE`.

use testigo_core::{Limits, Pattern, Refusal};

use super::table::{Answered, Outcome};
use crate::house::{ClientId, House};
use crate::users::Deed;
use crate::wire::{Reply, Words, bad_arg};

/// A channel is `gate:` and a gate's name, `elect:` and an election's, or `group:` and a group's; it may be a pattern, which
/// is kept as it was written.
const CHANNEL_BYTES: usize = Limits::PATTERN_BYTES;

impl House {
    pub(super) fn subscribe(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        self.join(id, words, "subscribe")
    }

    pub(super) fn psubscribe(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        self.join(id, words, "psubscribe")
    }

    pub(super) fn unsubscribe(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        self.leave(id, words, "unsubscribe")
    }

    pub(super) fn punsubscribe(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        self.leave(id, words, "punsubscribe")
    }

    fn join(&mut self, id: ClientId, mut words: Words<'_>, what: &'static str) -> Outcome {
        while words.left() > 0 {
            let channel = channel(&mut words)?;
            let kinds = ["gate:", "elect:", "group:"];
            let of = kinds.iter().find_map(|kind| channel.strip_prefix(kind));
            if let (true, Some(name)) = (what == "subscribe", of) {
                self.allow(id, Deed::Show, name)?;
            }
            let is_pattern = what == "psubscribe";
            let Some(client) = self.connections.client(id) else {
                break;
            };
            let own = if is_pattern {
                &client.patterns
            } else {
                &client.channels
            };
            if !own.contains(channel) {
                self.check_subscription(id, is_pattern.then_some(channel))?;
            }
            let Some(client) = self.connections.client_mut(id) else {
                break;
            };
            if !is_pattern {
                client.channels.insert(channel.into());
                self.connections.channels.join(channel, id);
            } else {
                let pattern = Pattern::new(channel)?;
                client.patterns.insert(channel.into());
                let channels = &mut self.connections.channels;
                channels.join_pattern(channel, pattern, id);
            }
            self.confirm(id, what, Some(channel));
        }
        self.observe();
        Ok(Answered::Later)
    }

    /// Unsubscribes from the named channels, or from all.
    fn leave(&mut self, id: ClientId, mut words: Words<'_>, what: &'static str) -> Outcome {
        let mut leaving: Vec<Box<str>> = Vec::new();
        let exact = what == "unsubscribe";
        if words.left() == 0 {
            let client = self.connections.client(id);
            let all = client.map(|client| match exact {
                true => &client.channels,
                false => &client.patterns,
            });
            leaving.extend(all.into_iter().flatten().cloned());
            if leaving.is_empty() {
                self.confirm(id, what, None);
            }
        }
        while words.left() > 0 {
            leaving.push(channel(&mut words)?.into());
        }
        for channel in leaving {
            if let Some(client) = self.connections.client_mut(id) {
                match exact {
                    true => client.channels.remove(&channel),
                    false => client.patterns.remove(&channel),
                };
            }
            match exact {
                true => self.connections.channels.leave(&channel, id),
                false => self.connections.channels.leave_pattern(&channel, id),
            }
            self.confirm(id, what, Some(&channel));
        }
        self.observe();
        Ok(Answered::Later)
    }

    fn confirm(&mut self, id: ClientId, what: &'static str, channel: Option<&str>) {
        let count = self
            .connections
            .client(id)
            .map_or(0, |client| client.subscriptions());
        let words = vec![
            Reply::text(what),
            Reply::optional(channel, Reply::text),
            Reply::number(count as u64),
        ];
        self.connections.send(id, Reply::Push(words));
    }
}

fn channel<'a>(words: &mut Words<'a>) -> Result<&'a str, Refusal> {
    let channel = words.text("a channel")?;
    match channel.len() <= CHANNEL_BYTES {
        true => Ok(channel),
        false => Err(bad_arg(format!(
            "a channel has at most {CHANNEL_BYTES} bytes"
        ))),
    }
}
