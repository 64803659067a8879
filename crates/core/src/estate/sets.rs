//! Sets of gates (`LOCKALL`). If all gates are owned here and free, the books enter the set in one step. Otherwise the home
//! enters the gates one after the other, in the order of their names, so that sets never wait for each other in a cycle. What
//! it already has is *reserved*: inside as far as the owner is concerned, and reported like any other hold. The client is
//! told when the set is complete; if the wait ends before that, all of it is given back.
//!
//! A set that has to wait is never left to the books, even if this node owns all of its gates. There it would stand at all of
//! them at once, and keep a place at the second gate for which another node's set, inside the first, waits.

use std::collections::BTreeMap;

use super::ask::{ANSWER_MS, Call};
use super::frame::Frame;
use super::table::{Asked, What, ticket_of};
use super::{Estate, Out, Tell};
use crate::codec::OwnedCommand;
use crate::command::{Answer, Command, Grant, Lock, LockAll, Settled, WaitEnd};
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::gate::{Ask, Definition, Rule};
use crate::name::Name;
use crate::ownership::Shard;
use crate::replicated::{Replicated, no_gate};
use crate::session::SessionId;

/// Incomplete sets of this home's sessions.
#[derive(Debug, Default)]
pub(super) struct Sets(BTreeMap<u64, PendingSet>);

#[derive(Debug)]
struct PendingSet {
    session: SessionId,
    /// In the order of their names.
    legs: Vec<SetLeg>,
    /// How many of them are reserved.
    reserved: usize,
    /// The ask for the next one.
    ask: Option<u64>,
    /// Whether it only tries, and does not wait.
    tries: bool,
    deadline: u64,
    blocking: bool,
    id: Option<Box<str>>,
}

#[derive(Debug)]
struct SetLeg {
    gate: Name,
    /// Its position in the request.
    place: usize,
    /// The `LOCK` for it.
    command: OwnedCommand,
    grant: Option<Grant>,
    /// Whether others wait for it.
    wanted: bool,
}

impl Sets {
    pub(super) fn session_of(&self, set: u64) -> Option<SessionId> {
        self.0.get(&set).map(|set| set.session)
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        self.0.retain(|_, set| set.session != session);
    }

    /// From now on the client is blocked by its set. Returns the ask for the set's next gate; `None` if there is no such set.
    pub(super) fn block(&mut self, set: u64) -> Option<Option<u64>> {
        let set = self.0.get_mut(&set)?;
        set.blocking = true;
        Some(set.ask)
    }

    pub(super) fn unblock(&mut self, session: SessionId) {
        let sets = self.0.values_mut();
        for set in sets.filter(|set| set.session == session) {
            set.blocking = false;
        }
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.0.values().map(|set| set.deadline).min()
    }

    /// The set that a hold is reserved for, and its leg.
    fn of_hold(&mut self, session: SessionId, gate: &str, fence: Fence) -> Option<(u64, usize)> {
        let mut sets = self.0.iter().filter(|(_, set)| set.session == session);
        sets.find_map(|(number, set)| {
            let leg = set.legs[..set.reserved].iter().position(|leg| {
                *leg.gate == *gate && leg.grant.is_some_and(|grant| grant.fence == fence)
            })?;
            Some((*number, leg))
        })
    }
}

impl Estate {
    /// `LOCKALL`.
    pub(super) fn lock_all(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        set: &LockAll<'_>,
        out: &mut Out,
    ) -> Result<Answer, Refusal> {
        if let Some(answer) = self.answered_before(session, set.id, set.asynchronous)? {
            return Ok(answer);
        }
        self.local.check_set(set)?;
        self.local.check_words(set.wait_ms, set.reason, set.id)?;
        for (gate, ask) in set.gates.iter() {
            self.check_leg(replicated, session, gate, *ask)?;
        }
        if let Some(answer) = self.lock_all_here(replicated, session, set)? {
            let answer = Ok(answer);
            self.remember(session, set.id, &answer);
            return answer;
        }
        let number = self.begin_set(session, set);
        let mut early = Out::default();
        self.enter_next(replicated, number, &mut early);
        let ticket = ticket_of(number);
        let own = |tell: &Tell| matches!(tell, Tell::Answered { ticket: of, .. } if *of == ticket);
        let answer = early.tells.iter().position(own);
        let answer = match answer.map(|at| early.tells.remove(at)) {
            Some(Tell::Answered { answer, .. }) => answer,
            _ => Ok(Answer::Waiting(ticket)),
        };
        out.tells.append(&mut early.tells);
        self.remember(session, set.id, &answer);
        answer
    }

    /// Finds what can be refused before anything is entered.
    fn check_leg(
        &self,
        replicated: &Replicated,
        session: SessionId,
        gate: &str,
        ask: Ask<'_>,
    ) -> Result<(), Refusal> {
        match (replicated.gate(gate), ask) {
            (Some(definition), ask) => definition.mode(gate, false, ask).map(drop)?,
            (None, Ask::Plain | Ask::Shared) => {
                Definition::new(Rule::Shared).mode(gate, true, ask)?;
            }
            (None, Ask::Permits(_) | Ask::Room(_) | Ask::Lead { .. }) => return Err(no_gate(gate)),
        }
        let name = Name::new(gate)?;
        self.owner_of(replicated, gate)?;
        let here = self.local.hold_of(session, gate).is_some();
        if here || self.table.hold(session, &name).is_some() {
            return Err(Refusal::new(
                Word::Held,
                format!("session {session} holds gate {gate} already"),
            ));
        }
        // A hold that is being given back is not waited for.
        let enters = |asked: &Asked| asked.gate == name && matches!(asked.what, What::Enter(_));
        let mut asks = self.table.asks_of(session);
        let waits = asks.any(|ask| self.table.ask(ask).is_some_and(enters));
        let mut sets = self.table.sets.0.values();
        let in_set =
            sets.any(|set| set.session == session && set.legs.iter().any(|leg| leg.gate == name));
        match waits || in_set {
            true => Err(Refusal::new(
                Word::Busy,
                format!("session {session} waits for gate {gate} already"),
            )),
            false => Ok(()),
        }
    }

    /// Enters a set in one step if all of its gates are owned here, open and free.
    fn lock_all_here(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        set: &LockAll<'_>,
    ) -> Result<Option<Answer>, Refusal> {
        let here =
            |gate: &str| Name::new(gate).is_ok_and(|gate| self.enters_here(replicated, &gate));
        let all_here = set.gates.iter().all(|(gate, _)| here(gate));
        if !all_here {
            return Ok(None);
        }
        let tries = set.wait_ms == Some(0);
        let command = Command::LockAll(LockAll {
            wait_ms: Some(0),
            id: None,
            ..set.clone()
        });
        match self.in_books(replicated, session, &command) {
            Ok(Answer::Settled(Settled::Ended(_))) if !tries => Ok(None),
            Err(refusal) if refusal.word == Word::Unavailable && !tries => Ok(None),
            Ok(answer) => {
                if let Answer::Settled(Settled::EnteredAll(_)) = &answer {
                    for (gate, _) in set.gates.iter() {
                        self.used(Shard::of(gate), self.own);
                    }
                }
                Ok(Some(answer))
            }
            Err(refusal) => Err(refusal),
        }
    }

    fn begin_set(&mut self, session: SessionId, set: &LockAll<'_>) -> u64 {
        let tries = set.wait_ms == Some(0);
        let legs = set.gates.iter().enumerate().map(|(place, (gate, ask))| {
            let command = Command::Lock(Lock {
                gate,
                ask: *ask,
                wait_ms: tries.then_some(0),
                reason: set.reason,
                asynchronous: set.asynchronous,
                ..Lock::default()
            });
            SetLeg {
                gate: Name::new(gate).expect("it was checked"),
                place,
                command: OwnedCommand::from(&command),
                grant: None,
                wanted: false,
            }
        });
        let mut legs: Vec<SetLeg> = legs.collect();
        legs.sort_by(|one, other| one.gate.cmp(&other.gate));
        let wait_ms = match set.wait_ms {
            Some(0) => ANSWER_MS,
            Some(wait_ms) => wait_ms,
            None => u64::MAX,
        };
        let pending = PendingSet {
            session,
            legs,
            reserved: 0,
            ask: None,
            tries,
            deadline: self.now.saturating_add(wait_ms),
            blocking: !set.asynchronous,
            id: set.id.map(Box::from),
        };
        let number = self.table.fresh_number();
        self.table.sets.0.insert(number, pending);
        number
    }

    /// Enters gate after gate, until one requires waiting or the set is complete.
    fn enter_next(&mut self, replicated: &Replicated, number: u64, out: &mut Out) {
        loop {
            let Some(set) = self.table.sets.0.get_mut(&number) else {
                return;
            };
            set.ask = None;
            let Some(leg) = set.legs.get(set.reserved) else {
                return self.complete_set(replicated, number, out);
            };
            let (command, call) = (
                leg.command.clone(),
                Call {
                    session: set.session,
                    blocking: set.blocking,
                    id: None,
                    set: Some(number),
                },
            );
            let Command::Lock(lock) = command.command() else {
                unreachable!("a leg is a LOCK");
            };
            match self.ask_to_enter(replicated, &call, &lock) {
                Ok(Answer::Waiting(ticket)) => {
                    if let Some(set) = self.table.sets.0.get_mut(&number) {
                        set.ask = super::table::ask_of(ticket);
                    }
                    return;
                }
                answer => {
                    if !self.reserve_next(number, &answer) {
                        return self.end_set(replicated, number, answer, out);
                    }
                }
            }
        }
    }

    /// The next gate of a set was granted and is now reserved. False if it was not granted.
    fn reserve_next(&mut self, number: u64, answer: &Result<Answer, Refusal>) -> bool {
        let Ok(Answer::Settled(Settled::Entered(grant))) = answer else {
            return false;
        };
        let Some(set) = self.table.sets.0.get_mut(&number) else {
            return false;
        };
        let leg = &mut set.legs[set.reserved];
        leg.grant = Some(*grant);
        set.reserved += 1;
        // If the gate is owned here; otherwise its owner and the table know.
        self.local
            .set_reserved(set.session, &leg.gate, grant.fence, true);
        true
    }

    /// The ask for the next gate of a set is answered; the table has the answer already.
    pub(super) fn set_goes_on(
        &mut self,
        replicated: &Replicated,
        number: u64,
        answer: Result<Answer, Refusal>,
        out: &mut Out,
    ) {
        if let Some(set) = self.table.sets.0.get_mut(&number) {
            set.ask = None;
        }
        match self.reserve_next(number, &answer) {
            true => self.enter_next(replicated, number, out),
            false => self.end_set(replicated, number, answer, out),
        }
    }

    /// A set is complete: its holds become like any other, and the client is told.
    fn complete_set(&mut self, replicated: &Replicated, number: u64, out: &mut Out) {
        let Some(mut set) = self.table.sets.0.remove(&number) else {
            return;
        };
        let session = set.session;
        let mut wanted = Vec::new();
        for leg in &set.legs {
            let (gate, fence) = (leg.gate.clone(), leg.grant.expect("it is whole").fence);
            self.keep(replicated, session, &gate, fence);
            if leg.wanted {
                wanted.push(Tell::Wanted {
                    session,
                    gate,
                    fence,
                });
            }
        }
        set.legs.sort_by_key(|leg| leg.place);
        let grants = set.legs.iter().filter_map(|leg| leg.grant);
        let settled = Settled::EnteredAll(grants.collect());
        let answer = Ok(Answer::Settled(settled));
        self.remember(session, set.id.as_deref(), &answer);
        out.tells.push(Tell::Answered {
            session,
            ticket: ticket_of(number),
            answer,
        });
        out.tells.extend(wanted);
    }

    /// What was reserved becomes a normal hold.
    pub(super) fn keep(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        gate: &Name,
        fence: Fence,
    ) {
        self.local.set_reserved(session, gate, fence, false);
        if self.table.keep(session, gate)
            && let Ok(owner) = self.owner_of(replicated, gate)
        {
            let frame = Frame::Kept {
                session,
                home: self.home_index(replicated, session),
                gate: gate.clone(),
                number: replicated.ownership().number(Shard::of(gate)),
                fence,
            };
            self.send(owner, frame);
        }
    }

    /// A set ends incomplete: its wait is cancelled, what it has is given back, and the client is told.
    pub(super) fn end_set(
        &mut self,
        replicated: &Replicated,
        number: u64,
        answer: Result<Answer, Refusal>,
        out: &mut Out,
    ) {
        self.empty_set(replicated, number);
        let Some(set) = self.table.sets.0.remove(&number) else {
            return;
        };
        self.remember(set.session, set.id.as_deref(), &answer);
        out.tells.push(Tell::Answered {
            session: set.session,
            ticket: ticket_of(number),
            answer,
        });
    }

    /// Cancels a set's wait, and gives back what it has.
    fn empty_set(&mut self, replicated: &Replicated, number: u64) {
        let Some(set) = self.table.sets.0.get_mut(&number) else {
            return;
        };
        let (session, ask) = (set.session, set.ask.take());
        let legs = set.legs.iter_mut();
        let reserved = legs.filter_map(|leg| Some((leg.gate.clone(), leg.grant.take()?.fence)));
        let reserved: Vec<(Name, Fence)> = reserved.collect();
        set.reserved = 0;
        if let Some(ask) = ask {
            self.call_off(replicated, ask);
            self.table.drop_ask(ask);
        }
        for (gate, fence) in reserved {
            self.give_up(replicated, session, &gate, fence);
        }
    }

    /// Gives back what a session holds although its client has not asked for that.
    pub(super) fn give_up(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        gate: &Name,
        fence: Fence,
    ) {
        let owner = self.keeper_of(replicated, session, gate);
        match owner {
            Ok(owner) if owner != self.own => {
                let held = self.table.hold(session, gate);
                if held.is_some_and(|held| held.fence == fence) {
                    self.table.strike_out(session, gate);
                    self.return_hold(replicated, owner, session, gate, fence);
                }
            }
            _ => {
                let fence = Some(fence);
                let unlock = Command::Unlock { gate, fence };
                let _ = self.in_books(replicated, session, &unlock);
            }
        }
    }

    /// Ends the sets whose time is over.
    pub(super) fn end_overdue_sets(&mut self, replicated: &Replicated, out: &mut Out) {
        let due = self.table.sets.0.iter();
        let due = due.filter(|(_, set)| set.deadline <= self.now);
        let due: Vec<(u64, bool)> = due.map(|(number, set)| (*number, set.tries)).collect();
        for (number, tries) in due {
            self.settle_up(replicated, out);
            let answer = match tries {
                false => Ok(Answer::Settled(Settled::Ended(WaitEnd::TimedOut))),
                true => Err(Estate::unavailable(
                    "the owner of a gate does not answer; try again",
                )),
            };
            self.end_set(replicated, number, answer, out);
        }
    }

    /// Others wait for a reserved hold: the client hears of it once the set is complete. False if the hold is not reserved.
    pub(super) fn reserved_is_wanted(
        &mut self,
        session: SessionId,
        gate: &str,
        fence: Fence,
    ) -> bool {
        let Some((number, leg)) = self.table.sets.of_hold(session, gate, fence) else {
            return false;
        };
        if let Some(set) = self.table.sets.0.get_mut(&number) {
            set.legs[leg].wanted = true;
        }
        true
    }

    /// A reserved hold is lost: the set begins anew. False if it was not reserved.
    pub(super) fn reserved_is_lost(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        gate: &str,
        fence: Fence,
        out: &mut Out,
    ) -> bool {
        let Some((number, leg)) = self.table.sets.of_hold(session, gate, fence) else {
            return false;
        };
        if let Some(set) = self.table.sets.0.get_mut(&number) {
            set.legs[leg].grant = None;
        }
        self.empty_set(replicated, number);
        self.enter_next(replicated, number, out);
        true
    }

    /// A session is resumed: what is reserved for a set that its client was not told about is given back.
    pub(super) fn sort_reserved(
        &mut self,
        replicated: &Replicated,
        session: SessionId,
        claimed: impl Fn(&Name, Fence) -> bool,
    ) {
        let here = self.local.holds_of(session);
        let elsewhere = self.table.holds_of(session).cloned();
        let holds: Vec<_> = here.into_iter().chain(elsewhere).collect();
        for hold in holds.into_iter().filter(|hold| hold.reserved) {
            let freed = self.breaks(super::Broken::ReservedFreed);
            match claimed(&hold.gate, hold.fence) && !freed {
                true => self.keep(replicated, session, &hold.gate, hold.fence),
                false => self.give_up(replicated, session, &hold.gate, hold.fence),
            }
        }
    }
}
