//! When users ask.

use std::fmt;
use std::str::FromStr;

use testigo_sim::{Latency, ParseError, Time};

/// The arrivals of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Every user asks again this long after it has left: with `fixed:0`, full load.
    Closed(Latency),
    /// Every user gets requests at random, this long apart in the mean; one that comes while the
    /// user is busy waits for it.
    Poisson(Time),
    /// These users at these times.
    Script(Vec<(u32, Time)>),
}

impl Arrivals {
    pub const FULL_LOAD: Arrivals = Arrivals::Closed(Latency::Fixed(Time::ZERO));
    /// The longest script.
    const SCRIPT_MAX: usize = 1_000_000;
}

impl FromStr for Arrivals {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Arrivals, ParseError> {
        const FORMS: &str = "closed, closed:SPAN (such as closed:exponential:5), poisson:MEAN_TIME_APART \
                             or script:NODE@T,NODE@T";
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest) {
            ("closed", "") => Ok(Arrivals::FULL_LOAD),
            ("closed", span) => Ok(Arrivals::Closed(span.parse()?)),
            ("poisson", mean) if mean.parse() != Ok(Time::ZERO) => {
                Ok(Arrivals::Poisson(mean.parse()?))
            }
            ("script", items) => {
                let items: Vec<&str> = items.split(',').take(Self::SCRIPT_MAX + 1).collect();
                if items.len() > Self::SCRIPT_MAX {
                    return Err(ParseError::new(
                        "script",
                        format!("at most {} long", Self::SCRIPT_MAX),
                    ));
                }
                items
                    .into_iter()
                    .map(script_item)
                    .collect::<Result<_, _>>()
                    .map(Arrivals::Script)
            }
            _ => Err(ParseError::new(text, FORMS)),
        }
    }
}

fn script_item(item: &str) -> Result<(u32, Time), ParseError> {
    let bad = || ParseError::new(item, "a request such as 0@2.5 (node 0 at time 2.5)");
    let (node, at) = item.split_once('@').ok_or_else(bad)?;
    Ok((node.parse().map_err(|_| bad())?, at.parse()?))
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrivals::Closed(think) => write!(f, "closed:{think}"),
            Arrivals::Poisson(mean) => write!(f, "poisson:{mean}"),
            Arrivals::Script(items) => {
                let items: Vec<String> = items
                    .iter()
                    .map(|(node, at)| format!("{node}@{at}"))
                    .collect();
                write!(f, "script:{}", items.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_print_as_they_are_written() {
        for text in [
            "closed:fixed:0",
            "closed:exponential:5",
            "poisson:20",
            "script:0@0,2@0.5",
        ] {
            assert_eq!(text.parse::<Arrivals>().expect("valid").to_string(), text);
        }
        assert_eq!("closed".parse(), Ok(Arrivals::FULL_LOAD));
        for text in [
            "",
            "poisson",
            "poisson:0",
            "script:",
            "script:0",
            "script:x@1",
            "open:3",
        ] {
            assert!(text.parse::<Arrivals>().is_err(), "{text} was accepted");
        }
    }
}
