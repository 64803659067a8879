//! `ONCE START|DONE|ABANDON|FORGET`: the durable record that a key's command was done.

use testigo_core::{Change, Name, OnceAttempt, OnceStart, Refusal};

use super::table::{Answered, Outcome, unknown_word};
use crate::house::{Answers, Client, ClientId, House};
use crate::users::Deed;
use crate::wire::{Words, bad_arg};

impl House {
    pub(super) fn once(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let change = if words.keyword("START") {
            let session = self.session_of(id)?;
            if session.is_implicit() {
                return Err(bad_arg(
                    "ONCE START needs a session that outlives its connection; SESSION OPEN first",
                ));
            }
            let key = Name::new(words.text("the key")?)?;
            let period = words.number("the period")?;
            let mut retry_unknown = words.keyword("RETRY");
            // The log names attempts itself; a runner may give its attempt another name for its own use.
            let given = match words.left() {
                0 => None,
                _ => Some(words.number("the attempt")?),
            };
            retry_unknown |= words.keyword("RETRY");
            Change::StartOnce(OnceStart {
                key,
                period,
                given,
                session,
                retry_unknown,
            })
        } else if words.keyword("DONE") {
            Change::FinishOnce {
                key: Name::new(words.text("the key")?)?,
                period: words.number("the period")?,
                attempt: self.once_attempt(id, &mut words)?,
            }
        } else if words.keyword("ABANDON") {
            Change::AbandonOnce {
                key: Name::new(words.text("the key")?)?,
                attempt: self.once_attempt(id, &mut words)?,
            }
        } else if words.keyword("FORGET") {
            Change::ForgetOnce {
                key: Name::new(words.text("the key")?)?,
            }
        } else {
            let known = "START, DONE, ABANDON, FORGET";
            return Err(unknown_word("ONCE", words.text("a word")?, known));
        };
        words.end()?;
        let (deed, key) = match &change {
            Change::StartOnce(start) => (Deed::Use, &start.key),
            Change::ForgetOnce { key } => (Deed::Define, key),
            Change::FinishOnce { key, .. } | Change::AbandonOnce { key, .. } => (Deed::Use, key),
            other => unreachable!("ONCE became {other:?}"),
        };
        self.allow(id, deed, key)?;
        self.submit(change, Answers::Client(id))?;
        Ok(Answered::Later)
    }

    /// The attempt that a connection names.
    fn once_attempt(&self, id: ClientId, words: &mut Words<'_>) -> Result<OnceAttempt, Refusal> {
        Ok(OnceAttempt {
            number: words.number("the attempt")?,
            session: self.connections.client(id).and_then(Client::session),
        })
    }
}
