//! Our own way to donate, compared with SLOTS: what it costs, how often it fails, how fast it answers.

use super::columns::{
    EFFICIENCY, FAILED, FREE_HIGH, LITTLE, RESPONSE_2, RESPONSE_ROUNDS, SETTING, UTILISATION,
};
use super::reproduce::{Found, Number};
use super::sample::{Case, Effort, run_cases};
use super::words::{LIFETIME, OPEN};
use super::{Allocation, Load, Rounds};
use crate::draw::{Axis, AxisScale, Chart, Origin, Series, Shape};

/// The mean lifetimes at which it must do better.
const BARS: [f64; 2] = [28.0, 40.0];
/// How many times the efficiency of SLOTS it must reach.
const TIMES: f64 = 5.0;
/// How often 2 multicasts must suffice for a request while slots are plentiful.
const PROMPT: f64 = 0.9;

const ALGORITHMS: [Allocation; 6] = [
    Allocation::STRICT,
    Allocation::ByDemand,
    Allocation::Directed,
    Allocation::Contrast,
    Allocation::Static,
    Allocation::Central,
];

pub(super) fn run(effort: Effort, done: &(dyn Fn(usize, usize) + Sync)) -> Found {
    let means = [BARS[0], LIFETIME, BARS[1], 50.0];
    let loads = means.map(Load::OneMean).into_iter().chain([Load::OwnMeans]);
    let cases = run_cases(&settings(loads), effort, done);
    let mut columns = SETTING.to_vec();
    columns.extend([
        FREE_HIGH,
        EFFICIENCY,
        FAILED,
        UTILISATION,
        RESPONSE_2,
        RESPONSE_ROUNDS,
        LITTLE,
    ]);
    Found {
        columns,
        published: Vec::new(),
        numbers: bars(&cases),
        words: vec![
            "directed is no algorithm of the paper. Every message says how many free slots its sender has, and whoever \
             becomes rich says so. A request names the richest members, usually one, and only they answer. Where they have \
             nothing, or nobody is known to be rich, whoever has slots to spare gives one, the others stay silent, and the \
             wish stands until it is served."
                .into(),
            "by-demand is SLOTS as repaired, but for FREE_LOW, which the paper says may be adapted: each member keeps as many free \
             slots as users came for while its last request was under way, and one more, up to 16; where fewer come, it keeps one \
             less each time."
                .into(),
            "A request that found nobody with slots to spare waits for them, so the rounds to its first slot are more than \
             those of SLOTS, where such a request ends with nothing and is made again."
                .into(),
        ],
        open: OPEN,
        chart: chart(&cases),
        cases,
    }
}

fn settings(loads: impl IntoIterator<Item = Load>) -> Vec<Rounds> {
    let loads = loads.into_iter();
    loads
        .flat_map(|load| ALGORITHMS.map(|algorithm| Rounds::published(algorithm, load.clone())))
        .collect()
}

fn bars(cases: &[Case]) -> Vec<Number> {
    let means = BARS.iter();
    means.flat_map(|&mean| numbers(cases, mean)).collect()
}

fn numbers(cases: &[Case], mean: f64) -> Vec<Number> {
    let preset = Load::OneMean(mean).name();
    let of = |algorithm: Allocation| {
        let mut cases = cases.iter();
        cases.find(|case| case.preset == preset && case.algorithm == algorithm.name())
    };
    let (Some(strict), Some(directed)) = (of(Allocation::STRICT), of(Allocation::Directed)) else {
        return Vec::new();
    };
    let number = |number: &str, bar: f64, found: f64, reached: bool| Number {
        number: number.to_owned(),
        published: bar,
        bar: true,
        found,
        low: None,
        high: None,
        setting: directed.setting(),
        share: false,
        reached,
        why: "See the picture: efficiency against failures.".into(),
    };
    let (ours, theirs) = (directed.utilisation, strict.utilisation);
    let used = ours.high.unwrap_or(ours.mean) >= theirs.low.unwrap_or(theirs.mean);
    let (fails, failed) = (directed.failed_ratio, strict.failed_ratio);
    let fewer = fails.low.unwrap_or(fails.mean) <= failed.high.unwrap_or(failed.mean);
    let mean_of = |summary: Option<crate::Summary>| summary.map_or(0.0, |summary| summary.mean);
    let times = mean_of(directed.efficiency) / mean_of(strict.efficiency);
    let prompt = mean_of(directed.response_2);
    let bar = match mean == BARS[0] {
        true => PROMPT,
        false => mean_of(strict.response_2),
    };
    vec![
        number(
            "utilisation, no worse than strict",
            theirs.mean,
            ours.mean,
            used,
        )
        .in_percent(),
        number(
            "failed per successful, no worse than strict",
            failed.mean,
            fails.mean,
            fewer,
        ),
        number(
            "times the efficiency of strict, at least",
            TIMES,
            times,
            times >= TIMES,
        ),
        number(
            "responses with 2 multicasts, at least",
            bar,
            prompt,
            prompt >= bar,
        )
        .in_percent(),
    ]
}

/// Efficiency against failures: a line per algorithm, from light to heavy load.
fn chart(cases: &[Case]) -> Chart {
    let mut series = Vec::new();
    for (at, algorithm) in ALGORITHMS.iter().enumerate() {
        let points = cases
            .iter()
            .filter(|case| case.algorithm == algorithm.name() && case.preset != "B")
            .filter_map(|case| Some((case.failed_ratio.mean, case.efficiency?.mean)));
        let points: Vec<(f64, f64)> = points.collect();
        if !points.is_empty() {
            series.push(Series {
                name: algorithm.name().into(),
                shape: Shape::Line(points),
                origin: Origin::Measured,
                colour: Some(at),
            });
        }
    }
    Chart {
        title: "What a slot costs, and how often there is none".into(),
        subtitle: "Preset A with mean lifetimes of 28, 31.5, 40 and 50 rounds, from left to right; 32 members, 768 slots, \
                   FREE_LOW 4, FREE_HIGH 8. static multicasts nothing."
            .into(),
        x: Axis {
            title: "failed uses per successful one".into(),
            scale: AxisScale::Linear,
        },
        y: Axis {
            title: "successful uses per multicast".into(),
            scale: AxisScale::Log,
        },
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTED: &str = "directed";

    fn cases() -> Vec<Case> {
        let effort = Effort {
            seeds: 1,
            rounds: 5_000,
            full: false,
        };
        run_cases(&settings(BARS.map(Load::OneMean)), effort, &|_, _| {})
    }

    /// The other algorithm's case with the same load.
    fn beside<'a>(cases: &'a [Case], case: &Case, algorithm: Allocation) -> &'a Case {
        let same =
            |other: &&Case| other.preset == case.preset && other.algorithm == algorithm.name();
        cases
            .iter()
            .find(same)
            .expect("every algorithm meets every load")
    }

    fn reached(cases: &[Case]) -> Vec<bool> {
        let bars = bars(cases);
        bars.into_iter().map(|number| number.reached).collect()
    }

    #[test]
    fn every_bar_is_reached_and_a_worse_algorithm_misses_it() {
        let cases = cases();
        let found = bars(&cases);
        assert_eq!(found.len(), 8);
        for number in found {
            assert!(number.bar && number.reached, "{number:?}");
        }

        // Specimens: one number at a time is that of shares which nobody balances, and which answer nobody.
        let worse: [fn(&mut Case, &Case); 4] = [
            |case, worse| case.utilisation = worse.utilisation,
            |case, worse| case.failed_ratio = worse.failed_ratio,
            |case, worse| case.efficiency = worse.efficiency,
            |case, worse| case.response_2 = worse.response_2,
        ];
        for (at, doctor) in worse.iter().enumerate() {
            let mut doctored = cases.clone();
            for case in doctored
                .iter_mut()
                .filter(|case| case.algorithm == DIRECTED)
            {
                doctor(case, beside(&cases, case, Allocation::Static));
            }
            let expected: Vec<bool> = (0..8).map(|number| number % 4 != at).collect();
            assert_eq!(reached(&doctored), expected);
        }

        // A specimen that is SLOTS itself: no worse than SLOTS, but not 5 times as efficient.
        let mut doctored = cases.clone();
        for case in doctored
            .iter_mut()
            .filter(|case| case.algorithm == DIRECTED)
        {
            let algorithm = case.algorithm;
            *case = Case {
                algorithm,
                ..beside(&cases, case, Allocation::STRICT).clone()
            };
        }
        for (at, reached) in reached(&doctored).into_iter().enumerate() {
            match at % 4 {
                0 | 1 => assert!(reached, "{at}"),
                2 => assert!(!reached, "{at}"),
                _ => {}
            }
        }
    }
}
