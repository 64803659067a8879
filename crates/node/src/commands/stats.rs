//! `FLOW STATS`: how a flow is doing, by queue and by process.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use testigo_core::{Name, QueueId};

use super::table::{Answered, Outcome};
use crate::house::{Answer, ClientId, House};
use crate::stats::{Histogram, ProcessKey, ProcessSums, QueueSums, Sums, window_start};
use crate::wire::{Reply, Words, encode, encode_pair, map_head};

/// The period if none is given, in milliseconds.
const SINCE_DEFAULT_MS: u64 = 3_600_000;

/// A queue's or a process's row adds up many counts: it is as much work as this many rows of a plain list.
const ROW_WEIGHT: usize = 20;

/// The period of the counts.
#[derive(Clone, Copy)]
struct Window {
    /// Its beginning, at a whole minute or hour.
    start: u64,
    /// The same, but no earlier than the flow, before which there was nothing to count.
    from: u64,
}

/// What all processes have done since a time and are still doing, computed once for all of them.
struct Hands {
    /// How many workers there are, and their total time.
    present: FxHashMap<ProcessKey, (u64, u64)>,
    /// How long they have held their jobs in hand.
    busy: FxHashMap<ProcessKey, u64>,
    ways: FxHashMap<ProcessKey, Vec<(QueueId, u64)>>,
}

/// How a flow is doing at one node, for another node to add to its own counts.
#[derive(Serialize, Deserialize)]
pub(crate) struct FlowSums {
    name: String,
    since_ms: u64,
    /// The queues that the node owns.
    queues: Vec<QueueRow>,
    processes: Vec<ProcessRow>,
}

#[derive(Serialize, Deserialize)]
struct QueueRow {
    name: String,
    limit: Option<u64>,
    waiting: u64,
    held: u64,
    since_ms: u64,
    sums: QueueSums,
}

#[derive(Serialize, Deserialize)]
struct ProcessRow {
    name: String,
    workers: u64,
    sums: ProcessSums,
    /// How many jobs it has passed to which queues.
    ways: Vec<(String, u64)>,
}

impl House {
    /// `FLOW STATS name [SINCE ms]`.
    pub(super) fn flow_stats(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let name = words.text("the flow's name")?;
        let span_ms = match words.keyword("SINCE") {
            true => words.number("SINCE")?,
            false => SINCE_DEFAULT_MS,
        };
        words.end()?;
        self.see_flow(id, name)?;
        let flow = self.replicated().flow(name)?;
        let flow_name = Name::new(name)?;
        let start = window_start(self.now(), span_ms);
        let window = Window {
            start,
            from: start.max(self.stats().flow_begun(&flow_name)),
        };
        let queues = flow.queues().map(|(name, id)| (name.clone(), id));
        let mut queues: VecDeque<(Name, QueueId)> =
            queues.filter(|(_, id)| self.owns_queue(*id)).collect();
        let mut processes: VecDeque<Name> = flow.scheme.processes.keys().cloned().collect();
        let hands = self.hands_since(window);
        let (now, protocol) = (self.now(), self.connections[id].protocol);
        let since_ms = now - window.from;
        let (mut of_queues, mut of_processes) = (self.rows_for(id), self.rows_for(id));
        let mut sums = self.connections[id].is_visit().then(|| FlowSums {
            name: name.to_owned(),
            since_ms,
            queues: Vec::new(),
            processes: Vec::new(),
        });
        self.in_slices(id, move |house, slice| {
            while slice.has_room() {
                slice.spend(ROW_WEIGHT);
                if let Some((name, queue)) = queues.pop_front() {
                    let row = house.queue_stats(&name, queue, now, window);
                    match &mut sums {
                        Some(sums) => sums.queues.extend(row),
                        None => of_queues.extend(row.map(|row| row.reply())),
                    }
                } else if let Some(process) = processes.pop_front() {
                    let key = house.stats().key(&flow_name, &process);
                    let row = house.process_stats(&process, key, &hands, window);
                    match &mut sums {
                        Some(sums) => sums.processes.push(row),
                        None => of_processes.push(&row.reply(since_ms)),
                    }
                } else if let Some(sums) = &sums {
                    let text = serde_json::to_string(sums).unwrap_or_default();
                    return Ok(Some(Answer::Reply(Reply::text(text))));
                } else {
                    let mut whole = map_head(4, protocol);
                    let name = Reply::text(flow_name.as_str());
                    encode_pair("name", &name, protocol, &mut whole);
                    encode_pair("since_ms", &Reply::number(since_ms), protocol, &mut whole);
                    encode(&Reply::text("queues"), protocol, &mut whole);
                    whole = of_queues.array_behind(whole);
                    encode(&Reply::text("processes"), protocol, &mut whole);
                    return Ok(Some(Answer::Written(of_processes.array_behind(whole))));
                }
            }
            Ok(None)
        })?;
        Ok(Answered::Later)
    }

    fn queue_stats(&self, name: &Name, id: QueueId, now: u64, window: Window) -> Option<QueueRow> {
        let queue = self.replicated().queue(id)?;
        let waiting = self.local().queue_view(id, 0)?.waiting as u64;
        let begun = window.from.max(self.stats().queue_begun(id));
        Some(QueueRow {
            name: name.to_string(),
            limit: queue.rule.limit,
            waiting,
            held: queue.jobs.saturating_sub(waiting),
            since_ms: now.saturating_sub(begun),
            sums: self.stats().queue_since(id, window.start),
        })
    }

    fn hands_since(&self, window: Window) -> Hands {
        let mut present: FxHashMap<ProcessKey, (u64, u64)> = FxHashMap::default();
        for worker in self.connections.iter().filter_map(|client| client.worker) {
            let (workers, ms) = present.entry(worker.process).or_default();
            *workers += 1;
            *ms += self.now() - worker.since.max(window.from);
        }
        Hands {
            present,
            busy: self.stats().in_hand(self.now(), window.from),
            ways: self.stats().arrows.passed_since(window.start),
        }
    }

    fn process_stats(
        &self,
        process: &Name,
        key: Option<ProcessKey>,
        hands: &Hands,
        window: Window,
    ) -> ProcessRow {
        let mut sums = key.map_or_else(ProcessSums::default, |key| {
            self.stats().process_since(key, window.start)
        });
        let present = key.and_then(|key| hands.present.get(&key));
        let (workers, present_ms) = present.copied().unwrap_or_default();
        sums.present_ms += present_ms;
        sums.busy_ms += key.and_then(|key| hands.busy.get(&key)).unwrap_or(&0);
        let ways = key.and_then(|key| hands.ways.get(&key));
        let ways = ways.into_iter().flatten().filter_map(|(queue, passed)| {
            let name = &self.replicated().queue(*queue)?.name;
            Some((name.to_string(), *passed))
        });
        ProcessRow {
            name: process.to_string(),
            workers,
            sums,
            ways: ways.collect(),
        }
    }
}

impl QueueRow {
    fn reply(&self) -> Reply {
        let sums = &self.sums;
        let seconds = self.since_ms.max(1) as f64 / 1000.0;
        let mut row = vec![
            ("name", Reply::text(self.name.as_str())),
            ("limit", Reply::optional(self.limit, Reply::number)),
            ("waiting", Reply::number(self.waiting)),
            ("held", Reply::number(self.held)),
            ("since_ms", Reply::number(self.since_ms)),
            ("arrivals", Reply::number(sums.arrivals)),
            ("created", Reply::number(sums.created)),
            ("departures", Reply::number(sums.departures)),
            ("deaths", Reply::number(sums.deaths)),
            ("rejects", Reply::number(sums.rejects)),
            ("full", Reply::number(sums.full)),
            (
                "arrivals_per_second",
                Reply::real(sums.arrivals as f64 / seconds),
            ),
            (
                "departures_per_second",
                Reply::real(sums.departures as f64 / seconds),
            ),
        ];
        row.extend(times(&sums.waiting, WAITED));
        Reply::Map(row)
    }
}

impl ProcessRow {
    fn reply(&self, since_ms: u64) -> Reply {
        let sums = &self.sums;
        let since_ms = since_ms.max(1) as f64;
        let used = (sums.present_ms > 0).then(|| sums.busy_ms as f64 / sums.present_ms as f64);
        let ways = self.ways.iter().map(|(queue, passed)| {
            Reply::Map(vec![
                ("queue", Reply::text(queue.as_str())),
                ("passed", Reply::number(*passed)),
            ])
        });
        let mut row = vec![
            ("name", Reply::text(self.name.as_str())),
            ("workers", Reply::number(self.workers)),
            (
                "workers_mean",
                Reply::real(sums.present_ms as f64 / since_ms),
            ),
            ("ended", Reply::number(sums.service.count)),
            ("passed", Reply::number(sums.passed)),
            ("deleted", Reply::number(sums.deleted)),
            ("given_back", Reply::number(sums.given_back)),
            ("died", Reply::number(sums.died)),
            ("busy_ms", Reply::number(sums.busy_ms)),
            ("present_ms", Reply::number(sums.present_ms)),
            ("utilisation", Reply::optional(used, Reply::real)),
        ];
        row.extend(times(&sums.service, WORKED));
        let spread = sums.service.variability();
        row.push(("service_variability", Reply::optional(spread, Reply::real)));
        row.push(("ways", Reply::Array(ways.collect())));
        Reply::Map(row)
    }

    /// Adds what the process did at another node.
    fn add(&mut self, other: ProcessRow) {
        self.workers = self.workers.saturating_add(other.workers);
        self.sums.add(&other.sums);
        for (queue, passed) in other.ways {
            match self.ways.iter_mut().find(|(known, _)| *known == queue) {
                Some((_, sum)) => *sum = sum.saturating_add(passed),
                None => self.ways.push((queue, passed)),
            }
        }
    }
}

impl FlowSums {
    /// Adds how the flow is doing at another node.
    pub(crate) fn add(&mut self, other: FlowSums) {
        self.since_ms = self.since_ms.max(other.since_ms);
        for queue in other.queues {
            // Unless the queue changed hands between two answers and is here already.
            if self.queues.iter().all(|known| known.name != queue.name) {
                self.queues.push(queue);
            }
        }
        for process in other.processes {
            let known = self.processes.iter_mut();
            match known.into_iter().find(|known| known.name == process.name) {
                Some(known) => known.add(process),
                None => self.processes.push(process),
            }
        }
    }

    /// The reply to `FLOW STATS`.
    pub(crate) fn reply(mut self) -> Reply {
        self.queues.sort_by(|one, other| one.name.cmp(&other.name));
        let queues = self.queues.iter().map(QueueRow::reply);
        let processes = self.processes.iter();
        let processes = processes.map(|process| process.reply(self.since_ms));
        Reply::Map(vec![
            ("name", Reply::text(self.name.as_str())),
            ("since_ms", Reply::number(self.since_ms)),
            ("queues", Reply::Array(queues.collect())),
            ("processes", Reply::Array(processes.collect())),
        ])
    }
}

const WAITED: [&str; 4] = ["wait_mean_ms", "wait_p50_ms", "wait_p99_ms", "wait_max_ms"];
const WORKED: [&str; 4] = [
    "service_mean_ms",
    "service_p50_ms",
    "service_p99_ms",
    "service_max_ms",
];

/// Mean, median, 99th percentile and maximum; null if there was none.
fn times(times: &Histogram, names: [&'static str; 4]) -> [(&'static str, Reply); 4] {
    let [mean, half, most, max] = names;
    let share = |share| Reply::optional(times.percentile_ms(share), Reply::real);
    let longest = (times.count > 0).then_some(times.max_ms);
    [
        (mean, Reply::optional(times.mean_ms(), Reply::real)),
        (half, share(0.5)),
        (most, share(0.99)),
        (max, Reply::optional(longest, Reply::number)),
    ]
}
