//! Once-keys: the durable record that a command was done. Its start is on record, too, so that a crash in between is noticed.

use crate::refusal::{Call, NotDone};
use crate::request::words;
use crate::value::Value;

/// An attempt to run the command of a once-key, recorded at the node.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{Lock, OnceStart, SessionOptions};
///
/// let session = testigo.session(SessionOptions::default()).await?;
/// let _alone = session.lock(Lock::new("nightly")).await?.ok_or("the wait ended")?;
/// if let OnceStart::Run(attempt) = session.start_once("nightly", 20_260_101, false).await? {
///     // Do it, then:
///     session.finish_once(&attempt).await?; // or abandon_once, if it failed and may be tried again
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    key: String,
    period: u64,
    /// Assigned by the node; it grows with every attempt.
    number: u64,
}

/// Whether the command should run.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{Lock, OnceStart, SessionOptions};
///
/// let session = testigo.session(SessionOptions::default()).await?;
/// let _alone = session.lock(Lock::new("nightly")).await?.ok_or("the wait ended")?;
/// match session.start_once("nightly", 20_260_101, false).await? {
///     OnceStart::Run(attempt) => session.finish_once(&attempt).await?,
///     OnceStart::Done { period, .. } => println!("{period} is done"),
///     OnceStart::Unknown { at_ms, .. } => println!("look at what the attempt of {at_ms} has done"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnceStart {
    /// Run it now, then finish or abandon the attempt.
    Run(Attempt),
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
    pub(crate) fn done_line(&self) -> Vec<String> {
        let (period, number) = (self.period.to_string(), self.number.to_string());
        words(["ONCE", "DONE", &self.key, &period, &number])
    }

    pub(crate) fn abandon_line(&self) -> Vec<String> {
        words(["ONCE", "ABANDON", &self.key, &self.number.to_string()])
    }
}

pub(crate) fn start_line(key: &str, period: u64, retry_unknown: bool) -> Vec<String> {
    let mut line = words(["ONCE", "START", key, &period.to_string()]);
    line.extend(retry_unknown.then(|| "RETRY".to_owned()));
    line
}

/// Reads the answer to `ONCE START`.
pub(crate) fn once_start(key: &str, period: u64, answer: &Value) -> Call<OnceStart> {
    let read = || {
        let row = answer.list()?;
        let number = |at: usize| row.get(at)?.number();
        Some(match row.first()?.text()? {
            "RUN" => OnceStart::Run(Attempt {
                key: key.to_owned(),
                period,
                number: number(1)?,
            }),
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
    fn an_attempt_is_finished_and_abandoned_by_the_number_that_its_start_was_given() {
        let started = |retry| start_line("nightly", 3, retry).join(" ");
        assert_eq!(started(false), "ONCE START nightly 3");
        assert_eq!(started(true), "ONCE START nightly 3 RETRY");
        let answer = Value::List(vec![Value::Text("RUN".into()), Value::Number(7)]);
        let Ok(OnceStart::Run(attempt)) = once_start("nightly", 3, &answer) else {
            panic!("not to be run: {answer:?}");
        };
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
        let read = |answer: &Value| once_start("k", 3, answer);
        assert!(matches!(read(&row("RUN")), Ok(OnceStart::Run(_))));
        let (period, at_ms) = (3, 99);
        assert_eq!(read(&row("DONE")), Ok(OnceStart::Done { period, at_ms }));
        assert_eq!(
            read(&row("UNKNOWN")),
            Ok(OnceStart::Unknown { period, at_ms })
        );
        let no_number = Value::List(vec![Value::Text("RUN".into())]);
        for wrong in [row("MAYBE"), no_number, Value::Null] {
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
    }
}
