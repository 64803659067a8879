//! The cluster that a log belongs to: its identity, the addresses of its nodes, and their latest starts. A node's number may
//! come back with an empty disk, whose starts would begin again at 1. So the log remembers the highest start of each node,
//! and a newcomer begins above it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Change, Outcome, Replicated};
use crate::error::{Refusal, Word};
use crate::name::check_text;
use crate::ownership::{NODES_MAX, NodeId, Start, View};

/// The identity of a cluster, drawn at random by its founder, and again when a backup is restored. Nodes of different
/// clusters never talk to each other, even if they know the same secret.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub u128);

/// The address of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// For the other nodes, `host:port`.
    pub peer: String,
    /// For clients, if they can reach it.
    pub client: Option<String>,
}

impl Address {
    /// The longest address.
    pub const BYTES_MAX: usize = 255;
}

/// A node that wants to become a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newcomer {
    /// Its number.
    pub node: NodeId,
    /// Its present start.
    pub start: Start,
    /// Drawn at random by this start, so that it can repeat its request and another disk cannot pass for it.
    pub token: u64,
    /// Its address.
    pub address: Address,
}

/// What to do about a newcomer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The log should take it in.
    New,
    /// The log knows it already: it has repeated its request, or was restarted.
    Known,
    /// Its number was used before, up to this start: it must come back with a later one.
    StartAbove(Start),
}

/// What the log knows of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    id: Option<ClusterId>,
    nodes: BTreeMap<NodeId, Known>,
}

/// What the log knows of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    /// The highest start that the log has seen.
    last_start: Start,
    token: u64,
    address: Option<Address>,
    removed: bool,
}

impl Cluster {
    /// Its identity, once it is founded.
    pub fn id(&self) -> Option<ClusterId> {
        self.id
    }

    /// The addresses of the nodes, by number.
    pub fn addresses(&self) -> impl Iterator<Item = (NodeId, &Address)> {
        let nodes = self.nodes.iter();
        nodes.filter_map(|(node, known)| Some((*node, known.address.as_ref()?)))
    }

    /// The address of a node.
    pub fn address(&self, node: NodeId) -> Option<&Address> {
        self.nodes.get(&node)?.address.as_ref()
    }

    /// The highest start of a node that the log has seen.
    pub fn last_start(&self, node: NodeId) -> Start {
        let known = self.nodes.get(&node);
        known.map(|known| known.last_start).unwrap_or_default()
    }

    /// Whether a node was a member and has been removed.
    pub fn was_removed(&self, node: NodeId) -> bool {
        let known = self.nodes.get(&node);
        known.is_some_and(|known| known.removed)
    }

    /// Who of a view stays: a node that was removed is in it until its lease is over.
    pub(super) fn staying(&self, view: &View) -> View {
        let mut staying = view.clone();
        let members = &mut staying.members;
        members.retain(|member| !self.was_removed(member.node));
        staying
    }

    /// Whether a newcomer may become a member.
    pub fn admits(&self, newcomer: &Newcomer) -> Result<Admission, Refusal> {
        let Newcomer {
            node,
            start,
            token,
            address,
        } = newcomer;
        self.check_address(*node, address)?;
        let Some(known) = self.nodes.get(node) else {
            return Ok(Admission::New);
        };
        let repeats = (known.last_start, known.token) == (*start, *token);
        match &known.address {
            None if *start > known.last_start => Ok(Admission::New),
            None => Ok(Admission::StartAbove(known.last_start)),
            Some(present) if present.peer != address.peer => Err(taken(
                *node,
                format!("is a member at {}, not at {}", present.peer, address.peer),
            )),
            Some(_) if repeats => Ok(Admission::Known),
            Some(_) if *start > known.last_start => Ok(Admission::New),
            Some(_) => Err(taken(
                *node,
                "is a member, with another data directory than this one".into(),
            )),
        }
    }

    fn check_address(&self, node: NodeId, address: &Address) -> Result<(), Refusal> {
        if !(1..=NODES_MAX).contains(&node.0) {
            let sentence = format!("{node} is no number of a node: those are 1 to {NODES_MAX}");
            return Err(Refusal::new(Word::BadArg, sentence));
        }
        if address.peer.is_empty() {
            return Err(Refusal::new(Word::BadArg, "the peer address is empty"));
        }
        check_text("the peer address", &address.peer, Address::BYTES_MAX)?;
        if let Some(client) = &address.client {
            check_text("the client address", client, Address::BYTES_MAX)?;
        }
        let mut others = self.addresses().filter(|(other, _)| *other != node);
        match others.find(|(_, other)| other.peer == address.peer) {
            None => Ok(()),
            Some((other, _)) => Err(Refusal::new(
                Word::Busy,
                format!("{} is the peer address of node {other}", address.peer),
            )),
        }
    }

    pub(super) fn check(&self, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::Admit(newcomer) => match self.admits(newcomer)? {
                Admission::New | Admission::Known => Ok(()),
                Admission::StartAbove(last) => Err(Refusal::new(
                    Word::Stale,
                    format!(
                        "node {}, start {}, had start {last} before",
                        newcomer.node, newcomer.start
                    ),
                )),
            },
            Change::Address {
                node,
                address: Some(address),
            } => match self.was_removed(*node) {
                true => Err(Refusal::new(
                    Word::Stale,
                    format!("node {node} was removed; it must join again"),
                )),
                false => self.check_address(*node, address),
            },
            _ => Ok(()),
        }
    }

    /// Carries out a checked change.
    pub(super) fn apply(&mut self, change: &Change) -> Outcome {
        let before = self.clone();
        match change {
            Change::Found { cluster } => self.id = Some(*cluster),
            Change::Admit(newcomer) => {
                let known = self.nodes.entry(newcomer.node).or_default();
                known.last_start = newcomer.start;
                known.token = newcomer.token;
                known.address = Some(newcomer.address.clone());
                known.removed = false;
            }
            Change::Address { node, address } => {
                let known = self.nodes.entry(*node).or_default();
                known.address.clone_from(address);
                known.removed = address.is_none();
            }
            _ => {}
        }
        match *self == before {
            true => Outcome::Unchanged,
            false => Outcome::ClusterChanged,
        }
    }

    /// Remembers the starts in a view.
    pub(super) fn follow(&mut self, view: &View) {
        for member in &view.members {
            let known = self.nodes.entry(member.node).or_default();
            known.last_start = known.last_start.max(member.start);
        }
    }
}

fn taken(node: NodeId, why: String) -> Refusal {
    Refusal::new(
        Word::Busy,
        format!("node {node} {why}; remove it first: testigo cluster remove {node}"),
    )
}

impl Replicated {
    /// The cluster that the log belongs to.
    pub fn cluster(&self) -> &Cluster {
        &self.records.cluster
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn newcomer(start: u64, token: u64, peer: &str) -> Newcomer {
        Newcomer {
            node: NodeId(2),
            start: Start(start),
            token,
            address: Address {
                peer: peer.into(),
                client: None,
            },
        }
    }

    /// A log of node 1 that has let in node 2 with start 3.
    fn with_node_2() -> Replicated {
        let mut log = Replicated::new(Limits::default());
        let view = log.view_alone(NodeId(1), Start(1), 0);
        apply(&mut log, view).unwrap();
        let first = Change::Address {
            node: NodeId(1),
            address: Some(newcomer(1, 1, "a:1").address),
        };
        apply(&mut log, first).unwrap();
        apply(&mut log, Change::Admit(newcomer(3, 30, "b:1"))).unwrap();
        log
    }

    fn apply(log: &mut Replicated, change: Change) -> Result<Outcome, Word> {
        let applied = log.apply(0, &change);
        applied
            .map(|applied| applied.into_outcome())
            .map_err(|refusal| refusal.word)
    }

    fn forget(node: u64) -> Change {
        Change::Address {
            node: NodeId(node),
            address: None,
        }
    }

    #[test]
    fn a_member_repeats_itself_and_another_disk_cannot_pass_for_it() {
        let log = with_node_2();
        let cluster = log.cluster();
        assert_eq!(
            cluster.admits(&newcomer(3, 30, "b:1")),
            Ok(Admission::Known)
        );
        assert_eq!(cluster.admits(&newcomer(4, 40, "b:1")), Ok(Admission::New));
        for other in [
            newcomer(3, 31, "b:1"),
            newcomer(1, 30, "b:1"),
            newcomer(3, 30, "c:1"),
        ] {
            let refusal = cluster.admits(&other).unwrap_err();
            assert!(
                refusal.to_string().contains("cluster remove 2"),
                "{refusal}"
            );
        }
        let refusal = cluster.admits(&newcomer(3, 30, "a:1")).unwrap_err();
        assert!(refusal.to_string().contains("node 1"), "{refusal}");
    }

    #[test]
    fn a_number_that_comes_back_begins_above_its_last_start() {
        let mut log = with_node_2();
        let view = Change::View {
            before: log.view().index,
            members: vec![(NodeId(1), Start(1)), (NodeId(2), Start(7))],
            generation: 0,
        };
        apply(&mut log, view).unwrap();
        assert_eq!(apply(&mut log, forget(2)), Ok(Outcome::ClusterChanged));
        assert!(log.cluster().was_removed(NodeId(2)));
        assert_eq!(log.cluster().address(NodeId(2)), None);
        let back = newcomer(1, 10, "c:1");
        let admission = log.cluster().admits(&back);
        assert_eq!(admission, Ok(Admission::StartAbove(Start(7))));
        assert_eq!(apply(&mut log, Change::Admit(back)), Err(Word::Stale));
        let later = Change::Admit(newcomer(8, 80, "c:1"));
        assert_eq!(apply(&mut log, later), Ok(Outcome::ClusterChanged));
        assert_eq!(log.cluster().last_start(NodeId(2)), Start(8));
    }

    #[test]
    fn of_two_newcomers_with_one_number_the_first_is_taken() {
        let mut log = with_node_2();
        let racing = |peer: &str| {
            Change::Admit(Newcomer {
                node: NodeId(3),
                ..newcomer(1, 5, peer)
            })
        };
        assert!(apply(&mut log, racing("c:1")).is_ok());
        assert_eq!(apply(&mut log, racing("d:1")), Err(Word::Busy));
        assert_eq!(apply(&mut log, racing("c:1")), Ok(Outcome::Unchanged));
    }

    #[test]
    fn a_member_moves_and_a_removed_one_does_not() {
        let mut log = with_node_2();
        let moved = |node, peer: &str| Change::Address {
            node: NodeId(node),
            address: Some(newcomer(0, 0, peer).address),
        };
        assert!(apply(&mut log, moved(2, "z:1")).is_ok());
        assert_eq!(apply(&mut log, moved(2, "a:1")), Err(Word::Busy));
        assert_eq!(apply(&mut log, moved(0, "y:1")), Err(Word::BadArg));
        assert_eq!(apply(&mut log, moved(2, "")), Err(Word::BadArg));
        apply(&mut log, forget(2)).unwrap();
        assert_eq!(apply(&mut log, moved(2, "z:1")), Err(Word::Stale));
    }
}
