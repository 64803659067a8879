//! What a run counts: the paper's indicators, and the checks that a simulation must pass.

use std::collections::VecDeque;

use serde::Serialize;
use testigo_protocol::NodeId;

use super::Rounds;
use super::load::{Demand, RATES_LAST};
use super::player::Seen;

/// What a run of the simulation found. Its field names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundsReport {
    pub seed: u64,
    /// Uses that began, and uses that failed.
    pub successful: u64,
    pub failed: u64,
    pub multicasts: u64,
    /// E: successful uses per multicast; null if there was no multicast.
    pub efficiency: Option<f64>,
    /// R: failed uses per successful one.
    pub failed_ratio: f64,
    /// U: the mean share of slots in use.
    pub utilisation: f64,
    /// The mean lifetime of the uses that began, in rounds.
    pub lifetime: f64,
    /// By what share used slots differ from successful uses per round times their lifetime (Little's law).
    pub little: f64,
    pub response: Response,
    /// How many rounds waiting uses waited, on average and at most.
    pub waited: u64,
    pub waiting_mean: f64,
    pub waiting_max: u64,
    /// U in each of a hundred windows.
    pub utilisation_windows: Vec<f64>,
    /// Successful and failed uses per round in each of a hundred windows.
    pub successful_windows: Vec<f64>,
    pub failed_windows: Vec<f64>,
    /// The widest difference between the means of U in ten windows.
    pub utilisation_range: f64,
    /// U between one change of the rates (λ) and the next, and after the last one.
    pub utilisation_periods: Vec<f64>,
    /// The widest difference between the periods that ended; null if there are fewer than two.
    pub utilisation_period_range: Option<f64>,
    /// The same with the last one, if it did not end but is long enough.
    pub utilisation_unended_range: Option<f64>,
    /// Spearman's rank correlation of what members asked for with what they owned; null if there is no variation.
    pub equity: Option<f64>,
}

/// How long members that asked waited for their first slot.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Response {
    /// How many requests took how many of their own multicasts, from the request to the first slot, both included.
    pub own: Vec<u64>,
    /// The mean number of all multicasts meanwhile.
    pub all_mean: f64,
    /// The mean number of rounds meanwhile.
    pub rounds_mean: f64,
    /// Requests that brought nothing.
    pub nothing: u64,
}

impl Response {
    /// Of the requests that brought something, the share that did so with this many multicasts.
    pub fn share(&self, multicasts: usize) -> f64 {
        let all: u64 = self.own.iter().sum();
        let some = self.own.get(multicasts).copied().unwrap_or(0);
        some as f64 / all.max(1) as f64
    }
}

/// Little's law must hold within this share.
pub const LITTLE_MAX: f64 = 0.02;
/// Windows of the report, for pictures.
const WINDOWS: u64 = 100;
/// Windows over which the utilisation must be stable.
const STABLE_WINDOWS: usize = 10;
/// The time between two changes of λ, or from the last one to the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    /// How many of its rounds are measured.
    pub(super) measured: u64,
    /// Whether the run saw it end.
    pub(super) ended: bool,
}

impl Period {
    /// A period that did not end counts beside the others if at least so many of its rounds are measured.
    pub(super) const UNENDED_MIN: u64 = RATES_LAST / 5;

    /// The periods that a run measures, wholly or in part.
    pub(super) fn of(warm_up: u64, rounds: u64) -> impl Iterator<Item = Period> {
        let end = warm_up + rounds;
        let starts = (warm_up / RATES_LAST..end.div_ceil(RATES_LAST)).map(|at| at * RATES_LAST);
        starts.map(move |start| Period {
            measured: end.min(start + RATES_LAST) - start.max(warm_up),
            ended: start + RATES_LAST <= end,
        })
    }

    fn counts(self) -> bool {
        self.ended || self.measured >= Period::UNENDED_MIN
    }
}

pub(super) struct Measures {
    slots: f64,
    seed: u64,
    warm_up: u64,
    rounds: u64,
    measured: bool,
    window: usize,
    successful: u64,
    failed: u64,
    lifetimes: u64,
    used: u64,
    owned: Vec<u64>,
    offered: Vec<f64>,
    waited: u64,
    waiting: u64,
    waiting_max: u64,
    multicasts: u64,
    /// All multicasts, including those of the warm-up.
    place: u64,
    /// When each member multicast those of its requests that SPREAD has not forwarded yet.
    emitted: Vec<VecDeque<u64>>,
    open: Vec<Option<Open>>,
    /// How many slots are on the free list of the contrast: the order of the messages alone decides it.
    listed: u32,
    response: Response,
    all: u64,
    took: u64,
    windows: Vec<Window>,
    /// Used slots, summed over the measured rounds of each period.
    periods: Vec<u64>,
    period: usize,
}

#[derive(Clone, Copy)]
struct Open {
    place: u64,
    /// When its member multicast it.
    round: u64,
    multicasts: usize,
}

#[derive(Clone, Copy, Default)]
struct Window {
    rounds: u64,
    used: u64,
    successful: u64,
    failed: u64,
}

impl Measures {
    pub(super) fn new(plan: &Rounds) -> Measures {
        Measures {
            slots: f64::from(plan.slots),
            seed: plan.seed,
            warm_up: plan.warm_up,
            rounds: plan.rounds,
            measured: false,
            window: 0,
            successful: 0,
            failed: 0,
            lifetimes: 0,
            used: 0,
            owned: vec![0; plan.members],
            offered: vec![0.0; plan.members],
            waited: 0,
            waiting: 0,
            waiting_max: 0,
            multicasts: 0,
            place: 0,
            emitted: vec![VecDeque::new(); plan.members],
            open: vec![None; plan.members],
            listed: plan.slots,
            response: Response::default(),
            all: 0,
            took: 0,
            windows: vec![Window::default(); plan.rounds.min(WINDOWS) as usize],
            periods: vec![0; Period::of(plan.warm_up, plan.rounds).count()],
            period: 0,
        }
    }

    pub(super) fn begin(&mut self, round: u64, demand: &Demand<'_>) {
        self.measured = round >= self.warm_up;
        if self.measured {
            let at = (round - self.warm_up) * self.windows.len() as u64 / self.rounds;
            self.window = at as usize;
            self.windows[self.window].rounds += 1;
            self.period = (round / RATES_LAST - self.warm_up / RATES_LAST) as usize;
            for (member, offered) in self.offered.iter_mut().enumerate() {
                *offered += demand.offered(member);
            }
        }
    }

    pub(super) fn started(&mut self, lifetime: u32, waited: u64) {
        if self.measured {
            self.successful += 1;
            self.lifetimes += u64::from(lifetime);
            self.windows[self.window].successful += 1;
            self.waited += u64::from(waited > 0);
            self.waiting += waited;
            self.waiting_max = self.waiting_max.max(waited);
        }
    }

    pub(super) fn failed(&mut self) {
        if self.measured {
            self.failed += 1;
            self.windows[self.window].failed += 1;
        }
    }

    /// A member hands a multicast to SPREAD.
    pub(super) fn emitted(&mut self, round: u64, from: NodeId, seen: Seen) {
        if matches!(seen, Seen::Request | Seen::Fork { .. }) {
            self.emitted[from.index()].push_back(round);
        }
    }

    /// Counts a multicast at its place in the order.
    pub(super) fn forwarded(&mut self, round: u64, from: NodeId, seen: Seen) {
        self.place += 1;
        self.multicasts += u64::from(self.measured);
        match seen {
            Seen::Request => {
                let open = Open {
                    place: self.place,
                    round: self.emitted_at(from),
                    multicasts: 1,
                };
                let before = self.open[from.index()].replace(open);
                self.response.nothing += u64::from(self.measured && before.is_some());
            }
            Seen::Answer { to, slots } => {
                let Some(open) = &mut self.open[to.index()] else {
                    return;
                };
                open.multicasts += 1;
                if slots == 0 {
                    return;
                }
                let open = *open;
                self.open[to.index()] = None;
                self.brought(open, round);
            }
            Seen::Fork { count } => {
                let open = Open {
                    place: self.place,
                    round: self.emitted_at(from),
                    multicasts: 1,
                };
                let slots = count.min(self.listed);
                self.listed -= slots;
                match slots {
                    0 => self.response.nothing += u64::from(self.measured),
                    _ => self.brought(open, round),
                }
            }
            Seen::Exit { slots } => self.listed += slots,
            Seen::Other => {}
        }
    }

    fn emitted_at(&mut self, from: NodeId) -> u64 {
        let emitted = self.emitted[from.index()].pop_front();
        emitted.expect("SPREAD forwards what was multicast")
    }

    /// A request brought its first slot.
    fn brought(&mut self, open: Open, round: u64) {
        if self.measured {
            let own = &mut self.response.own;
            own.resize(own.len().max(open.multicasts + 1), 0);
            own[open.multicasts] += 1;
            self.all += self.place - open.place + 1;
            // The member hears of it in the next round.
            self.took += round - open.round + 1;
        }
    }

    pub(super) fn after(&mut self, member: usize, used: u32, owned: u32) {
        if self.measured {
            self.used += u64::from(used);
            self.owned[member] += u64::from(owned);
            self.windows[self.window].used += u64::from(used);
            self.periods[self.period] += u64::from(used);
        }
    }

    pub(super) fn report(mut self) -> RoundsReport {
        let rounds = self.rounds.max(1) as f64;
        let successful = self.successful.max(1) as f64;
        let lifetime = self.lifetimes as f64 / successful;
        let used = self.used as f64 / rounds;
        let expected = self.lifetimes as f64 / rounds;
        let brought: u64 = self.response.own.iter().sum();
        self.response.all_mean = self.all as f64 / brought.max(1) as f64;
        self.response.rounds_mean = self.took as f64 / brought.max(1) as f64;
        let per_round = |of: fn(&Window) -> u64| -> Vec<f64> {
            let windows = self.windows.iter();
            windows
                .map(|window| of(window) as f64 / window.rounds.max(1) as f64)
                .collect()
        };
        let utilisation: Vec<f64> = per_round(|window| window.used)
            .into_iter()
            .map(|used| used / self.slots)
            .collect();
        let size = utilisation.len().div_ceil(STABLE_WINDOWS).max(1);
        let means = utilisation
            .chunks(size)
            .map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64);
        let periods = self.periods.iter();
        let periods: Vec<(Period, f64)> = Period::of(self.warm_up, self.rounds)
            .zip(periods)
            .map(|(period, used)| (period, *used as f64 / period.measured as f64 / self.slots))
            .collect();
        let period_range = |counts: fn(&Period) -> bool| {
            let counted = periods.iter().filter(|(period, _)| counts(period));
            let counted: Vec<f64> = counted.map(|(_, used)| *used).collect();
            (counted.len() > 1).then(|| range(counted.into_iter()))
        };
        let owned: Vec<f64> = self.owned.iter().map(|&owned| owned as f64).collect();
        RoundsReport {
            seed: self.seed,
            successful: self.successful,
            failed: self.failed,
            multicasts: self.multicasts,
            efficiency: (self.multicasts > 0)
                .then(|| self.successful as f64 / self.multicasts as f64),
            failed_ratio: self.failed as f64 / successful,
            utilisation: used / self.slots,
            lifetime,
            little: (used - expected).abs() / expected.max(1.0),
            waited: self.waited,
            waiting_mean: self.waiting as f64 / self.waited.max(1) as f64,
            waiting_max: self.waiting_max,
            successful_windows: per_round(|window| window.successful),
            failed_windows: per_round(|window| window.failed),
            utilisation_range: range(means),
            utilisation_windows: utilisation,
            utilisation_period_range: period_range(|period| period.ended),
            utilisation_unended_range: period_range(|period| period.counts()),
            utilisation_periods: periods.iter().map(|(_, used)| *used).collect(),
            equity: rank_correlation(&self.offered, &owned),
            response: self.response,
        }
    }
}

/// The difference between the highest and the lowest.
fn range(values: impl Iterator<Item = f64>) -> f64 {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    (high - low).max(0.0)
}

/// Spearman's: the correlation of the ranks.
fn rank_correlation(left: &[f64], right: &[f64]) -> Option<f64> {
    let (left, right) = (ranks(left), ranks(right));
    let mean = (left.len() as f64 + 1.0) / 2.0;
    let product = |one: &[f64], other: &[f64]| -> f64 {
        let pairs = one.iter().zip(other);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let scale = (product(&left, &left) * product(&right, &right)).sqrt();
    (scale > 0.0).then(|| product(&left, &right) / scale)
}

/// Ranks from 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_begins_with_every_change_of_the_rates() {
        let cut = |warm_up, rounds| {
            let periods = Period::of(warm_up, rounds);
            let periods = periods.map(|period| (period.measured, period.ended));
            periods.collect::<Vec<_>>()
        };
        let (whole, first) = ((10_000, true), (8_000, true));
        let last = (2_000, false);
        assert_eq!(
            cut(2_000, 50_000),
            [first, whole, whole, whole, whole, last]
        );
        assert_eq!(cut(2_000, 48_000), [first, whole, whole, whole, whole]);
        assert_eq!(cut(2_000, 10_000), [first, last]);
        assert_eq!(cut(12_000, 9_000), [first, (1_000, false)]);
        assert_eq!(cut(0, 400), [(400, false)]);
    }

    #[test]
    fn the_periods_of_a_run_are_its_windows_between_changes_of_the_rates() {
        let plan = |rounds| Rounds {
            members: 4,
            slots: 96,
            rounds,
            ..Rounds::published(
                super::super::Allocation::STRICT,
                super::super::Load::OwnMeans,
            )
        };
        // A hundred windows of 200 rounds: cut after 40, 90 and 100 of them.
        let report = plan(20_000).run();
        let mean = |windows: &[f64]| windows.iter().sum::<f64>() / windows.len() as f64;
        let windows = &report.utilisation_windows;
        let expected = [&windows[..40], &windows[40..90], &windows[90..]].map(mean);
        assert_eq!(report.utilisation_periods.len(), 3);
        for (found, expected) in report.utilisation_periods.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
        }
        let close = |found: Option<f64>, expected: &[f64]| {
            let expected = range(expected.iter().copied());
            assert!((found.expect("two periods") - expected).abs() < 1e-12);
        };
        close(report.utilisation_period_range, &expected[..2]);
        close(report.utilisation_unended_range, &expected);
        // A change, and too few rounds after it.
        let report = plan(9_000).run();
        assert_eq!(report.utilisation_periods.len(), 2);
        assert_eq!(report.utilisation_unended_range, None);
    }

    #[test]
    fn ranks_are_correlated_as_spearman_has_it() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 7.0]), [2.5, 1.0, 2.5, 4.0]);
        let close = |found: Option<f64>, expected: f64| {
            assert!(
                (found.expect("a number") - expected).abs() < 1e-12,
                "{found:?}"
            );
        };
        close(
            rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 200.0, 3000.0]),
            1.0,
        );
        close(rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        close(
            rank_correlation(&[1.0, 2.0, 3.0, 4.0], &[2.0, 1.0, 4.0, 3.0]),
            0.6,
        );
        assert_eq!(rank_correlation(&[1.0, 2.0], &[5.0, 5.0]), None);
    }
}
