//! Options with several values: `4,8`, `4..8`, `4..64x2`, `0.1..0.5+0.1`; and ranges of seeds.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The values of an option, at least one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sweep<T>(Vec<T>);

impl<T: Clone> Sweep<T> {
    /// More values of one option are a slip of a finger.
    const VALUES_MAX: usize = 1_000;

    pub(crate) fn values(&self) -> &[T] {
        &self.0
    }
}

impl<T: FromStr<Err: Display> + Clone> FromStr for Sweep<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep<T>, String> {
        let mut values = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                None => values.push(value(part)?),
                Some((from, rest)) => {
                    for number in numbers(from, rest, Self::VALUES_MAX).ok_or_else(|| bad(part))? {
                        values.push(value(&number)?);
                    }
                }
            }
            if values.len() > Self::VALUES_MAX {
                return Err(format!(
                    "`{text}` has more than {} values",
                    Self::VALUES_MAX
                ));
            }
        }
        Ok(Sweep(values))
    }
}

fn value<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn bad(part: &str) -> String {
    format!(
        "`{part}` is not a sweep: use FROM..UNTIL with FROM below UNTIL, each one after the other (4..8), \
         times a factor above 1 (4..64x2) or plus a step (0.1..0.5+0.1)"
    )
}

/// The numbers of a sweep, as text; at most one more than `count_max`.
fn numbers(from: &str, rest: &str, count_max: usize) -> Option<Vec<String>> {
    let positive = |text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|n| n.is_finite() && *n >= 0.0)
    };
    let (until, step) = match (rest.split_once('x'), rest.split_once('+')) {
        (Some((until, factor)), _) => (until, (positive(factor)?, 0.0)),
        (None, Some((until, step))) => (until, (1.0, positive(step)?)),
        (None, None) => (rest, (1.0, 1.0)),
    };
    let (from, until) = (positive(from)?, positive(until)?);
    let after = |value: f64| value * step.0 + step.1;
    if from >= until || after(from) <= from || after(from) > until + SLACK {
        return None;
    }
    let mut numbers = Vec::new();
    let mut next = from;
    while next <= until + SLACK && numbers.len() <= count_max {
        numbers.push(shortened(next));
        next = after(next);
    }
    Some(numbers)
}

/// Less than any step that matters.
const SLACK: f64 = 1e-9;

/// A number without the rounding errors of its sum.
fn shortened(number: f64) -> String {
    let text = format!("{number:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Seeds from the first to the last, both included.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seeds(pub(crate) RangeInclusive<u64>);

impl Seeds {
    const COUNT_MAX: u64 = 100_000;
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let ends = text.split_once("..");
        let ends = ends.and_then(|(from, until)| Some((from.parse().ok()?, until.parse().ok()?)));
        match ends {
            Some((from, until)) if from <= until && until - from < Self::COUNT_MAX => {
                Ok(Seeds(from..=until))
            }
            _ => Err(format!(
                "`{text}` is not a range of seeds: use FIRST..LAST, both included, such as 1..20; at most {}",
                Self::COUNT_MAX
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: FromStr<Err: Display> + Clone>(text: &str) -> Result<Vec<T>, String> {
        text.parse::<Sweep<T>>().map(|sweep| sweep.0)
    }

    #[test]
    fn sweeps_are_read() {
        assert_eq!(read("7"), Ok(vec![7_usize]));
        assert_eq!(read("4,8,16"), Ok(vec![4_usize, 8, 16]));
        assert_eq!(read("4..64x2"), Ok(vec![4_usize, 8, 16, 32, 64]));
        assert_eq!(read("4..50x2"), Ok(vec![4_usize, 8, 16, 32]));
        assert_eq!(read("3..5,9"), Ok(vec![3_u64, 4, 5, 9]));
        assert_eq!(read("10..30+10"), Ok(vec![10_u32, 20, 30]));
        assert_eq!(read("0..0.3+0.1"), Ok(vec![0.0, 0.1, 0.2, 0.3]));
        for text in [
            "", "4..", "8..4", "4..64x1", "4..64x", "0..9x2", "1..9+0", "0..0.5", "4..x2",
        ] {
            assert!(read::<f64>(text).is_err(), "{text}");
        }
        assert!(read::<usize>("1..2+0.5").is_err(), "half a node");
        assert!(read::<u64>("1..5000").is_err(), "too many");
    }

    #[test]
    fn seeds_are_read() {
        assert_eq!("1..20".parse(), Ok(Seeds(1..=20)));
        assert_eq!("5..5".parse(), Ok(Seeds(5..=5)));
        for text in ["", "5", "9..1", "1..20x2", "0..18446744073709551615"] {
            assert!(text.parse::<Seeds>().is_err(), "{text}");
        }
    }
}
