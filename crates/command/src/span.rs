//! Time spans as people write them: `500ms`, `30s`, `15m`, `24h`, `7d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A time span of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

/// A text that is not a time span.
#[derive(Debug)]
pub(crate) struct BadSpan(String);

impl std::error::Error for BadSpan {}

impl fmt::Display for BadSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(
            f,
            "{text:?} is not a time span; write a number and its unit (ms, s, m, h, d), such as 500ms or 2s"
        )
    }
}

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Span, BadSpan> {
        let bad = || BadSpan(text.to_owned());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| bad())?;
        let unit = UNITS.iter().find(|(name, _)| *name == unit);
        // 0 is the same in every unit.
        let scale = match unit {
            Some((_, scale)) => *scale,
            None if text == "0" => 0,
            None => return Err(bad()),
        };
        let ms = number.checked_mul(scale).ok_or_else(bad)?;
        Ok(Span(Duration::from_millis(ms)))
    }
}

/// In the largest unit that leaves no rest.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        let mut units = UNITS.iter().rev();
        let whole = units.find(|(_, scale)| ms > 0 && ms.is_multiple_of(u128::from(*scale)));
        let (name, scale) = whole.unwrap_or(&UNITS[0]);
        write!(f, "{}{name}", ms / u128::from(*scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_a_unit() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("24h", 86_400_000),
            ("0", 0),
            ("2m", 120_000),
        ] {
            let span: Span = text.parse().expect(text);
            assert_eq!(span.0.as_millis(), ms, "{text}");
        }
        let day: Span = "24h".parse().expect("a day");
        assert_eq!(day.to_string(), "1d");
        assert_eq!(Span(Duration::from_millis(1500)).to_string(), "1500ms");
    }

    #[test]
    fn anything_else_is_refused_with_an_example() {
        for text in [
            "",
            "30",
            "s",
            "1.5s",
            "-1s",
            "30 s",
            "30sec",
            "99999999999999999999s",
            "999999999999999999d",
        ] {
            let refused = text.parse::<Span>().expect_err(text);
            assert!(
                refused.to_string().contains("such as 500ms or 2s"),
                "{text}"
            );
        }
    }
}
