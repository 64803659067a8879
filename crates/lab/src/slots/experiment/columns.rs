//! The columns of an experiment's table.

use super::sample::Case;
use crate::Summary;

/// A column: its heading, and its value for each case.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub head: &'static str,
    pub cell: fn(&Case) -> String,
}

const fn column(head: &'static str, cell: fn(&Case) -> String) -> Column {
    Column { head, cell }
}

pub(super) const SETTING: [Column; 4] = [
    column("PRESET", |case| case.preset.clone()),
    column("SPREAD", |case| match case.spread_cap {
        None => "all".into(),
        Some(cap) => format!("{cap}/round"),
    }),
    column("USES", |case| match case.waits {
        true => "wait".into(),
        false => "fail".into(),
    }),
    ALGORITHM,
];

pub(super) const ALGORITHM: Column = column("ALGORITHM", |case| {
    let optimisations = case.optimisations.unwrap_or([true; 3]);
    let off: String = (1..)
        .zip(optimisations)
        .filter(|(_, on)| !on)
        .map(|(number, _)| format!(" −opt{number}"))
        .collect();
    let exact = if case.exact_quota { " exact" } else { "" };
    let even = if case.even { " even" } else { "" };
    format!("{}{off}{exact}{even}", case.algorithm)
});

pub(super) const MEMBERS: Column = column("MEMBERS", |case| case.members.to_string());
pub(super) const FREE_LOW: Column = column("LOW", |case| case.free_low.to_string());
pub(super) const FREE_HIGH: Column = column("HIGH", |case| {
    let high = case.free_high.map(|high| high.to_string());
    high.unwrap_or("-".into())
});
pub(super) const EFFICIENCY: Column = column("SUCCESSFUL/MULTICAST", |case| {
    spread(case.efficiency, 1.0, 2)
});
pub(super) const FAILED: Column = column("FAILED/SUCCESSFUL", |case| {
    spread(Some(case.failed_ratio), 1.0, 3)
});
pub(super) const UTILISATION: Column =
    column("USED %", |case| spread(Some(case.utilisation), 100.0, 1));
pub(super) const LIFETIME: Column = column("LIFETIME", |case| spread(Some(case.lifetime), 1.0, 1));
pub(super) const WAITED: Column = column("WAITED %", |case| spread(Some(case.waited), 100.0, 1));
pub(super) const WAITING: Column = column("ROUNDS", |case| spread(Some(case.waiting), 1.0, 1));
pub(super) const PERIOD_RANGE: Column = column("PERIODS OF λ DIFFER BY", |case| {
    let range = case.utilisation_period_range;
    range.map_or("-".into(), |range| {
        format!("{:.2} points", 100.0 * range.max)
    })
});
pub(super) const RANGE: Column = column("TENTHS DIFFER BY", |case| {
    format!("{:.2} points", 100.0 * case.utilisation_range.max)
});
pub(super) const EQUITY: Column = column("EQUITY", |case| spread(case.equity, 1.0, 2));
pub(super) const REQUESTS: Column = column("REQUESTS", |case| {
    let all = case.responses() + case.response_counts_nothing;
    match all {
        0 => "-".into(),
        _ => all.to_string(),
    }
});
pub(super) const RESPONSE_1: Column = column("1: %", |case| spread(case.response_1, 100.0, 1));
pub(super) const RESPONSE_MORE: Column = column("MORE: %", |case| {
    let more = case.response_share(|number| number > 3);
    more.map_or("-".into(), |more| format!("{:.1}", 100.0 * more))
});
pub(super) const RESPONSE_2: Column = column("2: %", |case| spread(case.response_2, 100.0, 1));
pub(super) const RESPONSE_3: Column = column("3: %", |case| spread(case.response_3, 100.0, 1));
pub(super) const RESPONSE_2_OR_3: Column =
    column("2 OR 3: %", |case| spread(case.response_2_or_3, 100.0, 1));
pub(super) const RESPONSE_ALL: Column =
    column("ALL MULTICASTS", |case| spread(case.response_all, 1.0, 1));
pub(super) const RESPONSE_ROUNDS: Column =
    column("ROUNDS", |case| spread(case.response_rounds, 1.0, 2));
pub(super) const NOTHING: Column =
    column("NOTHING: %", |case| spread(case.response_nothing, 100.0, 1));
pub(super) const LITTLE: Column = column("LITTLE", |case| match case.little_holds {
    true => format!("{:.2} % off", 100.0 * case.little_max),
    false => format!("{:.2} % off, BROKEN", 100.0 * case.little_max),
});

/// A mean and half of its 95 % interval.
fn spread(summary: Option<Summary>, scale: f64, digits: usize) -> String {
    let Some(summary) = summary else {
        return "-".into();
    };
    let mean = scale * summary.mean;
    // If one end is cut off, the other one counts.
    let ends = summary.low.zip(summary.high);
    match ends.map(|(low, high)| (summary.mean - low).max(high - summary.mean)) {
        Some(half) => format!("{mean:.digits$} ±{:.digits$}", scale * half),
        None => format!("{mean:.digits$}"),
    }
}
