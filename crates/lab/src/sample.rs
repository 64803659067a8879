//! One algorithm in one world, run with many seeds.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;
use testigo_protocol::{Counted, Setup};

use crate::compare::Row;
use crate::family::{KnownAlgorithm, LabError};
use crate::run::{Published, Report};
use crate::statistics::Summary;
use crate::world::World;

/// Many runs together. Its field names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    pub algorithm: &'static str,
    /// The word for what is counted as entries.
    #[serde(skip)]
    pub counted: Counted,
    pub nodes: usize,
    /// How many runs there were.
    pub runs: usize,
    /// Whether all runs were.
    pub safe: bool,
    pub live: bool,
    /// Null where bounds are not claimed.
    pub bounded: Option<bool>,
    /// Seeds of runs that broke a promise, as far as there is room.
    pub bad_seeds: Vec<u64>,
    pub published_messages_per_entry: Option<Published>,
    /// Whether the mean of the messages per entry is as published.
    pub as_published: Option<bool>,
    /// What was measured, by name; see [`MEASURES`].
    pub measures: BTreeMap<&'static str, Summary>,
}

/// A number of a report, by the report's own field name.
pub type Measured = (&'static str, fn(&Report) -> Option<f64>);

/// What is summed up over the runs, in the order in which it is shown.
pub const MEASURES: [Measured; 10] = [
    ("messages_per_entry", |report| report.messages_per_entry),
    ("message_bytes", |report| report.message_bytes),
    ("accesses_per_entry", |report| {
        report.accesses.as_ref()?.per_entry
    }),
    ("remote_accesses_per_entry", |report| {
        report.accesses.as_ref()?.remote_per_entry
    }),
    ("entry_delay", |report| report.entry_delay),
    ("waiting_time", |report| report.waiting_time),
    ("response_time", |report| report.response_time),
    ("synchronisation_delay", |report| {
        report.synchronisation_delay
    }),
    ("overtakes_max", |report| {
        report.overtakes_max.map(|most| most as f64)
    }),
    ("time", |report| Some(report.time)),
];

/// So many bad seeds are named; one is enough to look at.
const BAD_SEEDS_MAX: usize = 10;

/// Runs an algorithm with every one of these seeds.
pub fn sample(
    algorithm: &KnownAlgorithm,
    setup: &Setup,
    world: &World,
    seeds: RangeInclusive<u64>,
) -> Result<Sample, LabError> {
    let mut values = MEASURES.map(|_| Vec::new());
    let mut sample = Sample {
        algorithm: algorithm.profile.name,
        counted: algorithm.counted(),
        nodes: setup.users,
        runs: 0,
        safe: true,
        live: true,
        bounded: None,
        bad_seeds: Vec::new(),
        published_messages_per_entry: None,
        as_published: None,
        measures: BTreeMap::new(),
    };
    for seed in seeds {
        let world = World {
            seed,
            ..world.clone()
        };
        let report = algorithm.run(setup, &world, false)?.report;
        sample.runs += 1;
        sample.safe &= report.safe && report.well_formed;
        sample.live &= report.live;
        if let Some(bounded) = report.bounded {
            sample.bounded = Some(bounded && sample.bounded != Some(false));
        }
        if !report.is_good() && sample.bad_seeds.len() < BAD_SEEDS_MAX {
            sample.bad_seeds.push(seed);
        }
        sample.published_messages_per_entry = report.published_messages_per_entry;
        for ((_, value), values) in MEASURES.iter().zip(&mut values) {
            values.extend(value(&report));
        }
    }
    for ((name, _), values) in MEASURES.iter().zip(&values) {
        sample
            .measures
            .extend(Summary::of(values).map(|summary| (*name, summary)));
    }
    let messages = sample.mean("messages_per_entry");
    let published = sample.published_messages_per_entry.zip(messages);
    sample.as_published = published.map(|(published, mean)| published.contains(mean));
    Ok(sample)
}

impl Sample {
    pub fn is_good(&self) -> bool {
        self.safe && self.live && self.bounded != Some(false)
    }

    /// The mean of a measure, by its name.
    pub fn mean(&self, measure: &str) -> Option<f64> {
        self.measures.get(measure).map(|summary| summary.mean)
    }
}

/// The means in place of one run's values.
impl From<&Sample> for Row {
    fn from(sample: &Sample) -> Row {
        let most = sample.measures.get("overtakes_max");
        Row {
            algorithm: sample.algorithm,
            counted: sample.counted,
            nodes: sample.nodes,
            safe: sample.safe,
            live: sample.live,
            bounded: sample.bounded,
            messages_per_entry: sample.mean("messages_per_entry"),
            published_messages_per_entry: sample.published_messages_per_entry,
            as_published: sample.as_published,
            message_bytes: sample.mean("message_bytes"),
            accesses_per_entry: sample.mean("accesses_per_entry"),
            remote_accesses_per_entry: sample.mean("remote_accesses_per_entry"),
            waiting_time: sample.mean("waiting_time"),
            response_time: sample.mean("response_time"),
            synchronisation_delay: sample.mean("synchronisation_delay"),
            overtakes_max: most.map(|summary| summary.max as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_a_value_of_every_seed() {
        let algorithm = KnownAlgorithm::find("maekawa").expect("known");
        let world = World {
            latency: "exponential:1".parse().expect("valid"),
            ..World::default()
        };
        let setup = Setup::new(7);
        let found = sample(&algorithm, &setup, &world, 3..=12).expect("it runs");
        let values = (3..=12).map(|seed| {
            let world = World {
                seed,
                ..world.clone()
            };
            let run = algorithm.run(&setup, &world, false).expect("it runs");
            run.report.waiting_time.expect("entries")
        });
        let values: Vec<f64> = values.collect();
        assert_eq!(found.runs, 10);
        assert!(found.is_good() && found.as_published == Some(true));
        assert_eq!(
            found.measures.get("waiting_time"),
            Summary::of(&values).as_ref()
        );
        assert!(values.iter().any(|value| *value != values[0]));
    }

    #[test]
    fn a_bad_run_is_named_by_its_seed() {
        let algorithm = KnownAlgorithm::find("maekawa-basic").expect("known");
        let world = World {
            latency: "exponential:1".parse().expect("valid"),
            ..World::default()
        };
        let found = sample(&algorithm, &Setup::new(7), &world, 0..=4).expect("it runs");
        assert!(!found.live && !found.bad_seeds.is_empty());
        assert!(found.bad_seeds.iter().all(|seed| (0..=4).contains(seed)));
    }
}
