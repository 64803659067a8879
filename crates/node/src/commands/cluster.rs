//! `CLUSTER` and `OWNER`: what operators see and do of a cluster.

use testigo_core::Word;

use super::table::{Answered, Outcome, unknown_word};
use crate::cluster::{ClusterStatus, Title};
use crate::house::{ClientId, House};
use crate::users::Deed;
use crate::wire::{Reply, Words, refuse};

const KNOWN: &str = "STATUS, LEASE";

impl House {
    /// `CLUSTER STATUS|LEASE`.
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
        Err(unknown_word("CLUSTER", words.text("a word")?, KNOWN))
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
