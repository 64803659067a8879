//! The rounds of a run: every system once a round, and what came of them together.

use std::time::Duration;

use super::generator::Load;
use super::systems::{System, Systems};
use crate::tally::{Tally, median};

const WARM_UP: Duration = Duration::from_millis(60);

/// A system in a situation, with its rounds.
struct Series {
    system: System,
    contended: bool,
    tallies: Vec<Tally>,
}

pub(crate) struct Rounds {
    span: Duration,
    series: Vec<Series>,
}

impl Rounds {
    pub(crate) fn new(span: Duration, distinct: &[System], contended: &[System]) -> Rounds {
        let series = |contended| {
            move |system: &System| Series {
                system: *system,
                contended,
                tallies: Vec::new(),
            }
        };
        let distinct = distinct.iter().map(series(false));
        Rounds {
            span,
            series: distinct.chain(contended.iter().map(series(true))).collect(),
        }
    }

    /// Every system once, in turn.
    pub(crate) fn one(&mut self, systems: &Systems) -> Result<(), String> {
        for series in &mut self.series {
            let load = Load {
                contended: series.contended,
                slots: false,
                warm_up: WARM_UP,
                span: self.span,
            };
            series.tallies.push(systems.measure(series.system, load)?);
        }
        Ok(())
    }

    /// How much more one did than the other: the median of the rounds' ratios.
    pub(crate) fn ratio(&self, contended: bool, one: System, other: System) -> f64 {
        let rates = |system| {
            let series = self.series.iter();
            let mut found = series.filter(|s| s.system == system && s.contended == contended);
            found.next().map_or(&[][..], |series| &series.tallies)
        };
        let pairs = rates(one).iter().zip(rates(other));
        median(pairs.map(|(one, other)| one.rate() / other.rate()))
    }

    pub(crate) fn print(&self) {
        for (contended, title) in [(false, "DISTINCT GATES"), (true, "ONE CONTENDED GATE")] {
            let mut series = self.series.iter().filter(|s| s.contended == contended);
            let Some(first) = series.next() else {
                continue;
            };
            println!(
                "{title:<34} {:>9} {:>19} {:>9} {:>9} {:>9} {:>7} {:>6}",
                "PAIRS/S", "LEAST … MOST", "P50 µs", "P99 µs", "P99.9 µs", "BYPASS", "JAIN"
            );
            first.print();
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
        let bypass = match self.contended {
            true => all.bypass.to_string(),
            false => "-".to_owned(),
        };
        println!(
            "{:<34} {:>9.0} {:>8.0} … {:>8.0} {p50:>9.0} {p99:>9.0} {p999:>9.0} {bypass:>7} {jain:>6.3}",
            self.system.name(),
            median(rates),
            least,
            most,
        );
    }
}
