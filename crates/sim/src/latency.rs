//! How long a message, or a hold, takes.

use std::fmt;
use std::str::FromStr;

use crate::{Generator, ParseError, Time};

/// A distribution of spans. Every one has a longest span, because algorithms that assume a delay
/// bound need the bound to be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    Fixed(Time),
    Uniform(Time, Time),
    /// Mean, cut at eight times the mean.
    Exponential(Time),
}

impl Latency {
    const CUT: u64 = 8;

    pub fn draw(&self, generator: &mut Generator) -> Time {
        match *self {
            Latency::Fixed(d) => d,
            Latency::Uniform(a, b) => Time(generator.between(a.0, b.0)),
            Latency::Exponential(mean) => {
                let drawn = Time(generator.exponential(mean.0 as f64) as u64);
                drawn.min(self.longest())
            }
        }
    }

    /// The bound: no draw is longer.
    pub fn longest(&self) -> Time {
        match *self {
            Latency::Fixed(d) => d,
            Latency::Uniform(_, b) => b,
            Latency::Exponential(mean) => Time(mean.0 * Self::CUT),
        }
    }

    /// No draw is shorter.
    pub fn shortest(&self) -> Time {
        match *self {
            Latency::Fixed(d) => d,
            Latency::Uniform(a, _) => a,
            Latency::Exponential(_) => Time::ZERO,
        }
    }

    /// The mean: what one "message time" is in measures.
    pub fn mean(&self) -> Time {
        match *self {
            Latency::Fixed(d) => d,
            Latency::Uniform(a, b) => Time(a.0.midpoint(b.0)),
            Latency::Exponential(mean) => mean,
        }
    }

    /// Whether messages on one link keep their order without help.
    pub(crate) fn is_constant(&self) -> bool {
        match self {
            Latency::Fixed(_) => true,
            Latency::Uniform(a, b) => a == b,
            Latency::Exponential(mean) => *mean == Time::ZERO,
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Latency::Fixed(d) => write!(f, "fixed:{d}"),
            Latency::Uniform(a, b) => write!(f, "uniform:{a}:{b}"),
            Latency::Exponential(m) => write!(f, "exponential:{m}"),
        }
    }
}

impl FromStr for Latency {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Latency, ParseError> {
        const FORMS: &str = "a span: fixed:D, uniform:A:B (A at most B) or exponential:M";
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["fixed", d] => Ok(Latency::Fixed(d.parse()?)),
            ["uniform", a, b] => {
                let (a, b): (Time, Time) = (a.parse()?, b.parse()?);
                if a > b {
                    Err(ParseError::new(text, FORMS))
                } else {
                    Ok(Latency::Uniform(a, b))
                }
            }
            ["exponential", m] => Ok(Latency::Exponential(m.parse()?)),
            _ => Err(ParseError::new(text, FORMS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_draw_exceeds_the_bound() {
        let mut generator = Generator::new(3);
        for text in ["fixed:1", "uniform:0.5:2", "exponential:1"] {
            let latency: Latency = text.parse().expect("valid");
            assert_eq!(latency.to_string(), text);
            let longest = (0..200_000).map(|_| latency.draw(&mut generator)).max();
            assert!(longest <= Some(latency.longest()));
        }
    }

    #[test]
    fn refuses_other_words() {
        for text in [
            "",
            "fixed",
            "fixed:",
            "uniform:2:1",
            "gamma:1",
            "uniform:1",
            "fixed:1:2",
        ] {
            assert!(text.parse::<Latency>().is_err(), "{text} was accepted");
        }
    }
}
