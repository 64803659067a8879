//! Many runs, gathered and printed: as a table, as JSON or as CSV.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;
use testigo_lab::{KnownAlgorithm, LabError, MEASURES, Sample, Summary, sample};

use super::options::Point;
use super::table::{Table, number, published};

/// A sample, and the values of the options that were swept. Its field names are a contract with scripts.
#[derive(Serialize)]
pub(crate) struct Swept {
    #[serde(flatten)]
    pub(crate) sample: Sample,
    /// By the option's name, where it had several values.
    pub(crate) swept: BTreeMap<&'static str, String>,
}

/// Every algorithm at every point, with every seed.
pub(crate) fn gather(
    algorithms: &[KnownAlgorithm],
    points: &[Point],
    seeds: &RangeInclusive<u64>,
) -> Result<Vec<Swept>, LabError> {
    let mut samples = Vec::new();
    for algorithm in algorithms {
        for point in points {
            samples.push(Swept {
                sample: sample(algorithm, &point.setup, &point.world, seeds.clone())?,
                swept: point.swept.iter().cloned().collect(),
            });
        }
    }
    Ok(samples)
}

/// The measures that a sample has, in their order.
fn measures(sample: &Sample) -> impl Iterator<Item = (&'static str, &Summary)> {
    let found = |(name, _): &(&'static str, _)| Some((*name, sample.measures.get(name)?));
    MEASURES.iter().filter_map(found)
}

fn options(samples: &[Swept]) -> Vec<&'static str> {
    let first = samples.first();
    first.map_or(Vec::new(), |first| first.swept.keys().copied().collect())
}

pub(crate) fn print_table(samples: &[Swept]) {
    let options = options(samples);
    let mut heads: Vec<String> = ["ALGORITHM", "NODES"].map(str::to_owned).to_vec();
    heads.extend(options.iter().map(|option| option.to_uppercase()));
    let rest = [
        "MEASURE",
        "RUNS",
        "MEAN",
        "95 % INTERVAL",
        "P5",
        "P50",
        "P95",
        "MAX",
        "PUBLISHED",
    ];
    heads.extend(rest.map(str::to_owned));
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for Swept { sample, swept } in samples {
        for (name, summary) in measures(sample) {
            let mut cells = vec![sample.algorithm.to_owned(), sample.nodes.to_string()];
            cells.extend(swept.values().cloned());
            let interval = match (summary.low, summary.high) {
                (Some(low), Some(high)) => format!("{low:.2} to {high:.2}"),
                _ => "-".into(),
            };
            let published = match name {
                "messages_per_entry" => {
                    published(sample.published_messages_per_entry, sample.as_published)
                }
                _ => String::new(),
            };
            cells.extend([
                name.replace('_', " ").replace("entry", sample.counted.one),
                summary.runs.to_string(),
                number(Some(summary.mean)),
                interval,
                number(Some(summary.p5)),
                number(Some(summary.p50)),
                number(Some(summary.p95)),
                number(Some(summary.max)),
                published,
            ]);
            table.row(cells);
        }
    }
    table.print();
    for Swept { sample, .. } in samples.iter().filter(|one| !one.sample.is_good()) {
        let seeds: Vec<String> = sample.bad_seeds.iter().map(u64::to_string).collect();
        println!(
            "{} with {} nodes is NOT {}, for example with seed {}",
            sample.algorithm,
            sample.nodes,
            match (sample.safe, sample.live) {
                (false, _) => "safe",
                (true, false) => "live",
                (true, true) => "bounded",
            },
            seeds.join(", ")
        );
    }
}

/// One line for each measure of each sample.
pub(crate) fn print_csv(samples: &[Swept]) {
    let mut heads = vec!["algorithm", "nodes"];
    heads.extend(options(samples));
    heads.extend(["measure", "runs", "mean", "low", "high", "deviation"]);
    heads.extend(["min", "p5", "p25", "p50", "p75", "p95", "max"]);
    heads.extend(["safe", "live"]);
    println!("{}", heads.join(","));
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for Swept { sample, swept } in samples {
        for (name, summary) in measures(sample) {
            let mut cells = vec![sample.algorithm.to_owned(), sample.nodes.to_string()];
            cells.extend(swept.values().cloned());
            cells.extend([name.to_owned(), summary.runs.to_string()]);
            cells.push(summary.mean.to_string());
            cells.extend([summary.low, summary.high, summary.deviation].map(optional));
            let points = [summary.min, summary.p5, summary.p25, summary.p50];
            cells.extend(points.map(|value| value.to_string()));
            let points = [summary.p75, summary.p95, summary.max];
            cells.extend(points.map(|value| value.to_string()));
            cells.extend([sample.safe, sample.live].map(|kept| kept.to_string()));
            println!("{}", cells.join(","));
        }
    }
}
