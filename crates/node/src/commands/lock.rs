//! `LOCK`, `LOCKALL`, `UNLOCK`, `DOWNGRADE`, `CANCEL`, `FENCE CHECK`.

use testigo_core::{
    Answer, Ask, Command, Fence, Lock, LockAll, Name, Refusal, Settled, Ticket, bare_name,
};

use super::table::{Answered, Outcome, unknown_word};
use crate::house::{Asking, ClientId, Form, House, Wanted, fence_reply};
use crate::users::Deed;
use crate::wire::{Protocol, Reply, Words, bad_arg};

impl House {
    /// `LOCK name [SHARED] [PERMITS h] [ROOM r [NEEDS ms]] [CLASS c] [WAIT ms] [REASON text] [ID token] [ASYNC] [RECEIPT|GRANT]`.
    pub(super) fn lock(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let mut lock = Lock {
            gate: gate_name(&mut words)?,
            ..Lock::default()
        };
        let mut form = None;
        while words.left() > 0 {
            if let Some(ask) = ask(&mut words)? {
                if lock.ask != Ask::Plain {
                    return Err(bad_arg("SHARED, PERMITS and ROOM exclude each other"));
                }
                lock.ask = ask;
            } else if words.keyword("NEEDS") {
                lock.needs_ms = Some(words.number("NEEDS")?);
            } else if words.keyword("CLASS") {
                lock.class = Some(words.small_number("CLASS")?);
            } else if words.keyword("REASON") {
                lock.reason = Some(words.text("REASON")?);
            } else if words.keyword("ID") {
                lock.id = Some(words.text("ID")?);
            } else if !waits(&mut words, &mut lock, &mut form)? {
                words.end()?;
            }
        }
        self.allow(id, Deed::Use, lock.gate)?;
        let wanted = form.map(|form| Wanted {
            form,
            gates: [lock.gate.into()].into(),
        });
        self.enter(id, lock.asynchronous, wanted, &Command::Lock(lock))
    }

    /// `LOCKALL n (name [SHARED|PERMITS h|ROOM r])… [WAIT ms] [REASON text] [ID token] [ASYNC] [RECEIPT|GRANT]`.
    pub(super) fn lock_all(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let count = words.number("the number of gates")?;
        if count > self.services.limits().set_size as u64 {
            let most = self.services.limits().set_size;
            return Err(bad_arg(format!(
                "a set of {count} gates is not in 1..={most}"
            )));
        }
        let mut gates = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let name = named(&mut words, "a gate's name")?;
            gates.push((name, ask(&mut words)?.unwrap_or_default()));
        }
        let mut set = LockAll {
            gates: gates.as_slice().into(),
            ..LockAll::default()
        };
        let mut form = None;
        while words.left() > 0 {
            if words.keyword("WAIT") {
                set.wait_ms = Some(words.number("WAIT")?);
            } else if words.keyword("REASON") {
                set.reason = Some(words.text("REASON")?);
            } else if words.keyword("ID") {
                set.id = Some(words.text("ID")?);
            } else if words.keyword("ASYNC") {
                set.asynchronous = true;
            } else if let Some(wanted) = Form::read(&mut words) {
                form = Some(wanted);
            } else {
                words.end()?;
            }
        }
        for (gate, _) in &gates {
            self.allow(id, Deed::Use, gate)?;
        }
        let wanted = form.map(|form| Wanted {
            form,
            gates: gates.iter().map(|(gate, _)| Box::from(*gate)).collect(),
        });
        self.enter(id, set.asynchronous, wanted, &Command::LockAll(set))
    }

    /// Whether the connection can receive pushes.
    pub(super) fn check_pushes(&self, id: ClientId) -> Result<(), Refusal> {
        match self.connections[id].protocol {
            Protocol::Resp2 => Err(bad_arg(
                "ASYNC needs version 3 of the protocol, which can push; say HELLO 3 first",
            )),
            Protocol::Resp3 => Ok(()),
        }
    }

    pub(super) fn enter(
        &mut self,
        id: ClientId,
        asynchronous: bool,
        wanted: Option<Wanted>,
        command: &Command<'_>,
    ) -> Outcome {
        let session = self.session_of(id)?;
        if asynchronous {
            self.check_pushes(id)?;
        }
        match self.ask(session, command)? {
            Answer::Waiting(ticket) => {
                self.want(ticket, wanted);
                if asynchronous {
                    return Ok(Answered::Now(Reply::number(ticket.0)));
                }
                self.block_on(id, ticket);
                Ok(Answered::Later)
            }
            Answer::Settled(settled) if asynchronous => {
                let ticket = self.instant_ticket();
                self.connections.send(id, Reply::number(ticket));
                self.push_settled(session, ticket, &settled, wanted.as_ref());
                Ok(Answered::Later)
            }
            Answer::Settled(Settled::Ended(_)) => Ok(Answered::Now(Reply::Null)),
            Answer::Settled(settled) => {
                let reply = self.grant_reply(session, &settled, wanted.as_ref());
                Ok(Answered::Now(reply))
            }
            other => unreachable!("a request to enter was answered {other:?}"),
        }
    }

    /// `UNLOCK name [fence]`.
    pub(super) fn unlock(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let gate = gate_name(&mut words)?;
        let fence = match words.left() {
            0 => None,
            _ => Some(Fence(words.number("the fence")?)),
        };
        words.end()?;
        let session = self.session_of(id)?;
        match self.ask(session, &Command::Unlock { gate, fence })? {
            Answer::Waiting(ticket) => {
                self.block_on_asking(id, ticket, Asking::Unlock);
                Ok(Answered::Later)
            }
            _ => Ok(Answered::Now(Reply::Ok)),
        }
    }

    /// `DOWNGRADE name [RECEIPT|GRANT]`.
    pub(super) fn downgrade(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let gate = gate_name(&mut words)?;
        let form = Form::read(&mut words);
        words.end()?;
        let session = self.session_of(id)?;
        match self.ask(session, &Command::Downgrade { gate })? {
            Answer::Downgraded(fence) => Ok(Answered::Now(match form {
                Some(form) => self.form_reply(session, gate, fence, form),
                None => fence_reply(fence),
            })),
            Answer::Waiting(ticket) => {
                let gate = gate.into();
                self.block_on_asking(id, ticket, Asking::Downgrade { gate, form });
                Ok(Answered::Later)
            }
            other => unreachable!("a downgrade was answered {other:?}"),
        }
    }

    /// `CANCEL ticket`: ends a wait that blocks nobody.
    pub(super) fn cancel(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let ticket = Ticket(words.number("the ticket")?);
        words.end()?;
        let session = self.session_of(id)?;
        let cancelled = self.ask(session, &Command::Cancel { ticket }).is_ok();
        Ok(Answered::Now(Reply::flag(cancelled)))
    }

    /// `FENCE CHECK name fence`.
    pub(super) fn fence(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if !words.keyword("CHECK") {
            return Err(unknown_word("FENCE", words.text("CHECK")?, "CHECK"));
        }
        let gate = gate_name(&mut words)?;
        let fence = Fence(words.number("the fence")?);
        words.end()?;
        self.allow(id, Deed::Show, gate)?;
        Ok(Answered::Now(Reply::flag(
            self.local().fence_check(gate, fence),
        )))
    }
}

/// How a waiting request is answered, if the next word says so: `WAIT ms`, `ASYNC`, `RECEIPT` or `GRANT`.
pub(super) fn waits(
    words: &mut Words<'_>,
    lock: &mut Lock<'_>,
    form: &mut Option<Form>,
) -> Result<bool, Refusal> {
    if words.keyword("WAIT") {
        lock.wait_ms = Some(words.number("WAIT")?);
    } else if words.keyword("ASYNC") {
        lock.asynchronous = true;
    } else if let Some(wanted) = Form::read(words) {
        *form = Some(wanted);
    } else {
        return Ok(false);
    }
    Ok(true)
}

pub(super) fn gate_name<'a>(words: &mut Words<'a>) -> Result<&'a str, Refusal> {
    named(words, "the gate's name")
}

fn named<'a>(words: &mut Words<'a>, what: &str) -> Result<&'a str, Refusal> {
    let name = words.text(what)?;
    match bare_name(name).len() == name.len() {
        true => Ok(name),
        false => Name::new(name).map(|_| name),
    }
}

/// The mode, if the next word gives one.
pub(super) fn ask<'a>(words: &mut Words<'a>) -> Result<Option<Ask<'a>>, Refusal> {
    Ok(Some(if words.keyword("SHARED") {
        Ask::Shared
    } else if words.keyword("PERMITS") {
        Ask::Permits(words.small_number("PERMITS")?)
    } else if words.keyword("ROOM") {
        Ask::Room(words.text("ROOM")?)
    } else {
        return Ok(None);
    }))
}
