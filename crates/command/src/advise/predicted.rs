//! What an algorithm would have cost.

use serde_json::{Value, json};
use testigo_core::{Forecast, Plan, Using, Visit, forecast};
use testigo_lab::Summary;
use testigo_sim::Generator;

use super::links::Links;

/// How often each algorithm is run, with other delays each time.
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
    pub(super) fn of(plan: &Plan, visits: &[Visit], links: &Links) -> Option<Predicted> {
        let mut runs = Vec::new();
        for seed in 0..RUNS {
            let visits = between_ticks(visits, &mut Generator::for_purpose(seed, 1));
            let mut lots = Generator::for_purpose(seed, 2);
            let mut delay = |from, to| links.delay(from, to, lots.unit());
            runs.push(forecast(plan, &visits, &mut delay)?);
        }
        let summary = |of: &dyn Fn(&Forecast) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(of).collect();
            Summary::of(&values)
        };
        let entries = visits.len() as f64;
        let waits = |run: &Forecast| {
            let waits: Vec<f64> = run.waited.iter().map(|us| *us as f64 / 1_000.0).collect();
            Summary::of(&waits)
        };
        Some(Predicted {
            using: plan.travels.using,
            messages_per_hand_over: summary(&|run| {
                (run.hand_overs > 0).then(|| run.messages as f64 / run.hand_overs as f64)
            }),
            messages_per_entry: summary(&|run| Some(run.messages as f64 / entries))?,
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
            "messages_per_hand_over": self.messages_per_hand_over,
            "messages_per_entry": self.messages_per_entry,
            "waiting_ms": self.waiting_ms,
            "waiting_p95_ms": self.p95_ms,
            "overtaken_max": self.overtaken_max,
        })
    }
}

/// Nodes count whole milliseconds, so a visit was somewhere within them: each run draws where.
fn between_ticks(visits: &[Visit], lots: &mut Generator) -> Vec<Visit> {
    let mut part = || (lots.unit() * 1_000.0) as u64;
    let moved = |visit: &Visit| {
        let (came, entered, left) = (part(), part(), part());
        Visit {
            at: visit.at + came,
            held: (visit.held + left).saturating_sub(entered),
            ..*visit
        }
    };
    let mut visits: Vec<Visit> = visits.iter().map(moved).collect();
    visits.sort_by_key(|visit| visit.at);
    visits
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

/// A mean, and how far its interval reaches to both sides.
pub(super) fn interval(summary: Option<Summary>) -> String {
    let Some(summary) = summary else {
        return "-".into();
    };
    let half = summary.high.map_or(0.0, |high| high - summary.mean);
    format!("{:.2} ±{half:.2}", summary.mean)
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
        assert_eq!(interval(Some(rows[1].waiting_ms)), "2.20 ±0.50");
    }

    #[test]
    fn a_visit_is_drawn_within_its_millisecond() {
        let visit = Visit {
            at: 7_000,
            node: 1,
            kind: 1,
            held: 3_000,
        };
        let drawn = between_ticks(&[visit; 200], &mut Generator::new(1));
        assert!(drawn.iter().all(|drawn| (7_000..8_000).contains(&drawn.at)));
        assert!(
            drawn
                .iter()
                .all(|drawn| (2_000..4_000).contains(&drawn.held))
        );
        assert!(drawn.is_sorted_by_key(|drawn| drawn.at));
    }
}
