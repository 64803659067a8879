//! `CLUSTER` and `OWNER`: what operators see and do in a cluster.

use std::sync::Arc;

use bytes::Bytes;
use testigo_core::{Address, Matcher, NODES_MAX, Newcomer, NodeId, Refusal, Start, Word};

use super::table::{Answered, Outcome, unknown_word};
use crate::backup::{Drawn, PIECE_BYTES_MAX};
use crate::cluster::{ClusterStatus, Title, Wait};
use crate::house::{ClientId, House};
use crate::peers::host_and_port;
use crate::users::Deed;
use crate::wire::{Reply, Words, bad_arg, refuse};

const KNOWN: &str = "STATUS, LEASE, WAITS, OWNERS, ADD, REMOVE, BACKUP";

/// Cap on names that are shown with their owners.
const OWNERS_MAX: usize = 200;

impl House {
    /// `CLUSTER STATUS|LEASE|WAITS|OWNERS|ADD|REMOVE|BACKUP …`.
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
        if words.keyword("WAITS") {
            words.end()?;
            self.user(id)?.check(Deed::Show, "")?;
            let waits = self.waits().iter().map(Wait::reply).collect();
            return Ok(Answered::Now(Reply::Array(waits)));
        }
        if words.keyword("OWNERS") {
            let pattern = words.pattern()?;
            words.end()?;
            return self.owners(id, pattern);
        }
        if words.keyword("ADD") {
            self.allow(id, Deed::Admin, "")?;
            let (node, peer) = (node_id(&mut words)?, words.text("the peer address")?);
            words.end()?;
            return self.check_newcomer(node, peer);
        }
        if words.keyword("REMOVE") {
            self.allow(id, Deed::Admin, "")?;
            let node = node_id(&mut words)?;
            words.end()?;
            if !self.standing().member {
                return Err(alone());
            }
            self.remove_member(id, node)?;
            return Ok(Answered::Later);
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

    /// `CLUSTER ADD id host:port`: whether a node may join with this number and address, and which member it can ask.
    fn check_newcomer(&mut self, node: NodeId, peer: &str) -> Outcome {
        let own = self.standing().node;
        let cluster = self.replicated().cluster();
        let Some(asked) = cluster.address(own).filter(|_| cluster.id().is_some()) else {
            return Err(alone());
        };
        if let Some(present) = cluster.address(node) {
            let peer = &present.peer;
            return Err(refuse(
                Word::Busy,
                format!(
                    "node {node} is a member, at {peer}; remove it first: testigo cluster remove {node}"
                ),
            ));
        }
        host_and_port(peer).map_err(|why| {
            let sentence = format!("{peer:?}: {why}; an address looks like 10.0.0.4:7700");
            bad_arg(sentence)
        })?;
        let newcomer = Newcomer {
            node,
            start: Start(u64::from(u32::MAX)),
            token: 0,
            address: Address {
                peer: peer.to_owned(),
                client: None,
            },
        };
        cluster.admits(&newcomer)?;
        Ok(Answered::Now(Reply::text(asked.peer.as_str())))
    }

    /// `CLUSTER OWNERS [pattern]`: the owners of gates and queues in the log, up to a cap.
    fn owners(&mut self, id: ClientId, pattern: Matcher) -> Outcome {
        let user = Arc::clone(self.user(id)?);
        let mut rows = self.rows_for(id);
        let (mut gate, mut flow, mut gates_done) = (None, None, false);
        self.in_slices(id, move |house, slice| {
            let row = |kind, name: &str| {
                let title = Title::of(name, house.replicated(), house.moves(), house.is_open(name));
                title.row(kind)
            };
            if !gates_done {
                for (name, _) in house.replicated().gates_after(gate.take().as_ref()) {
                    slice.spend(pattern.weight());
                    if rows.count() < OWNERS_MAX && user.sees(name, &pattern) {
                        rows.push(&row("gate", name));
                    }
                    if !slice.has_room() {
                        gate = Some(name.clone());
                        return Ok(None);
                    }
                }
                gates_done = true;
            }
            for (name, known) in house.replicated().flows_after(flow.take().as_ref()) {
                if rows.count() == OWNERS_MAX {
                    break;
                }
                for (queue, _) in known.queues() {
                    slice.spend(pattern.weight());
                    let queue = format!("{name}/{queue}");
                    if rows.count() < OWNERS_MAX && user.sees(&queue, &pattern) {
                        rows.push(&row("queue", &queue));
                    }
                }
                if !slice.has_room() {
                    flow = Some(name.clone());
                    return Ok(None);
                }
            }
            Ok(Some(rows.array()))
        })?;
        Ok(Answered::Later)
    }

    /// `CLUSTER BACKUP`: begins a backup, and returns the number under which it is fetched.
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

    /// `CLUSTER BACKUP number offset`: a piece of it; the empty piece after the last one ends it.
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

    /// `OWNER [name]`: the owner of a name, or how many shards each node owns.
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

fn node_id(words: &mut Words<'_>) -> Result<NodeId, Refusal> {
    match words.number("the node's number")? {
        node @ 1..=NODES_MAX => Ok(NodeId(node)),
        node => Err(bad_arg(format!(
            "{node}: a node's number is 1 to {NODES_MAX}"
        ))),
    }
}

fn alone() -> Refusal {
    bad_arg("this node is alone: only one that was started with --peer has other members")
}
