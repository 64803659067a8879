//! `CLUSTER` and `OWNER`: what operators see and do of a cluster.

use std::sync::Arc;

use bytes::Bytes;
use testigo_core::{Word, fits};

use super::table::{Answered, Outcome, unknown_word};
use crate::backup::{Drawn, PIECE_BYTES_MAX};
use crate::cluster::{ClusterStatus, Title};
use crate::house::{ClientId, House};
use crate::users::Deed;
use crate::wire::{Reply, Words, refuse};

const KNOWN: &str = "STATUS, LEASE, OWNERS, BACKUP";

/// At most so many names are shown with their owners.
const OWNERS_MAX: usize = 200;

impl House {
    /// `CLUSTER STATUS|LEASE|OWNERS|BACKUP …`.
    pub(super) fn cluster(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("STATUS") {
            words.end()?;
            self.user(id)?.check(Deed::Show, "")?;
            let standing = self.standing();
            let status = ClusterStatus::new(&standing, self.replicated(), self.moves());
            return Ok(Answered::Now(status.reply()));
        }
        if words.keyword("LEASE") {
            words.end()?;
            return match self.standing().lease_left_ms {
                Some(0) => Err(refuse(
                    Word::Unavailable,
                    "this node does not hear from a majority of its cluster; ask another one",
                )),
                left => Ok(Answered::Now(Reply::optional(left, Reply::number))),
            };
        }
        if words.keyword("OWNERS") {
            let pattern = match words.left() {
                0 => "*",
                _ => words.text("the pattern")?,
            };
            words.end()?;
            return self.owners(id, pattern);
        }
        if words.keyword("BACKUP") {
            self.allow(id, Deed::Admin, "")?;
            return match words.left() {
                0 => self.begin_backup(),
                _ => self.fetch_backup(words),
            };
        }
        Err(unknown_word("CLUSTER", words.text("a word")?, KNOWN))
    }

    /// `CLUSTER OWNERS [pattern]`: who owns the gates and queues that the log knows, some of them.
    fn owners(&mut self, id: ClientId, pattern: &str) -> Outcome {
        let user = Arc::clone(self.user(id)?);
        let seen = |name: &str| fits(name, pattern) && user.may(Deed::Show, name);
        let gates = self.replicated().gates().map(|(name, _)| name.as_str());
        let gates = gates.filter(|name| seen(name)).take(OWNERS_MAX);
        let mut named: Vec<(&'static str, String)> =
            gates.map(|name| ("gate", name.to_owned())).collect();
        for (flow, known) in self.replicated().flows() {
            let queues = known.queues().map(|(queue, _)| format!("{flow}/{queue}"));
            let room = OWNERS_MAX.saturating_sub(named.len());
            let queues: Vec<String> = queues.filter(|name| seen(name)).take(room).collect();
            named.extend(queues.into_iter().map(|name| ("queue", name)));
        }
        let row = |(kind, name): &(&'static str, String)| {
            let title = Title::of(name, self.replicated(), self.moves(), self.is_open(name));
            title.row(kind)
        };
        Ok(Answered::Now(Reply::Array(named.iter().map(row).collect())))
    }

    /// `CLUSTER BACKUP`: draws one, and says under which number it is fetched.
    fn begin_backup(&mut self) -> Outcome {
        let now = self.now();
        if let Some(other) = self
            .backup
            .as_ref()
            .filter(|other| !other.is_forgotten(now))
        {
            let other = other.id;
            return Err(refuse(
                Word::Busy,
                format!("backup {other} is being fetched; there is one at a time"),
            ));
        }
        let number = getrandom::u32().unwrap_or_default().into();
        let drawn = Drawn::begin(now, number, self.replicated()).map_err(|error| {
            let why = format!("the system refused a thread for it: {error}");
            refuse(Word::Unavailable, why)
        })?;
        let header = serde_json::to_string(&drawn.header).unwrap_or_default();
        self.backup = Some(drawn);
        Ok(Answered::Now(Reply::Map(vec![
            ("backup", Reply::number(number)),
            ("header", Reply::text(header)),
        ])))
    }

    /// `CLUSTER BACKUP number offset`: a piece of it; the empty one behind its end ends it.
    fn fetch_backup(&mut self, mut words: Words<'_>) -> Outcome {
        let number = words.number("the backup's number")?;
        let offset = words.number("the offset")?;
        words.end()?;
        let now = self.now();
        let Some(drawn) = self.backup.as_mut().filter(|drawn| drawn.id == number) else {
            return Err(refuse(
                Word::Stale,
                format!("there is no backup {number} any more; begin with CLUSTER BACKUP"),
            ));
        };
        let Some(image) = drawn.image(now) else {
            return Err(refuse(Word::Busy, "the backup is being drawn; ask again"));
        };
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(image.len());
        let to = image.len().min(from + PIECE_BYTES_MAX);
        let piece = Bytes::copy_from_slice(&image[from..to]);
        if piece.is_empty() {
            self.backup = None;
        }
        Ok(Answered::Now(Reply::Text(piece)))
    }

    /// `OWNER [name]`: who owns a name, or how many shards each node has.
    pub(super) fn owner_command(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.left() == 0 {
            self.user(id)?.check(Deed::Show, "")?;
            let standing = self.standing();
            let status = ClusterStatus::new(&standing, self.replicated(), self.moves());
            return Ok(Answered::Now(status.owners()));
        }
        let name = words.text("the name")?;
        words.end()?;
        self.user(id)?.check(Deed::Show, name)?;
        let title = Title::of(name, self.replicated(), self.moves(), self.is_open(name));
        Ok(Answered::Now(title.reply()))
    }
}
