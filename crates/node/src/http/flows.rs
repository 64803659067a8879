//! Flows as JSON: what runs, how full its queues are, and who works as which process.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use serde::Serialize;
use testigo_core::{Name, QueueId};

use crate::clock::wall_ms;
use crate::house::House;
use crate::users::{Deed, User};

/// The flows as the console follows them: without their texts, and not more than a page can show.
#[derive(Serialize)]
pub(super) struct Live {
    now_ms: u64,
    flows: Vec<Flow>,
    /// Flows that are left out.
    more: usize,
}

#[derive(Serialize)]
pub(super) struct Flow {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Changes with the text.
    mark: String,
    queues: Vec<Queue>,
    processes: Vec<Process>,
    arrows: Vec<Arrow>,
}

#[derive(Serialize)]
struct Queue {
    name: String,
    limit: Option<u64>,
    retries: u32,
    reject: Option<String>,
    waiting: u64,
    held: u64,
    takers: usize,
    /// How long the next job has lain there.
    age_ms: Option<u64>,
    /// Since the node started.
    arrivals: u64,
    departures: u64,
    deaths: u64,
    rejects: u64,
    /// Creates and passes refused because it was full.
    full: u64,
    /// Over the last seconds.
    arrivals_per_second: f64,
    departures_per_second: f64,
}

#[derive(Serialize)]
struct Process {
    name: String,
    creates: Vec<String>,
    takes: Vec<String>,
    passes: Vec<String>,
    deletes: Vec<String>,
    /// The most clients that may be it.
    limit: Option<u32>,
    /// Connections that are presented as this process.
    clients: usize,
}

/// A process and a queue, and the jobs that went from one to the other.
#[derive(Serialize)]
struct Arrow {
    process: String,
    queue: String,
    /// The process puts jobs into the queue; else it takes them out.
    into: bool,
    /// Since the node started.
    count: u64,
    /// Over the last seconds.
    per_second: f64,
}

/// Takers of one queue are counted up to here.
const TAKERS_COUNTED: usize = 1_000;

/// Queues and processes that are told live, of all flows together.
const LIVE_MAX: usize = 2_000;

/// All flows that a user may see.
pub(super) fn flows_of(house: &House, user: &User) -> Vec<Flow> {
    let clients = Clients::of(house);
    let seen = seen(house, user);
    seen.map(|(name, flow)| flow_of(house, name, flow, &clients, true))
        .collect()
}

/// The flows that a user may see, by name, as many as are told live.
pub(super) fn live_flows(house: &House, user: &User) -> Live {
    let clients = Clients::of(house);
    let (mut flows, mut more, mut size) = (Vec::new(), 0, 0);
    for (name, flow) in seen(house, user) {
        size += flow.scheme.queues.len() + flow.scheme.processes.len();
        match size <= LIVE_MAX {
            true => flows.push(flow_of(house, name, flow, &clients, false)),
            false => more += 1,
        }
    }
    Live {
        now_ms: house.now,
        flows,
        more,
    }
}

fn seen<'a>(
    house: &'a House,
    user: &'a User,
) -> impl Iterator<Item = (&'a Name, &'a testigo_core::Flow)> {
    let flows = house.replicated.flows();
    flows.filter(|(name, _)| user.may(Deed::Show, name))
}

/// How many connections are presented as which process of which flow.
struct Clients<'a>(BTreeMap<(&'a str, &'a str), usize>);

impl Clients<'_> {
    fn of(house: &House) -> Clients<'_> {
        let mut clients = BTreeMap::new();
        let presented = house.clients.values().filter_map(|c| c.presented.as_ref());
        for who in presented {
            *clients.entry((&*who.flow, &*who.process)).or_default() += 1;
        }
        Clients(clients)
    }
}

fn flow_of(
    house: &House,
    name: &Name,
    flow: &testigo_core::Flow,
    clients: &Clients<'_>,
    with_text: bool,
) -> Flow {
    let queues = flow.queues();
    let processes = flow.scheme.processes.iter();
    Flow {
        name: name.to_string(),
        text: with_text.then(|| flow.text.to_string()),
        mark: mark(&flow.text),
        queues: queues.filter_map(|(_, id)| queue(house, id)).collect(),
        processes: processes
            .map(|(process, role)| Process {
                name: process.to_string(),
                creates: words(&role.creates),
                takes: words(&role.takes),
                passes: words(&role.passes),
                deletes: words(&role.deletes),
                limit: role.limit,
                clients: clients.0.get(&(&**name, &**process)).copied().unwrap_or(0),
            })
            .collect(),
        arrows: house
            .arrows_of(name, flow)
            .map(|(process, queue, into, arrow)| {
                let counted = arrow.map(|arrow| house.stats.arrows.counted(house.now, arrow));
                let (count, per_second) = counted.unwrap_or_default();
                Arrow {
                    process: process.to_string(),
                    queue: queue.to_string(),
                    into,
                    count,
                    per_second,
                }
            })
            .collect(),
    }
}

fn mark(text: &str) -> String {
    let mut hasher = rustc_hash::FxHasher::default();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn queue(house: &House, id: QueueId) -> Option<Queue> {
    let queue = house.replicated.queue(id)?;
    let view = house.local.queue_view(id, TAKERS_COUNTED)?;
    let next = view.next.and_then(|job| house.replicated.job(job).ok());
    let waiting = view.waiting as u64;
    let totals = house.stats.totals(id);
    let (arrivals, departures) = house.stats.rates(house.now, id);
    Some(Queue {
        name: queue.name.to_string(),
        limit: queue.rule.limit,
        retries: queue.rule.retries,
        reject: queue.rule.reject.as_ref().map(Name::to_string),
        waiting,
        held: queue.jobs - waiting,
        takers: view.takers.len(),
        age_ms: next.map(|job| wall_ms().saturating_sub(job.at)),
        arrivals: totals.arrivals,
        departures: totals.departures,
        deaths: totals.deaths,
        rejects: totals.rejects,
        full: totals.full,
        arrivals_per_second: arrivals,
        departures_per_second: departures,
    })
}

fn words<'a>(names: impl IntoIterator<Item = &'a Name>) -> Vec<String> {
    names.into_iter().map(Name::to_string).collect()
}
