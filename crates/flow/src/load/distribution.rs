//! Times: how they are distributed, in seconds.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use testigo_sim::{Generator, ParseError};

/// The longest time that a load may name: a year.
const SECONDS_MAX: f64 = 365.0 * 86_400.0;
/// The most steps of an Erlang time.
const STEPS_MAX: u32 = 1_000;
/// The most measured times.
const VALUES_MAX: usize = 10_000;
/// The tails of Pareto times: with 1 and less they have no mean.
const TAIL_MAX: f64 = 1_000.0;

#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    Fixed(f64),
    Uniform(f64, f64),
    /// By its mean.
    Exponential(f64),
    /// So many exponential steps, with this mean together.
    Erlang(u32, f64),
    /// Exponential with the first mean by this probability, else with the second.
    Mixed(f64, f64, f64),
    /// A time whose logarithm is normal, by its own mean and standard deviation.
    Lognormal(f64, f64),
    /// Pareto's: the lower the first, its shape, the longer the rare long ones; by its mean.
    Pareto(f64, f64),
    /// One of these, each as likely: what was measured, or anything else.
    Values(Arc<[f64]>),
}

impl Distribution {
    pub fn draw(&self, generator: &mut Generator) -> f64 {
        match *self {
            Distribution::Lognormal(mean, deviation) => {
                let spread = (deviation / mean).powi(2).ln_1p();
                mean * (spread.sqrt() * normal(generator) - spread / 2.0).exp()
            }
            Distribution::Pareto(shape, mean) => {
                let least = mean * (shape - 1.0) / shape;
                least * (1.0 - generator.unit()).powf(-1.0 / shape)
            }
            Distribution::Values(ref values) => {
                let at = generator.below(values.len() as u64);
                values[at as usize]
            }
            Distribution::Fixed(time) => time,
            Distribution::Uniform(low, high) => low + (high - low) * generator.unit(),
            Distribution::Exponential(mean) => generator.exponential(mean),
            Distribution::Erlang(steps, mean) => {
                let step = mean / f64::from(steps);
                (0..steps).map(|_| generator.exponential(step)).sum()
            }
            Distribution::Mixed(probability, first, second) => {
                let mean = if generator.chance(probability) {
                    first
                } else {
                    second
                };
                generator.exponential(mean)
            }
        }
    }

    pub fn mean(&self) -> f64 {
        match *self {
            Distribution::Fixed(mean)
            | Distribution::Exponential(mean)
            | Distribution::Lognormal(mean, _)
            | Distribution::Pareto(_, mean)
            | Distribution::Erlang(_, mean) => mean,
            Distribution::Values(ref values) => values.iter().sum::<f64>() / values.len() as f64,
            Distribution::Uniform(low, high) => f64::midpoint(low, high),
            Distribution::Mixed(probability, first, second) => {
                probability * first + (1.0 - probability) * second
            }
        }
    }

    /// The variance over the square of the mean: 0 when fixed, 1 when exponential, infinite where there is none.
    pub fn variability(&self) -> f64 {
        let mean = self.mean();
        if mean == 0.0 {
            return 0.0;
        }
        match *self {
            Distribution::Fixed(_) => 0.0,
            Distribution::Lognormal(_, deviation) => (deviation / mean).powi(2),
            Distribution::Pareto(shape, _) if shape <= 2.0 => f64::INFINITY,
            Distribution::Pareto(shape, _) => 1.0 / (shape * (shape - 2.0)),
            Distribution::Values(ref values) => {
                let squares = values.iter().map(|value| (value - mean).powi(2));
                squares.sum::<f64>() / values.len() as f64 / mean.powi(2)
            }
            Distribution::Uniform(low, high) => (high - low).powi(2) / 12.0 / mean.powi(2),
            Distribution::Exponential(_) => 1.0,
            Distribution::Erlang(steps, _) => 1.0 / f64::from(steps),
            Distribution::Mixed(probability, first, second) => {
                let square =
                    2.0 * (probability * first.powi(2) + (1.0 - probability) * second.powi(2));
                square / mean.powi(2) - 1.0
            }
        }
    }
}

impl FromStr for Distribution {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Distribution, ParseError> {
        let wanted = || {
            ParseError::new(
                text,
                "a time in seconds: fixed:S, uniform:A:B (A at most B), exponential:MEAN, erlang:STEPS:MEAN, mixed:P:MEAN:MEAN, lognormal:MEAN:DEVIATION, pareto:SHAPE:MEAN (SHAPE above 1) or values:S,S,…",
            )
        };
        let seconds = |text: &str| -> Result<f64, ParseError> {
            let seconds: f64 = text.parse().map_err(|_| wanted())?;
            match (0.0..=SECONDS_MAX).contains(&seconds) {
                true => Ok(seconds),
                false => Err(wanted()),
            }
        };
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["fixed", time] => Ok(Distribution::Fixed(seconds(time)?)),
            ["uniform", low, high] => {
                let (low, high) = (seconds(low)?, seconds(high)?);
                (low <= high)
                    .then_some(Distribution::Uniform(low, high))
                    .ok_or_else(wanted)
            }
            ["exponential", mean] => Ok(Distribution::Exponential(seconds(mean)?)),
            ["erlang", steps, mean] => {
                let steps: u32 = steps.parse().map_err(|_| wanted())?;
                let right = (1..=STEPS_MAX).contains(&steps);
                right
                    .then_some(Distribution::Erlang(steps, seconds(mean)?))
                    .ok_or_else(wanted)
            }
            ["mixed", probability, first, second] => {
                let probability: f64 = probability.parse().map_err(|_| wanted())?;
                let right = (0.0..=1.0).contains(&probability);
                let mixed = Distribution::Mixed(probability, seconds(first)?, seconds(second)?);
                right.then_some(mixed).ok_or_else(wanted)
            }
            ["lognormal", mean, deviation] => {
                let (mean, deviation) = (seconds(mean)?, seconds(deviation)?);
                (mean > 0.0)
                    .then_some(Distribution::Lognormal(mean, deviation))
                    .ok_or_else(wanted)
            }
            ["pareto", shape, mean] => {
                let shape: f64 = shape.parse().map_err(|_| wanted())?;
                let right = shape > 1.0 && shape <= TAIL_MAX;
                let pareto = Distribution::Pareto(shape, seconds(mean)?);
                right.then_some(pareto).ok_or_else(wanted)
            }
            ["values", values] => {
                let values: Result<Vec<f64>, _> = values.split(',').map(seconds).collect();
                let values = values?;
                (values.len() <= VALUES_MAX)
                    .then(|| Distribution::Values(values.into()))
                    .ok_or_else(wanted)
            }
            _ => Err(wanted()),
        }
    }
}

/// A number of the standard normal distribution, by the method of Box and Muller.
fn normal(generator: &mut Generator) -> f64 {
    let (radius, angle) = (1.0 - generator.unit(), generator.unit());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Fixed(time) => write!(f, "fixed:{time}"),
            Distribution::Uniform(low, high) => write!(f, "uniform:{low}:{high}"),
            Distribution::Exponential(mean) => write!(f, "exponential:{mean}"),
            Distribution::Erlang(steps, mean) => write!(f, "erlang:{steps}:{mean}"),
            Distribution::Mixed(probability, first, second) => {
                write!(f, "mixed:{probability}:{first}:{second}")
            }
            Distribution::Lognormal(mean, deviation) => write!(f, "lognormal:{mean}:{deviation}"),
            Distribution::Pareto(shape, mean) => write!(f, "pareto:{shape}:{mean}"),
            Distribution::Values(values) => {
                f.write_str("values:")?;
                for (at, value) in values.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{value}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_variability_that_are_said() {
        let mut generator = Generator::new(4);
        for text in [
            "fixed:2",
            "uniform:1:3",
            "exponential:2",
            "erlang:4:2",
            "mixed:0.25:4:1",
            "lognormal:2:1",
            "pareto:5:2",
            "values:0,1,1,6",
        ] {
            let distribution: Distribution = text.parse().expect(text);
            assert_eq!(distribution.to_string(), text);
            let n = 200_000;
            let drawn: Vec<f64> = (0..n).map(|_| distribution.draw(&mut generator)).collect();
            let mean = drawn.iter().sum::<f64>() / f64::from(n);
            let variance = drawn.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / f64::from(n);
            assert!(
                (mean / distribution.mean() - 1.0).abs() < 0.02,
                "{text}: {mean}"
            );
            let variability = variance / mean.powi(2);
            assert!(
                (variability - distribution.variability()).abs() < 0.05,
                "{text}: {variability}"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in [
            "",
            "2",
            "fixed",
            "fixed:-1",
            "fixed:nan",
            "uniform:2:1",
            "erlang:0:1",
            "mixed:2:1:1",
            "fixed:1e99",
            "lognormal:0:1",
            "lognormal:1",
            "pareto:1:2",
            "values:",
            "values:1,-1",
        ] {
            assert!(text.parse::<Distribution>().is_err(), "{text} was accepted");
        }
    }
}
