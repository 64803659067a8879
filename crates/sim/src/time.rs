//! Virtual time: a whole number of ticks, a million of them to one message time.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use crate::ParseError;

/// A point of virtual time, or a span of it, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// Ticks in one unit (the time that a message takes with `fixed:1`).
    pub const UNIT: u64 = 1_000_000;
    pub const ZERO: Time = Time(0);
    /// The longest span that an option may name, in units: far beyond any run, and far from overflow. As milliseconds
    /// of a live run, 31 years.
    pub const UNITS_MAX: u64 = 1_000_000_000_000;

    pub const fn units(n: u64) -> Time {
        Time(n * Self::UNIT)
    }

    pub fn as_units(self) -> f64 {
        self.0 as f64 / Self::UNIT as f64
    }

    pub fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        debug_assert!(self >= other, "time runs forward");
        self.since(other)
    }
}

/// Units with as many decimals as needed: `3`, `0.25`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / Self::UNIT, self.0 % Self::UNIT);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let decimals = format!("{rest:06}");
        write!(f, "{whole}.{}", decimals.trim_end_matches('0'))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Time {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Time, ParseError> {
        let bad = || ParseError::new(text, "a time in message times, such as 2 or 0.5");
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || (text.contains('.') && (!digits(decimals) || decimals.len() > 6)) {
            return Err(bad());
        }
        let whole: u64 = whole.parse().map_err(|_| bad())?;
        if whole > Self::UNITS_MAX {
            let limit = format!("a time of at most {} message times", Self::UNITS_MAX);
            return Err(ParseError::new(text, limit));
        }
        let rest: u64 = format!("{decimals:0<6}").parse().map_err(|_| bad())?;
        Ok(Time(whole * Self::UNIT + rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_the_same() {
        for text in ["0", "1", "0.5", "12.000001", "7.25"] {
            assert_eq!(text.parse::<Time>().expect("valid").to_string(), text);
        }
    }

    #[test]
    fn refuses_what_is_not_a_time() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "1e3",
            "0.1234567",
            "9999999999999",
            "1.2.3",
        ] {
            assert!(text.parse::<Time>().is_err(), "{text} was accepted");
        }
    }
}
