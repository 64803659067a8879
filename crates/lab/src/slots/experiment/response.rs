//! Figure 9: how many multicasts it takes from a request to its first slot.

use super::columns::{
    LITTLE, NOTHING, RESPONSE_2, RESPONSE_2_OR_3, RESPONSE_3, RESPONSE_ALL, RESPONSE_ROUNDS,
    SETTING, UTILISATION,
};
use super::reproduce::{Found, Number};
use super::sample::{Case, Effort, run_cases};
use super::words::{LIFETIME, OPEN, PRESETS, RESPONSE, judged, reading};
use super::{Allocation, Load, Rounds};
use crate::Summary;
use crate::draw::{Axis, AxisScale, Chart, Origin, Series, Shape};

/// The share that the first two values must reach together; in Fig. 9 they are 95 %.
const FIRST_TWO: f64 = 0.9;

pub(super) fn run(effort: Effort, done: &(dyn Fn(usize, usize) + Sync)) -> Found {
    let mut settings = Vec::new();
    for (load, spread_cap) in [
        (Load::OneMean(28.0), None),
        (Load::OneMean(LIFETIME), None),
        (Load::OneMean(40.0), None),
        (Load::OwnMeans, None),
        (Load::OneMean(LIFETIME), Some(1)),
        (Load::OwnMeans, Some(1)),
    ] {
        settings.push(Rounds {
            spread_cap,
            ..Rounds::published(Allocation::STRICT, load)
        });
    }
    let cases = run_cases(&settings, effort, done);
    let mut columns = SETTING.to_vec();
    columns.extend([
        RESPONSE_2,
        RESPONSE_3,
        RESPONSE_2_OR_3,
        RESPONSE_ALL,
        RESPONSE_ROUNDS,
        NOTHING,
        UTILISATION,
        LITTLE,
    ]);
    let published = vec![vec![
        "Fig. 9", "-", "fail", "SLOTS", "79", "16", "95", "-", "-", "-", "73", "-",
    ]];
    Found {
        columns,
        published,
        numbers: numbers(&cases),
        words: vec![
            "The paper lists 79 % and 16 %, and leaves 5 % to all other values. The share of 2 falls and that of 3 rises \
             with the load: the more members have nothing to give, the likelier is a null answer before the first slot."
                .into(),
            "Requests that brought nothing have no response time; the paper does not say how many there were.".into(),
            judged(effort),
            reading(false),
        ],
        open: OPEN,
        chart: chart(&cases),
        cases,
    }
}

fn numbers(cases: &[Case]) -> Vec<Number> {
    let with = |of: fn(&Case) -> Option<Summary>| {
        let found = cases.iter().filter_map(move |case| Some((case, of(case)?)));
        found.collect::<Vec<_>>()
    };
    let why = "It moves with the load, which the paper does not give.";
    let mut numbers = Vec::new();
    numbers.extend(
        Number::nearest(
            "2 multicasts",
            RESPONSE[0],
            with(|case| case.response_2),
            why,
        )
        .map(Number::in_percent),
    );
    numbers.extend(
        Number::nearest(
            "3 multicasts",
            RESPONSE[1],
            with(|case| case.response_3),
            why,
        )
        .map(Number::in_percent),
    );
    numbers.extend(
        with(|case| case.response_2_or_3)
            .into_iter()
            .map(|(case, found)| Number {
                number: "2 or 3 multicasts, at least".into(),
                published: FIRST_TWO,
                bar: true,
                found: found.mean,
                low: found.low,
                high: found.high,
                setting: case.setting(),
                share: true,
                reached: found.mean >= FIRST_TWO,
                why: "Fig. 9 has 95 % for both together.".into(),
            }),
    );
    numbers
}

/// The last place of the picture stands for all larger values.
const LAST: usize = 5;

fn chart(cases: &[Case]) -> Chart {
    let share = |case: &Case, place: usize| {
        let counts = case.reports.iter().flat_map(|report| {
            let own = report.response.own.iter().copied().enumerate();
            own.filter(move |(at, _)| (*at).min(LAST) == place)
        });
        let some: u64 = counts.map(|(_, count)| count).sum();
        let all: u64 = (case.reports.iter())
            .flat_map(|report| &report.response.own)
            .sum();
        100.0 * some as f64 / all.max(1) as f64
    };
    let mut series: Vec<Series> = cases
        .iter()
        .enumerate()
        .map(|(at, case)| Series {
            name: case.setting(),
            shape: Shape::Bars((2..=LAST).map(|place| Some(share(case, place))).collect()),
            origin: Origin::Measured,
            colour: Some(at),
        })
        .collect();
    series.push(Series {
        name: "Fig. 9".into(),
        shape: Shape::Bars(vec![
            Some(100.0 * RESPONSE[0]),
            Some(100.0 * RESPONSE[1]),
            None,
            None,
        ]),
        origin: Origin::Published,
        colour: None,
    });
    let names = ["2", "3", "4", "5 or more"].map(str::to_owned);
    Chart {
        title: "Multicasts from a request to its first slot (Fig. 9 of SLOTS)".into(),
        subtitle: format!(
            "Of the requests that brought a slot; the request counts as 1. 32 members, 768 slots, FREE_LOW 4. {PRESETS} \
             1 per round: SPREAD forwards one message per round, else all."
        ),
        x: Axis {
            title: "multicasts of that request".into(),
            scale: AxisScale::Categories(names.to_vec()),
        },
        y: Axis {
            title: "% of requests".into(),
            scale: AxisScale::Linear,
        },
        series,
    }
}
