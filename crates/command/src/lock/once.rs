//! Which key and period a run of `--once` or `--every` is recorded under, and what is said when it does not run.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::span::Span;

/// What must not be done twice.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Once {
    key: String,
    /// 0 for ever.
    period: u64,
}

impl Once {
    pub(super) fn for_ever(key: &str) -> Once {
        Once {
            key: key.to_owned(),
            period: 0,
        }
    }

    /// The present period of these gates, by this machine's clock or by `now_ms`. Periods of different lengths are counted
    /// apart, since their numbers cannot be compared.
    pub(super) fn every(span: Span, names: &[String], now_ms: Option<u64>) -> Once {
        let length_ms = span.0.as_millis().max(1);
        let now_ms = now_ms.map_or_else(|| since_1970_ms(SystemTime::now()), u128::from);
        // A period 0 would be one that never ends.
        let period = u64::try_from(now_ms / length_ms).unwrap_or(u64::MAX).max(1);
        Once {
            key: format!("{}@{span}", names.join("+")),
            period,
        }
    }

    /// The key and the period, 0 for none.
    pub(super) fn key(&self) -> (&str, u64) {
        (&self.key, self.period)
    }

    pub(super) fn done(&self, period: u64, at_ms: u64) -> String {
        let (key, now) = (&self.key, self.period);
        let when = ago(at_ms);
        match period > now + 1 {
            true => format!(
                "{key} is done for period {period} ({when}), but this machine's clock says {now}: a clock was or is wrong; \
                 once clocks are right, let it run again with: testigo once forget {key}"
            ),
            false => format!("{key} is done already ({when}); nothing to run"),
        }
    }

    pub(super) fn unknown(&self, at_ms: u64) -> String {
        let (key, when) = (&self.key, ago(at_ms));
        format!(
            "an attempt of {key} started {when}, and nobody recorded how it ended; find out, then repeat it with --retry-unknown"
        )
    }
}

fn since_1970_ms(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis())
}

fn ago(at_ms: u64) -> String {
    let now = since_1970_ms(SystemTime::now());
    match now.saturating_sub(u128::from(at_ms)) / 1000 {
        0..=119 => "within the last two minutes".into(),
        seconds @ 120..=7_199 => format!("{} minutes ago", seconds / 60),
        seconds @ 7_200..=172_799 => format!("{} hours ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(span: &str, now_ms: u64) -> u64 {
        let span = span.parse().expect("a span");
        Once::every(span, &["a".into()], Some(now_ms)).period
    }

    #[test]
    fn a_period_is_a_number_that_grows_with_the_clock() {
        let day = 86_400_000;
        assert_eq!(period("24h", 20_000 * day), 20_000);
        assert_eq!(period("24h", 20_001 * day - 1), 20_000);
        assert_eq!(period("1s", 1_999), 1);
        assert_eq!(period("24h", 5), 1, "0 would mean for ever");
    }

    #[test]
    fn keys_tell_gates_and_lengths_apart() {
        let key = |span: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Once::every(span.parse().expect("a span"), &names, Some(0)).key
        };
        assert_eq!(key("24h", &["nightly"]), "nightly@1d");
        assert_eq!(key("24h", &["nightly"]), key("1d", &["nightly"]));
        assert_ne!(key("1h", &["nightly"]), key("24h", &["nightly"]));
        assert_eq!(key("60s", &["a", "b"]), "a+b@1m");
    }

    #[test]
    fn a_record_from_the_future_is_not_passed_over_in_silence() {
        let once = Once::every(
            "24h".parse().expect("a day"),
            &["a".into()],
            Some(10 * 86_400_000),
        );
        assert!(once.done(11, 0).contains("nothing to run"));
        assert!(once.done(400, 0).contains("testigo once forget a@1d"));
    }
}
