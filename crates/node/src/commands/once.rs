//! `ONCE START|DONE|ABANDON|FORGET`: the durable record that a key's command was done.

use testigo_core::{Change, Fence, Name, OnceStart};

use super::table::{Answered, Outcome, unknown_word};
use crate::house::{Answers, ClientId, House};
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
            Change::StartOnce(OnceStart {
                key: Name::new(words.text("the key")?)?,
                period: words.number("the period")?,
                attempt: Fence(words.number("the fence")?),
                session,
                retry_unknown: words.keyword("RETRY"),
            })
        } else if words.keyword("DONE") {
            Change::FinishOnce {
                key: Name::new(words.text("the key")?)?,
                period: words.number("the period")?,
                attempt: Fence(words.number("the fence")?),
            }
        } else if words.keyword("ABANDON") {
            Change::AbandonOnce {
                key: Name::new(words.text("the key")?)?,
                attempt: Fence(words.number("the fence")?),
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
}
