//! The experiments that can be repeated, by name: each runs its settings, holds the published numbers
//! against what was found, and draws a picture.

use serde::Serialize;

use super::columns::Column;
use super::sample::{Case, Effort};
use super::words::Open;
use super::{directed, over_time, response, table_1};
use crate::draw::Chart;
use crate::{LabError, Summary};

/// An experiment that was published.
#[derive(Debug)]
pub struct PublishedExperiment {
    pub name: &'static str,
    pub title: &'static str,
    pub source: &'static str,
    run: fn(Effort, &(dyn Fn(usize, usize) + Sync)) -> Found,
}

const SOURCE: &str = "Pessolani et al., SLOTS";

/// All of them.
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

/// What an experiment found by itself.
pub(super) struct Found {
    pub(super) columns: Vec<Column>,
    /// What was published, in the same columns.
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
    /// What was found where it came nearest, and where that was.
    pub found: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub setting: String,
    /// Whether it is a share, which people write in percent.
    #[serde(skip)]
    pub share: bool,
    pub reached: bool,
    /// Why it was not reached, or what that says.
    pub why: String,
}

impl Number {
    /// A number is reached where it lies within the 95 % interval, or within a twentieth of the mean.
    pub(super) fn nearest<'a>(
        number: &str,
        published: f64,
        found: impl IntoIterator<Item = (&'a Case, Summary)>,
        why: &str,
    ) -> Option<Number> {
        let distance = |summary: &Summary| (summary.mean - published).abs();
        let (case, summary) = found
            .into_iter()
            .min_by(|(_, one), (_, other)| distance(one).total_cmp(&distance(other)))?;
        let within = |low: f64, high: f64| low <= published && published <= high;
        let inside = within(
            summary.low.unwrap_or(summary.mean),
            summary.high.unwrap_or(summary.mean),
        );
        let reached = inside || distance(&summary) <= published / 20.0;
        Some(Number {
            number: number.to_owned(),
            published,
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
    #[must_use]
    pub(super) fn in_percent(self) -> Number {
        Number {
            share: true,
            ..self
        }
    }
}

impl PublishedExperiment {
    /// The experiment of this name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn find(name: &str) -> Result<&'static PublishedExperiment, LabError> {
        let mut all = EXPERIMENTS.iter();
        all.find(|experiment| experiment.name == name)
            .ok_or_else(|| {
                let names: Vec<&str> = EXPERIMENTS.iter().map(|one| one.name).collect();
                let names = names.join(", ");
                LabError::new(format!("there is no experiment `{name}`: there is {names}"))
            })
    }

    /// Runs it, and tells after each run how many of all are done.
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
