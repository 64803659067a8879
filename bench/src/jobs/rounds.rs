//! The rounds of a run: every system once a round with each number of clients, the disk before and after each, and what
//! came of them together.

use std::time::Duration;

use super::generator::Load;
use super::systems::{System, Systems};
use crate::disk::flushes_per_second;
use crate::tally::{Tally, median};

pub(crate) const CLIENTS: [usize; 2] = [16, 128];

const WARM_UP: Duration = Duration::from_millis(200);
const DISK: Duration = Duration::from_millis(500);
/// How long a job may be nowhere to be found.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A system with so many clients, and its rounds.
struct Series {
    system: System,
    clients: usize,
    tallies: Vec<Tally>,
}

pub(crate) struct Rounds {
    span: Duration,
    series: Vec<Series>,
    /// Flushes a second: before the first round, and after each.
    flushes: Vec<f64>,
}

impl Rounds {
    pub(crate) fn new(span: Duration, systems: &Systems) -> Result<Rounds, String> {
        let mut series = Vec::new();
        for clients in CLIENTS {
            series.extend(systems.all().into_iter().map(|system| Series {
                system,
                clients,
                tallies: Vec::new(),
            }));
        }
        Ok(Rounds {
            span,
            series,
            flushes: vec![flushes_per_second(DISK)?],
        })
    }

    /// Every system once, in turn.
    pub(crate) fn one(&mut self, systems: &Systems) -> Result<(), String> {
        let load = Load {
            warm_up: WARM_UP,
            span: self.span,
            patience: PATIENCE,
        };
        for series in &mut self.series {
            let outcome = systems.measure(series.system, series.clients, load)?;
            series.tallies.push(outcome.tally);
        }
        self.flushes.push(flushes_per_second(DISK)?);
        Ok(())
    }

    /// How much more one did than the other: the median of the rounds' ratios.
    pub(crate) fn ratio(&self, clients: usize, one: System, other: System) -> f64 {
        let (one, other) = (self.rates(one, clients), self.rates(other, clients));
        median(one.zip(other).map(|(one, other)| one / other))
    }

    /// How much of what is possible the product did: the smaller of perfect batching, where every flush serves all
    /// clients and a loop waits for two, and of the bare command rate.
    pub(crate) fn of_possible(&self, clients: usize) -> f64 {
        let pings = self.rates(System::TestigoPing, clients);
        let possible = self.batching(clients).zip(pings).map(|(b, p)| b.min(p));
        let rates = self.rates(System::Testigo, clients);
        median(rates.zip(possible).map(|(rate, possible)| rate / possible))
    }

    /// In words, for the table of bars.
    pub(crate) fn possible(&self, clients: usize) -> String {
        let batching = median(self.batching(clients));
        let pings = median(self.rates(System::TestigoPing, clients));
        let bare = median(self.rates(System::BareLog, clients));
        format!(
            "perfect batching {batching:.0}/s, three PINGs {pings:.0}/s, a bare log {bare:.0}/s"
        )
    }

    fn batching(&self, clients: usize) -> impl Iterator<Item = f64> {
        let flushes = self.flushes.windows(2).map(|two| (two[0] + two[1]) / 2.0);
        flushes.map(move |flushes| clients as f64 * flushes / 2.0)
    }

    fn rates(&self, system: System, clients: usize) -> impl Iterator<Item = f64> {
        let series = self.series.iter();
        let mut found = series.filter(move |s| s.system == system && s.clients == clients);
        let tallies = found.next().map_or(&[][..], |series| &series.tallies);
        tallies.iter().map(Tally::rate)
    }

    pub(crate) fn print(&self) {
        let show = |flushes: Option<&f64>| flushes.map_or("?".to_owned(), |f| format!("{f:.0}"));
        println!(
            "the disk: {} flushes/s before, {} after, {:.0} in the middle of all rounds",
            show(self.flushes.first()),
            show(self.flushes.last()),
            median(self.flushes.iter().copied()),
        );
        for clients in CLIENTS {
            println!(
                "{:<34} {:>9} {:>19} {:>9} {:>9} {:>9} {:>6}",
                format!("{clients} CLIENTS"),
                "LOOPS/S",
                "LEAST … MOST",
                "P50 µs",
                "P99 µs",
                "P99.9 µs",
                "JAIN"
            );
            let series = self.series.iter().filter(|s| s.clients == clients);
            series.for_each(Series::print);
        }
    }
}

impl Series {
    fn print(&self) {
        let rates: Vec<f64> = self.tallies.iter().map(Tally::rate).collect();
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        let mut all = Tally::default();
        for tally in &self.tallies {
            all.add(tally);
        }
        let [p50, p99, p999] = all.quantiles([0.5, 0.99, 0.999]);
        let jain = median(self.tallies.iter().map(Tally::jain));
        println!(
            "{:<34} {:>9.0} {least:>8.0} … {most:>8.0} {p50:>9.0} {p99:>9.0} {p999:>9.0} {jain:>6.3}",
            self.system.name(),
            median(rates),
        );
    }
}
