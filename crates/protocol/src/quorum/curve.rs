//! The availability of a structure for every p, by the best method that there is for it.

use super::availability::{
    SAMPLES, by_live_nodes, by_quorums, of_coefficients, of_counts, of_samples, sampled,
};
use super::{Family, Structure};

/// Availability as a function of the probability that a node is alive.
#[derive(Clone, Debug)]
pub struct Curve(Source);

#[derive(Clone, Debug)]
enum Source {
    /// Sets of live nodes that contain a quorum, by the number of live nodes.
    Counts(Vec<u64>),
    Formula(Structure),
    /// Of the powers of p.
    Coefficients(Vec<f64>),
    /// The least p that would have done, in order.
    Samples(Vec<f64>),
}

impl Curve {
    /// `listed` are all its quorums, where they are few enough; `draw` gives numbers from 0 to 1, and is
    /// asked only where nothing exact is feasible.
    pub fn of(
        structure: &Structure,
        listed: Option<&Family>,
        draw: impl FnMut() -> f64,
    ) -> Option<Curve> {
        let counts = listed.and_then(by_live_nodes).map(Source::Counts);
        let source = counts
            .or_else(|| {
                let formula = structure.formula(0.5).is_some();
                formula.then(|| Source::Formula(structure.clone()))
            })
            .or_else(|| listed.and_then(by_quorums).map(Source::Coefficients))
            .or_else(|| listed.map(|family| Source::Samples(sampled(family, draw))));
        source.map(Curve)
    }

    pub fn at(&self, p: f64) -> f64 {
        let value = match &self.0 {
            Source::Counts(counts) => of_counts(counts, p),
            Source::Formula(structure) => structure.formula(p).unwrap_or(0.0),
            Source::Coefficients(coefficients) => of_coefficients(coefficients, p),
            Source::Samples(least) => of_samples(least, p),
        };
        // Sums of many terms end a little outside.
        value.clamp(0.0, 1.0)
    }

    /// How it was found, in words.
    pub fn method(&self) -> String {
        match &self.0 {
            Source::Counts(_) => "exact, by enumeration".into(),
            Source::Formula(_) => "exact, by formula".into(),
            Source::Coefficients(_) => "exact, by inclusion and exclusion".into(),
            Source::Samples(_) => {
                let error = 0.5 / (SAMPLES as f64).sqrt();
                format!("estimated from {SAMPLES} samples, standard error up to {error:.4}")
            }
        }
    }
}
