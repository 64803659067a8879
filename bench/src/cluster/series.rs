//! A system in a situation with so many clients, and its rounds.

use super::systems::{Situation, System};
use crate::tally::{Tally, median};

/// What a gate has that names none.
const BURST: u32 = 4;

pub(super) struct Series {
    pub(super) system: System,
    pub(super) situation: Situation,
    pub(super) clients: usize,
    pub(super) tallies: Vec<Tally>,
    /// Messages between nodes and hand-overs in each round, warm-up included, where ownership travels by an algorithm.
    pub(super) travelled: Vec<[u64; 2]>,
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
        if !self.travelled.is_empty() {
            let rounds = self.travelled.iter();
            let messages =
                rounds.map(|[messages, hand_overs]| *messages as f64 / (*hand_overs).max(1) as f64);
            let seconds = self
                .tallies
                .iter()
                .map(|tally| tally.span.as_secs_f64())
                .sum::<f64>();
            let warm = super::systems::WARM_UP.as_secs_f64() * self.tallies.len() as f64;
            let hand_overs: u64 = self.travelled.iter().map(|[_, count]| count).sum();
            println!(
                "    BURST {BURST}, {:.0} hand-overs per second, {:.2} messages per hand-over",
                hand_overs as f64 / (seconds + warm),
                median(messages),
            );
        }
    }
}
