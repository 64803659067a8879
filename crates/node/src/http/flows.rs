//! Flows as JSON: what runs, how full its queues are, and who works as which process.

use serde::Serialize;
use testigo_core::{Name, QueueId};

use crate::clock::wall_ms;
use crate::house::House;
use crate::users::{Deed, User};

#[derive(Serialize)]
pub(super) struct Flow {
    name: String,
    text: String,
    queues: Vec<Queue>,
    processes: Vec<Process>,
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
    /// Connections that are presented as this process.
    clients: usize,
}

/// Takers of one queue are counted up to here.
const TAKERS_COUNTED: usize = 10_000;

/// All flows that a user may see.
pub(super) fn flows_of(house: &House, user: &User) -> Vec<Flow> {
    let flows = house.replicated.flows();
    let seen = flows.filter(|(name, _)| user.may(Deed::Show, name));
    let whole = seen.map(|(name, flow)| {
        let queues = flow.queues();
        let processes = flow.scheme.processes.iter();
        Flow {
            name: name.to_string(),
            text: flow.text.to_string(),
            queues: queues.filter_map(|(_, id)| queue(house, id)).collect(),
            processes: processes
                .map(|(process, role)| Process {
                    name: process.to_string(),
                    creates: words(&role.creates),
                    takes: words(&role.takes),
                    passes: words(&role.passes),
                    deletes: words(&role.deletes),
                    clients: house.presented_as(name, process).count(),
                })
                .collect(),
        }
    });
    whole.collect()
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
