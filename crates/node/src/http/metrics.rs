//! Metrics in Prometheus' text format.

use std::fmt::Write;

use crate::house::House;

pub(super) fn metrics(house: &House) -> String {
    let local = &house.local;
    let [gates, sessions, holds, waits] = local.sizes();
    let counters = local.counters();
    let mut text = String::new();
    let mut add = |name: &str, kind: &str, help: &str, value: f64| {
        let _ = writeln!(
            text,
            "# HELP testigo_{name} {help}\n# TYPE testigo_{name} {kind}\ntestigo_{name} {value}"
        );
    };
    add(
        "up_seconds",
        "gauge",
        "Time since the node started.",
        house.now as f64 / 1000.0,
    );
    add(
        "epoch",
        "gauge",
        "The fencing epoch.",
        f64::from(u32::try_from(local.epoch().0).unwrap_or(u32::MAX)),
    );
    add(
        "recovering",
        "gauge",
        "1 while no gate grants after a crash.",
        f64::from(u8::from(local.recovering())),
    );
    add(
        "gates",
        "gauge",
        "Gates, created and implicit.",
        gates as f64,
    );
    add(
        "sessions",
        "gauge",
        "Sessions, opened and implicit.",
        sessions as f64,
    );
    add(
        "holds",
        "gauge",
        "Holds: one for each session inside a gate.",
        holds as f64,
    );
    add("waits", "gauge", "Requests that wait.", waits as f64);
    add(
        "connections",
        "gauge",
        "Open connections.",
        house.clients.len() as f64,
    );
    add(
        "connections_total",
        "counter",
        "Connections accepted.",
        house.counters.connections as f64,
    );
    add(
        "commands_total",
        "counter",
        "Commands carried out.",
        house.counters.commands as f64,
    );
    add(
        "grants_total",
        "counter",
        "Grants, one a gate.",
        counters.grants as f64,
    );
    add(
        "releases_total",
        "counter",
        "Holds given back.",
        counters.releases as f64,
    );
    add(
        "losses_total",
        "counter",
        "Holds lost to a hold limit or a claim.",
        counters.losses as f64,
    );
    add(
        "waits_total",
        "counter",
        "Requests that had to wait.",
        counters.waits as f64,
    );
    add(
        "waits_ended_total",
        "counter",
        "Waits that ended without entering.",
        counters.waits_ended as f64,
    );
    add(
        "deadlocks_total",
        "counter",
        "Requests refused as deadlocks.",
        counters.deadlocks as f64,
    );
    text
}
