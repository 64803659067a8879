//! What was measured at the gate.

use serde_json::{Value, json};
use testigo_lab::Summary;

use super::Arrival;

pub(super) struct Measured {
    messages_per_hand_over: Option<f64>,
    waiting_ms: f64,
    p95_ms: f64,
    overtaken_max: f64,
}

impl Measured {
    /// Arrivals are in the order of their times.
    pub(super) fn of(rows: &[Arrival], messages_per_hand_over: Option<f64>) -> Measured {
        let waits: Vec<f64> = rows.iter().map(|row| row.waited_ms as f64).collect();
        let waits = Summary::of(&waits);
        let entered = |row: &Arrival| row.at + row.waited_ms;
        let overtaken = rows.iter().enumerate().map(|(index, row)| {
            let later = rows[index + 1..]
                .iter()
                .take_while(|other| other.at < entered(row));
            let before = later.filter(|other| other.at > row.at && entered(other) < entered(row));
            before.count()
        });
        Measured {
            messages_per_hand_over,
            waiting_ms: waits.map_or(0.0, |waits| waits.mean),
            p95_ms: waits.map_or(0.0, |waits| waits.p95),
            overtaken_max: overtaken.max().unwrap_or(0) as f64,
        }
    }

    /// As the columns of the table.
    pub(super) fn columns(&self) -> [Option<f64>; 5] {
        [
            self.messages_per_hand_over,
            None,
            Some(self.waiting_ms),
            Some(self.p95_ms),
            Some(self.overtaken_max),
        ]
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "messages_per_hand_over": self.messages_per_hand_over,
            "waiting_ms": self.waiting_ms,
            "waiting_p95_ms": self.p95_ms,
            "overtaken_max": self.overtaken_max,
        })
    }
}

pub(super) fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_later_and_entered_before_overtakes() {
        let came = |at, waited_ms| Arrival {
            at,
            node: 0,
            kind: 1,
            waited_ms,
            held_ms: 1,
        };
        let rows = [
            came(0, 0),
            came(10, 90),
            came(20, 30),
            came(30, 40),
            came(200, 0),
        ];
        let measured = Measured::of(&rows, Some(3.0));
        assert_eq!(measured.overtaken_max, 2.0);
        assert_eq!(measured.waiting_ms, 32.0);
        assert_eq!(
            measured.columns().map(number),
            ["3.00", "-", "32.00", "80.00", "2.00"]
        );
    }
}
