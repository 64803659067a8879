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
    let (held, takers) = local.hand_sizes();
    let (jobs, bytes) = house.replicated.job_sizes();
    let done = local.job_counters();
    let flows = house.replicated.flows().len();
    add("flows", "gauge", "Flows that run.", flows as f64);
    add("jobs", "gauge", "Jobs, waiting and in hands.", jobs as f64);
    add("jobs_held", "gauge", "Jobs in hands.", held as f64);
    add(
        "job_bytes",
        "gauge",
        "Names and bodies of all jobs.",
        bytes as f64,
    );
    add(
        "takers",
        "gauge",
        "Takes that wait for a job.",
        takers as f64,
    );
    for (name, help, value) in [
        ("created", "Jobs created.", done.created),
        ("taken", "Jobs taken.", done.taken),
        ("passed", "Jobs passed on.", done.passed),
        ("deleted", "Jobs deleted.", done.deleted),
        ("given_back", "Jobs given back.", done.given_back),
        ("died", "Jobs whose worker died or failed.", done.died),
        (
            "rejected",
            "Jobs that went to a reject queue.",
            done.rejected,
        ),
    ] {
        add(&format!("jobs_{name}_total"), "counter", help, value as f64);
    }
    text
}
