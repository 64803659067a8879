//! A load from what was measured while a flow ran. What was not seen is filled in, and said.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Arrivals, Distribution, Load, WORKERS_MAX, Work};
use crate::{Flow, Name};

/// What was counted in some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// How long was counted.
    pub seconds: f64,
    pub queues: BTreeMap<Name, MeasuredQueue>,
    pub processes: BTreeMap<Name, MeasuredProcess>,
}

/// What was seen coming into a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredQueue {
    /// How long it was counted: less than the flow, if it came later.
    pub seconds: f64,
    /// Jobs that were created into it.
    pub created: u64,
}

/// What a process was seen doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredProcess {
    pub workers: u32,
    /// Jobs that it had in hand and has no longer.
    pub ended: u64,
    pub deleted: u64,
    pub given_back: u64,
    pub died: u64,
    /// The mean time that it had one in hand, in seconds, and the variance over the square of it.
    pub service: f64,
    pub variability: f64,
    /// By queue: how many jobs it passed there.
    pub ways: BTreeMap<Name, u64>,
}

impl Measured {
    /// The load that was seen, and in sentences what had to be guessed.
    pub fn load(&self, flow: &Flow) -> (Load, Vec<String>) {
        let (mut load, mut notes) = (Load::default(), Vec::new());
        for (queue, seen) in &self.queues {
            let count = seen.created;
            let rate = count as f64 / seen.seconds.max(1e-3);
            let creates = |(_, process): &(&Name, &crate::Process)| process.creates.contains(queue);
            match flow.processes.iter().find(creates) {
                _ if count == 0 => {}
                Some((process, _)) => {
                    let rate = Arrivals::Rate(rate);
                    load.creates.insert((process.clone(), queue.clone()), rate);
                }
                None => notes.push(format!(
                    "{count} jobs were created by hand into [{queue}], where no process creates: they are left out"
                )),
            }
        }
        if load.creates.is_empty() {
            notes.push("no job was created in this time, so nothing arrives".into());
        }
        let takers = flow.processes.iter();
        for (name, process) in takers.filter(|(_, process)| !process.takes.is_empty()) {
            let seen = self.processes.get(name).cloned().unwrap_or_default();
            if seen.ended == 0 {
                notes.push(format!(
                    "{name} was not seen working: it is taken as one worker that needs no time"
                ));
            }
            if seen.given_back > 0 {
                notes.push(format!(
                    "{name} gave {} jobs back: each counts as work, and as taken once",
                    seen.given_back
                ));
            }
            let mut work = seen.work();
            if let Some(limit) = process.limit
                && work.workers > limit
            {
                notes.push(format!(
                    "{name} had {} workers, and the flow allows it {limit}: {limit} are taken",
                    work.workers
                ));
                work.workers = limit;
            }
            load.works.insert(name.clone(), work);
            let routes: BTreeMap<Name, f64> = seen
                .ways
                .iter()
                .filter(|(queue, count)| **count > 0 && flow.queues.contains_key(*queue))
                .map(|(queue, count)| (queue.clone(), *count as f64))
                .collect();
            if !routes.is_empty() {
                load.routes.insert(name.clone(), routes);
            }
            if seen.deleted > 0 {
                load.deletes.insert(name.clone(), seen.deleted as f64);
            }
        }
        (load, notes)
    }
}

impl MeasuredProcess {
    fn work(&self) -> Work {
        let deaths = self.died as f64 / self.ended.max(1) as f64;
        Work {
            service: Distribution::fitted(self.service, self.variability),
            workers: self.workers.clamp(1, WORKERS_MAX),
            // A process that always dies would never end.
            deaths: deaths.min(0.99),
            restart: Distribution::Fixed(0.0),
        }
    }
}

impl Distribution {
    /// A time with this mean and variability: fixed, Erlang, exponential, or mixed of two (with balanced means).
    pub fn fitted(mean: f64, variability: f64) -> Distribution {
        const STEPS_MOST: f64 = 100.0;
        if mean <= 0.0 || variability < 1.0 / STEPS_MOST {
            return Distribution::Fixed(mean.max(0.0));
        }
        // Fewer than two steps are none.
        if variability < 2.0 / 3.0 {
            return Distribution::Erlang((1.0 / variability).round() as u32, mean);
        }
        if variability <= 1.25 {
            return Distribution::Exponential(mean);
        }
        let often = (1.0 + ((variability - 1.0) / (variability + 1.0)).sqrt()) / 2.0;
        let (short, long) = (mean / (2.0 * often), mean / (2.0 * (1.0 - often)));
        Distribution::Mixed(often, short, long)
    }
}

impl Load {
    /// The load as a text that [`Load::parse`] reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for ((process, queue), created) in &self.creates {
            let _ = match created {
                Arrivals::Rate(rate) => writeln!(text, "create {process} -> [{queue}] {rate}/s"),
                Arrivals::Every(time) => {
                    writeln!(text, "create {process} -> [{queue}] every {time}")
                }
            };
        }
        for (process, work) in &self.works {
            let _ = write!(
                text,
                "work {process} {} workers {}",
                work.service, work.workers
            );
            if work.deaths > 0.0 {
                let _ = write!(text, " deaths {} restart {}", work.deaths, work.restart);
            }
            text.push('\n');
        }
        for (process, routes) in &self.routes {
            for (queue, weight) in routes {
                let _ = writeln!(text, "route {process} -> [{queue}] {weight}");
            }
        }
        for (process, weight) in &self.deletes {
            let _ = writeln!(text, "route {process} delete {weight}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn a_fitted_time_has_the_mean_and_the_spread_that_were_seen() {
        for (variability, slack) in [
            (0.0, 0.0),
            (0.25, 0.001),
            (0.5, 0.001),
            (1.0, 0.0),
            (4.0, 1e-9),
        ] {
            let fitted = Distribution::fitted(2.0, variability);
            assert!((fitted.mean() - 2.0).abs() < 1e-9, "{fitted}");
            assert!(
                (fitted.variability() - variability).abs() <= slack,
                "{fitted}"
            );
        }
    }

    #[test]
    fn what_was_seen_becomes_a_load_that_can_be_written_and_read() {
        let flow = "intake -> [orders] -> price -> [priced] -> bill\nintake -> [orders] -> price -> [odd] -> mend -> [orders] -> price -> [priced] -> bill\n";
        let flow = parse(flow).expect("a flow");
        let name = |text: &str| Name::new(text).expect("a name");
        let price = MeasuredProcess {
            workers: 3,
            ended: 100,
            died: 1,
            service: 0.5,
            variability: 1.0,
            ways: BTreeMap::from([(name("priced"), 80), (name("odd"), 19)]),
            ..MeasuredProcess::default()
        };
        let bill = MeasuredProcess {
            workers: 1,
            ended: 80,
            deleted: 80,
            service: 0.1,
            ..MeasuredProcess::default()
        };
        let seen = |created| MeasuredQueue {
            seconds: 100.0,
            created,
        };
        let measured = Measured {
            seconds: 100.0,
            queues: BTreeMap::from([(name("orders"), seen(81)), (name("odd"), seen(5))]),
            processes: BTreeMap::from([(name("price"), price), (name("bill"), bill)]),
        };
        let (load, notes) = measured.load(&flow);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("5 jobs were created by hand into [odd]"));
        assert!(notes[1].starts_with("mend was not seen working"));
        assert_eq!(
            load.text().lines().next(),
            Some("create intake -> [orders] 0.81/s")
        );
        assert_eq!(Load::parse(&load.text(), &flow).expect("a load"), load);
        let forecast = crate::model(&flow, &load, 0.8).expect("it ends");
        let price = &forecast.processes[2];
        // 0.81 new jobs, and 19 of 99 come round again, each taken 1 / 0.99 times.
        assert!(
            (price.taken - 0.81 / (1.0 - 19.0 / 99.0) / 0.99).abs() < 1e-9,
            "{price:?}"
        );
    }
}
