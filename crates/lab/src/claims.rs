//! Published against measured: every claim of every profile, and what the laboratory finds.
//!
//! Properties are checked exhaustively at the profile's telling size, and where the checker cannot
//! cover them, in simulated runs. Costs are measured in runs without faults and with a latency of
//! one message time: messages and handing over under full load, entering with nobody in the way.

use serde::Serialize;
use testigo_protocol::{Claim, Cost, Measure, Setup};
use testigo_sim::{Latency, Time};

use crate::arrivals::Arrivals;
use crate::check::{CheckPlan, Checked, Verdict};
use crate::experiment::measure;
use crate::family::{KnownAlgorithm, LabError};
use crate::run::Report;
use crate::world::World;

/// One claim held against what was found. Its field names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub algorithm: &'static str,
    pub claim: String,
    /// As published: a formula and its value, or `claimed`.
    pub published: String,
    pub published_min: Option<f64>,
    pub published_max: Option<f64>,
    /// What was found, in words or as a number.
    pub measured: String,
    pub measured_value: Option<f64>,
    pub nodes: usize,
    pub holds: bool,
}

/// The sizes at which costs are measured.
const SIZES: [usize; 3] = [4, 7, 13];
/// Runs with random latency, where the checker cannot cover a claim.
const SEEDS: u64 = 100;
/// Enough to exhaust every telling configuration, few enough to stay quick.
const STATES_MAX: usize = 10_000_000;

/// Everything that an algorithm claims.
pub fn claims(algorithm: &KnownAlgorithm) -> Result<Vec<Finding>, LabError> {
    let profile = algorithm.profile;
    let telling = profile.telling;
    let plan = CheckPlan {
        states_max: STATES_MAX,
        ..CheckPlan::new(telling.entries as u32)
    };
    let checked = algorithm.check(&profile.telling_setup(), &plan)?;
    let mut findings = Vec::new();
    for claim in profile.claims {
        findings.push(match claim {
            Claim::Safety => property(algorithm, *claim, checked.safety, &checked, |report| {
                report.safe
            })?,
            Claim::Bypass => {
                let verdict = checked.bounds.unwrap_or(Verdict::NotCovered);
                property(algorithm, *claim, verdict, &checked, |report| {
                    report.bounded != Some(false)
                })?
            }
            Claim::DeadlockFreedom => property(
                algorithm,
                *claim,
                checked.deadlock_freedom,
                &checked,
                |report| report.live,
            )?,
            Claim::LockoutFreedom => property(
                algorithm,
                *claim,
                checked.lockout_freedom,
                &checked,
                |report| report.live,
            )?,
            Claim::Order => property(algorithm, *claim, Verdict::NotCovered, &checked, |r| {
                r.ordered != Some(false)
            })?,
        });
    }
    for cost in profile.costs {
        for users in SIZES {
            findings.push(measured(algorithm, cost, users)?);
        }
    }
    findings.extend(algorithm.counts()?);
    findings.extend(figures(algorithm)?);
    Ok(findings)
}

/// What is published for situations of their own.
pub fn figures(algorithm: &KnownAlgorithm) -> Result<Vec<Finding>, LabError> {
    let profile = algorithm.profile;
    let mut findings = Vec::new();
    // A specimen takes its profile from the algorithm that it breaks; the figures are that one's.
    for figure in profile
        .figures
        .iter()
        .filter(|_| profile.specimen.is_none())
    {
        for users in figure.sizes {
            findings.push(measure(algorithm, figure, *users)?);
        }
    }
    Ok(findings)
}

fn property(
    algorithm: &KnownAlgorithm,
    claim: Claim,
    verdict: Verdict,
    checked: &Checked,
    kept: fn(&Report) -> bool,
) -> Result<Finding, LabError> {
    let mut finding = Finding {
        algorithm: algorithm.profile.name,
        claim: claim.to_string(),
        published: "claimed".into(),
        published_min: None,
        published_max: None,
        measured: String::new(),
        measured_value: None,
        nodes: checked.nodes,
        holds: verdict != Verdict::Refuted,
    };
    match verdict {
        Verdict::Holds => {
            let states = if claim == Claim::LockoutFreedom {
                checked.liveness_states
            } else {
                checked.states
            };
            finding.measured = format!("holds in all {states} states");
        }
        Verdict::Refuted => {
            let steps = checked
                .counterexample
                .as_ref()
                .map_or(0, |found| found.steps);
            finding.measured = format!("refuted by a schedule of {steps} steps");
        }
        Verdict::NotCovered => {
            finding.nodes = 7;
            let broken = broken_runs(algorithm, finding.nodes, kept)?;
            finding.holds = broken == 0;
            finding.measured = match broken {
                0 => format!("kept in {SEEDS} simulated runs"),
                _ => format!("broken in {broken} of {SEEDS} simulated runs"),
            };
        }
    }
    Ok(finding)
}

/// How many of the seeded runs break a promise.
fn broken_runs(
    algorithm: &KnownAlgorithm,
    users: usize,
    kept: fn(&Report) -> bool,
) -> Result<u64, LabError> {
    let mut broken = 0;
    for seed in 0..SEEDS {
        let world = World {
            seed,
            latency: Latency::Exponential(Time::units(1)),
            arrivals: Arrivals::Closed(Latency::Exponential(Time::units(5))),
            ..World::default()
        };
        let report = algorithm.run(&Setup::new(users), &world, false)?.report;
        broken += u64::from(!kept(&report));
    }
    Ok(broken)
}

fn measured(algorithm: &KnownAlgorithm, cost: &Cost, users: usize) -> Result<Finding, LabError> {
    let setup = Setup::new(users);
    let arrivals = match cost.measure {
        // What is published of these is the cost of one alone.
        Measure::Messages if !algorithm.counted().has_inside() => one_at_a_time(users),
        Measure::Messages | Measure::MessagesBehind | Measure::SynchronisationDelay => {
            Arrivals::FULL_LOAD
        }
        Measure::EntryDelay => one_at_a_time(users),
    };
    let entries = match &arrivals {
        Arrivals::Script(items) => items.len() as u64,
        _ => 40 * users as u64,
    };
    let report = algorithm
        .run(
            &setup,
            &World {
                arrivals,
                entries,
                ..World::default()
            },
            false,
        )?
        .report;
    let value = match cost.measure {
        Measure::Messages => report.messages_per_entry,
        Measure::MessagesBehind => report.messages_behind,
        Measure::SynchronisationDelay => report.synchronisation_delay,
        Measure::EntryDelay => report.entry_delay,
    };
    let range = (cost.range)(&setup);
    Ok(Finding {
        algorithm: algorithm.profile.name,
        claim: cost.measure.per(algorithm.counted()),
        published: match cost.formula == range.to_string() {
            true => cost.formula.to_owned(),
            false => format!("{} = {range}", cost.formula),
        },
        published_min: Some(range.min),
        published_max: Some(range.max),
        measured: match value {
            Some(value) => format!("{value:.2}"),
            None => "nobody got in".into(),
        },
        measured_value: value,
        nodes: users,
        holds: value.is_some_and(|value| range.contains(value)),
    })
}

/// Every user once, with nobody else anywhere near.
fn one_at_a_time(users: usize) -> Arrivals {
    let apart = 10 * users as u64;
    Arrivals::Script(
        (0..users as u64)
            .map(|node| (node as u32, Time::units(node * apart)))
            .collect(),
    )
}
