//! What an algorithm would have cost.

use serde_json::{Value, json};
use testigo_core::{Forecast, Plan, Using, forecast};
use testigo_lab::Summary;
use testigo_sim::Generator;

use super::links::Links;
use super::{Arrival, drawn};

/// How often each algorithm is run, with other arrivals and delays each time.
const RUNS: u64 = 20;

/// The means over the runs.
pub(super) struct Predicted {
    pub(super) using: Using,
    messages_per_hand_over: Option<Summary>,
    messages_per_entry: Summary,
    waiting_ms: Summary,
    p95_ms: Summary,
    overtaken_max: Summary,
}

impl Predicted {
    /// Nothing for an algorithm that cannot run with so many nodes.
    pub(super) fn of(plan: &Plan, arrivals: &[Arrival], links: &Links) -> Option<Predicted> {
        let mut runs = Vec::new();
        for seed in 0..RUNS {
            let visits = drawn::visits(arrivals, &mut Generator::for_purpose(seed, 1));
            let mut lots = Generator::for_purpose(seed, 2);
            let mut delay = |from, to| links.delay(from, to, lots.unit());
            runs.push(forecast(plan, &visits, &mut delay)?);
        }
        let summary = |of: &dyn Fn(&Forecast) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(of).collect();
            Summary::of(&values)
        };
        let waits = |run: &Forecast| {
            let waits: Vec<f64> = run.waited.iter().map(|us| *us as f64 / 1_000.0).collect();
            Summary::of(&waits)
        };
        Some(Predicted {
            using: plan.travels.using,
            messages_per_hand_over: summary(&|run| {
                (run.hand_overs > 0).then(|| run.messages as f64 / run.hand_overs as f64)
            }),
            messages_per_entry: summary(&|run| {
                Some(run.messages as f64 / run.waited.len() as f64)
            })?,
            waiting_ms: summary(&|run| Some(waits(run)?.mean))?,
            p95_ms: summary(&|run| Some(waits(run)?.p95))?,
            overtaken_max: summary(&|run| run.overtaken.iter().max().map(|most| f64::from(*most)))?,
        })
    }

    pub(super) fn waiting_ms(&self) -> Summary {
        self.waiting_ms
    }

    pub(super) fn messages_per_entry(&self) -> Summary {
        self.messages_per_entry
    }

    /// As the columns of the table.
    pub(super) fn columns(&self) -> [Option<Summary>; 5] {
        [
            self.messages_per_hand_over,
            Some(self.messages_per_entry),
            Some(self.waiting_ms),
            Some(self.p95_ms),
            Some(self.overtaken_max),
        ]
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "algorithm": self.using.name(),
            "messages_per_hand_over": self.messages_per_hand_over.map(of_a_run),
            "messages_per_entry": of_a_run(self.messages_per_entry),
            "waiting_ms": of_a_run(self.waiting_ms),
            "waiting_p95_ms": of_a_run(self.p95_ms),
            "overtaken_max": of_a_run(self.overtaken_max),
        })
    }
}

/// The algorithm with the least of something, and those that cannot be told apart from it: their intervals overlap.
pub(super) fn least(all: &[Predicted], of: fn(&Predicted) -> Summary) -> String {
    let mut rows: Vec<&Predicted> = all.iter().collect();
    rows.sort_by(|one, other| of(one).mean.total_cmp(&of(other).mean));
    let Some(first) = rows.first().map(|row| of(row)) else {
        return "-".into();
    };
    let high = first.high.unwrap_or(first.mean);
    let alike = rows
        .iter()
        .filter(|row| of(row).low.unwrap_or(of(row).mean) <= high);
    let names: Vec<&str> = alike.map(|row| row.using.name()).collect();
    names.join(", ")
}

/// A mean, and how far to both sides 95 % of the runs lie. A measurement is one run, not the mean of many.
pub(super) fn interval(summary: Option<Summary>) -> String {
    let Some(summary) = summary else {
        return "-".into();
    };
    format!("{:.2} ±{:.2}", summary.mean, reach(&summary))
}

fn reach(summary: &Summary) -> f64 {
    let of_the_mean = summary.high.map_or(0.0, |high| high - summary.mean);
    of_the_mean * (summary.runs as f64).sqrt()
}

/// The summary with the interval of a run.
fn of_a_run(summary: Summary) -> Summary {
    let reach = reach(&summary);
    Summary {
        // Nothing here can be below 0.
        low: summary.low.map(|_| (summary.mean - reach).max(0.0)),
        high: summary.high.map(|_| summary.mean + reach),
        ..summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(using: Using, waits: &[f64]) -> Predicted {
        let summary = Summary::of(waits).expect("values");
        Predicted {
            using,
            messages_per_hand_over: None,
            messages_per_entry: summary,
            waiting_ms: summary,
            p95_ms: summary,
            overtaken_max: summary,
        }
    }

    #[test]
    fn what_cannot_be_told_apart_is_named_together() {
        let rows = [
            row(Using::Lamport, &[5.0, 5.1, 5.0]),
            row(Using::Chang, &[2.0, 2.4, 2.2]),
            row(Using::Raymond, &[2.1, 2.5, 2.3]),
        ];
        assert_eq!(least(&rows, Predicted::waiting_ms), "chang, raymond");
        assert_eq!(least(&rows[..1], Predicted::waiting_ms), "lamport");
        // Of the mean it would be 0.50.
        assert_eq!(interval(Some(rows[1].waiting_ms)), "2.20 ±0.86");
        let json = rows[1].json();
        let high = json["waiting_ms"]["high"].as_f64().expect("a number");
        assert_eq!(format!("{high:.2}"), "3.06");
        let rare = row(Using::Chang, &[0.0, 0.0, 0.3]).json();
        assert_eq!(rare["waiting_ms"]["low"], 0.0);
    }
}
