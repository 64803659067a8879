//! The status of the cluster, as one node sees it. The wire and the console show the same.

use std::collections::BTreeMap;

use serde::Serialize;
use testigo_core::{NodeId, Number, Replicated, Shard, Start};

use super::moves::{Move, Moves};
use crate::wire::Reply;

/// How many moves the status shows.
const MOVES_SHOWN: usize = 20;

/// What a node knows of its group beyond what the log says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// This node.
    pub(crate) node: NodeId,
    pub(crate) start: Start,
    /// Whether it is a member of a cluster; otherwise it is alone.
    pub(crate) member: bool,
    pub(crate) leader: Option<u64>,
    /// The last leader that it heard of; the same as long as it knows one.
    pub(crate) last_leader: Option<u64>,
    pub(crate) term: u64,
    pub(crate) voters: Vec<u64>,
    pub(crate) learners: Vec<u64>,
    /// What remains of the node's lease, 0 when it is over; `None` alone.
    pub(crate) lease_left_ms: Option<u64>,
    pub(crate) lease_ms: Option<u64>,
    /// How far the log is applied, as raft counts.
    pub(crate) applied: u64,
    /// The states of the links to the others.
    pub(crate) links: BTreeMap<u64, Link>,
}

/// The state of the link to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// Something was heard from it recently.
    Up,
    /// Nothing was heard for this many milliseconds.
    Silent(u64),
}

/// The status.
#[derive(Debug, Serialize)]
pub(crate) struct ClusterStatus {
    /// The cluster's identity; `None` for a node that is alone.
    cluster: Option<String>,
    generation: u32,
    /// The node that reports this.
    id: u64,
    start: u64,
    leader: Option<u64>,
    /// The last leader that it heard of.
    last_leader: Option<u64>,
    /// Whether it leads.
    leads: bool,
    term: u64,
    /// The change that brought the present view, and the last change applied here.
    view: u64,
    change: u64,
    /// How far the log is applied here, as raft counts.
    applied: u64,
    /// What remains of the lease; `None` alone.
    lease_ms: Option<u64>,
    /// The length of a lease.
    lease_whole_ms: Option<u64>,
    /// The highest number of a shard, and the highest possible one.
    number: u32,
    number_max: u32,
    /// Sessions whose home is lost.
    orphans: usize,
    moves_ever: u64,
    members: Vec<MemberStatus>,
    moves: Vec<Move>,
}

#[derive(Debug, Serialize)]
struct MemberStatus {
    id: u64,
    /// Its start in the present view; `None` if it is not in it.
    start: Option<u64>,
    /// Its address for the other nodes.
    address: Option<String>,
    client: Option<String>,
    role: &'static str,
    voter: bool,
    leader: bool,
    in_view: bool,
    shards: usize,
    sessions: usize,
    link: &'static str,
    silent_ms: Option<u64>,
}

/// Who owns a name.
#[derive(Debug, Serialize)]
pub(crate) struct Title {
    name: String,
    shard: u16,
    owner: Option<u64>,
    start: Option<u64>,
    client: Option<String>,
    number: u32,
    /// The number under which this owner became the owner.
    since_number: u32,
    /// Whether it grants, as far as the reporting node knows.
    open: bool,
    moves: Vec<Move>,
}

impl ClusterStatus {
    pub(crate) fn new(standing: &Standing, replicated: &Replicated, moves: &Moves) -> Self {
        let (view, cluster) = (replicated.view(), replicated.cluster());
        let mut shards: BTreeMap<NodeId, usize> = BTreeMap::new();
        for (run, title) in replicated.ownership().runs() {
            *shards.entry(title.owner).or_default() += run.len();
        }
        let (mut sessions, mut orphans) = (BTreeMap::<NodeId, usize>::new(), 0);
        for (_, record) in replicated.sessions() {
            *sessions.entry(record.home.node).or_default() += 1;
            orphans += usize::from(replicated.is_orphan(record));
        }
        let mut nodes: Vec<u64> = view.members.iter().map(|member| member.node.0).collect();
        nodes.extend(&standing.voters);
        nodes.extend(&standing.learners);
        nodes.extend(cluster.addresses().map(|(node, _)| node.0));
        nodes.sort_unstable();
        nodes.dedup();
        let member = |node: u64| {
            let id = NodeId(node);
            let address = cluster.address(id);
            let present = view.members.iter().find(|member| member.node == id);
            let (link, silent_ms) = match standing.links.get(&node) {
                _ if id == standing.node => ("self", None),
                Some(Link::Up) => ("up", None),
                Some(Link::Silent(ms)) => ("silent", Some(*ms)),
                None => ("none", None),
            };
            MemberStatus {
                id: node,
                start: present.map(|member| member.start.0),
                voter: standing.voters.contains(&node),
                address: address.map(|address| address.peer.clone()),
                client: address.and_then(|address| address.client.clone()),
                role: match () {
                    () if standing.voters.contains(&node) => "voter",
                    () if standing.learners.contains(&node) => "learner",
                    () if !standing.member => "alone",
                    () => "none",
                },
                leader: standing.leader == Some(node),
                in_view: present.is_some(),
                shards: shards.get(&id).copied().unwrap_or(0),
                sessions: sessions.get(&id).copied().unwrap_or(0),
                link,
                silent_ms,
            }
        };
        ClusterStatus {
            cluster: cluster.id().map(|id| id.to_string()),
            generation: view.generation,
            id: standing.node.0,
            start: standing.start.0,
            leader: standing.leader,
            last_leader: standing.last_leader,
            leads: standing.leader == Some(standing.node.0),
            term: standing.term,
            view: view.index.0,
            change: replicated.index().0,
            applied: standing.applied,
            lease_ms: standing.lease_left_ms,
            lease_whole_ms: standing.lease_ms,
            number: replicated.ownership().highest().0,
            number_max: Number::MAX.0,
            orphans,
            moves_ever: moves.ever(),
            members: nodes.into_iter().map(member).collect(),
            moves: moves.latest().take(MOVES_SHOWN).cloned().collect(),
        }
    }

    /// How many shards each member owns.
    pub(crate) fn owners(&self) -> Reply {
        let row = |member: &MemberStatus| {
            Reply::Map(vec![
                ("id", Reply::number(member.id)),
                (
                    "client",
                    Reply::optional(member.client.clone(), Reply::text),
                ),
                ("shards", Reply::number(member.shards as u64)),
            ])
        };
        Reply::Array(self.members.iter().map(row).collect())
    }

    pub(crate) fn reply(&self) -> Reply {
        let number = |value: Option<u64>| Reply::optional(value, Reply::number);
        let text = |value: &Option<String>| Reply::optional(value.clone(), Reply::text);
        let member = |member: &MemberStatus| {
            Reply::Map(vec![
                ("id", Reply::number(member.id)),
                ("start", number(member.start)),
                ("address", text(&member.address)),
                ("client", text(&member.client)),
                ("role", Reply::text(member.role)),
                ("voter", Reply::flag(member.voter)),
                ("leader", Reply::flag(member.leader)),
                ("in_view", Reply::flag(member.in_view)),
                ("shards", Reply::number(member.shards as u64)),
                ("sessions", Reply::number(member.sessions as u64)),
                ("link", Reply::text(member.link)),
                ("silent_ms", number(member.silent_ms)),
            ])
        };
        Reply::Map(vec![
            ("cluster", text(&self.cluster)),
            ("generation", Reply::number(self.generation.into())),
            ("id", Reply::number(self.id)),
            ("start", Reply::number(self.start)),
            ("leader", number(self.leader)),
            ("last_leader", number(self.last_leader)),
            ("leads", Reply::flag(self.leads)),
            ("term", Reply::number(self.term)),
            ("view", Reply::number(self.view)),
            ("change", Reply::number(self.change)),
            ("applied", Reply::number(self.applied)),
            ("lease_ms", number(self.lease_ms)),
            ("lease_whole_ms", number(self.lease_whole_ms)),
            ("number", Reply::number(self.number.into())),
            ("number_max", Reply::number(self.number_max.into())),
            ("orphans", Reply::number(self.orphans as u64)),
            ("moves_ever", Reply::number(self.moves_ever)),
            (
                "members",
                Reply::Array(self.members.iter().map(member).collect()),
            ),
            ("moves", Reply::Array(self.moves.iter().map(row).collect())),
        ])
    }
}

impl Title {
    /// The owner of a name: a gate, or a queue by its full name.
    pub(crate) fn of(name: &str, replicated: &Replicated, moves: &Moves, open: bool) -> Title {
        let shard = Shard::of(name);
        let title = replicated.ownership().title(shard);
        let owner = title.map(|title| title.owner);
        let address = owner.and_then(|owner| replicated.cluster().address(owner));
        // Shards that a view has given together are represented by the first of them.
        let alone = |moved: &&Move| moved.shards == 1 && moved.first == shard.0;
        Title {
            name: name.to_owned(),
            shard: shard.0,
            owner: owner.map(|owner| owner.0),
            start: title.map(|title| title.start.0),
            client: address.and_then(|address| address.client.clone()),
            number: title.map_or(0, |title| title.number.0),
            since_number: title.map_or(0, |title| title.since.0),
            open,
            moves: moves
                .latest()
                .filter(alone)
                .take(MOVES_SHOWN)
                .cloned()
                .collect(),
        }
    }

    pub(crate) fn reply(&self) -> Reply {
        let number = |value: Option<u64>| Reply::optional(value, Reply::number);
        Reply::Map(vec![
            ("name", Reply::text(self.name.as_str())),
            ("shard", Reply::number(self.shard.into())),
            ("owner", number(self.owner)),
            ("start", number(self.start)),
            ("client", Reply::optional(self.client.clone(), Reply::text)),
            ("number", Reply::number(self.number.into())),
            ("since_number", Reply::number(self.since_number.into())),
            ("open", Reply::flag(self.open)),
            ("moves", Reply::Array(self.moves.iter().map(row).collect())),
        ])
    }
}

impl Title {
    /// As a row of a list.
    pub(crate) fn row(&self, kind: &'static str) -> Reply {
        Reply::Map(vec![
            ("name", Reply::text(self.name.as_str())),
            ("kind", Reply::text(kind)),
            ("shard", Reply::number(self.shard.into())),
            ("owner", Reply::optional(self.owner, Reply::number)),
            ("number", Reply::number(self.number.into())),
            ("open", Reply::flag(self.open)),
        ])
    }
}

fn row(moved: &Move) -> Reply {
    Reply::Map(vec![
        ("at", Reply::number(moved.at_ms)),
        ("from", Reply::optional(moved.from, Reply::number)),
        ("to", Reply::number(moved.to)),
        ("shards", Reply::number(moved.shards as u64)),
        ("first", Reply::number(moved.first.into())),
        ("number", Reply::number(moved.number.into())),
        (
            "by",
            Reply::text(if moved.by_view { "view" } else { "hand-over" }),
        ),
    ])
}
