//! Table I: what SLOTS and its contrast cost, how often they fail, and how much they use.

use super::columns::{
    EFFICIENCY, EQUITY, FAILED, FREE_HIGH, FREE_LOW, LIFETIME as LIFETIME_COLUMN, LITTLE, MEMBERS,
    SETTING, UTILISATION, WAITED, WAITING,
};
use super::reproduce::{Found, Number};
use super::sample::{Case, Effort, run_cases};
use super::words::{self, CONTRAST, LIFETIME, OPEN, PRESETS, SLOTS};
use super::{Allocation, Load, Rounds, sweeps};
use crate::Summary;
use crate::draw::{Axis, AxisScale, Chart, Origin, Series, Shape};

/// Both presets, with a fast and a slow SPREAD, with uses that fail and uses that wait.
fn settings() -> Vec<Rounds> {
    let mut settings = Vec::new();
    let both = [Allocation::STRICT, Allocation::Contrast];
    let baselines = [Allocation::Static, Allocation::Central];
    for (spread_cap, waits) in [(None, false), (Some(1), false), (None, true)] {
        for load in [Load::OneMean(LIFETIME), Load::OwnMeans] {
            let more = baselines.iter().filter(|_| spread_cap.is_none() && !waits);
            for &algorithm in both.iter().chain(more) {
                settings.push(Rounds {
                    spread_cap,
                    waits,
                    ..Rounds::published(algorithm, load.clone())
                });
            }
        }
    }
    settings
}

pub(super) fn run(effort: Effort, done: &(dyn Fn(usize, usize) + Sync)) -> Found {
    let table = settings();
    let mut all = table.clone();
    if effort.full {
        all.extend(sweeps::settings());
    }
    let cases = run_cases(&all, effort, done);
    let mut words = vec![words::contradiction(), together(&cases[..table.len()])];
    words.extend(sweeps::words(&cases[table.len()..]));
    words.push(words::judged(effort));
    words.push(words::reading(true));
    let mut columns = SETTING.to_vec();
    if effort.full {
        columns.extend([MEMBERS, FREE_LOW]);
    }
    columns.push(FREE_HIGH);
    let before = columns.len();
    columns.extend([
        EFFICIENCY,
        FAILED,
        UTILISATION,
        LIFETIME_COLUMN,
        WAITED,
        WAITING,
        EQUITY,
        LITTLE,
    ]);
    let published = |name: &'static str, numbers: [&'static str; 3]| {
        let mut row = vec!["Table I", "-", "fail", name];
        row.resize(before, "-");
        row.extend(numbers);
        row.resize(columns.len(), "-");
        row
    };
    Found {
        published: vec![
            published("SLOTS", ["11.45", "0.17", "73"]),
            published("mutual exclusion", ["6.28", "1.06", "91"]),
        ],
        columns,
        numbers: numbers(&cases[..table.len()]),
        words,
        open: OPEN,
        chart: chart(&cases[..table.len()]),
        cases,
    }
}

type Measure = fn(&Case) -> Option<Summary>;

const MEASURES: [(&str, Measure); 3] = [
    ("successful per multicast", |case| case.efficiency),
    ("failed per successful", |case| Some(case.failed_ratio)),
    ("utilisation", |case| Some(case.utilisation)),
];

/// What the paper calls an algorithm, what it is called here, and its row.
const ROWS: [(&str, &str, [f64; 3]); 2] = [
    ("SLOTS", "strict", SLOTS),
    ("Mutual exclusion", "contrast", CONTRAST),
];

/// Why the numbers of each row may be out of reach.
fn whys() -> [[String; 3]; 2] {
    let slots = [
        "It depends on SPREAD, which the paper does not describe. Where SPREAD forwards everything, members below \
         FREE_LOW ask all the time and every request costs up to 32 multicasts; where it forwards one message per \
         round it is always busy, and this number counts uses per round, whatever the algorithm.",
        "It grows with the load, and the load is not known: the paper gives no mean lifetime.",
        "It follows the load, which the paper does not give. With the mean lifetime that its own row implies, cut to \
         100 rounds, SLOTS fails less often than printed.",
    ];
    let contrast = [
        "It depends on FREE_HIGH, which the paper does not give (--full sweeps it).".to_owned(),
        format!(
            "{:.1} % of all uses would have to fail. With the load of the row of SLOTS, {:.0} % of the slots would \
             then be used, not {:.0} %.",
            100.0 * words::failed_share(CONTRAST[1]),
            100.0 * words::used_at_the_load_of_slots(CONTRAST),
            100.0 * CONTRAST[2],
        ),
        format!(
            "A utilisation of {:.0} % with {} failures per success needs {:.1} times the load of the row of SLOTS.",
            100.0 * CONTRAST[2],
            CONTRAST[1],
            words::implied_lifetime(CONTRAST) / words::implied_lifetime(SLOTS),
        ),
    ];
    [slots.map(str::to_owned), contrast]
}

fn numbers(cases: &[Case]) -> Vec<Number> {
    let mut numbers = Vec::new();
    for ((row, algorithm, published), whys) in ROWS.into_iter().zip(whys()) {
        for (((what, measure), published), why) in MEASURES.iter().zip(published).zip(&whys) {
            let found = of(cases, algorithm).filter_map(|case| Some((case, measure(case)?)));
            let number = format!("{row}, {what}");
            let number = Number::nearest(&number, published, found, why);
            numbers.extend(number.map(|number| match *what {
                "utilisation" => number.in_percent(),
                _ => number,
            }));
        }
    }
    numbers.extend(equity(cases));
    numbers
}

/// Test 23: in preset B, where members differ, members that want more own more.
fn equity(cases: &[Case]) -> impl Iterator<Item = Number> {
    let own_means = Load::OwnMeans.name();
    let strict = of(cases, "strict").filter(move |case| case.preset == own_means);
    strict.filter_map(|case| {
        let found = case.equity?;
        Some(Number {
            number: "SLOTS, equity: rank correlation of load and owned slots, above".into(),
            published: 0.0,
            bar: true,
            found: found.mean,
            low: found.low,
            high: found.high,
            setting: case.setting(),
            share: false,
            reached: found.low.unwrap_or(found.mean) > 0.0,
            why: "The paper says that members own what they need and gives no number; the whole interval must be above \
                  0, which is no equity at all."
                .into(),
        })
    })
}

/// Whether a setting reaches all numbers of a row at once.
fn together(cases: &[Case]) -> String {
    let rows = ROWS.map(|(row, algorithm, published)| {
        let whole = |case: &&Case| {
            let mut numbers = MEASURES.iter().zip(published);
            numbers.all(|((_, measure), published)| {
                let found = measure(case).map(|found| (*case, found));
                Number::nearest("", published, found, "").is_some_and(|number| number.reached)
            })
        };
        let settings: Vec<String> = of(cases, algorithm)
            .filter(whole)
            .map(Case::setting)
            .collect();
        match settings.is_empty() {
            true => {
                format!("All three numbers of the row {row} together are reached in no setting.")
            }
            false => format!(
                "All three numbers of the row {row} are reached in: {}.",
                settings.join("; ")
            ),
        }
    });
    rows.join(" ")
}

/// The settings of an algorithm in which uses fail, as in the paper.
fn of<'a>(cases: &'a [Case], algorithm: &'static str) -> impl Iterator<Item = &'a Case> {
    let of = move |case: &&Case| case.algorithm == algorithm && !case.waits;
    cases.iter().filter(of)
}

/// Every number of the table as a fraction of the published one.
fn chart(cases: &[Case]) -> Chart {
    let mut series = Vec::new();
    let names = ROWS
        .iter()
        .flat_map(|row| MEASURES.map(|(what, _)| format!("{}\n{what}", row.0)))
        .collect::<Vec<_>>();
    let count = of(cases, "strict").count();
    for at in 0..count {
        let values = ROWS.iter().flat_map(|(_, algorithm, published)| {
            let case = of(cases, algorithm).nth(at);
            MEASURES
                .iter()
                .zip(published)
                .map(move |((_, measure), published)| {
                    let found = measure(case?)?;
                    Some(100.0 * found.mean / published)
                })
        });
        let setting = of(cases, "strict").nth(at).map(Case::setting);
        series.push(Series {
            name: setting.unwrap_or_default(),
            shape: Shape::Bars(values.collect()),
            origin: Origin::Measured,
            colour: Some(at),
        });
    }
    series.push(Series {
        name: "Table I".into(),
        shape: Shape::Bars(vec![Some(100.0); names.len()]),
        origin: Origin::Published,
        colour: None,
    });
    Chart {
        title: "Table I of SLOTS, repeated".into(),
        subtitle: format!(
            "What was found, as a part of what was published; 32 members, 768 slots, FREE_LOW 4, FREE_HIGH 8. {PRESETS} \
             1 per round: SPREAD forwards one message per round, else all."
        ),
        x: Axis {
            title: String::new(),
            scale: AxisScale::Categories(names),
        },
        y: Axis {
            title: "% of the published number".into(),
            scale: AxisScale::Linear,
        },
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_other_row_would_need_is_computed() {
        let [_, [_, failed, used]] = whys();
        assert!(failed.starts_with("51.5 % of all uses"), "{failed}");
        assert!(failed.contains("41 % of the slots"), "{failed}");
        assert!(used.contains("2.2 times the load"), "{used}");
    }
}
