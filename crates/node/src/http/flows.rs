//! Flows as JSON: what runs, how full its queues are, and who works as which process.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use testigo_core::{Name, QueueId};

use crate::clock::wall_ms;
use crate::house::{House, Slice};
use crate::shared::Shared;
use crate::users::{Deed, User};

/// The flows as the console follows them: without their texts, and no more than a page can show.
#[derive(Serialize)]
pub(crate) struct Live {
    /// Members whose clients, and whose queues' jobs in hand, are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Vec<u64>>,
    now_ms: u64,
    pub(super) flows: Vec<Flow>,
    /// How many flows are left out.
    more: usize,
}

#[derive(Serialize)]
pub(super) struct Flow {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The mark of its text, for `FLOW APPLY … OVER`.
    mark: String,
    queues: Vec<Queue>,
    processes: Vec<Process>,
    arrows: Vec<Arrow>,
}

#[derive(Serialize)]
struct Queue {
    name: String,
    /// The member that owns it. It knows which jobs are held; to others they all seem to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<u64>,
    limit: Option<u64>,
    retries: u32,
    reject: Option<String>,
    waiting: u64,
    held: u64,
    takers: usize,
    /// How long the next job has been there.
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
    /// The maximum number of clients.
    limit: Option<u32>,
    /// How many connections have presented themselves as this process.
    clients: usize,
}

/// A process and a queue, and the jobs that went between them.
#[derive(Serialize)]
struct Arrow {
    process: String,
    queue: String,
    /// Whether the process puts jobs into the queue; otherwise it takes them out.
    into: bool,
    /// Since the node started.
    count: u64,
    /// Over the last seconds.
    per_second: f64,
}

/// Cap on counted takers of a queue.
const TAKERS_COUNTED: usize = 1_000;

/// A queue, or a process with its arrows, is as much work as this many rows of a plain list.
const ROW_WEIGHT: usize = 4;

/// Cap on queues and processes that are shown live, over all flows.
const LIVE_MAX: usize = 2_000;

/// The flows that a user may see, by name: all of them, or as many as are shown live; `None` if the node stops.
pub(super) fn flows_of(shared: &Shared, whole: bool, user: &Arc<User>) -> Option<Live> {
    let mut maker = FlowsMaker::new(Arc::clone(user), whole);
    shared.in_slices(move |house, slice| maker.slice(house, slice))
}

/// Makes the flows, one slice at a time.
pub(crate) struct FlowsMaker {
    user: Arc<User>,
    /// Whether all of them are wanted, with their texts.
    whole: bool,
    last: Option<Name>,
    clients: Option<Clients>,
    flows: Vec<Flow>,
    size: usize,
    more: usize,
}

impl FlowsMaker {
    pub(crate) fn new(user: Arc<User>, whole: bool) -> FlowsMaker {
        FlowsMaker {
            user,
            whole,
            last: None,
            clients: None,
            flows: Vec::new(),
            size: 0,
            more: 0,
        }
    }

    pub(crate) fn slice(&mut self, house: &House, slice: &mut Slice) -> Option<Live> {
        let clients = self.clients.get_or_insert_with(|| Clients::of(house));
        for (name, flow) in house.replicated().flows_after(self.last.take().as_ref()) {
            if self.user.may(Deed::Show, name) {
                let size = flow.scheme.queues.len() + flow.scheme.processes.len();
                self.size += size;
                match self.whole || self.size <= LIVE_MAX {
                    true => {
                        slice.spend(ROW_WEIGHT * size);
                        let made = flow_of(house, name, flow, clients, self.whole);
                        self.flows.push(made);
                    }
                    false => self.more += 1,
                }
            }
            slice.spend(1);
            if !slice.has_room() {
                self.last = Some(name.clone());
                return None;
            }
        }
        Some(Live {
            missing: house.member_number().map(|_| house.other_members()),
            now_ms: house.now(),
            flows: std::mem::take(&mut self.flows),
            more: self.more,
        })
    }
}

/// How many connections have presented themselves as which process of which flow.
struct Clients(BTreeMap<(Name, Name), usize>);

impl Clients {
    fn of(house: &House) -> Clients {
        let mut clients = BTreeMap::new();
        let presented = house
            .connections
            .iter()
            .filter_map(|c| c.presented.as_ref());
        for who in presented {
            let process = (who.flow.clone(), who.process.clone());
            *clients.entry(process).or_default() += 1;
        }
        Clients(clients)
    }

    fn count(&self, flow: &Name, process: &Name) -> usize {
        let process = (flow.clone(), process.clone());
        self.0.get(&process).copied().unwrap_or(0)
    }
}

fn flow_of(
    house: &House,
    name: &Name,
    flow: &testigo_core::Flow,
    clients: &Clients,
    with_text: bool,
) -> Flow {
    let queues = flow.queues();
    let processes = flow.scheme.processes.iter();
    Flow {
        name: name.to_string(),
        text: with_text.then(|| flow.text.to_string()),
        mark: flow.mark().to_string(),
        queues: queues.filter_map(|(_, id)| queue(house, id)).collect(),
        processes: processes
            .map(|(process, role)| Process {
                name: process.to_string(),
                creates: words(&role.creates),
                takes: words(&role.takes),
                passes: words(&role.passes),
                deletes: words(&role.deletes),
                limit: role.limit,
                clients: clients.count(name, process),
            })
            .collect(),
        arrows: house
            .arrows_of(name, flow)
            .map(|(process, queue, into, arrow)| {
                let counted = arrow.map(|arrow| house.stats().arrows.counted(house.now(), arrow));
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

fn queue(house: &House, id: QueueId) -> Option<Queue> {
    let queue = house.replicated().queue(id)?;
    let view = house.local().queue_view(id, TAKERS_COUNTED)?;
    let next = view.next.and_then(|job| house.replicated().job(job).ok());
    let waiting = view.waiting as u64;
    let totals = house.stats().totals(id);
    let (arrivals, departures) = house.stats().rates(house.now(), id);
    Some(Queue {
        name: queue.name.to_string(),
        owner: house.owner_number(queue.shard()),
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
