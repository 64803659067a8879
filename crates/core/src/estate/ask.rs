//! The home's side of a request: what clients here ask for, in the books if this node owns it, otherwise by asking its owner.

use super::frame::{Ask, Frame};
use super::suspend::NO_LEASE;
use super::table::{Asked, What, ask_of, ticket_of};
use super::{Broken, Estate, Out, Peer, Tell};
use crate::codec::OwnedCommand;
use crate::command::{Answer, Command, Lock, Settled, WaitEnd};
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::gate::{Definition, Mode, Rule};
use crate::local::{HoldCopy, name_asked, not_held, other_fence};
use crate::name::Name;
use crate::ownership::Shard;
use crate::replicated::Replicated;
use crate::session::SessionId;

/// How long the answer to a call that need not wait may take, in milliseconds, before the client hears that the owner does
/// not answer.
pub(super) const ANSWER_MS: u64 = 1_000;

/// The session for which an owner is asked, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) session: SessionId,
    /// Whether the client is blocked meanwhile.
    pub(super) blocking: bool,
    pub(super) id: Option<&'a str>,
    /// The set that it is for.
    pub(super) set: Option<u64>,
}

impl Call<'_> {
    fn of(session: SessionId) -> Call<'static> {
        Call {
            session,
            blocking: true,
            id: None,
            set: None,
        }
    }
}

impl Estate {
    /// Carries out a session's request from a client connected here. [`Answer::Waiting`] means that a [`Tell::Answered`] with
    /// this ticket will follow.
    pub fn ask(
        &mut self,
        now: u64,
        replicated: &Replicated,
        session: SessionId,
        command: &Command<'_>,
        out: &mut Out,
    ) -> Result<Answer, Refusal> {
        if let Command::Withdraw { .. } = command {
            // The log has refused a change. That holds whoever held the job, and even without a lease.
            self.wake(now, replicated, out);
            let answer = self.in_books(replicated, session, command);
            self.go_on(replicated, out);
            return answer;
        }
        if !self.wake(now, replicated, out) {
            return self.ask_without_lease(replicated, session, command);
        }
        if self.table.ending.contains(&session) && !matches!(command, Command::Disconnect) {
            // The session ended with the lease, which the books hear of now.
            self.go_on(replicated, out);
            return Err(Estate::unavailable(NO_LEASE));
        }
        self.settle_up(replicated, out);
        // Calls that the books here never see are signs of life, too.
        if !matches!(
            command,
            Command::Connect | Command::Disconnect | Command::Reserve { .. }
        ) {
            self.in_books(replicated, session, &Command::Renew)?;
        }
        let answer = match command {
            Command::Connect => {
                self.table.host(session, replicated.index());
                self.in_books(replicated, session, command)
            }
            Command::Disconnect if session.is_implicit() => {
                if !self.stops {
                    self.end_own(session);
                }
                Ok(Answer::Done)
            }
            Command::Disconnect => {
                // The client is no longer blocked in a call.
                self.table.unblock(session);
                self.in_books(replicated, session, command)
            }
            Command::Lock(lock) => self.lock(replicated, session, lock),
            Command::LockAll(set) => self.lock_all(replicated, session, set, out),
            Command::Unlock { gate, fence } => self.unlock(replicated, session, gate, *fence),
            Command::Downgrade { gate } => match self.keeper_of(replicated, session, gate)? {
                owner if owner == self.own => self.in_books(replicated, session, command),
                owner => {
                    self.held_elsewhere(session, &Name::new(gate)?)?;
                    let until = self.now + ANSWER_MS;
                    let call = Call::of(session);
                    Ok(self.send_ask(replicated, owner, &call, What::Downgrade, command, until))
                }
            },
            Command::Resign { election } => self.resign(replicated, session, election, out),
            Command::Cancel { ticket } if !self.takers.contains_key(ticket) => {
                self.cancel(replicated, session, ask_of(*ticket), out)
            }
            Command::GiveBack(taken) if self.return_take(replicated, session, *taken) => {
                Ok(Answer::Done)
            }
            Command::GiveBackAll => {
                self.return_takes(replicated, session);
                self.in_books(replicated, session, command)
            }
            _ => self.ask_for_job(replicated, self.own, session, command),
        };
        self.go_on(replicated, out);
        answer_at_once(answer, out)
    }

    pub(super) fn unlock(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        gate: &str,
        fence: Option<Fence>,
    ) -> Result<Answer, Refusal> {
        let owner = self.keeper_of(replicated, session, gate)?;
        if owner == self.own {
            return self.in_books(replicated, session, &Command::Unlock { gate, fence });
        }
        let gate = Name::known(gate)?;
        let held = self.held_elsewhere(session, &gate)?.fence;
        if let Some(believed) = fence.filter(|fence| *fence != held) {
            return Err(other_fence(&gate, held, believed));
        }
        // From here on the hold is given up, answered or not: a new owner must not hear of it.
        if !self.breaks(Broken::ReportReleased) {
            self.table.strike_out(session, &gate);
        }
        let command = Command::Unlock {
            gate: &gate,
            fence: Some(held),
        };
        let until = self.now + ANSWER_MS;
        let call = Call::of(session);
        Ok(self.send_ask(replicated, owner, &call, What::Leave, &command, until))
    }

    pub(super) fn in_books(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        command: &Command<'_>,
    ) -> Result<Answer, Refusal> {
        self.local
            .apply(self.now, replicated, session, command, &mut self.events)
    }

    pub(super) fn owner_of(&self, replicated: &Replicated, gate: &str) -> Result<Peer, Refusal> {
        let title = replicated.ownership().title(Shard::of(gate));
        let title = title.ok_or_else(|| Estate::unavailable("nobody owns anything yet"))?;
        Ok((title.owner, title.start))
    }

    /// `LOCK`. An ID that was seen before gets the same answer, wherever the gate is owned.
    fn lock(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        lock: &Lock<'_>,
    ) -> Result<Answer, Refusal> {
        if let Some(answer) = self.answered_before(session, lock.id, lock.asynchronous)? {
            return Ok(answer);
        }
        let call = Call {
            session,
            blocking: !lock.asynchronous,
            id: lock.id,
            set: None,
        };
        let answer = self.ask_to_enter(replicated, &call, lock)?;
        self.remember(session, lock.id, &Ok(answer.clone()));
        Ok(answer)
    }

    fn held_elsewhere(&self, session: SessionId, gate: &Name) -> Result<&HoldCopy, Refusal> {
        let hold = self.table.hold(session, gate);
        hold.ok_or_else(|| not_held(session, gate))
    }

    /// Enters a gate: at once in the books, or by an ask that is kept until it is answered.
    pub(super) fn ask_to_enter(
        &mut self,
        replicated: &Replicated,
        call: &Call<'_>,
        lock: &Lock<'_>,
    ) -> Result<Answer, Refusal> {
        let session = call.session;
        let gate = name_asked(lock.gate, lock.ask)?;
        let owner = self.owner_of(replicated, &gate)?;
        let shard = Shard::of(&gate);
        if self.is_spread(replicated, &gate) {
            return self.ask_spread(replicated, call, lock, gate);
        }
        if let Some(answer) = self.campaign_again(replicated, call, lock, &gate) {
            return answer;
        }
        if self.enters_here(replicated, &gate) {
            // The home remembers the answer to an ID, not the books.
            let command = Command::Lock(Lock {
                id: None,
                ..lock.clone()
            });
            let answer = self.in_books(replicated, session, &command)?;
            let Answer::Waiting(ticket) = answer else {
                self.used(shard, self.own);
                return Ok(answer);
            };
            let asked = Asked {
                session,
                what: What::Enter(mode_of(replicated, lock)),
                command: OwnedCommand::from(&command),
                since: self.now,
                // The books end it.
                deadline: u64::MAX,
                ticket: Some(ticket),
                gate,
                blocking: call.blocking,
                id: call.id.map(Box::from),
                set: call.set,
                again: false,
            };
            return Ok(Answer::Waiting(ticket_of(self.table.add_ask(asked))));
        }
        self.local.check_words(lock.wait_ms, lock.reason, lock.id)?;
        let campaigns = matches!(lock.ask, crate::gate::Ask::Lead { .. });
        if self.table.hold(session, &gate).is_some() && !campaigns {
            return Err(Refusal::new(
                Word::Held,
                format!("session {session} holds gate {gate} already"),
            ));
        }
        let mode = mode_of(replicated, lock);
        let deadline = match lock.wait_ms {
            Some(0) => self.now + ANSWER_MS,
            Some(wait_ms) => self.now.saturating_add(wait_ms),
            None => u64::MAX,
        };
        // Waits end here, where the client is, and not at an owner that may change. The owner's books look for no cycle
        // through this wait, because only this node knows what else the session waits for.
        let forwarded = Lock {
            wait_ms: lock.wait_ms.filter(|wait_ms| *wait_ms == 0),
            asynchronous: true,
            id: None,
            ..lock.clone()
        };
        let command = Command::Lock(forwarded);
        Ok(self.send_ask(
            replicated,
            owner,
            call,
            What::Enter(mode),
            &command,
            deadline,
        ))
    }

    /// Records an ask and sends it to the owner.
    fn send_ask(
        &mut self,
        replicated: &Replicated,
        owner: Peer,
        call: &Call<'_>,
        what: What,
        command: &Command<'_>,
        deadline: u64,
    ) -> Answer {
        let gate = match command {
            Command::Lock(lock) => lock.gate,
            Command::Unlock { gate, .. } | Command::Downgrade { gate } => gate,
            _ => unreachable!("nothing else is asked of an owner"),
        };
        let asked = Asked {
            session: call.session,
            gate: Name::known(gate).expect("it was checked"),
            what,
            command: OwnedCommand::from(command),
            since: self.now,
            deadline,
            ticket: None,
            blocking: call.blocking,
            id: call.id.map(Box::from),
            set: call.set,
            again: false,
        };
        let ask = self.table.add_ask(asked);
        self.repeat_ask(replicated, owner, ask);
        Answer::Waiting(ticket_of(ask))
    }

    /// Sends an ask to the gate's present owner; to this node itself without a link.
    pub(super) fn repeat_ask(&mut self, replicated: &Replicated, owner: Peer, ask: u64) {
        let Some(asked) = self.table.ask(ask) else {
            return;
        };
        let frame = Ask {
            ask,
            session: asked.session,
            home: self.home_index(replicated, asked.session),
            gate: asked.gate.clone(),
            number: replicated.ownership().number(Shard::of(&asked.gate)),
            age_ms: self.now.saturating_sub(asked.since),
            command: asked.command.clone(),
            reserved: asked.set.is_some(),
        };
        match owner == self.own {
            true => self.early.push((self.own, Frame::Ask(frame))),
            false => self.send(owner, Frame::Ask(frame)),
        }
    }

    /// An ask is answered. A grant is recorded before the client hears of it.
    pub(super) fn finish(
        &mut self,
        replicated: &Replicated,
        ask: u64,
        answer: Result<Answer, Refusal>,
        out: &mut Out,
    ) {
        if matches!(&answer, Err(refusal) if refusal.word == Word::Held)
            && self.ask_again(replicated, ask)
        {
            return;
        }
        let Some(asked) = self.table.drop_ask(ask) else {
            return;
        };
        let Asked {
            session,
            gate,
            what,
            id,
            set,
            command,
            ..
        } = asked;
        let spread = self.is_spread(replicated, &gate);
        let here = spread || self.owner_of(replicated, &gate) == Ok(self.own);
        if here && !spread && matches!(what, What::Enter(_)) {
            self.used(Shard::of(&gate), self.own);
        }
        match (&answer, what) {
            (Ok(Answer::Settled(Settled::Entered(grant))), What::Enter(mode))
                if !here && !self.keeps_old_value(session, &gate, grant.fence) =>
            {
                self.table.write_down(HoldCopy {
                    session,
                    gate: gate.clone(),
                    mode,
                    fence: grant.fence,
                    until: grant.lease_ms.map(|ms| self.now.saturating_add(ms)),
                    proven: true,
                    reserved: set.is_some(),
                    since: self.now,
                    reason: command.command().reason().map(Box::from),
                });
            }
            (Ok(Answer::Downgraded(fence)), What::Downgrade) => {
                if let Some(hold) = self.table.strike_out(session, &gate) {
                    self.table.write_down(HoldCopy {
                        mode: Mode::Shared,
                        fence: *fence,
                        ..hold
                    });
                }
            }
            _ => {}
        }
        if let Some(set) = set {
            return self.set_goes_on(replicated, set, answer, out);
        }
        self.remember(session, id.as_deref(), &answer);
        out.tells.push(Tell::Answered {
            session,
            ticket: ticket_of(ask),
            answer,
        });
    }

    /// An owner says that a session already holds what it asks for, but its home knows better: that was the grant of a
    /// cancelled ask, which was given back just now. When it is asked once more, the owner has heard of that.
    fn ask_again(&mut self, replicated: &Replicated, ask: u64) -> bool {
        let Some(asked) = self.table.ask(ask) else {
            return false;
        };
        let held = self.table.hold(asked.session, &asked.gate).is_some();
        let owner = self.keeper_of(replicated, asked.session, &asked.gate);
        match owner {
            Ok(owner) if owner != self.own && !held && self.table.first_try(ask) => {
                self.repeat_ask(replicated, owner, ask);
                true
            }
            _ => false,
        }
    }

    /// The owner answers an ask that nobody waits for any more: a grant is given back.
    pub(super) fn give_back(
        &mut self,
        replicated: &Replicated,
        owner: Peer,
        session: SessionId,
        gate: &Name,
        answer: &Result<Answer, Refusal>,
    ) {
        let Ok(Answer::Settled(Settled::Entered(grant))) = answer else {
            return;
        };
        if self.breaks(Broken::LateGrant)
            || !self.table.hosts(session)
            || self.still_leads(session, gate, grant.fence)
        {
            return;
        }
        self.return_hold(replicated, owner, session, gate, grant.fence);
    }

    /// Gives a hold back to its owner, whether or not its client knows of it.
    pub(super) fn return_hold(
        &mut self,
        replicated: &Replicated,
        owner: Peer,
        session: SessionId,
        gate: &Name,
        fence: Fence,
    ) {
        let command = Command::Unlock {
            gate,
            fence: Some(fence),
        };
        let call = Call {
            blocking: false,
            ..Call::of(session)
        };
        let until = self.now + ANSWER_MS;
        self.send_ask(replicated, owner, &call, What::Leave, &command, until);
    }

    /// Ends a client's wait.
    pub(super) fn cancel(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        ask: Option<u64>,
        out: &mut Out,
    ) -> Result<Answer, Refusal> {
        if let Some(set) = ask.filter(|ask| self.table.sets.session_of(*ask) == Some(session)) {
            let ended = Ok(Answer::Settled(Settled::Ended(WaitEnd::Cancelled)));
            self.end_set(replicated, set, ended, out);
            return Ok(Answer::Done);
        }
        let of_session = |ask: &u64| {
            let asked = self.table.ask(*ask);
            asked.is_some_and(|asked| asked.session == session && asked.set.is_none())
        };
        let Some(ask) = ask.filter(of_session) else {
            return Err(Refusal::new(
                Word::BadArg,
                format!("session {session} has no such wait"),
            ));
        };
        self.call_off(replicated, ask);
        let ended = Ok(Answer::Settled(Settled::Ended(WaitEnd::Cancelled)));
        self.finish(replicated, ask, ended, out);
        Ok(Answer::Done)
    }

    /// Tells whoever has an ask that it is no longer wanted.
    pub(super) fn call_off(&mut self, replicated: &Replicated, ask: u64) {
        let Some(asked) = self.table.ask(ask).cloned() else {
            return;
        };
        if let Some(ticket) = asked.ticket {
            self.table.set_ticket(ask, None);
            let cancel = Command::Cancel { ticket };
            let mut told = Vec::new();
            // The end of the wait is told here and not by the books.
            let _ = self
                .local
                .apply(self.now, replicated, asked.session, &cancel, &mut told);
            told.retain(|event| !matches!(event, crate::event::Event::Settled { ticket: other, .. } if *other == ticket));
            self.events.extend(told);
            return;
        }
        let Ok(owner) = self.owner_of(replicated, &asked.gate) else {
            return;
        };
        if self.is_spread(replicated, &asked.gate) {
            // No other node knows of it.
            return;
        }
        let frame = Frame::Cancel {
            ask,
            number: replicated.ownership().number(Shard::of(&asked.gate)),
            gate: asked.gate,
        };
        match owner == self.own {
            true => self.early.push((self.own, frame)),
            false => self.send(owner, frame),
        }
    }

    /// Answers the asks whose time is over.
    pub(super) fn end_overdue(&mut self, replicated: &Replicated, out: &mut Out) {
        self.end_overdue_sets(replicated, out);
        for ask in self.table.overdue(self.now) {
            self.settle_up(replicated, out);
            let Some(asked) = self.table.ask(ask) else {
                continue;
            };
            let answer = match &asked.what {
                What::Enter(_) if waits(&asked.command) => {
                    Ok(Answer::Settled(Settled::Ended(WaitEnd::TimedOut)))
                }
                // The hold stays given up, whenever the owner hears of it. If the session moves before that, it still holds
                // the gate, and its client must ask again.
                What::Leave => Err(Refusal::new(
                    Word::Unknown,
                    "the gate's owner does not answer; it hears of this as soon as it can, unless the session moves first",
                )),
                What::Enter(_) if self.table.hold(asked.session, &asked.gate).is_some() => {
                    Err(Refusal::new(
                        Word::Unknown,
                        "the election's owner does not answer; it may have heard of the new value, or hear of it yet",
                    ))
                }
                _ => Err(Estate::unavailable(
                    "the gate's owner does not answer; try again",
                )),
            };
            if !matches!(asked.what, What::Leave) {
                self.call_off(replicated, ask);
            }
            self.finish(replicated, ask, answer, out);
        }
    }

    /// A session of this home has ended: everything it had is given back, here and elsewhere.
    pub(super) fn end_own(&mut self, session: SessionId) {
        self.table.forget(session);
        self.local.dismiss(session, &mut self.events);
        for peer in self.members.clone() {
            self.send(peer, Frame::Ended { session });
        }
    }
}

/// If a wait has already been answered, returns that answer instead of its ticket. Where an algorithm moves ownership, a
/// request may be let in at once.
fn answer_at_once(answer: Result<Answer, Refusal>, out: &mut Out) -> Result<Answer, Refusal> {
    let Ok(Answer::Waiting(ticket)) = answer else {
        return answer;
    };
    let own = |tell: &Tell| matches!(tell, Tell::Answered { ticket: of, .. } if *of == ticket);
    match out.tells.iter().position(own) {
        Some(at) => match out.tells.remove(at) {
            Tell::Answered { answer, .. } => answer,
            _ => unreachable!("that was looked for"),
        },
        None => answer,
    }
}

/// Whether a request to enter waits rather than only tries.
fn waits(command: &OwnedCommand) -> bool {
    match command.command() {
        Command::Lock(lock) => lock.wait_ms != Some(0),
        _ => true,
    }
}

/// How a request wants to be inside.
pub(super) fn mode_of(replicated: &Replicated, lock: &Lock<'_>) -> Mode {
    let implicit = Definition::implicit(lock.ask);
    let implicit = implicit.unwrap_or_else(|| Definition::new(Rule::Mutex));
    let definition = replicated.gate(lock.gate);
    let known = definition.unwrap_or(&implicit);
    let mode = known.mode(lock.gate, definition.is_none(), lock.ask);
    mode.unwrap_or(Mode::Exclusive)
}
