//! From a comparison to a chart: messages per entry against what was varied, with the published bounds.

use std::collections::BTreeMap;

use testigo_protocol::Measure;

use crate::draw::{Axis, AxisScale, Chart, Origin, Series, Shape};
use crate::family::KnownAlgorithm;
use crate::sample::Sample;

/// A sample, and the values of the options that were varied besides the nodes, by their names.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    pub sample: &'a Sample,
    pub swept: &'a BTreeMap<&'static str, String>,
}

/// The factor between the smallest and the largest number of nodes from which their axis is logarithmic.
const NODES_FACTOR: f64 = 8.0;
/// The same for the other axis: more than a decade.
const VALUES_FACTOR: f64 = 20.0;

/// What is counted, by its name among the measures: messages, or accesses where threads share memory.
fn counted(compared: &[Compared<'_>]) -> &'static str {
    let counts = |one: &Compared<'_>| one.sample.measures.contains_key("accesses_per_entry");
    match compared.iter().any(counts) {
        true => "accesses_per_entry",
        false => "messages_per_entry",
    }
}

/// The same as a title.
fn title(counted: &str, compared: &[Compared<'_>]) -> String {
    let per = compared
        .first()
        .map_or("entry", |one| one.sample.counted.one);
    match counted {
        "accesses_per_entry" => format!("Accesses per {per}"),
        _ => format!("Messages per {per}"),
    }
}

/// Messages per entry, measured and published, as SVG: lines against the number of nodes or else
/// against an option that was varied, or bars where nothing was.
pub fn comparison_chart(compared: &[Compared<'_>]) -> String {
    let chart = match varied(compared) {
        Some(along) => lines(compared, along),
        None => bars(compared),
    };
    chart.to_svg()
}

/// What the lines run along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    Nodes,
    Option(&'static str),
}

impl Along {
    fn value(self, compared: &Compared<'_>) -> Option<f64> {
        match self {
            Along::Nodes => Some(compared.sample.nodes as f64),
            Along::Option(name) => compared.swept.get(name)?.parse().ok(),
        }
    }
}

fn varied(compared: &[Compared<'_>]) -> Option<Along> {
    let first = compared.first()?;
    let nodes = |other: &Compared<'_>| other.sample.nodes != first.sample.nodes;
    if compared.iter().any(nodes) {
        return Some(Along::Nodes);
    }
    let options = first.swept.keys().map(|name| Along::Option(name));
    let mut numbers = options.filter(|along| compared.iter().all(|one| along.value(one).is_some()));
    numbers.next()
}

/// The name of a sample's line: the algorithm, and what else was varied.
fn name(compared: &Compared<'_>, along: Along) -> String {
    let others = compared.swept.iter();
    let others = others.filter(|(option, _)| along != Along::Option(option));
    let others = others.map(|(option, value)| format!(", {option} {value}"));
    format!(
        "{}{}",
        compared.sample.algorithm,
        others.collect::<String>()
    )
}

/// The published formula of an algorithm's messages per entry.
fn formula(algorithm: &str) -> Option<&'static str> {
    let profile = KnownAlgorithm::find(algorithm).ok()?.profile;
    let mut costs = profile.costs.iter();
    let cost = costs.find(|cost| cost.measure == Measure::Messages)?;
    Some(cost.formula)
}

fn lines(compared: &[Compared<'_>], along: Along) -> Chart {
    let counted = counted(compared);
    let mut names: Vec<String> = compared.iter().map(|one| name(one, along)).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let mut series = Vec::new();
    for (colour, line) in names.iter().enumerate() {
        let mine = || compared.iter().filter(|one| name(one, along) == *line);
        let mut add = |name: &str, shape: Shape, origin: Origin| {
            series.push(Series {
                name: name.into(),
                shape,
                origin,
                colour: Some(colour),
            });
        };
        let published: Vec<(f64, f64, f64)> = mine()
            .filter_map(|one| {
                let range = one.sample.published_messages_per_entry?;
                Some((along.value(one)?, range.min, range.max))
            })
            .collect();
        let algorithm = mine().next().map_or("", |one| one.sample.algorithm);
        if let (Some(formula), false) = (formula(algorithm), published.is_empty()) {
            let exact = published.iter().all(|(_, min, max)| min == max);
            let shape = match exact {
                true => Shape::Line(published.iter().map(|(x, min, _)| (*x, *min)).collect()),
                false => Shape::Band(published),
            };
            add(formula, shape, Origin::Published);
        }
        let intervals: Vec<(f64, f64, f64)> = mine()
            .filter_map(|one| {
                let summary = one.sample.measures.get(counted)?;
                Some((along.value(one)?, summary.low?, summary.high?))
            })
            .collect();
        if !intervals.is_empty() {
            let name = format!("{line}, 95 % interval");
            add(&name, Shape::Band(intervals), Origin::Measured);
        }
        let measured = mine().filter_map(|one| {
            let mean = one.sample.mean(counted)?;
            Some((along.value(one)?, mean))
        });
        add(line, Shape::Line(measured.collect()), Origin::Measured);
    }
    let along_title = match along {
        Along::Nodes => "nodes",
        Along::Option(name) => name,
    };
    let places: Vec<f64> = compared.iter().filter_map(|one| along.value(one)).collect();
    let values: Vec<f64> = series.iter().flat_map(Series::heights).collect();
    Chart {
        title: title(counted, compared),
        subtitle: subtitle(
            compared,
            ", with their 95 % intervals",
            "broad dashes and bands",
        ),
        x: axis(along_title, &places, NODES_FACTOR),
        y: axis(
            &title(counted, compared).to_lowercase(),
            &values,
            VALUES_FACTOR,
        ),
        series,
    }
}

fn subtitle(compared: &[Compared<'_>], intervals: &str, bounds: &str) -> String {
    let runs = compared.iter().map(|one| one.sample.runs).max();
    let measured = match runs.unwrap_or(0) {
        0 | 1 => "measured in one run each".to_owned(),
        runs => format!("means of {runs} runs{intervals}"),
    };
    let published = |one: &Compared<'_>| one.sample.published_messages_per_entry.is_some();
    match compared.iter().any(published) {
        true => format!("{measured}; {bounds}: as published"),
        false => measured,
    }
}

/// An axis that is logarithmic where the positive values among its own span more than a factor.
fn axis(title: &str, values: &[f64], factor: f64) -> Axis {
    let positive = || values.iter().copied().filter(|value| *value > 0.0);
    let (least, most) = (
        positive().fold(f64::INFINITY, f64::min),
        positive().fold(0.0, f64::max),
    );
    Axis {
        title: title.into(),
        scale: match most >= factor * least {
            true => AxisScale::Log,
            false => AxisScale::Linear,
        },
    }
}

impl Series {
    /// The values that it has.
    fn heights(&self) -> Vec<f64> {
        match &self.shape {
            Shape::Line(points) => points.iter().map(|point| point.1).collect(),
            Shape::Band(ranges) => ranges.iter().flat_map(|range| [range.1, range.2]).collect(),
            Shape::Bars(values) => values.iter().flatten().copied().collect(),
        }
    }
}

fn bars(compared: &[Compared<'_>]) -> Chart {
    let counted = counted(compared);
    let nodes = compared.first().map_or(0, |one| one.sample.nodes);
    let names = compared
        .iter()
        .map(|one| match formula(one.sample.algorithm) {
            Some(formula) => format!("{}\n{formula}", one.sample.algorithm),
            None => one.sample.algorithm.to_owned(),
        });
    let measured = compared.iter().map(|one| one.sample.mean(counted));
    let published = compared.iter().enumerate().filter_map(|(i, one)| {
        let range = one.sample.published_messages_per_entry?;
        Some((i as f64, range.min, range.max))
    });
    Chart {
        title: title(counted, compared),
        subtitle: subtitle(compared, "", "dashes and whiskers"),
        x: Axis {
            title: format!("with {nodes} nodes"),
            scale: AxisScale::Categories(names.collect()),
        },
        y: Axis {
            title: title(counted, compared).to_lowercase(),
            scale: AxisScale::Linear,
        },
        series: vec![
            Series {
                name: "measured".into(),
                shape: Shape::Bars(measured.collect()),
                origin: Origin::Measured,
                colour: Some(0),
            },
            Series {
                name: "published".into(),
                shape: Shape::Band(published.collect()),
                origin: Origin::Published,
                colour: None,
            },
        ],
    }
}

#[cfg(test)]
mod tests {
    use testigo_protocol::Setup;

    use super::*;
    use crate::sample::sample;
    use crate::world::World;

    /// Draws samples of algorithms at some numbers of nodes, with an option that was varied.
    fn drawn(
        name: &str,
        algorithms: &[&str],
        nodes: &[usize],
        swept: &[(&'static str, &str)],
    ) -> String {
        let world = World {
            entries: 40,
            latency: "exponential:1".parse().expect("valid"),
            ..World::default()
        };
        let nothing = [("", "")];
        let swept = if swept.is_empty() {
            &nothing[..]
        } else {
            swept
        };
        let mut samples = Vec::new();
        for algorithm in algorithms {
            let algorithm = KnownAlgorithm::find(algorithm).expect("known");
            for &nodes in nodes {
                for (option, value) in swept {
                    let found = sample(&algorithm, &Setup::new(nodes), &world, 1..=2);
                    let mut options = BTreeMap::from([(*option, (*value).to_owned())]);
                    options.remove("");
                    samples.push((found.expect("it runs"), options));
                }
            }
        }
        let compared: Vec<Compared<'_>> = (samples.iter())
            .map(|(sample, swept)| Compared { sample, swept })
            .collect();
        let svg = comparison_chart(&compared);
        if let Ok(folder) = std::env::var("TESTIGO_GALLERY") {
            std::fs::write(format!("{folder}/chart-{name}.svg"), &svg).expect("writable");
        }
        svg
    }

    const ALL: [&str; 11] = [
        "central",
        "token-ring",
        "ricart-agrawala",
        "lamport",
        "maekawa",
        "sanders",
        "chang",
        "raymond",
        "tree-quorum",
        "cohort-quorum",
        "agrawal-jalote",
    ];

    #[test]
    fn every_algorithm_is_named_at_its_line_with_its_formula() {
        let svg = drawn("all", &ALL, &[4, 8, 16, 32], &[]);
        for name in ALL {
            assert_eq!(svg.matches(&format!(">{name}</text>")).count(), 1, "{name}");
        }
        assert!(svg.contains(">published: 2(N−1)</text>"));
        assert!(svg.contains(">published: 3(K−1) to 5(K−1)</text>"));
        assert!(!svg.contains("have no place"), "a bound of zero has one");
        for nodes in [4, 8, 16, 32] {
            assert!(svg.contains(&format!(">{nodes}</text>")), "{nodes}");
        }
        assert!(svg.contains("means of 2 runs, with their 95 % intervals"));
    }

    #[test]
    fn values_that_span_decades_have_a_logarithmic_axis() {
        let svg = drawn("decades", &["central", "lamport"], &[4, 64], &[]);
        for tick in ["2", "5", "10", "100", "200"] {
            assert!(svg.contains(&format!(">{tick}</text>")), "{tick}");
        }
        let near = drawn("near", &["maekawa"], &[4, 7], &[]);
        assert!(near.contains(">0</text>"), "lengths from zero");
    }

    #[test]
    fn one_number_of_nodes_gives_bars_with_formulas() {
        let svg = drawn("bars", &["central", "maekawa", "raymond"], &[9], &[]);
        assert_eq!(svg.matches("class=\"published\"").count(), 3);
        assert!(svg.contains(">3(K−1) to 5(K−1)</text>") && svg.contains(">0 to 2D</text>"));
        assert!(svg.contains(">with 9 nodes</text>"));
    }

    #[test]
    fn what_was_varied_is_the_axis() {
        let swept = [("readers", "0.1"), ("readers", "0.5"), ("readers", "0.9")];
        let svg = drawn("sweep", &["box-office"], &[3], &swept);
        assert!(svg.contains(">readers</text>") && svg.contains(">0.9</text>"));
        assert!(!svg.contains("have no place"));
        let both = drawn("sweeps", &["box-office"], &[3, 4], &swept);
        assert!(both.contains(">nodes</text>"));
        assert!(both.contains(">box-office, readers 0.5</text>"));
    }
}
