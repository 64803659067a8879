//! Times: how they are distributed, in seconds.

use std::fmt;
use std::str::FromStr;

use testigo_sim::{Generator, ParseError};

/// The longest time that a load may name: a year.
const SECONDS_MAX: f64 = 365.0 * 86_400.0;
/// The most steps of an Erlang time.
const STEPS_MAX: u32 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    Fixed(f64),
    Uniform(f64, f64),
    /// By its mean.
    Exponential(f64),
    /// So many exponential steps, with this mean together.
    Erlang(u32, f64),
    /// Exponential with the first mean by this probability, else with the second.
    Mixed(f64, f64, f64),
}

impl Distribution {
    pub fn draw(&self, generator: &mut Generator) -> f64 {
        match *self {
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
            | Distribution::Erlang(_, mean) => mean,
            Distribution::Uniform(low, high) => f64::midpoint(low, high),
            Distribution::Mixed(probability, first, second) => {
                probability * first + (1.0 - probability) * second
            }
        }
    }

    /// The variance over the square of the mean: 0 when fixed, 1 when exponential.
    pub fn variability(&self) -> f64 {
        let mean = self.mean();
        if mean == 0.0 {
            return 0.0;
        }
        match *self {
            Distribution::Fixed(_) => 0.0,
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
                "a time in seconds: fixed:S, uniform:A:B (A at most B), exponential:MEAN, erlang:STEPS:MEAN or mixed:P:MEAN:MEAN",
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
            _ => Err(wanted()),
        }
    }
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
        ] {
            assert!(text.parse::<Distribution>().is_err(), "{text} was accepted");
        }
    }
}
