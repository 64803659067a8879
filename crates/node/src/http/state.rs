//! The state of the node as JSON: everything that the console shows. Times are milliseconds on the node's own clock; `now_ms`
//! is the present. What only a cluster has is shown only there.

use serde::Serialize;
use testigo_core::{
    BlockedBy, Edge, GateView, HolderView, Mode, Name, Rule, SessionView, WaiterView,
};

use super::agreed::{Decision, Group};
use super::elections::Election;
use super::pools::{Donated, Pool};
use crate::commands::Travelling;
use crate::users::{Deed, User};

/// Cap on shown gates, pools, groups, decisions, sessions, people of one gate, and edges. The number of the others is given.
pub(super) const ROWS_MAX: usize = 200;

/// A part of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// All that the console shows.
    #[default]
    Whole,
    /// The gate with exactly this name.
    Gate,
    /// All sessions.
    Sessions,
    /// Who waits for whom.
    Waits,
    /// The flows with their texts.
    Flows,
    /// The flows as the console follows them.
    Live,
}

impl Part {
    const WORDS: [(&str, Part); 5] = [
        ("GATE", Part::Gate),
        ("SESSIONS", Part::Sessions),
        ("WAITS", Part::Waits),
        ("FLOWS", Part::Flows),
        ("LIVE", Part::Live),
    ];

    /// Whether it is about flows rather than gates and sessions.
    pub(crate) fn is_of_flows(self) -> bool {
        matches!(self, Part::Flows | Part::Live)
    }

    /// The part that a word of the wire names.
    pub(crate) fn of(word: &str) -> Option<Part> {
        let mut parts = Part::WORDS.iter();
        let named = parts.find(|(name, _)| name.eq_ignore_ascii_case(word));
        named.map(|(_, part)| *part)
    }

    /// Its word on the wire; the whole needs none.
    pub(super) fn word(self) -> Option<&'static str> {
        let mut parts = Part::WORDS.iter();
        parts.find(|(_, part)| *part == self).map(|(word, _)| *word)
    }

    /// The cap on rows of a kind.
    pub(crate) fn rows_max(self) -> usize {
        match self {
            Part::Sessions => usize::MAX,
            _ => ROWS_MAX,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct State {
    /// The member that reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<u64>,
    /// Members whose gates, sessions and waits are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) missing: Option<Vec<u64>>,
    pub(super) version: &'static str,
    pub(super) start: u64,
    /// The highest number of a shard.
    pub(super) number: u32,
    /// Like `start`, under its former name.
    pub(super) epoch: u64,
    pub(super) recovering: bool,
    /// During recovery: how many sessions are awaited, and whether everything waits for them.
    pub(super) awaited: usize,
    pub(super) everything_waits: bool,
    pub(super) now_ms: u64,
    pub(super) sizes: Sizes,
    pub(super) counters: Counters,
    pub(super) gates: Vec<Gate>,
    pub(super) gates_more: usize,
    pub(super) elections: Vec<Election>,
    pub(super) elections_more: usize,
    pub(super) groups: Vec<Group>,
    pub(super) groups_more: usize,
    pub(super) decisions: Vec<Decision>,
    pub(super) decisions_more: usize,
    pub(super) pools: Vec<Pool>,
    pub(super) pools_more: usize,
    /// Newest first, as the asked node has heard of them.
    pub(super) donations: Vec<Donated>,
    pub(super) sessions: Vec<Session>,
    pub(super) sessions_more: usize,
    pub(super) edges: Vec<Wait>,
}

#[derive(Serialize)]
pub(super) struct Sizes {
    pub(super) gates: usize,
    pub(super) elections: usize,
    pub(super) sessions: usize,
    pub(super) holds: usize,
    pub(super) waits: usize,
    pub(super) connections: usize,
}

#[derive(Serialize)]
pub(super) struct Counters {
    pub(super) grants: u64,
    pub(super) releases: u64,
    pub(super) losses: u64,
    pub(super) waits: u64,
    pub(super) waits_ended: u64,
    pub(super) deadlocks: u64,
    pub(super) terms: u64,
    pub(super) connections: u64,
    pub(super) commands: u64,
}

#[derive(Serialize)]
pub(super) struct Gate {
    name: String,
    /// The member that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<u64>,
    rule: String,
    order: String,
    classes: u32,
    overtakes: u32,
    lease_ms: Option<u64>,
    capacity: Option<u32>,
    stay_ms: Option<u64>,
    implicit: bool,
    holders: Vec<Holder>,
    waiters: Vec<Waiter>,
    /// How many are inside and how many wait, shown or not.
    inside: usize,
    waiting: usize,
    /// Some of the sessions from before a crash for which it waits.
    awaits: Vec<u64>,
    /// How its ownership travels between nodes.
    using: &'static str,
    burst: u32,
    travels: &'static str,
    /// The published cost of a hand-over in messages.
    published: Option<String>,
    /// Its range.
    published_range: Option<(f64, f64)>,
    /// What each node knows of it, if it is spread over several.
    nodes: Vec<NodePart>,
}

#[derive(Serialize)]
struct NodePart {
    node: u64,
    /// Whether the node is in, so that it may admit its clients.
    r#in: bool,
    asks: bool,
    messages: u64,
    hand_overs: u64,
}

#[derive(Serialize)]
struct Holder {
    session: u64,
    label: Option<String>,
    mode: String,
    fence: u64,
    since: u64,
    until: Option<u64>,
    reason: Option<String>,
    leads: bool,
}

#[derive(Serialize)]
struct Waiter {
    session: u64,
    label: Option<String>,
    mode: String,
    class: u32,
    since: u64,
    until: u64,
    reason: Option<String>,
    overtaken: u32,
    set: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Session {
    session: u64,
    /// The member that is its home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) home: Option<u64>,
    label: Option<String>,
    pub(super) user: Option<String>,
    ttl_ms: Option<u64>,
    since: u64,
    heard: u64,
    connected: bool,
    awaited: bool,
    holds: Vec<String>,
    waits: Vec<String>,
    /// The elections that it leads, and those in which it is a candidate.
    leads: Vec<String>,
    campaigns: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Wait {
    waiter: u64,
    gate: String,
    blocker: u64,
    by: &'static str,
}

/// A gate that a user may see, without the names that the user may not see.
pub(super) fn gate_of(mut view: GateView, travelling: Travelling, user: &User) -> Gate {
    for waiter in &mut view.waiters {
        waiter.set.retain(|name| user.may(Deed::Show, name));
    }
    let nodes = travelling.part.iter().map(|(node, part)| NodePart {
        node: *node,
        r#in: part.inside,
        asks: part.asks,
        messages: part.counts.messages,
        hand_overs: part.counts.hand_overs,
    });
    Gate {
        owner: travelling.owner,
        published: travelling.published_words(),
        published_range: travelling.published.map(|(_, range)| range),
        nodes: nodes.collect(),
        travels: travelling.travels,
        ..Gate::from(view)
    }
}

fn gates(mut names: Vec<Name>) -> Vec<Name> {
    names.retain(|name| name.as_election().is_none());
    names
}

fn elections(names: &[Name]) -> Vec<String> {
    let elections = names.iter().filter_map(|name| name.as_election());
    elections.map(str::to_owned).collect()
}

fn words(names: Vec<Name>) -> Vec<String> {
    names
        .into_iter()
        .map(|name| name.as_str().to_owned())
        .collect()
}

fn mode_words(mode: &Mode) -> String {
    match mode {
        Mode::Exclusive => "exclusive".into(),
        Mode::Shared => "shared".into(),
        Mode::Permits(units) => format!("permits {units}"),
        Mode::Room(room) => format!("room {room}"),
        Mode::Lead(of) => format!("rank {}", of.rank),
    }
}

impl From<GateView> for Gate {
    fn from(view: GateView) -> Gate {
        let definition = view.definition;
        let rule = match definition.rule {
            Rule::Permits(units) => format!("PERMITS {units}"),
            rule => rule.word().to_owned(),
        };
        Gate {
            name: view.name.as_str().to_owned(),
            owner: None,
            rule,
            order: definition.order.word().to_lowercase(),
            classes: definition.classes,
            overtakes: definition.overtakes,
            lease_ms: definition.lease_ms,
            capacity: definition.capacity,
            stay_ms: definition.stay_ms,
            implicit: view.implicit,
            inside: view.inside,
            waiting: view.waiting,
            awaits: view.awaits.iter().map(|s| s.number()).collect(),
            using: definition.travels.using.name(),
            burst: definition.travels.burst,
            travels: "",
            published: None,
            published_range: None,
            nodes: Vec::new(),
            holders: view.holders.into_iter().map(Holder::from).collect(),
            waiters: view.waiters.into_iter().map(Waiter::from).collect(),
        }
    }
}

impl From<HolderView> for Holder {
    fn from(view: HolderView) -> Holder {
        Holder {
            session: view.session.number(),
            label: view.label,
            mode: mode_words(&view.mode),
            fence: view.fence.0,
            since: view.since,
            until: view.until,
            reason: view.reason,
            leads: view.leads,
        }
    }
}

impl From<WaiterView> for Waiter {
    fn from(view: WaiterView) -> Waiter {
        Waiter {
            session: view.session.number(),
            label: view.label,
            mode: mode_words(&view.mode),
            class: view.class,
            since: view.since,
            until: view.until,
            reason: view.reason,
            overtaken: view.overtaken,
            set: words(view.set),
        }
    }
}

impl From<SessionView> for Session {
    fn from(view: SessionView) -> Session {
        Session {
            session: view.session.number(),
            home: None,
            label: view.label,
            user: None,
            ttl_ms: view.ttl_ms,
            since: view.since,
            heard: view.heard,
            connected: view.connected,
            awaited: view.awaited,
            leads: elections(&view.holds),
            campaigns: elections(&view.waits),
            holds: words(gates(view.holds)),
            waits: words(gates(view.waits)),
        }
    }
}

impl From<Edge> for Wait {
    fn from(edge: Edge) -> Wait {
        Wait {
            waiter: edge.waiter.number(),
            gate: edge.gate.as_str().to_owned(),
            blocker: edge.blocker.number(),
            by: match edge.by {
                BlockedBy::Holder => "holder",
                BlockedBy::Waiter => "waiter",
            },
        }
    }
}
