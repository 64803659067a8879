//! Figure 9: how many multicasts it takes from a request to its first slot.

use super::columns::{
    LITTLE, NOTHING, REQUESTS, RESPONSE_1, RESPONSE_2, RESPONSE_2_OR_3, RESPONSE_3, RESPONSE_ALL,
    RESPONSE_MORE, RESPONSE_ROUNDS, SETTING, UTILISATION,
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
        settings.extend(
            [Allocation::STRICT, Allocation::Contrast].map(|algorithm| Rounds {
                spread_cap,
                ..Rounds::published(algorithm, load.clone())
            }),
        );
    }
    let cases = run_cases(&settings, effort, done);
    let mut columns = SETTING.to_vec();
    columns.extend([
        REQUESTS,
        RESPONSE_1,
        RESPONSE_2,
        RESPONSE_3,
        RESPONSE_2_OR_3,
        RESPONSE_MORE,
        RESPONSE_ALL,
        RESPONSE_ROUNDS,
        NOTHING,
        UTILISATION,
        LITTLE,
    ]);
    let published = vec![vec![
        "Fig. 9", "-", "fail", "SLOTS", "-", "-", "79", "16", "95", "-", "-", "-", "-", "73", "-",
    ]];
    Found {
        columns,
        published,
        numbers: numbers(&cases),
        words: vec![
            "The paper lists 79 % and 16 %, and leaves 5 % to all other values. The share of 2 falls and that of 3 rises \
             with the load: the more members have nothing to give, the likelier is a null answer before the first slot."
                .into(),
            "The contrast has no answers: its request, MSG_FORK, takes slots from the free list when it is delivered. It needs \
             1 multicast, or brings nothing, when the list is empty. The paper draws no response of the contrast."
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
    let bars = |case: &Case| {
        let share = |place: usize| {
            let share = case.response_share(|number| number.min(LAST) == place);
            share.map(|share| 100.0 * share)
        };
        Shape::Bars((1..=LAST).map(share).collect())
    };
    let of = |algorithm: &'static str| {
        let cases = cases.iter();
        cases.filter(move |case| case.algorithm == algorithm)
    };
    let strict = of(Allocation::STRICT.name()).map(|case| (case.setting(), case));
    // The contrast is the same in every setting: one series stands for all.
    let contrast = of(Allocation::Contrast.name()).take(1);
    let contrast = contrast.map(|case| ("contrast, in every setting".to_owned(), case));
    let named = strict.map(|(setting, case)| (format!("strict, {setting}"), case));
    let mut series: Vec<Series> = named
        .chain(contrast)
        .enumerate()
        .map(|(at, (name, case))| Series {
            name,
            shape: bars(case),
            origin: Origin::Measured,
            colour: Some(at),
        })
        .collect();
    series.push(Series {
        name: "Fig. 9".into(),
        shape: Shape::Bars(vec![
            None,
            Some(100.0 * RESPONSE[0]),
            Some(100.0 * RESPONSE[1]),
            None,
            None,
        ]),
        origin: Origin::Published,
        colour: None,
    });
    let names = ["1", "2", "3", "4", "5 or more"].map(str::to_owned);
    Chart {
        title: "Multicasts from a request to its first slot (Fig. 9 of SLOTS)".into(),
        subtitle: format!(
            "Of the requests that brought a slot; the request counts as 1, and is its own answer in the contrast. 32 members, 768 slots, FREE_LOW 4, FREE_HIGH 8. {PRESETS} \
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

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Effort = Effort {
        seeds: 1,
        rounds: 5_000,
        full: false,
    };

    fn bars(numbers: Vec<Number>) -> Vec<Number> {
        numbers.into_iter().filter(|number| number.bar).collect()
    }

    #[test]
    fn every_bar_is_reached() {
        let found = bars(run(SHORT, &|_, _| {}).numbers);
        assert_eq!(found.len(), 6, "one for each setting of SLOTS");
        for number in found {
            assert!(number.reached, "{number:?}");
        }
    }

    /// The specimen: without optimisation 3, null answers come before the first slot.
    #[test]
    fn members_that_do_not_hold_back_null_answers_miss_the_bar() {
        let optimisations = [true, true, false];
        let loads = [Load::OneMean(28.0), Load::OneMean(40.0)];
        let settings =
            loads.map(|load| Rounds::published(Allocation::Strict { optimisations }, load));
        let found = bars(numbers(&run_cases(&settings, SHORT, &|_, _| {})));
        assert_eq!(found.len(), 2);
        for number in found {
            assert!(!number.reached, "{number:?}");
        }
    }
}
