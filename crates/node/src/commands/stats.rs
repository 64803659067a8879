//! `FLOW STATS`: how a flow has been doing, by queue and by process.

use rustc_hash::FxHashMap;
use testigo_core::{Name, QueueId};

use super::table::{Answered, Outcome};
use crate::house::{ClientId, House};
use crate::stats::{Histogram, ProcessKey, ProcessSums, window_start};
use crate::wire::{Reply, Words};

/// How far back, if it is not said.
const SINCE_DEFAULT_MS: u64 = 3_600_000;

/// The time that is counted.
#[derive(Clone, Copy)]
struct Window {
    /// Where the counts begin: at a whole minute or hour.
    start: u64,
    /// The same, but not before the flow: before it there was nothing to count.
    from: u64,
}

/// What all processes have done since a time and still do, looked up once for all of them.
struct Hands {
    /// How many workers are there, and for how long together.
    present: FxHashMap<ProcessKey, (u64, u64)>,
    /// How long they have had what they have in hand.
    busy: FxHashMap<ProcessKey, u64>,
    ways: FxHashMap<ProcessKey, Vec<(QueueId, u64)>>,
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
        let flow = self.replicated.flow(name)?;
        let flow_name = Name::new(name)?;
        let start = window_start(self.now, span_ms);
        let window = Window {
            start,
            from: start.max(self.stats.flow_begun(&flow_name)),
        };
        let queues = flow.queues();
        let queues = queues.filter_map(|(name, queue)| self.queue_stats(name, queue, window));
        let hands = self.hands_since(window);
        let processes = flow.scheme.processes.keys();
        let processes = processes.map(|process| {
            let key = self.stats.key(&flow_name, process);
            self.process_stats(process, key, &hands, window)
        });
        Ok(Answered::Now(Reply::Map(vec![
            ("name", Reply::text(name)),
            ("since_ms", Reply::number(self.now - window.from)),
            ("queues", Reply::Array(queues.collect())),
            ("processes", Reply::Array(processes.collect())),
        ])))
    }

    fn queue_stats(&self, name: &Name, id: QueueId, window: Window) -> Option<Reply> {
        let queue = self.replicated.queue(id)?;
        let waiting = self.local.queue_view(id, 0)?.waiting as u64;
        let sums = self.stats.queue_since(id, window.start);
        let since_ms = self.now - window.from.max(self.stats.queue_begun(id));
        let seconds = since_ms.max(1) as f64 / 1000.0;
        let mut row = vec![
            ("name", Reply::text(name.as_str())),
            ("limit", Reply::optional(queue.rule.limit, Reply::number)),
            ("waiting", Reply::number(waiting)),
            ("held", Reply::number(queue.jobs - waiting)),
            ("since_ms", Reply::number(since_ms)),
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
        Some(Reply::Map(row))
    }

    fn hands_since(&self, window: Window) -> Hands {
        let mut present: FxHashMap<ProcessKey, (u64, u64)> = FxHashMap::default();
        for worker in self.clients.values().filter_map(|client| client.worker) {
            let (workers, ms) = present.entry(worker.process).or_default();
            *workers += 1;
            *ms += self.now - worker.since.max(window.from);
        }
        Hands {
            present,
            busy: self.stats.in_hand(self.now, window.from),
            ways: self.stats.arrows.passed_since(window.start),
        }
    }

    fn process_stats(
        &self,
        process: &Name,
        key: Option<ProcessKey>,
        hands: &Hands,
        window: Window,
    ) -> Reply {
        let mut sums = key.map_or_else(ProcessSums::default, |key| {
            self.stats.process_since(key, window.start)
        });
        let present = key.and_then(|key| hands.present.get(&key));
        let (workers, present_ms) = present.copied().unwrap_or_default();
        sums.present_ms += present_ms;
        sums.busy_ms += key.and_then(|key| hands.busy.get(&key)).unwrap_or(&0);
        let window_ms = (self.now - window.from).max(1) as f64;
        let used = (sums.present_ms > 0).then(|| sums.busy_ms as f64 / sums.present_ms as f64);
        let ways = key.and_then(|key| hands.ways.get(&key));
        let ways = ways.into_iter().flatten().filter_map(|(queue, passed)| {
            let name = &self.replicated.queue(*queue)?.name;
            Some(Reply::Map(vec![
                ("queue", Reply::text(name.as_str())),
                ("passed", Reply::number(*passed)),
            ]))
        });
        let mut row = vec![
            ("name", Reply::text(process.as_str())),
            ("workers", Reply::number(workers)),
            (
                "workers_mean",
                Reply::real(sums.present_ms as f64 / window_ms),
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
}

const WAITED: [&str; 4] = ["wait_mean_ms", "wait_p50_ms", "wait_p99_ms", "wait_max_ms"];
const WORKED: [&str; 4] = [
    "service_mean_ms",
    "service_p50_ms",
    "service_p99_ms",
    "service_max_ms",
];

/// Mean, median, 99th percentile and the longest; null when there was none.
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
