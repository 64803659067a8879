//! Once, not merely one at a time: a durable record that a key's command was done. The start is on record, too, so that a
//! crash between the command and its record is reported as unknown instead of being taken for either.
//!
//! A key may have *periods* (`--every`). These are numbers, and only the newest done one is kept, because an earlier period
//! is never run again. That bounds the record to one per key.
//!
//! Every start is an *attempt*, named by its index in the log, so that attempts are never confused, whatever gate the runner
//! holds. A runner may also give its attempt a number of its own, which only its own session understands.

use serde::{Deserialize, Serialize};

use crate::error::{Refusal, Word};
use crate::limits::SharedLimits;
use crate::name::Name;
use crate::session::SessionId;
use crate::shared_map::SharedMap;

/// The command of a once-key is about to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnceStart {
    /// The key.
    pub key: Name,
    /// The period, 0 for a key without periods.
    pub period: u64,
    /// The number that the runner gives this attempt, if any.
    pub given: Option<u64>,
    /// The session that runs the command.
    pub session: SessionId,
    /// Whether to run even if the outcome of an earlier attempt is unknown.
    pub retry_unknown: bool,
}

/// The answer to a change of a once-key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceAnswer {
    /// Run the command now, then finish or abandon the attempt.
    Run {
        /// Which attempt it is.
        attempt: u64,
    },
    /// It is done: do not run it.
    Done {
        /// The newest done period.
        period: u64,
        /// When, by the log's time.
        at: u64,
    },
    /// An earlier attempt started and its end was never recorded: its outcome is unknown.
    Unknown {
        /// The period of that attempt.
        period: u64,
        /// When it started.
        at: u64,
    },
    /// The attempt was deleted; the key may be tried again.
    Abandoned,
    /// The key was deleted.
    Forgotten,
    /// There was no such key.
    NotOnRecord,
}

/// The records of all keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OnceKeys(pub(super) SharedMap<Name, Record>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) done: Option<Done>,
    pub(super) started: Option<Started>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) period: u64,
    pub(super) attempt: Attempt,
    pub(super) at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Started {
    pub(super) period: u64,
    pub(super) attempt: Attempt,
    pub(super) at: u64,
}

/// The names of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// The log's name: the index of its start. In older logs it is a fence.
    pub(super) number: u64,
    /// The number that its runner gave it.
    pub(super) given: Option<u64>,
    pub(super) session: SessionId,
}

/// How a client names an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnceAttempt {
    /// The number with which its start was answered, or the one that this session gave it.
    pub number: u64,
    /// The session that uses this name.
    pub session: Option<SessionId>,
}

impl Attempt {
    fn is(&self, named: OnceAttempt) -> bool {
        let by_given = self.given == Some(named.number) && named.session == Some(self.session);
        self.number == named.number || by_given
    }
}

impl OnceKeys {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Records a start as the attempt with this number, unless the key is done, is running, or has an attempt with unknown
    /// outcome. `alive` says whether the session of an earlier attempt is still open.
    pub(super) fn start(
        &mut self,
        now: u64,
        limits: &SharedLimits,
        (start, number): (&OnceStart, u64),
        alive: impl Fn(SessionId) -> bool,
    ) -> Result<OnceAnswer, Refusal> {
        let key = &start.key;
        let attempt = Attempt {
            number,
            given: start.given,
            session: start.session,
        };
        let started = Started {
            period: start.period,
            attempt,
            at: now,
        };
        let full = self.0.len() >= limits.once_keys;
        let Some(record) = self.0.find_mut(key) else {
            if full {
                return Err(Refusal::new(
                    Word::Limit,
                    format!(
                        "{} once-keys are on record, and the limit once_keys is {}; forget some",
                        self.0.len(),
                        limits.once_keys
                    ),
                ));
            }
            let record = Record {
                done: None,
                started: Some(started),
            };
            self.0.insert(key.clone(), record);
            return Ok(OnceAnswer::Run { attempt: number });
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
            let Attempt {
                number,
                given,
                session,
            } = earlier.attempt;
            if (given, session, earlier.period) == (start.given, start.session, start.period) {
                return Ok(OnceAnswer::Run { attempt: number });
            }
            if alive(session) {
                return Err(Refusal::new(
                    Word::Busy,
                    format!("once-key {key} runs now in session {session}; wait for its gate"),
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
        Ok(OnceAnswer::Run { attempt: number })
    }

    pub(super) fn finish(
        &mut self,
        now: u64,
        key: &Name,
        period: u64,
        attempt: OnceAttempt,
    ) -> Result<OnceAnswer, Refusal> {
        let stale = || {
            let number = attempt.number;
            Refusal::new(
                Word::Stale,
                format!("once-key {key} has no started attempt {number} of period {period}"),
            )
        };
        let record = self.0.find_mut(key).ok_or_else(stale)?;
        if let Some(done) = &record.done
            && done.period == period
            && done.attempt.is(attempt)
        {
            return Ok(OnceAnswer::Done {
                period,
                at: done.at,
            });
        }
        let is = |started: &Started| started.period == period && started.attempt.is(attempt);
        let Some(Started { attempt, .. }) = record.started.take_if(|started| is(started)) else {
            return Err(stale());
        };
        record.done = Some(Done {
            period,
            attempt,
            at: now,
        });
        Ok(OnceAnswer::Done { period, at: now })
    }

    pub(super) fn abandon(
        &mut self,
        key: &Name,
        attempt: OnceAttempt,
    ) -> Result<OnceAnswer, Refusal> {
        let record = self.0.find_mut(key);
        let Some(record) = record.filter(|record| {
            let started = record.started.as_ref();
            started.is_some_and(|started| started.attempt.is(attempt))
        }) else {
            return Err(Refusal::new(
                Word::Stale,
                format!("once-key {key} has no started attempt {}", attempt.number),
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
