//! What a node says about itself at one moment, as `STATE` gives it.

use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Snapshot {
    pub(super) version: String,
    #[serde(default)]
    pub(super) start: u64,
    pub(super) recovering: bool,
    #[serde(default)]
    pub(super) everything_waits: bool,
    /// Members of the cluster that did not answer.
    #[serde(default)]
    pub(super) missing: Vec<u64>,
    /// The node's clock, from its start.
    pub(super) now_ms: u64,
    pub(super) sizes: Sizes,
    pub(super) counters: Counters,
    pub(super) gates: Vec<Gate>,
    pub(super) gates_more: usize,
    pub(super) sessions: Vec<Session>,
    pub(super) sessions_more: usize,
    #[serde(default)]
    pub(super) queues: Vec<Queue>,
}

/// A queue, as `QUEUE LIST` shows it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Queue {
    pub(super) name: String,
    pub(super) waiting: u64,
    pub(super) held: u64,
    pub(super) limit: Option<u64>,
    /// The age of the next job.
    pub(super) age_ms: Option<u64>,
    pub(super) takers: u64,
    pub(super) arrivals_per_second: f64,
    pub(super) departures_per_second: f64,
    pub(super) deaths: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Sizes {
    pub(super) gates: usize,
    pub(super) sessions: usize,
    pub(super) holds: usize,
    pub(super) waits: usize,
    pub(super) connections: usize,
}

/// Counts since the start.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Counters {
    pub(super) grants: u64,
    pub(super) losses: u64,
    pub(super) waits: u64,
    pub(super) deadlocks: u64,
    pub(super) commands: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Gate {
    pub(super) name: String,
    pub(super) rule: String,
    pub(super) holders: Vec<Holder>,
    pub(super) waiters: Vec<Waiter>,
    pub(super) inside: usize,
    pub(super) waiting: usize,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Holder {
    pub(super) session: u64,
    pub(super) label: Option<String>,
    pub(super) mode: String,
    pub(super) fence: u64,
    pub(super) since: u64,
    pub(super) until: Option<u64>,
    pub(super) reason: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Waiter {
    pub(super) session: u64,
    pub(super) label: Option<String>,
    pub(super) mode: String,
    pub(super) class: u32,
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) reason: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Session {
    pub(super) session: u64,
    pub(super) label: Option<String>,
    pub(super) user: Option<String>,
    pub(super) since: u64,
    pub(super) heard: u64,
    pub(super) connected: bool,
    pub(super) awaited: bool,
    pub(super) holds: Vec<String>,
    pub(super) waits: Vec<String>,
}

/// How often things happened a second between two moments; before the second one, since the start.
pub(super) fn rates(before: Option<&Snapshot>, now: &Snapshot) -> [(&'static str, f64); 5] {
    // A node that was started anew counts anew.
    let before = before.filter(|before| before.now_ms < now.now_ms);
    let (none, start) = (Counters::default(), 0);
    let (then, from) = before.map_or((&none, start), |before| (&before.counters, before.now_ms));
    let seconds = (now.now_ms - from).max(1) as f64 / 1000.0;
    let rate =
        |of: fn(&Counters) -> u64| of(&now.counters).saturating_sub(of(then)) as f64 / seconds;
    [
        ("commands", rate(|c| c.commands)),
        ("grants", rate(|c| c.grants)),
        ("waits", rate(|c| c.waits)),
        ("losses", rate(|c| c.losses)),
        ("deadlocks", rate(|c| c.deadlocks)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now_ms: u64, grants: u64) -> Snapshot {
        let counters = Counters {
            grants,
            ..Counters::default()
        };
        Snapshot {
            now_ms,
            counters,
            ..Snapshot::default()
        }
    }

    #[test]
    fn rates_are_of_the_last_interval_and_at_first_of_all_time() {
        let grants = |before: Option<&Snapshot>, now: &Snapshot| rates(before, now)[1].1;
        assert_eq!(grants(None, &at(10_000, 50)), 5.0);
        assert_eq!(grants(Some(&at(10_000, 50)), &at(12_000, 150)), 50.0);
        assert_eq!(
            grants(Some(&at(99_000, 999)), &at(2_000, 4)),
            2.0,
            "started anew"
        );
    }
}
