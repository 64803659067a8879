//! An experiment that counts, and what it found.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::draw::{Axis, AxisScale, Chart, Origin, Series, Shape};
use crate::family::LabError;

/// An experiment that counts something that is published.
#[derive(Clone, Copy, Debug)]
pub struct CountExperiment {
    pub name: &'static str,
    pub title: &'static str,
    pub source: &'static str,
    /// What a reader must know of how it is counted.
    pub note: &'static str,
    pub(crate) run: fn() -> Result<Found, LabError>,
}

/// What an experiment found, and its picture.
pub(crate) struct Found {
    pub(crate) rows: Vec<CountRow>,
    pub(crate) properties: Vec<PropertyRow>,
    pub(crate) chart: Chart,
}

/// One number. The field names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountRow {
    /// The algorithm and the situation.
    pub what: String,
    /// How many nodes, processes or groups there are, or how many were active.
    pub size: usize,
    /// The formula; null where nothing is published.
    pub formula: Option<&'static str>,
    pub published: Option<f64>,
    pub counted: f64,
    /// The messages of each kind, where messages were counted.
    pub kinds: BTreeMap<String, u64>,
    /// Whether both are the same; null where nothing is published.
    pub reached: Option<bool>,
}

/// A cell of a published table that is no number. The field names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PropertyRow {
    pub algorithm: &'static str,
    pub property: &'static str,
    pub published: &'static str,
    /// What was found, in words.
    pub found: String,
    pub reached: bool,
}

/// An experiment repeated. Its field names are a contract with scripts.
#[derive(Clone, Debug, Serialize)]
pub struct CountReproduction {
    pub name: &'static str,
    pub title: &'static str,
    pub source: &'static str,
    pub note: &'static str,
    pub rows: Vec<CountRow>,
    pub properties: Vec<PropertyRow>,
    #[serde(skip)]
    pub chart: Chart,
}

impl CountExperiment {
    /// Repeats it.
    pub fn reproduce(&self) -> Result<CountReproduction, LabError> {
        let Found {
            rows,
            properties,
            chart,
        } = (self.run)()?;
        let CountExperiment {
            name,
            title,
            source,
            note,
            ..
        } = *self;
        Ok(CountReproduction {
            name,
            title,
            source,
            note,
            rows,
            properties,
            chart,
        })
    }
}

impl CountReproduction {
    /// Whether all that is published was found.
    pub fn is_reached(&self) -> bool {
        let rows = self.rows.iter().all(|row| row.reached != Some(false));
        rows && self.properties.iter().all(|row| row.reached)
    }
}

/// The words of a chart's axes.
pub(crate) struct Measured {
    pub(crate) title: &'static str,
    pub(crate) subtitle: &'static str,
    pub(crate) along: &'static str,
    pub(crate) counted: &'static str,
}

/// Draws one line for each thing that was counted.
pub(crate) fn chart(measured: &Measured, rows: &[CountRow]) -> Chart {
    let mut seen = BTreeSet::new();
    let names = rows.iter().map(|row| row.what.as_str());
    let names: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
    let lines = names.iter().enumerate().map(|(colour, name)| {
        let mine = rows.iter().filter(|row| row.what == *name);
        Series {
            name: (*name).into(),
            shape: Shape::Line(mine.map(|row| (row.size as f64, row.counted)).collect()),
            origin: Origin::Measured,
            colour: Some(colour),
        }
    });
    Chart {
        title: measured.title.into(),
        subtitle: measured.subtitle.into(),
        x: Axis {
            title: measured.along.into(),
            scale: AxisScale::Log,
        },
        y: Axis {
            title: measured.counted.into(),
            scale: AxisScale::Log,
        },
        series: lines.collect(),
    }
}
