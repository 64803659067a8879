//! The experiments that can be repeated, by name. Each runs its settings, compares what it finds with the published
//! numbers, and draws a picture.

use serde::Serialize;

use super::columns::Column;
use super::sample::{Case, Effort};
use super::words::Open;
use super::{directed, over_time, response, table_1};
use crate::count::MESSAGE_EXPERIMENTS;
use crate::draw::Chart;
use crate::threads::ACCESS_EXPERIMENTS;
use crate::{LabError, Summary};

/// A published experiment.
#[derive(Debug)]
pub struct PublishedExperiment {
    pub name: &'static str,
    pub title: &'static str,
    pub source: &'static str,
    run: fn(Effort, &(dyn Fn(usize, usize) + Sync)) -> Found,
}

const SOURCE: &str = "Pessolani et al., SLOTS";

/// All experiments.
pub const EXPERIMENTS: &[PublishedExperiment] = &[
    PublishedExperiment {
        name: "slots-table-1",
        title: "SLOTS and mutual exclusion: multicasts, failures, utilisation (Table I)",
        source: SOURCE,
        run: table_1::run,
    },
    PublishedExperiment {
        name: "slots-utilisation",
        title: "Utilisation over time (Fig. 7)",
        source: SOURCE,
        run: over_time::utilisation,
    },
    PublishedExperiment {
        name: "slots-forks",
        title: "Successful and failed uses over time (Fig. 8)",
        source: SOURCE,
        run: over_time::forks,
    },
    PublishedExperiment {
        name: "slots-response",
        title: "Multicasts from a request to its first slot (Fig. 9)",
        source: SOURCE,
        run: response::run,
    },
    PublishedExperiment {
        name: "slots-directed",
        title: "SLOTS with requests that name their donors, beside all others",
        source: "of our own",
        run: directed::run,
    },
];

/// What an experiment itself found.
pub(super) struct Found {
    pub(super) columns: Vec<Column>,
    /// The published numbers, in the same columns.
    pub(super) published: Vec<Vec<&'static str>>,
    pub(super) cases: Vec<Case>,
    pub(super) numbers: Vec<Number>,
    pub(super) words: Vec<String>,
    pub(super) open: &'static [Open],
    pub(super) chart: Chart,
}

/// An experiment repeated. Its field names are a contract with scripts.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    pub name: &'static str,
    pub title: &'static str,
    pub source: &'static str,
    pub seeds: u64,
    pub rounds: u64,
    pub warm_up: u64,
    pub cases: Vec<Case>,
    pub numbers: Vec<Number>,
    pub words: Vec<String>,
    pub open: Vec<Open>,
    /// Whether Little's law held in every run.
    pub little_holds: bool,
    #[serde(skip)]
    pub columns: Vec<Column>,
    #[serde(skip)]
    pub published: Vec<Vec<&'static str>>,
    #[serde(skip)]
    pub chart: Chart,
}

/// A published number, and whether it was reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Number {
    pub number: String,
    pub published: f64,
    /// Whether `published` is not a published number but a bar of our own.
    pub bar: bool,
    /// The found value that comes nearest, or nearest of those that reach it, and where it was found.
    pub found: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub setting: String,
    /// Whether it is a share, which people write as a percentage.
    #[serde(skip)]
    pub share: bool,
    pub reached: bool,
    /// Why it was not reached, or what that means.
    pub why: String,
}

impl Number {
    /// A number is reached if it lies within the 95 % interval of some setting, or if the mean of some setting lies within a
    /// twentieth of it.
    pub(super) fn nearest<'a>(
        number: &str,
        published: f64,
        found: impl IntoIterator<Item = (&'a Case, Summary)>,
        why: &str,
    ) -> Option<Number> {
        let distance = |summary: &Summary| (summary.mean - published).abs();
        let reaches = |summary: &Summary| {
            let low = summary.low.unwrap_or(summary.mean);
            let high = summary.high.unwrap_or(summary.mean);
            (low..=high).contains(&published) || distance(summary) <= published / 20.0
        };
        let rank = |summary: &Summary| (!reaches(summary), distance(summary));
        let (case, summary) = found.into_iter().min_by(|(_, one), (_, other)| {
            let (one, other) = (rank(one), rank(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        })?;
        let reached = reaches(&summary);
        Some(Number {
            number: number.to_owned(),
            published,
            bar: false,
            found: summary.mean,
            low: summary.low,
            high: summary.high,
            setting: case.setting(),
            share: false,
            reached,
            why: why.to_owned(),
        })
    }
}

impl Number {
    /// Half of the 95 % interval, as a share of the found value; none for a single run.
    pub fn half_width(&self) -> Option<f64> {
        let (low, high) = self.low.zip(self.high)?;
        // If one end is cut off, the other one counts.
        let half = (self.found - low).max(high - self.found);
        (self.found != 0.0).then(|| half / self.found.abs())
    }

    #[must_use]
    pub(super) fn in_percent(self) -> Number {
        Number {
            share: true,
            ..self
        }
    }
}

impl PublishedExperiment {
    /// The experiment with this name.
    ///
    /// # Errors
    ///
    /// There is none: the error names all experiments that can be repeated, including those that count messages.
    pub fn find(name: &str) -> Result<&'static PublishedExperiment, LabError> {
        let mut all = EXPERIMENTS.iter();
        all.find(|experiment| experiment.name == name)
            .ok_or_else(|| {
                let counted = ACCESS_EXPERIMENTS.iter().chain(MESSAGE_EXPERIMENTS);
                let names = EXPERIMENTS.iter().map(|one| one.name);
                let names: Vec<&str> = names.chain(counted.map(|one| one.name)).collect();
                let names = names.join(", ");
                LabError::new(format!(
                    "there is no experiment `{name}`; there are {names}"
                ))
            })
    }

    /// Runs it; after each run, reports how many of all are done.
    pub fn reproduce(&self, effort: Effort, done: &(dyn Fn(usize, usize) + Sync)) -> Reproduction {
        let found = (self.run)(effort, done);
        Reproduction {
            name: self.name,
            title: self.title,
            source: self.source,
            seeds: effort.seeds,
            rounds: effort.rounds,
            warm_up: Effort::WARM_UP,
            little_holds: found.cases.iter().all(|case| case.little_holds),
            cases: found.cases,
            numbers: found.numbers,
            words: found.words,
            open: found.open.to_vec(),
            columns: found.columns,
            published: found.published,
            chart: found.chart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::run_cases;
    use super::super::{Allocation, Load, Rounds};
    use super::*;

    #[test]
    fn a_number_is_reached_where_any_setting_reaches_it() {
        let few = Effort {
            seeds: 1,
            rounds: 10,
            full: false,
        };
        let loads = [Load::OneMean(28.0), Load::OneMean(40.0)];
        let settings = loads.map(|load| Rounds::published(Allocation::Static, load));
        let cases = run_cases(&settings, few, &|_, _| {});
        let verdict = |published: f64, one: &[f64], other: &[f64]| {
            let found = [one, other].map(|values| Summary::of(values).expect("values"));
            let found = cases.iter().zip(found);
            let number = Number::nearest("it", published, found, "").expect("two settings");
            (number.setting, number.reached)
        };
        let (sharp, wide) = ([80.0, 80.2], [60.0, 120.0]);
        assert_eq!(verdict(85.0, &sharp, &wide), ("A 40".into(), true));
        assert_eq!(verdict(84.0, &sharp, &wide), ("A 28".into(), true));
        assert_eq!(verdict(85.0, &sharp, &[60.0, 60.2]), ("A 28".into(), false));
        // Few seeds that differ reach more than many that agree.
        let reaches = |values: &[f64]| verdict(85.0, values, values).1;
        assert!(reaches(&[78.0, 82.0]) && !reaches(&[78.0, 82.0].repeat(10)));
        // Without an interval, a twentieth of the published number.
        assert_eq!(verdict(85.0, &[81.0], &[60.0]), ("A 28".into(), true));
        assert_eq!(verdict(85.0, &[80.0], &[60.0]), ("A 28".into(), false));
    }
}
