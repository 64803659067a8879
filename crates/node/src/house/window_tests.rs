//! The period over which counts are taken: it begins no earlier than the flow or the queue.

use super::tests::Stage;
use super::*;

const SHORT: &str = "web -> [orders] -> pack";
const LONG: &str = r"web -> [orders] -> pack\nphone -> [calls] -> pack";

/// The numbers of a field in the answer to `FLOW STATS`, in order.
fn numbers(answer: &str, field: &str) -> Vec<f64> {
    let lines: Vec<&str> = answer.lines().collect();
    let of = |pair: &[&str]| {
        let number = pair[1].trim_start_matches(':').parse().ok();
        number.filter(|_| pair[0] == field)
    };
    // A number with a fraction comes after its length.
    let shown: Vec<&str> = lines
        .into_iter()
        .filter(|line| !line.starts_with('$'))
        .collect();
    shown.windows(2).filter_map(of).collect()
}

impl Stage {
    fn stats(&mut self, client: ClientId) -> String {
        self.say(client, "FLOW STATS shop")
    }
}

#[test]
fn a_young_flow_is_counted_since_it_is_there() {
    let mut stage = Stage::new();
    stage.at(2_260_000);
    let admin = stage.client();
    stage.apply(admin, "shop", SHORT);
    stage.create(admin, 30);
    stage.at(2_264_000);
    let answer = stage.stats(admin);
    assert_eq!(numbers(&answer, "since_ms"), [4_000.0, 4_000.0]);
    assert_eq!(numbers(&answer, "arrivals_per_second"), [7.5]);
    // Applying the flow again does not make it younger, but its new parts are new.
    stage.apply(admin, "shop", LONG);
    stage.at(2_265_000);
    let answer = stage.stats(admin);
    assert_eq!(numbers(&answer, "since_ms"), [5_000.0, 1_000.0, 5_000.0]);
    assert_eq!(numbers(&answer, "arrivals_per_second"), [0.0, 6.0]);
}

#[test]
fn a_flow_that_was_deleted_begins_anew() {
    let mut stage = Stage::new();
    let admin = stage.client();
    stage.apply(admin, "shop", SHORT);
    let pack = stage.client();
    assert_eq!(stage.say(pack, "PRESENT shop pack"), "+OK\r\n");
    stage.create(admin, 1);
    let taken = stage.say(pack, "JOB TAKE orders");
    let job: Vec<&str> = taken
        .lines()
        .filter_map(|line| line.strip_prefix(':'))
        .collect();
    let deleted = stage.logged(pack, &format!("JOB DELETE {}", job.join(" ")));
    assert_eq!(deleted, "+OK\r\n");
    let answer = stage.stats(admin);
    assert_eq!(numbers(&answer, "ended"), [1.0, 0.0]);
    assert_eq!(stage.logged(admin, "FLOW DELETE shop"), "+OK\r\n");
    stage.at(10_000);
    stage.apply(admin, "shop", SHORT);
    stage.at(12_000);
    let answer = stage.stats(admin);
    assert_eq!(numbers(&answer, "since_ms"), [2_000.0, 2_000.0]);
    assert_eq!(numbers(&answer, "ended"), [0.0, 0.0]);
}
