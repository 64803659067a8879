//! Figures 7 and 8: utilisation, and successful and failed uses, over time.

use super::columns::{
    Column, EFFICIENCY, FAILED, LIFETIME as LIFETIME_COLUMN, LITTLE, PERIOD_RANGE, RANGE, SETTING,
    UTILISATION,
};
use super::load::RATES_LAST;
use super::measures::Period;
use super::reproduce::{Found, Number};
use super::sample::{Case, Effort, run_cases};
use super::words::{LIFETIME, OPEN, PRESETS, SLOTS, judged, reading};
use super::{Allocation, Load, Rounds, RoundsReport};
use crate::draw::{Axis, AxisScale, Chart, Origin, Series, Shape};

/// How much windows of U may differ.
const STABLE: f64 = 0.05;

fn cases(effort: Effort, done: &(dyn Fn(usize, usize) + Sync)) -> Vec<Case> {
    let mut settings = Vec::new();
    for load in [Load::OneMean(LIFETIME), Load::OwnMeans] {
        for algorithm in [Allocation::STRICT, Allocation::Contrast] {
            settings.push(Rounds::published(algorithm, load.clone()));
        }
    }
    run_cases(&settings, effort, done)
}

pub(super) fn utilisation(effort: Effort, done: &(dyn Fn(usize, usize) + Sync)) -> Found {
    let cases = cases(effort, done);
    let strict = || cases.iter().filter(|case| case.algorithm == "strict");
    let mut numbers: Vec<Number> = Number::nearest(
        "SLOTS, steady utilisation",
        SLOTS[2],
        strict().map(|case| (case, case.utilisation)),
        "The level is that of the load, which the paper does not give; Table I has the same number.",
    )
    .map(Number::in_percent)
    .into_iter()
    .collect();
    numbers.extend(strict().filter_map(stable));
    let lines = |case: &Case| {
        vec![(
            String::new(),
            means(case, |report| &report.utilisation_windows),
        )]
    };
    let mut series = series(&cases, effort, 100.0, lines);
    series.push(level("Fig. 7: 73 %", 100.0 * SLOTS[2], effort));
    Found {
        columns: columns(),
        published: Vec::new(),
        numbers,
        words: vec![
            changes(effort),
            windows(&cases, effort),
            judged(effort),
            reading(false),
        ],
        open: OPEN,
        chart: chart(
            "Utilisation over time (Fig. 7 of SLOTS)",
            "% of the slots in use",
            effort,
            series,
        ),
        cases,
    }
}

/// Test 23, where λ changes within the measured rounds.
fn stable(case: &Case) -> Option<Number> {
    let range = case.utilisation_period_range?;
    Some(Number {
        number: "SLOTS, stable: windows of U, one between each two changes of λ, differ by less than".into(),
        published: STABLE,
        bar: true,
        found: range.max,
        low: None,
        high: None,
        setting: case.setting(),
        share: true,
        reached: range.max < STABLE,
        why: "The paper calls its curve stable across the changes of λ; this is the widest difference between any two \
              windows of a run, over all runs."
            .into(),
    })
}

/// Which windows are meant, and what others would find.
fn windows(cases: &[Case], effort: Effort) -> String {
    let widest = |of: fn(&Case) -> Option<f64>| {
        let strict = cases.iter().filter(|case| case.algorithm == "strict");
        let found = strict.filter_map(|case| {
            let points = 100.0 * of(case)?;
            Some(format!("{points:.2} points in {}", case.setting()))
        });
        found.collect::<Vec<_>>().join(" and ")
    };
    let tenths = format!(
        "Ten equal windows of a run, of {} rounds each, differ by up to {}.",
        effort.rounds / 10,
        widest(|case| Some(case.utilisation_range.max))
    );
    let (ended, unended): (Vec<Period>, Vec<Period>) =
        Period::of(Effort::WARM_UP, effort.rounds).partition(|period| period.ended);
    if ended.len() < 2 {
        return format!(
            "Whether U is stable across changes of λ is not judged: that takes two whole periods between changes, of \
             {RATES_LAST} rounds each with the warm-up. {tenths}"
        );
    }
    let rounds: Vec<String> = ended.iter().map(|one| one.measured.to_string()).collect();
    let last = widest(|case| case.utilisation_unended_range.map(|range| range.max));
    let last = unended.first().map_or(String::new(), |period| {
        format!(
            " The last change is followed by {} rounds, which are no whole period; as a window more, if they are \
             {} or more, they make it {last}.",
            period.measured,
            Period::UNENDED_MIN
        )
    });
    format!(
        "A window of U is a whole period between two changes of λ, without the warm-up (rounds: {}).{last} {tenths}",
        rounds.join(", ")
    )
}

pub(super) fn forks(effort: Effort, done: &(dyn Fn(usize, usize) + Sync)) -> Found {
    let cases = cases(effort, done);
    let strict = || cases.iter().filter(|case| case.algorithm == "strict");
    let mut numbers: Vec<Number> = Number::nearest(
        "SLOTS, failed per successful",
        SLOTS[1],
        strict().map(|case| (case, case.failed_ratio)),
        "It grows with the load, and the load is not known: the paper gives no mean lifetime.",
    )
    .into_iter()
    .collect();
    numbers.extend(strict().map(|case| {
        let windows = tenths(&means(case, |report| &report.successful_windows));
        let mean = windows.iter().sum::<f64>() / windows.len() as f64;
        let high = windows.iter().copied().fold(0.0, f64::max);
        let low = windows.iter().copied().fold(f64::INFINITY, f64::min);
        Number {
            number: "SLOTS, stable: windows of successful uses differ by less than".into(),
            published: 2.0 * STABLE,
            bar: true,
            found: (high - low) / mean,
            low: None,
            high: None,
            setting: case.setting(),
            share: true,
            reached: high - low < 2.0 * STABLE * mean,
            why: "The paper calls its curves stable; this is the widest difference between ten windows, as a share of \
                  their mean."
                .into(),
        }
    }));
    let lines = |case: &Case| {
        vec![
            (
                ", successful".to_owned(),
                means(case, |report| &report.successful_windows),
            ),
            (
                ", failed".to_owned(),
                means(case, |report| &report.failed_windows),
            ),
        ]
    };
    let series = series(&cases, effort, 1.0, lines);
    Found {
        columns: columns(),
        published: Vec::new(),
        numbers,
        words: vec![changes(effort), judged(effort), reading(false)],
        open: OPEN,
        chart: chart(
            "Successful and failed uses over time (Fig. 8 of SLOTS)",
            "uses per round",
            effort,
            series,
        ),
        cases,
    }
}

fn columns() -> Vec<Column> {
    let mut columns = SETTING.to_vec();
    columns.extend([
        UTILISATION,
        PERIOD_RANGE,
        RANGE,
        FAILED,
        EFFICIENCY,
        LIFETIME_COLUMN,
        LITTLE,
    ]);
    columns
}

fn changes(effort: Effort) -> String {
    let first = (RATES_LAST - Effort::WARM_UP).min(effort.rounds);
    let count = (effort.rounds + Effort::WARM_UP).saturating_sub(1) / RATES_LAST;
    match count {
        0 => "No rate of arrivals (λ) changes in so short a run.".into(),
        1 => format!("All rates of arrivals (λ) change once, {first} rounds after the warm-up."),
        _ => format!(
            "All rates of arrivals (λ) change {count} times, first {first} rounds after the warm-up."
        ),
    }
}

/// The mean of each window over all runs.
fn means(case: &Case, of: fn(&RoundsReport) -> &Vec<f64>) -> Vec<f64> {
    let runs = case.reports.len().max(1) as f64;
    let windows = case.reports.first().map_or(0, |report| of(report).len());
    (0..windows)
        .map(|at| {
            case.reports
                .iter()
                .map(|report| of(report)[at])
                .sum::<f64>()
                / runs
        })
        .collect()
}

fn tenths(windows: &[f64]) -> Vec<f64> {
    let size = windows.len().div_ceil(10).max(1);
    let mean = |chunk: &[f64]| chunk.iter().sum::<f64>() / chunk.len() as f64;
    windows.chunks(size).map(mean).collect()
}

fn series(
    cases: &[Case],
    effort: Effort,
    scale: f64,
    lines: impl Fn(&Case) -> Vec<(String, Vec<f64>)>,
) -> Vec<Series> {
    let mut series = Vec::new();
    for (colour, case) in cases.iter().enumerate() {
        for (at, (what, values)) in lines(case).into_iter().enumerate() {
            let width = effort.rounds as f64 / values.len().max(1) as f64;
            let points = values.iter().zip(0..).map(|(value, window)| {
                let middle = (f64::from(window) + 0.5) * width;
                (middle, scale * value)
            });
            series.push(Series {
                name: format!("{}, {}{what}", case.algorithm, case.preset),
                shape: Shape::Line(points.collect()),
                origin: match at {
                    0 => Origin::Measured,
                    _ => Origin::MeasuredBeside,
                },
                colour: Some(colour),
            });
        }
    }
    series
}

fn level(name: &str, value: f64, effort: Effort) -> Series {
    Series {
        name: name.into(),
        shape: Shape::Line(vec![(0.0, value), (effort.rounds as f64, value)]),
        origin: Origin::Published,
        colour: None,
    }
}

fn chart(title: &str, what: &str, effort: Effort, series: Vec<Series>) -> Chart {
    Chart {
        title: title.into(),
        subtitle: format!(
            "{}; 32 members, 768 slots, FREE_LOW 4, FREE_HIGH 8. strict: SLOTS; contrast: mutual exclusion. {PRESETS} {}",
            match effort.seeds {
                1 => "One run".to_owned(),
                seeds => format!("Means of {seeds} runs"),
            },
            changes(effort)
        ),
        x: Axis {
            title: "rounds after the warm-up".into(),
            scale: AxisScale::Linear,
        },
        y: Axis {
            title: what.into(),
            scale: AxisScale::Linear,
        },
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four members average so little of their rates that every change shows.
    fn found(load: Load, rounds: u64) -> (Vec<Number>, String) {
        let effort = Effort {
            seeds: 1,
            rounds,
            full: false,
        };
        let setting = Rounds {
            members: 4,
            slots: 96,
            ..Rounds::published(Allocation::STRICT, load)
        };
        let cases = run_cases(&[setting], effort, &|_, _| {});
        let numbers = cases.iter().filter_map(stable).collect();
        (numbers, windows(&cases, effort))
    }

    #[test]
    fn t23_stability_is_judged_by_one_window_for_each_rate() {
        let (numbers, words) = found(Load::OwnMeans, 18_000);
        assert!(numbers.len() == 1 && numbers[0].reached, "{numbers:?}");
        assert!(words.contains("(rounds: 8000, 10000)"), "{words}");
        let (numbers, words) = found(Load::OneMean(LIFETIME), 30_000);
        assert!(numbers.len() == 1 && !numbers[0].reached, "{numbers:?}");
        assert!(words.contains("(rounds: 8000, 10000, 10000)"), "{words}");
    }

    #[test]
    fn t23_a_run_without_a_change_of_the_rates_is_not_judged() {
        for rounds in [400, 17_999] {
            let (numbers, words) = found(Load::OwnMeans, rounds);
            assert_eq!(numbers, []);
            assert!(words.contains("is not judged"), "{words}");
            assert!(words.contains("Ten equal windows"), "{words}");
        }
    }
}
