//! The state of the node as JSON: everything that the console shows. Times are milliseconds of the node's own clock;
//! `now_ms` is the present on it.

use serde::Serialize;
use testigo_core::{
    BlockedBy, Edge, GateView, HolderView, Mode, Name, Rule, SessionView, WaiterView,
};

use crate::house::House;
use crate::users::{Deed, User};

/// At most so many gates, sessions, people of one gate, and edges are shown; how many more there are is said.
pub(super) const ROWS_MAX: usize = 200;

#[derive(Serialize)]
pub(super) struct State {
    version: &'static str,
    epoch: u64,
    recovering: bool,
    now_ms: u64,
    sizes: Sizes,
    counters: Counters,
    gates: Vec<Gate>,
    gates_more: usize,
    sessions: Vec<Session>,
    sessions_more: usize,
    edges: Vec<Wait>,
}

#[derive(Serialize)]
struct Sizes {
    gates: usize,
    sessions: usize,
    holds: usize,
    waits: usize,
    connections: usize,
}

#[derive(Serialize)]
struct Counters {
    grants: u64,
    releases: u64,
    losses: u64,
    waits: u64,
    waits_ended: u64,
    deadlocks: u64,
    connections: u64,
    commands: u64,
}

#[derive(Serialize)]
pub(super) struct Gate {
    name: String,
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
    /// Those inside and those waiting, shown or not.
    inside: usize,
    waiting: usize,
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
    label: Option<String>,
    user: Option<String>,
    ttl_ms: Option<u64>,
    since: u64,
    heard: u64,
    connected: bool,
    awaited: bool,
    holds: Vec<String>,
    waits: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Wait {
    waiter: u64,
    gate: String,
    blocker: u64,
    by: &'static str,
}

/// The state as a user sees it, as JSON.
pub(crate) fn state_json(house: &House, pattern: &str, user: &User) -> String {
    serde_json::to_string(&state(house, pattern, user)).unwrap_or_default()
}

/// The state as a user sees it. Numbers are of the whole node.
pub(super) fn state(house: &House, pattern: &str, user: &User) -> State {
    let local = &house.local;
    let [gates, sessions, holds, waits] = local.sizes();
    let counters = local.counters();
    let wanted = |name: &Name| name.fits(pattern) && user.may(Deed::Show, name);
    let (shown, fitting) = local.gates(&wanted, ROWS_MAX);
    let mut all_sessions = sessions_of(house, user);
    let sessions_more = all_sessions.len().saturating_sub(ROWS_MAX);
    all_sessions.truncate(ROWS_MAX);
    State {
        version: env!("CARGO_PKG_VERSION"),
        epoch: local.epoch().0,
        recovering: local.recovering(),
        now_ms: house.now,
        sizes: Sizes {
            gates,
            sessions,
            holds,
            waits,
            connections: house.clients.len(),
        },
        counters: Counters {
            grants: counters.grants,
            releases: counters.releases,
            losses: counters.losses,
            waits: counters.waits,
            waits_ended: counters.waits_ended,
            deadlocks: counters.deadlocks,
            connections: house.counters.connections,
            commands: house.counters.commands,
        },
        gates_more: fitting - shown.len(),
        gates: shown.into_iter().map(|view| gate_of(view, user)).collect(),
        sessions: all_sessions,
        sessions_more,
        edges: edges_of(house, user),
    }
}

/// A gate that a user may see, without the names that it may not.
pub(super) fn gate_of(mut view: GateView, user: &User) -> Gate {
    for waiter in &mut view.waiters {
        waiter.set.retain(|name| user.may(Deed::Show, name));
    }
    Gate::from(view)
}

pub(super) fn sessions_of(house: &House, user: &User) -> Vec<Session> {
    let views = house.sessions_for(user).into_iter();
    let whole = |view: SessionView| {
        let owner = house.owner(view.session).map(str::to_owned);
        Session {
            user: owner,
            ..Session::from(view)
        }
    };
    views.map(whole).collect()
}

pub(super) fn edges_of(house: &House, user: &User) -> Vec<Wait> {
    let edges = house.local.wait_for(ROWS_MAX).into_iter();
    let seen = |edge: &Edge| user.may(Deed::Show, &edge.gate);
    edges.filter(seen).map(Wait::from).collect()
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
            rule,
            order: definition.order.word().to_lowercase(),
            classes: definition.classes,
            overtakes: definition.overtakes,
            lease_ms: definition.lease_ms,
            capacity: definition.capacity,
            stay_ms: definition.stay_ms,
            implicit: view.implicit,
            inside: view.holders.len(),
            waiting: view.waiters.len(),
            holders: view
                .holders
                .into_iter()
                .take(ROWS_MAX)
                .map(Holder::from)
                .collect(),
            waiters: view
                .waiters
                .into_iter()
                .take(ROWS_MAX)
                .map(Waiter::from)
                .collect(),
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
            label: view.label,
            user: None,
            ttl_ms: view.ttl_ms,
            since: view.since,
            heard: view.heard,
            connected: view.connected,
            awaited: view.awaited,
            holds: words(view.holds),
            waits: words(view.waits),
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
