//! Metrics in Prometheus' text format.

use std::fmt::Write;

use testigo_core::Counts;

use super::door::Door;
use super::pool_metrics::pool_metrics;
use crate::health::Health;
use crate::house::{Closing, House};
use crate::users::{Deed, User};

/// The node's numbers; those of queues and pools only as far as the user may see them.
pub(super) fn metrics(house: &House, user: &User, health: &Health) -> String {
    let local = house.local();
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
        house.now() as f64 / 1000.0,
    );
    add(
        "start",
        "gauge",
        "Which start of this data directory it is.",
        house.start().0 as f64,
    );
    add(
        "shard_number_max",
        "gauge",
        "The highest number of a shard, which fences are made of; at most 134217727.",
        f64::from(house.replicated().ownership().highest().0),
    );
    add(
        "epoch",
        "gauge",
        "As testigo_start, under its former name.",
        house.start().0 as f64,
    );
    for (name, help, is) in [
        (
            "healthy",
            "1 while the node is ready: changes are committed and locks granted, as /healthz says.",
            health.is_ready(),
        ),
        (
            "recovering",
            "1 while some gates, or all, do not grant after a crash.",
            health.is_recovering(),
        ),
        (
            "read_only",
            "1 when nothing is committed any more.",
            health.is_read_only(),
        ),
        (
            "disk_full",
            "1 while the disk has too little free for long changes.",
            health.is_disk_full(),
        ),
        ("stopping", "1 once the node stops.", health.stopping),
    ] {
        add(name, "gauge", help, f64::from(u8::from(is)));
    }
    if let Some(free_bytes) = health.free_bytes {
        add(
            "disk_free_bytes",
            "gauge",
            "What the disk has free.",
            free_bytes as f64,
        );
    }
    add(
        "gates",
        "gauge",
        "Gates, created and implicit.",
        gates as f64,
    );
    add(
        "elections",
        "gauge",
        "Elections with a leader or a candidate.",
        local.elections() as f64,
    );
    add(
        "decisions",
        "gauge",
        "Decisions on record, the same on every node.",
        house.replicated().decisions() as f64,
    );
    let groups = house.replicated().groups();
    add(
        "groups",
        "gauge",
        "Groups that have members, the same on every node.",
        groups.len() as f64,
    );
    add(
        "group_members",
        "gauge",
        "Members of all groups, the same on every node.",
        groups.map(|(_, group)| group.members.len()).sum::<usize>() as f64,
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
        house.connections.len() as f64,
    );
    add(
        "connections_total",
        "counter",
        "Connections accepted.",
        house.connections.ever() as f64,
    );
    add(
        "unfinished_bytes",
        "gauge",
        "Bytes kept of commands that are not finished or wait.",
        house.connections.unfinished_bytes() as f64,
    );
    add(
        "subscriptions",
        "gauge",
        "Channels and patterns of all connections.",
        house.connections.channels.total() as f64,
    );
    add(
        "unread_bytes",
        "gauge",
        "Bytes of answers and events that clients have not read.",
        house.connections.unread().bytes() as f64,
    );
    add(
        "unaccepted_total",
        "counter",
        "Times that the system let no connection in, as without descriptors.",
        house.connections.closings().unaccepted() as f64,
    );
    add(
        "commands_total",
        "counter",
        "Commands carried out.",
        house.counters().commands as f64,
    );
    add(
        "slices_total",
        "counter",
        "Slices of long commands, each of a bounded number of rows.",
        house.counters().slices as f64,
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
        "terms_total",
        "counter",
        "Leaders elected; each is a grant, too.",
        counters.terms as f64,
    );
    add(
        "deadlocks_total",
        "counter",
        "Requests refused as deadlocks.",
        counters.deadlocks as f64,
    );
    let (held, takers) = local.hand_sizes();
    let (jobs, bytes) = house.replicated().job_sizes();
    let done = local.job_counters();
    let flows = house.replicated().flows().len();
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
    closings(house, &mut text);
    travels(house, user, &mut text);
    queues(house, user, &mut text);
    text += &pool_metrics(house, user);
    text
}

/// Cap on gates with metrics of their own.
const GATES_MAX: usize = 1_000;

/// What gates whose ownership an algorithm moves have cost on the wire, at this node.
fn travels(house: &House, user: &User, text: &mut String) {
    let gates = house.replicated().gates();
    let spread = gates.filter(|(gate, _)| house.is_spread(gate) && user.may(Deed::Show, gate));
    let gates = spread.take(GATES_MAX).filter_map(|(gate, definition)| {
        let travelling = house.travelling(gate, definition);
        let (_, part) = travelling.part.as_ref()?;
        let labels = format!("gate=\"{}\",using=\"{}\"", escaped(gate), travelling.using);
        let published = travelling.published.map(|(_, range)| range);
        Some(GateCosts {
            labels,
            counts: part.counts,
            inside: part.inside,
            published,
        })
    });
    let gates: Vec<GateCosts> = gates.collect();
    let metrics: [(&str, &str, &str, GateValues); 4] = [
        (
            "messages_total",
            "counter",
            "Messages that this node has sent for a gate's ownership to travel.",
            |gate| vec![("", gate.counts.messages as f64)],
        ),
        (
            "hand_overs_total",
            "counter",
            "How often a message has let this node in.",
            |gate| vec![("", gate.counts.hand_overs as f64)],
        ),
        (
            "in",
            "gauge",
            "1 while this node may admit its clients.",
            |gate| vec![("", f64::from(u8::from(gate.inside)))],
        ),
        (
            "published_messages",
            "gauge",
            "Messages for a hand-over as published, at least and at most.",
            |gate| match gate.published {
                Some((min, max)) => vec![(",bound=\"min\"", min), (",bound=\"max\"", max)],
                None => Vec::new(),
            },
        ),
    ];
    for (name, kind, help, values) in metrics {
        let _ = writeln!(
            text,
            "# HELP testigo_gate_{name} {help}\n# TYPE testigo_gate_{name} {kind}"
        );
        for gate in &gates {
            for (bound, value) in values(gate) {
                let labels = &gate.labels;
                let _ = writeln!(text, "testigo_gate_{name}{{{labels}{bound}}} {value}");
            }
        }
    }
}

struct GateCosts {
    labels: String,
    counts: Counts,
    inside: bool,
    published: Option<(f64, f64)>,
}

/// The values of a metric for a gate, each with the rest of its labels.
type GateValues = fn(&GateCosts) -> Vec<(&'static str, f64)>;

/// Connections that the node itself closed, by reason.
fn closings(house: &House, text: &mut String) {
    let name = "testigo_connections_closed_total";
    let _ = writeln!(
        text,
        "# HELP {name} Connections that the node closed or refused.\n# TYPE {name} counter"
    );
    for why in Closing::ALL {
        let (reason, count) = (why.name(), house.connections.closings().count(why));
        let _ = writeln!(text, "{name}{{reason=\"{reason}\"}} {count}");
    }
}

/// The front door's own numbers.
pub(super) fn door_metrics(door: &Door) -> String {
    let (idle, closed) = door.idle.counts();
    let limits = &door.limits;
    let requests = limits.requests - door.requests.available_permits();
    let streams = limits.streams - door.streams.available_permits();
    let mut text = String::new();
    for (name, kind, help, value) in [
        (
            "idle",
            "gauge",
            "HTTP connections without a request under way.",
            idle as u64,
        ),
        (
            "requests",
            "gauge",
            "HTTP requests under way.",
            requests as u64,
        ),
        ("streams", "gauge", "Open event streams.", streams as u64),
        (
            "closed_total",
            "counter",
            "Idle HTTP connections closed to make room.",
            closed,
        ),
    ] {
        let _ = writeln!(
            text,
            "# HELP testigo_http_{name} {help}\n# TYPE testigo_http_{name} {kind}\ntestigo_http_{name} {value}"
        );
    }
    text
}

/// Cap on queues with metrics of their own; the others are counted.
const QUEUES_MAX: usize = 1_000;

/// One line per queue and metric, the queues by flow and name.
fn queues(house: &House, user: &User, text: &mut String) {
    let flows = house.replicated().flows();
    let flows = flows.filter(|(flow, _)| user.may(Deed::Show, flow));
    let flows: Vec<_> = flows.collect();
    let queues = flows.into_iter().flat_map(|(flow, queues)| {
        let queues = queues.queues();
        queues.map(move |(name, id)| (flow, name, id))
    });
    // Other nodes count what they own themselves.
    let queues: Vec<_> = queues.filter(|(.., id)| house.owns_queue(*id)).collect();
    let omitted = queues.len().saturating_sub(QUEUES_MAX);
    let queues: Vec<_> = queues
        .into_iter()
        .take(QUEUES_MAX)
        .filter_map(|(flow, name, id)| {
            let labels = format!("{{flow=\"{}\",queue=\"{}\"}}", escaped(flow), escaped(name));
            let waiting = house.local().queue_view(id, 0)?.waiting as u64;
            let held = house.replicated().queue(id)?.jobs.saturating_sub(waiting);
            let totals = house.stats().totals(id);
            let values = [
                waiting,
                held,
                totals.arrivals,
                totals.departures,
                totals.deaths,
                totals.rejects,
                totals.full,
            ];
            Some((labels, values))
        })
        .collect();
    for (at, (name, kind, help)) in QUEUE_METRICS.iter().enumerate() {
        let _ = writeln!(
            text,
            "# HELP testigo_queue_{name} {help}\n# TYPE testigo_queue_{name} {kind}"
        );
        for (labels, values) in &queues {
            let _ = writeln!(text, "testigo_queue_{name}{labels} {}", values[at]);
        }
    }
    let _ = writeln!(
        text,
        "# HELP testigo_queues_omitted Queues without metrics of their own.\n\
         # TYPE testigo_queues_omitted gauge\ntestigo_queues_omitted {omitted}"
    );
}

const QUEUE_METRICS: [(&str, &str, &str); 7] = [
    ("waiting", "gauge", "Jobs that wait."),
    ("held", "gauge", "Jobs in hands."),
    (
        "arrivals_total",
        "counter",
        "Jobs that came, new or from elsewhere.",
    ),
    ("departures_total", "counter", "Jobs that left."),
    (
        "deaths_total",
        "counter",
        "Workers that died or failed at a job.",
    ),
    (
        "rejects_total",
        "counter",
        "Jobs that went to the reject queue for it.",
    ),
    (
        "full_total",
        "counter",
        "Creates and passes refused because it was full.",
    ),
];

/// A label's value: a flow's name may contain a quote.
pub(super) fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"")
}
