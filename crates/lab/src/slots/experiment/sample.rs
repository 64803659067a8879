//! Many runs of one setting, and what they say together.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;

use super::{Allocation, LITTLE_MAX, Load, Rounds, RoundsReport};
use crate::Summary;

/// How much to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    pub seeds: u64,
    /// Measured rounds of each run, after the warm-up.
    pub rounds: u64,
    /// Whether to run the sweeps.
    pub full: bool,
}

impl Effort {
    pub const DEFAULT: Effort = Effort {
        seeds: 5,
        rounds: 10_000,
        full: false,
    };
    pub const FULL: Effort = Effort {
        seeds: 30,
        rounds: 50_000,
        full: true,
    };

    /// Rounds before anything is measured: as many as a slow SPREAD needs to spread the slots.
    pub const WARM_UP: u64 = 2_000;
}

/// What several runs of one setting found. Its field names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    pub preset: String,
    pub algorithm: &'static str,
    pub members: usize,
    pub free_low: u32,
    /// Of the contrast only.
    pub free_high: Option<u32>,
    /// Which of the paper's three optimisations are on; of SLOTS only.
    pub optimisations: Option<[bool; 3]>,
    /// How many messages SPREAD forwards in a round; null without a limit.
    pub spread_cap: Option<usize>,
    /// Whether donors together give no more than was asked for, and whether all members start with an equal part; of SLOTS only.
    pub exact_quota: bool,
    pub even: bool,
    /// Whether uses that find no slot wait instead of failing.
    pub waits: bool,
    pub lifetime: Summary,
    /// E; null if nothing is multicast.
    pub efficiency: Option<Summary>,
    /// R.
    pub failed_ratio: Summary,
    /// U.
    pub utilisation: Summary,
    /// How many requests of all runs brought their first slot with how many of their own multicasts, by that number, and how
    /// many brought nothing. A MSG_FORK of the contrast is answered by its own delivery: it is 1, or nothing.
    pub response_counts: BTreeMap<usize, u64>,
    pub response_counts_nothing: u64,
    /// The share of requests that brought a slot with 1 multicast; of the contrast only.
    pub response_1: Option<Summary>,
    /// The shares of requests that brought a slot with 2, with 3, and with either number of multicasts; null for the contrast, in
    /// which no answer follows a request.
    pub response_2: Option<Summary>,
    pub response_3: Option<Summary>,
    pub response_2_or_3: Option<Summary>,
    /// All multicasts, and rounds, from a request to its first slot.
    pub response_all: Option<Summary>,
    pub response_rounds: Option<Summary>,
    /// The share of requests that brought nothing.
    pub response_nothing: Option<Summary>,
    /// The share of uses that waited, how many rounds they waited on average, and the longest wait.
    pub waited: Summary,
    pub waiting: Summary,
    pub waiting_max: u64,
    /// The widest difference of U between ten windows of a run.
    pub utilisation_range: Summary,
    /// The widest difference of U between periods of a run, each from one change of λ to the next; null if fewer than two ended.
    pub utilisation_period_range: Option<Summary>,
    /// The same with the last period, if it did not end but a fifth of it was measured.
    pub utilisation_unended_range: Option<Summary>,
    pub equity: Option<Summary>,
    /// The largest deviation from Little's law in any run.
    pub little_max: f64,
    pub little_holds: bool,
    #[serde(skip)]
    pub reports: Vec<RoundsReport>,
}

/// Runs each distinct setting with every seed, on all cores; after each run, reports how many are done.
pub fn run_cases(
    settings: &[Rounds],
    effort: Effort,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Vec<Case> {
    // Sweeps contain the same setting several times.
    let mut different: Vec<&Rounds> = Vec::new();
    let place = |setting| {
        let known = different.iter().position(|known| *known == setting);
        known.unwrap_or_else(|| {
            different.push(setting);
            different.len() - 1
        })
    };
    let places: Vec<usize> = settings.iter().map(place).collect();
    let seeds = 1..=effort.seeds;
    let plans: Vec<Rounds> = different
        .iter()
        .flat_map(|setting| {
            seeds.clone().map(|seed| Rounds {
                seed,
                rounds: effort.rounds,
                warm_up: Effort::WARM_UP,
                ..(*setting).clone()
            })
        })
        .collect();
    let reports = run_all(&plans, done);
    let runs = effort.seeds.max(1) as usize;
    let of = |place: usize| reports.chunks(runs).nth(place).unwrap_or_default();
    let cases = settings.iter().zip(places);
    cases
        .map(|(setting, place)| Case::of(setting, of(place)))
        .collect()
}

fn run_all(plans: &[Rounds], done: &(dyn Fn(usize, usize) + Sync)) -> Vec<RoundsReport> {
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut found = Vec::new();
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(plan) = plans.get(at)
        {
            found.push((at, plan.run()));
            done(ended.fetch_add(1, Ordering::Relaxed) + 1, plans.len());
        }
        found
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut found: Vec<(usize, RoundsReport)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let found = workers.into_iter().map(|worker| worker.join());
        let found = found.map(|found| found.expect("a run does not panic"));
        found.flatten().collect()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, report)| report).collect()
}

impl Case {
    fn of(setting: &Rounds, reports: &[RoundsReport]) -> Case {
        let some = |of: &dyn Fn(&RoundsReport) -> Option<f64>| -> Option<Summary> {
            Summary::of(&reports.iter().filter_map(of).collect::<Vec<_>>())
        };
        let all = |of: &dyn Fn(&RoundsReport) -> f64| {
            some(&|report| Some(of(report))).expect("there is a run")
        };
        let positive = |summary: Summary| summary.within(0.0, f64::INFINITY);
        let share = |summary: Summary| summary.within(0.0, 1.0);
        let asked = |report: &RoundsReport| report.response.own.iter().sum::<u64>();
        let response = |of: &dyn Fn(&RoundsReport) -> f64| {
            some(&|report| (asked(report) > 0).then(|| of(report)))
        };
        let contrast = setting.algorithm == Allocation::Contrast;
        let with = |of_contrast: bool, numbers: &[usize]| -> Option<Summary> {
            let some = |report: &RoundsReport| {
                let shares = numbers.iter().map(|&number| report.response.share(number));
                shares.sum()
            };
            let found = (of_contrast == contrast).then(|| response(&some))?;
            found.map(share)
        };
        let little_max = reports
            .iter()
            .map(|report| report.little)
            .fold(0.0, f64::max);
        Case {
            preset: setting.load.name(),
            algorithm: setting.algorithm.name(),
            members: setting.members,
            free_low: setting.free_low,
            free_high: contrast.then_some(setting.free_high),
            optimisations: match setting.algorithm {
                Allocation::Strict { optimisations } => Some(optimisations),
                _ => None,
            },
            spread_cap: setting.spread_cap,
            exact_quota: setting.exact_quota,
            even: setting.even,
            waits: setting.waits,
            lifetime: all(&|report| report.lifetime),
            efficiency: some(&|report| report.efficiency),
            failed_ratio: positive(all(&|report| report.failed_ratio)),
            utilisation: share(all(&|report| report.utilisation)),
            response_counts: counts(reports),
            response_counts_nothing: reports.iter().map(|report| report.response.nothing).sum(),
            response_1: with(true, &[1]),
            response_2: with(false, &[2]),
            response_3: with(false, &[3]),
            response_2_or_3: with(false, &[2, 3]),
            response_all: response(&|report| report.response.all_mean),
            response_rounds: response(&|report| report.response.rounds_mean),
            response_nothing: response(&|report| {
                let nothing = report.response.nothing as f64;
                nothing / (nothing + asked(report) as f64)
            })
            .map(share),
            waited: share(all(&|report| {
                report.waited as f64 / report.successful.max(1) as f64
            })),
            waiting: all(&|report| report.waiting_mean),
            waiting_max: reports
                .iter()
                .map(|report| report.waiting_max)
                .max()
                .unwrap_or(0),
            utilisation_range: all(&|report| report.utilisation_range),
            utilisation_period_range: some(&|report| report.utilisation_period_range),
            utilisation_unended_range: some(&|report| report.utilisation_unended_range),
            equity: some(&|report| report.equity),
            little_max,
            little_holds: little_max < LITTLE_MAX,
            reports: reports.to_vec(),
        }
    }

    /// How many requests brought a slot.
    pub(super) fn responses(&self) -> u64 {
        self.response_counts.values().sum()
    }

    /// Of the requests that brought a slot, the share whose number of multicasts is among these.
    pub(super) fn response_share(&self, which: impl Fn(usize) -> bool) -> Option<f64> {
        let counts = self.response_counts.iter();
        let some: u64 = counts
            .filter(|(number, _)| which(**number))
            .map(|(_, count)| count)
            .sum();
        let all = self.responses();
        (all > 0).then(|| some as f64 / all as f64)
    }

    /// The setting in a few words.
    pub fn setting(&self) -> String {
        let cap = match self.spread_cap {
            None => String::new(),
            Some(cap) => format!(", {cap} per round"),
        };
        let waits = match self.waits {
            true => ", waiting",
            false => "",
        };
        format!("{}{cap}{waits}", self.preset)
    }
}

/// How many requests needed how many multicasts, of those that any request needed.
fn counts(reports: &[RoundsReport]) -> BTreeMap<usize, u64> {
    let mut counts = BTreeMap::new();
    for report in reports {
        let own = report.response.own.iter().enumerate();
        for (multicasts, count) in own.filter(|(_, count)| **count > 0) {
            *counts.entry(multicasts).or_insert(0) += count;
        }
    }
    counts
}

impl Load {
    /// The preset's name.
    pub fn name(&self) -> String {
        match self {
            Load::OneMean(mean) => format!("A {mean}"),
            Load::OwnMeans => "B".into(),
            Load::Script(_) => "script".into(),
        }
    }
}
