//! Once, not only one at a time: a durable record that a key's command was done. The start is on record too, so that a
//! crash between the command and its record is seen and reported as unknown, instead of being taken for either.
//!
//! A key may have *periods* (`--every`): numbers of which only the newest done one is kept, since an earlier period is
//! never run again. That bounds the record to one a key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::limits::Limits;
use crate::name::Name;
use crate::session::SessionId;

/// The command of a once-key is about to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnceStart {
    /// The key.
    pub key: Name,
    /// The period, 0 for a key without periods.
    pub period: u64,
    /// A number that grows with every attempt: the fence of the gate that the runner holds.
    pub attempt: Fence,
    /// Whose command.
    pub session: SessionId,
    /// Run although an earlier attempt ended nobody knows how.
    pub retry_unknown: bool,
}

/// What a once-key's change was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceAnswer {
    /// Run the command now, then finish or abandon the attempt.
    Run,
    /// It is done: do not run it.
    Done {
        /// The newest done period.
        period: u64,
        /// When, as the log's time says.
        at: u64,
    },
    /// An earlier attempt started and its end was never recorded: it may have been done or not.
    Unknown {
        /// The period of that attempt.
        period: u64,
        /// When it started.
        at: u64,
    },
    /// The attempt is off the record; the key may be tried again.
    Abandoned,
    /// The key is forgotten.
    Forgotten,
}

/// The records of all keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OnceKeys(BTreeMap<Name, Record>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    done: Option<Done>,
    started: Option<Started>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    period: u64,
    attempt: Fence,
    at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Started {
    period: u64,
    attempt: Fence,
    session: SessionId,
    at: u64,
}

impl OnceKeys {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Records a start, unless the key is done, runs now, or ended nobody knows how. `alive` says whether the session of
    /// an earlier attempt is still open.
    pub(super) fn start(
        &mut self,
        now: u64,
        limits: &Limits,
        start: &OnceStart,
        alive: impl Fn(SessionId) -> bool,
    ) -> Result<OnceAnswer, Refusal> {
        let key = &start.key;
        let started = Started {
            period: start.period,
            attempt: start.attempt,
            session: start.session,
            at: now,
        };
        let full = self.0.len() >= limits.once_keys;
        let Some(record) = self.0.get_mut(key) else {
            if full {
                return Err(Refusal::new(
                    Word::Limit,
                    format!(
                        "{} once-keys are on record, which is the limit once_keys; forget some",
                        limits.once_keys
                    ),
                ));
            }
            let record = Record {
                done: None,
                started: Some(started),
            };
            self.0.insert(key.clone(), record);
            return Ok(OnceAnswer::Run);
        };
        if let Some(done) = &record.done
            && done.period >= start.period
        {
            return Ok(OnceAnswer::Done {
                period: done.period,
                at: done.at,
            });
        }
        if let Some(earlier) = &record.started {
            if (earlier.attempt, earlier.session, earlier.period)
                == (start.attempt, start.session, start.period)
            {
                return Ok(OnceAnswer::Run);
            }
            if alive(earlier.session) {
                return Err(Refusal::new(
                    Word::Busy,
                    format!(
                        "once-key {key} runs now in session {}; wait for its gate",
                        earlier.session
                    ),
                ));
            }
            if earlier.attempt >= start.attempt {
                return Err(Refusal::new(
                    Word::Stale,
                    format!(
                        "once-key {key} was started with attempt {}; {} is not later",
                        earlier.attempt, start.attempt
                    ),
                ));
            }
            if earlier.period >= start.period && !start.retry_unknown {
                return Ok(OnceAnswer::Unknown {
                    period: earlier.period,
                    at: earlier.at,
                });
            }
        }
        record.started = Some(started);
        Ok(OnceAnswer::Run)
    }

    pub(super) fn finish(
        &mut self,
        now: u64,
        key: &Name,
        period: u64,
        attempt: Fence,
    ) -> Result<OnceAnswer, Refusal> {
        let stale = || {
            Refusal::new(
                Word::Stale,
                format!("once-key {key} has no started attempt {attempt} of period {period}"),
            )
        };
        let record = self.0.get_mut(key).ok_or_else(stale)?;
        if let Some(done) = &record.done
            && (done.period, done.attempt) == (period, attempt)
        {
            return Ok(OnceAnswer::Done {
                period,
                at: done.at,
            });
        }
        match &record.started {
            Some(started) if (started.period, started.attempt) == (period, attempt) => {}
            _ => return Err(stale()),
        }
        record.started = None;
        record.done = Some(Done {
            period,
            attempt,
            at: now,
        });
        Ok(OnceAnswer::Done { period, at: now })
    }

    pub(super) fn abandon(&mut self, key: &Name, attempt: Fence) -> Result<OnceAnswer, Refusal> {
        let record = self.0.get_mut(key);
        let Some(record) = record.filter(|record| {
            let started = record.started.as_ref();
            started.is_some_and(|started| started.attempt == attempt)
        }) else {
            return Err(Refusal::new(
                Word::Stale,
                format!("once-key {key} has no started attempt {attempt}"),
            ));
        };
        record.started = None;
        if record.done.is_none() {
            self.0.remove(key);
        }
        Ok(OnceAnswer::Abandoned)
    }

    pub(super) fn forget(&mut self, key: &Name) -> bool {
        self.0.remove(key).is_some()
    }
}
