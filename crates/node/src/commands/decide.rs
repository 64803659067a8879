//! `DECIDE name value` and `DECIDE FORGET name`: the first value that the log has under a name, for everybody and for good.

use testigo_core::{Body, Change, Name};

use super::table::{Answered, Outcome};
use crate::house::{Answers, ClientId, House};
use crate::users::Deed;
use crate::wire::{Words, bad_arg};

impl House {
    pub(super) fn decide(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let (deed, name, change) = if words.keyword("FORGET") {
            let name = Name::new(words.text("the decision's name")?)?;
            let forget = Change::ForgetDecision { name: name.clone() };
            (Deed::Define, name, forget)
        } else {
            let name = Name::new(words.text("the decision's name")?)?;
            let value = words.next_bytes();
            let value = value.ok_or_else(|| bad_arg("the value is missing; it may be empty"))?;
            let value = Body::from(value);
            let decide = Change::Decide {
                name: name.clone(),
                value,
            };
            (Deed::Use, name, decide)
        };
        words.end()?;
        self.allow(id, deed, &name)?;
        #[cfg(any(test, debug_assertions))]
        if let (true, Change::Decide { value, .. }) = (self.decides_early(), &change) {
            let early = crate::wire::Reply::Body(value.clone());
            self.submit(change, Answers::Nobody)?;
            return Ok(Answered::Now(early));
        }
        self.submit(change, Answers::Client(id))?;
        Ok(Answered::Later)
    }
}
