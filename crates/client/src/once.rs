//! Once-keys: the durable record that a command was done, with its start on record too, so that a crash in between is seen.

use crate::refusal::{Call, NotDone};
use crate::request::words;
use crate::value::Value;

/// An attempt to run the command of a once-key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The key.
    pub key: String,
    /// The period, 0 for a key without periods.
    pub period: u64,
    /// What grows with every attempt: the fence of the lock that the command runs under.
    pub fence: u64,
}

/// Whether the command should run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceStart {
    /// Run it now, then finish or abandon the attempt.
    Run,
    /// It is done: do not run it.
    Done {
        /// The newest done period.
        period: u64,
        /// When, in milliseconds since 1970 by the node's clock.
        at_ms: u64,
    },
    /// An earlier attempt started, and its end was never recorded.
    Unknown {
        /// The period of that attempt.
        period: u64,
        /// When it started, in milliseconds since 1970 by the node's clock.
        at_ms: u64,
    },
}

impl Attempt {
    pub(crate) fn start_line(&self, retry_unknown: bool) -> Vec<String> {
        let (period, fence) = (self.period.to_string(), self.fence.to_string());
        let mut line = words(["ONCE", "START", &self.key, &period, &fence]);
        line.extend(retry_unknown.then(|| "RETRY".to_owned()));
        line
    }

    pub(crate) fn done_line(&self) -> Vec<String> {
        let (period, fence) = (self.period.to_string(), self.fence.to_string());
        words(["ONCE", "DONE", &self.key, &period, &fence])
    }

    pub(crate) fn abandon_line(&self) -> Vec<String> {
        words(["ONCE", "ABANDON", &self.key, &self.fence.to_string()])
    }
}

/// Reads the answer to `ONCE START`.
pub(crate) fn once_start(answer: &Value) -> Call<OnceStart> {
    let read = || {
        let row = answer.list()?;
        let number = |at: usize| row.get(at)?.number();
        Some(match row.first()?.text()? {
            "RUN" => OnceStart::Run,
            "DONE" => OnceStart::Done {
                period: number(1)?,
                at_ms: number(2)?,
            },
            "UNKNOWN" => OnceStart::Unknown {
                period: number(1)?,
                at_ms: number(2)?,
            },
            _ => return None,
        })
    };
    read().ok_or_else(|| NotDone::Unknown("the answer to ONCE START cannot be read".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_started_finished_and_abandoned_by_its_fence() {
        let attempt = Attempt {
            key: "nightly".into(),
            period: 3,
            fence: 7,
        };
        assert_eq!(
            attempt.start_line(false).join(" "),
            "ONCE START nightly 3 7"
        );
        assert_eq!(
            attempt.start_line(true).join(" "),
            "ONCE START nightly 3 7 RETRY"
        );
        assert_eq!(attempt.done_line().join(" "), "ONCE DONE nightly 3 7");
        assert_eq!(attempt.abandon_line().join(" "), "ONCE ABANDON nightly 7");
    }

    #[test]
    fn the_answer_says_whether_to_run() {
        let row = |word: &str| {
            let numbers = [3, 99].map(Value::Number);
            Value::List(
                [Value::Text(word.into())]
                    .into_iter()
                    .chain(numbers)
                    .collect(),
            )
        };
        assert_eq!(once_start(&row("RUN")), Ok(OnceStart::Run));
        let (period, at_ms) = (3, 99);
        assert_eq!(
            once_start(&row("DONE")),
            Ok(OnceStart::Done { period, at_ms })
        );
        assert_eq!(
            once_start(&row("UNKNOWN")),
            Ok(OnceStart::Unknown { period, at_ms })
        );
        assert!(once_start(&row("MAYBE")).is_err());
        assert!(once_start(&Value::Null).is_err());
    }
}
