//! A system in a situation with so many clients, and its rounds.

use super::systems::{Situation, System};
use crate::tally::{Tally, median};

pub(super) struct Series {
    pub(super) system: System,
    pub(super) situation: Situation,
    pub(super) clients: usize,
    pub(super) tallies: Vec<Tally>,
}

impl Series {
    /// How much more one did than the other: the median of the rounds' ratios. Nothing if they were not measured.
    pub(super) fn ratio(
        all: &[Series],
        situation: Situation,
        clients: usize,
        one: System,
        other: System,
    ) -> Option<f64> {
        let find = |system| {
            all.iter().find(|series| {
                (series.situation, series.clients, series.system) == (situation, clients, system)
            })
        };
        let pairs = find(one)?.tallies.iter().zip(&find(other)?.tallies);
        Some(median(pairs.map(|(one, other)| one.rate() / other.rate())))
    }

    pub(super) fn print_all(all: &[Series]) {
        let mut before = None;
        for series in all {
            let here = (series.situation, series.clients);
            if before.replace(here) != Some(here) {
                println!(
                    "{:<34} {:>9} {:>19} {:>9} {:>9} {:>9} {:>7} {:>6}",
                    format!(
                        "{}, {} CLIENTS",
                        series.situation.name().to_uppercase(),
                        series.clients
                    ),
                    "PER S",
                    "LEAST … MOST",
                    "P50 µs",
                    "P99 µs",
                    "P99.9 µs",
                    "BYPASS",
                    "JAIN"
                );
            }
            series.print();
        }
    }

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
        let bypass = match self.situation {
            Situation::Contended => all.bypass.to_string(),
            _ => "-".to_owned(),
        };
        println!(
            "{:<34} {:>9.0} {least:>8.0} … {most:>8.0} {p50:>9.0} {p99:>9.0} {p999:>9.0} {bypass:>7} {jain:>6.3}",
            self.system.name(),
            median(rates),
        );
    }
}
