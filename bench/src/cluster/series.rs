//! A system in a situation with so many clients, and its rounds.

use super::systems::{Situation, System};
use crate::tally::{Tally, median};

pub(super) struct Series {
    pub(super) system: System,
    pub(super) situation: Situation,
    pub(super) clients: usize,
    pub(super) tallies: Vec<Tally>,
    /// Each round, warm-up included, where ownership travels by an algorithm.
    pub(super) travelled: Vec<Travelled>,
}

/// How a gate travelled in a round.
pub(super) struct Travelled {
    /// Between nodes.
    pub(super) messages: u64,
    pub(super) hand_overs: u64,
    pub(super) burst: u64,
    /// Messages per hand-over that the laboratory gives for the same arrivals, and how far to both sides.
    pub(super) forecast: Result<(f64, f64), String>,
}

impl Travelled {
    fn per_hand_over(&self) -> f64 {
        self.messages as f64 / self.hand_overs.max(1) as f64
    }

    /// How far the measured messages per hand-over are from what was forecast, as a share of the forecast's reach to each side.
    fn off(&self) -> f64 {
        match &self.forecast {
            Ok((mean, reach)) => {
                // Both are printed with two digits.
                let off = ((self.per_hand_over() - mean).abs() - 0.005).max(0.0);
                if off == 0.0 { 0.0 } else { off / reach }
            }
            Err(_) => f64::INFINITY,
        }
    }

    /// What was measured, beside what was to be expected.
    fn verdict(&self) -> String {
        let measured = self.per_hand_over();
        match &self.forecast {
            Ok((mean, reach)) => {
                let verdict = if self.off() <= 1.0 {
                    "inside"
                } else {
                    "outside"
                };
                format!(
                    "measured {measured:.2}, forecast for these arrivals {mean:.2} ±{reach:.2}: {verdict}"
                )
            }
            Err(why) => format!("measured {measured:.2}, no forecast: {why}"),
        }
    }
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

    /// The median of the rounds: 95 % of rounds lie within their forecast's interval, so some round may lie outside, but not
    /// half of them. Nothing where ownership does not travel by an algorithm.
    pub(super) fn off_forecast(&self) -> Option<(f64, String)> {
        let mut rounds: Vec<&Travelled> = self.travelled.iter().collect();
        rounds.sort_by(|one, other| one.off().total_cmp(&other.off()));
        let middle = rounds.get(rounds.len() / 2)?;
        Some((middle.off(), middle.verdict()))
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
            let seconds = self
                .tallies
                .iter()
                .map(|tally| tally.span.as_secs_f64())
                .sum::<f64>();
            let warm = super::systems::WARM_UP.as_secs_f64() * self.tallies.len() as f64;
            let hand_overs: u64 = self.travelled.iter().map(|round| round.hand_overs).sum();
            println!(
                "    BURST {}, {:.0} hand-overs per second, {:.2} messages per hand-over",
                self.travelled[0].burst,
                hand_overs as f64 / (seconds + warm),
                median(self.travelled.iter().map(Travelled::per_hand_over)),
            );
            for round in &self.travelled {
                println!("    {}", round.verdict());
            }
        } else if (self.system, self.situation) == (System::Testigo, Situation::Contended) {
            println!(
                "    by the log one node owns the gate and grants to the clients of all: nothing is handed over, so there is no BURST and no message per hand-over"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_inside_its_interval_or_outside() {
        let round = |messages| Travelled {
            messages,
            hand_overs: 100,
            burst: 4,
            forecast: Ok((2.6, 0.05)),
        };
        for (messages, verdict) in [
            (254, "outside"),
            (256, "inside"),
            (264, "inside"),
            (266, "outside"),
        ] {
            let said = round(messages).verdict();
            assert!(said.ends_with(&format!(": {verdict}")), "{said}");
        }
        let series = |messages: &[u64]| Series {
            system: System::Raymond,
            situation: Situation::Contended,
            clients: 16,
            tallies: Vec::new(),
            travelled: messages.iter().map(|messages| round(*messages)).collect(),
        };
        let off = |messages: &[u64]| series(messages).off_forecast().map(|(off, _)| off);
        assert!(
            off(&[260, 261, 290]) <= Some(1.0),
            "one of three is outside"
        );
        assert!(off(&[260, 289, 290]) > Some(1.0), "two of three are");
        assert_eq!(off(&[]), None);
        let unknown = Travelled {
            forecast: Err("nobody came".into()),
            ..round(260)
        };
        assert_eq!(unknown.verdict(), "measured 2.60, no forecast: nobody came");
        assert_eq!(unknown.off(), f64::INFINITY, "it is missed");
    }
}
