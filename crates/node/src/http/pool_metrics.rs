//! What `/metrics` says about pools: what this node has of each, and what is known about all nodes.

use std::fmt::Write;

use super::metrics::escaped;
use crate::house::House;
use crate::users::{Deed, User};

/// Cap on pools with metrics of their own; the others are counted.
const POOLS_MAX: usize = 100;

/// One line per pool and metric, the pools by name.
pub(super) fn pool_metrics(house: &House, user: &User) -> String {
    let pools = house.pool_definitions().into_iter();
    let seen = pools.filter(|(name, _)| user.may(Deed::Show, name));
    let pools: Vec<_> = seen.collect();
    let omitted = pools.len().saturating_sub(POOLS_MAX);
    let desk = house.services.desk();
    let rows = pools.into_iter().take(POOLS_MAX);
    let rows: Vec<(String, [u64; 10])> = rows
        .filter_map(|(name, definition)| {
            let view = desk.view(house.services.shelves(), name, 0).ok()?;
            let values = [
                u64::from(definition.slots.count()),
                u64::from(view.owned),
                u64::from(view.free),
                u64::from(view.used - view.withheld),
                u64::from(view.withheld),
                u64::from(view.waiting),
                view.received,
                view.given,
                view.takes,
                view.gives,
            ];
            Some((format!("{{pool=\"{}\"}}", escaped(name)), values))
        })
        .collect();
    let mut text = String::new();
    for (at, (name, kind, help)) in METRICS.iter().enumerate() {
        let _ = writeln!(
            text,
            "# HELP testigo_pool_{name} {help}\n# TYPE testigo_pool_{name} {kind}"
        );
        for (labels, values) in &rows {
            let _ = writeln!(text, "testigo_pool_{name}{labels} {}", values[at]);
        }
    }
    let _ = writeln!(
        text,
        "# HELP testigo_pools_omitted Pools without metrics of their own.\n\
         # TYPE testigo_pools_omitted gauge\ntestigo_pools_omitted {omitted}"
    );
    text
}

const METRICS: [(&str, &str, &str); 10] = [
    ("slots", "gauge", "Slots of the pool, at all nodes."),
    ("owned", "gauge", "Slots that this node owns."),
    ("free", "gauge", "Slots that are free at this node."),
    ("used", "gauge", "Slots that sessions have from this node."),
    (
        "withheld",
        "gauge",
        "Slots of which this node does not know whether a session has them.",
    ),
    ("waiting", "gauge", "Takes that wait at this node."),
    (
        "received_total",
        "counter",
        "Slots that others have donated to this node.",
    ),
    (
        "given_total",
        "counter",
        "Slots that this node has donated.",
    ),
    ("takes_total", "counter", "Slots taken at this node."),
    ("gives_total", "counter", "Slots given back at this node."),
];
