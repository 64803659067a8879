//! The table in which the slides find two phases in four algorithms (coordination and agreement §5.10).

use std::collections::BTreeMap;

use super::agreement::committing;
use super::cases::{Case, Kinds, published};
use super::experiment::{CountExperiment, Found, Measured, PropertyRow, chart};
use crate::family::LabError;
use crate::trace::{Event, TellKind, Trace};

pub(super) const TABLE: CountExperiment = CountExperiment {
    name: "two-phase-table",
    title: "Two phases in four algorithms: exclusion, election, multicast, transactions (§5.10)",
    source: "coordination and agreement §5.8, §5.10",
    note: "one request each; of two-phase commit the size counts the coordinator, too",
    run: table,
};

/// Kinds of messages, each with its number among so many nodes.
type Counted = &'static [(&'static str, fn(usize) -> usize)];

/// A row of the table.
struct Phased {
    algorithm: &'static str,
    published: &'static str,
    /// The messages of the first phase.
    first: Counted,
    /// Those of the second; where there are none, it is that somebody enters.
    second: Counted,
    formulas: [&'static str; 2],
    case: fn(usize) -> Result<Case, LabError>,
}

const ROWS: [Phased; 4] = [
    Phased {
        algorithm: "ricart-agrawala",
        published: "poll use of the section; enter",
        first: &[("Request", |n| n - 1), ("Reply", |n| n - 1)],
        second: &[],
        formulas: ["2(N−1)", "0"],
        case: |n| Ok(Case::new("ricart-agrawala", n, &[0])),
    },
    Phased {
        algorithm: "bully",
        published: "poll larger live processes; choose the coordinator",
        first: &[
            ("Election", |n| n * (n - 1) / 2),
            ("Answer", |n| (n - 1) * (n - 2) / 2),
        ],
        second: &[("Coordinator", |n| n - 2)],
        formulas: ["N(N−1)/2 + (N−1)(N−2)/2", "N−2"],
        case: |n| Ok(Case::new("bully", n, &[0]).without(n - 1)),
    },
    Phased {
        algorithm: "isis",
        published: "poll reception times; choose the delivery time",
        first: &[("Message", |n| n - 1), ("Propose", |n| n - 1)],
        second: &[("Agree", |n| n - 1)],
        formulas: ["2(N−1)", "N−1"],
        case: |n| Ok(Case::new("isis", n, &[0])),
    },
    Phased {
        algorithm: "two-phase-commit",
        published: "ask to commit; commit or roll back",
        first: &[("Prepare", |n| n - 1), ("Yes", |n| n - 1)],
        second: &[("Commit", |n| n - 1), ("Ack", |n| n - 1)],
        formulas: ["2(N−1)", "2(N−1)"],
        case: |n| committing(n - 1, "Commit"),
    },
];

fn table() -> Result<Found, LabError> {
    let mut rows = Vec::new();
    let mut properties = Vec::new();
    for phased in &ROWS {
        let mut apart = true;
        for n in [3, 4, 8] {
            let trace = (phased.case)(n)?.run()?.trace;
            let trace = trace.ok_or_else(|| LabError::new("a run is too long to be told"))?;
            let phases = Phases::of(&trace, phased);
            apart &= phases.are_apart;
            let parts = [phased.first, phased.second];
            for (phase, (parts, kinds)) in parts.into_iter().zip(phases.kinds).enumerate() {
                let parts: Vec<(&str, usize)> = parts
                    .iter()
                    .map(|(kind, count)| (*kind, count(n)))
                    .collect();
                let what = format!("{}, phase {}", phased.algorithm, phase + 1);
                let formula = phased.formulas[phase];
                rows.push(published(what, n, formula, &parts, kinds));
            }
        }
        properties.push(PropertyRow {
            algorithm: phased.algorithm,
            property: "two phases",
            published: phased.published,
            found: match apart {
                true => {
                    "nothing of the first phase is sent or arrives after the second began".into()
                }
                false => "the phases overlap".into(),
            },
            reached: apart,
        });
    }
    let measured = Measured {
        title: "Messages of each phase",
        subtitle: "one request each",
        along: "nodes",
        counted: "messages",
    };
    Ok(Found {
        chart: chart(&measured, &rows),
        rows,
        properties,
    })
}

/// The messages of a run, by phase.
struct Phases {
    kinds: [Kinds; 2],
    /// Whether the first was over when the second began.
    are_apart: bool,
}

impl Phases {
    fn of(trace: &Trace, phased: &Phased) -> Phases {
        let is_first = |kind: &str| phased.first.iter().any(|(first, _)| *first == kind);
        let mut phases = Phases {
            kinds: [Kinds::new(), Kinds::new()],
            are_apart: true,
        };
        let mut under_way: BTreeMap<u64, bool> = BTreeMap::new();
        let mut second_began = false;
        for (_, event) in &trace.events {
            let of_first = match event {
                Event::Send { number, label, .. } => {
                    let kind = label.split(|c: char| !c.is_alphanumeric()).next();
                    let kind = kind.unwrap_or_default();
                    under_way.insert(*number, is_first(kind));
                    let phase = usize::from(!is_first(kind));
                    *phases.kinds[phase].entry(kind.to_owned()).or_default() += 1;
                    second_began |= phased.second.iter().any(|(second, _)| *second == kind);
                    is_first(kind)
                }
                Event::Deliver(number) => under_way.get(number).copied().unwrap_or(false),
                Event::Tell(_, TellKind::Enters, _) => {
                    second_began |= phased.second.is_empty();
                    false
                }
                _ => false,
            };
            phases.are_apart &= !(second_began && of_first);
        }
        phases.are_apart &= second_began;
        phases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_that_overlap_are_seen() {
        let isis = &ROWS[2];
        let trace = |algorithm: &'static str, callers: &[usize]| {
            let run = Case::new(algorithm, 3, callers).run().expect("known");
            run.trace.expect("short")
        };
        assert!(Phases::of(&trace("isis", &[0]), isis).are_apart);
        let together = Phases::of(&trace("isis", &[0, 1, 2]), isis);
        assert!(
            !together.are_apart,
            "one has agreed while others still poll"
        );
        let swapped = Phased {
            first: isis.second,
            second: isis.first,
            ..ROWS[2]
        };
        assert!(!Phases::of(&trace("isis", &[0]), &swapped).are_apart);
        let other = Phases::of(&trace("ring-election", &[0]), &ROWS[0]);
        assert!(!other.are_apart, "nobody enters");
    }
}
