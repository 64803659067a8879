//! The table of a home: what its sessions hold at other owners, and their unanswered asks to any owner, this one included.

use std::collections::{BTreeMap, BTreeSet};

use super::sets::Sets;
use super::takes::TableTake;
use crate::codec::OwnedCommand;
use crate::command::Taken;
use crate::fence::Fence;
use crate::gate::Mode;
use crate::job::JobId;
use crate::local::{HoldCopy, TakeCopy};
use crate::name::Name;
use crate::ownership::{Index, Shard};
use crate::session::{Memo, Memos, SessionId};
use crate::wait::Ticket;

/// A home's table.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The sessions of this home, and the log's index when each came.
    hosted: BTreeMap<SessionId, Index>,
    /// Their holds in other nodes' shards.
    holds: BTreeMap<(SessionId, Name), HoldCopy>,
    /// Their jobs in hand from other nodes' queues.
    takes: BTreeMap<(JobId, SessionId), TableTake>,
    next_ask: u64,
    asks: BTreeMap<u64, Asked>,
    /// The asks, by when they are answered at the latest.
    deadlines: BTreeSet<(u64, u64)>,
    /// The asks to enter that block their clients, by when they began to.
    blocking: BTreeSet<(u64, u64)>,
    /// The asks that wait in this node's own books.
    here: BTreeMap<Ticket, u64>,
    /// Sets that wait for gates of several owners.
    pub(super) sets: Sets,
    /// The answers to each session's latest IDs.
    memos: BTreeMap<SessionId, Memos>,
    /// Sessions that have ended, which the books are told as soon as the node acts again.
    pub(super) ending: Vec<SessionId>,
}

/// An unanswered ask.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) session: SessionId,
    pub(super) gate: Name,
    pub(super) what: What,
    pub(super) command: OwnedCommand,
    pub(super) since: u64,
    /// When the client is answered even if the owner has not replied.
    pub(super) deadline: u64,
    /// Its wait in the books here.
    pub(super) ticket: Option<Ticket>,
    /// Whether its client is blocked meanwhile.
    pub(super) blocking: bool,
    /// The ID that its client gave it.
    pub(super) id: Option<Box<str>>,
    /// The set that it is part of.
    pub(super) set: Option<u64>,
    /// Whether its owner was asked again because it had not yet heard of an earlier release.
    pub(super) again: bool,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// To enter, in this mode.
    Enter(Mode),
    /// To give back a hold, which the table no longer has.
    Leave,
    /// To become a reader.
    Downgrade,
}

/// Tickets of asks are above those of the books.
const TICKETS: u64 = 1 << 50;

pub(super) fn ticket_of(ask: u64) -> Ticket {
    Ticket(TICKETS | ask)
}

pub(super) fn ask_of(ticket: Ticket) -> Option<u64> {
    (ticket.0 & TICKETS != 0).then_some(ticket.0 & !TICKETS)
}

impl Table {
    pub(super) fn host(&mut self, session: SessionId, began: Index) {
        self.hosted.insert(session, began);
    }

    /// The log's index when a session came here.
    pub(super) fn began(&self, session: SessionId) -> Option<Index> {
        self.hosted.get(&session).copied()
    }

    pub(super) fn hosts(&self, session: SessionId) -> bool {
        self.hosted.contains_key(&session)
    }

    /// Whether a session holds a gate at another owner.
    pub(super) fn has_hold(&self, session: SessionId, gate: &str) -> bool {
        let mut holds = self.holds_of(session);
        holds.any(|hold| *hold.gate == *gate)
    }

    /// The session has another home, or has ended.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.hosted.remove(&session);
        self.holds.retain(|(of, _), _| *of != session);
        self.takes.retain(|(_, of), _| *of != session);
        self.sets.forget(session);
        self.memos.remove(&session);
        let asks: Vec<u64> = self.asks_of(session).collect();
        for ask in asks {
            self.drop_ask(ask);
        }
    }

    /// The asks to enter a gate that do not wait in the books here, in no particular order.
    pub(super) fn parked_at(&self, gate: &str) -> Vec<u64> {
        let parked = |asked: &Asked| {
            *asked.gate == *gate && asked.ticket.is_none() && matches!(asked.what, What::Enter(_))
        };
        let asks = self.asks.iter();
        let asks = asks.filter(|(_, asked)| parked(asked));
        asks.map(|(ask, _)| *ask).collect()
    }

    pub(super) fn asks_of(&self, session: SessionId) -> impl Iterator<Item = u64> {
        let asks = self.asks.iter();
        asks.filter(move |(_, asked)| asked.session == session)
            .map(|(ask, _)| *ask)
    }

    /// The ask of a session to enter a gate on its own, not as part of a set.
    pub(super) fn entering(&self, session: SessionId, gate: &Name) -> Option<u64> {
        let mut asks = self.asks.iter();
        let entering = |asked: &Asked| matches!(asked.what, What::Enter(_)) && asked.set.is_none();
        let found = asks
            .find(|(_, asked)| asked.session == session && asked.gate == *gate && entering(asked));
        found.map(|(ask, _)| *ask)
    }

    /// A request that waits to enter changes its mode.
    pub(super) fn rephrase(&mut self, ask: u64, mode: Mode, command: OwnedCommand) {
        if let Some(asked) = self.asks.get_mut(&ask) {
            asked.what = What::Enter(mode);
            asked.command = command;
        }
    }

    pub(super) fn add_ask(&mut self, asked: Asked) -> u64 {
        self.next_ask += 1;
        let ask = self.next_ask;
        if let Some(ticket) = asked.ticket {
            self.here.insert(ticket, ask);
        }
        self.deadlines.insert((asked.deadline, ask));
        let blocking = asked.blocking;
        self.asks.insert(ask, asked);
        self.set_blocking(ask, blocking);
        ask
    }

    /// A number for something other than an ask.
    pub(super) fn fresh_number(&mut self) -> u64 {
        self.next_ask += 1;
        self.next_ask
    }

    /// A ticket for something other than an ask.
    pub(super) fn fresh_ticket(&mut self) -> Ticket {
        ticket_of(self.fresh_number())
    }

    /// The answer to an ID of a session.
    pub(super) fn recall(&self, session: SessionId, id: &str) -> Option<&Memo> {
        self.memos.get(&session)?.recall(id)
    }

    pub(super) fn remember(&mut self, session: SessionId, id: &str, memo: Memo, ids_max: usize) {
        let memos = self.memos.entry(session).or_default();
        memos.remember(id.into(), memo, ids_max);
    }

    pub(super) fn forget_id(&mut self, session: SessionId, id: &str) {
        if let Some(memos) = self.memos.get_mut(&session) {
            memos.forget(id);
        }
    }

    /// Sets whether an ask blocks its client.
    pub(super) fn set_blocking(&mut self, ask: u64, blocking: bool) {
        let Some(asked) = self.asks.get_mut(&ask) else {
            return;
        };
        asked.blocking = blocking;
        match blocking && matches!(asked.what, What::Enter(_)) {
            true => self.blocking.insert((asked.since, ask)),
            false => self.blocking.remove(&(asked.since, ask)),
        };
    }

    /// Whether an ask may be repeated, which it may once.
    pub(super) fn first_try(&mut self, ask: u64) -> bool {
        let asked = self.asks.get_mut(&ask);
        asked.is_some_and(|asked| !std::mem::replace(&mut asked.again, true))
    }

    /// The client of a session is gone: none of its asks blocks it.
    pub(super) fn unblock(&mut self, session: SessionId) {
        let asks: Vec<u64> = self.asks_of(session).collect();
        for ask in asks {
            self.set_blocking(ask, false);
        }
        self.sets.unblock(session);
    }

    /// Since when the session has been blocked that has waited longest to enter.
    pub(super) fn blocked_since(&self) -> Option<u64> {
        self.blocking.first().map(|(since, _)| *since)
    }

    /// The sessions that have been blocked since then or before, waiting to enter.
    pub(super) fn blocked_until(&self, since: u64) -> BTreeSet<SessionId> {
        let asks = self.blocking.range(..=(since, u64::MAX));
        asks.map(|(_, ask)| self.asks[ask].session).collect()
    }

    /// The sessions whose client is blocked in a call.
    pub(super) fn blocked(&self) -> BTreeSet<SessionId> {
        let asks = self.asks.values().filter(|asked| asked.blocking);
        asks.map(|asked| asked.session).collect()
    }

    pub(super) fn ask(&self, ask: u64) -> Option<&Asked> {
        self.asks.get(&ask)
    }

    pub(super) fn drop_ask(&mut self, ask: u64) -> Option<Asked> {
        let asked = self.asks.remove(&ask)?;
        if let Some(ticket) = asked.ticket {
            self.here.remove(&ticket);
        }
        self.deadlines.remove(&(asked.deadline, ask));
        self.blocking.remove(&(asked.since, ask));
        Some(asked)
    }

    /// An ask waits in the books here, or no longer does.
    pub(super) fn set_ticket(&mut self, ask: u64, ticket: Option<Ticket>) {
        let Some(asked) = self.asks.get_mut(&ask) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut asked.ticket, ticket) {
            self.here.remove(&before);
        }
        if let Some(ticket) = ticket {
            self.here.insert(ticket, ask);
        }
    }

    pub(super) fn of_ticket(&self, ticket: Ticket) -> Option<u64> {
        self.here.get(&ticket).copied()
    }

    /// The asks at gates of some shards, in the order in which they were made.
    pub(super) fn asks_in(&self, shards: impl Fn(Shard) -> bool) -> Vec<u64> {
        let mut asks: Vec<(u64, u64)> = self
            .asks
            .iter()
            .filter(|(_, asked)| shards(Shard::of(&asked.gate)))
            .map(|(ask, asked)| (asked.since, *ask))
            .collect();
        asks.sort_unstable();
        asks.into_iter().map(|(_, ask)| ask).collect()
    }

    pub(super) fn all_asks(&self) -> Vec<(u64, What)> {
        let asks = self.asks.iter();
        asks.map(|(ask, asked)| (*ask, asked.what.clone()))
            .collect()
    }

    pub(super) fn overdue(&self, now: u64) -> Vec<u64> {
        let due = self.deadlines.range(..=(now, u64::MAX));
        due.map(|(_, ask)| *ask).collect()
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        let asks = self.deadlines.first().map(|(deadline, _)| *deadline);
        asks.into_iter().chain(self.sets.next_deadline()).min()
    }

    pub(super) fn hold(&self, session: SessionId, gate: &Name) -> Option<&HoldCopy> {
        self.holds.get(&(session, gate.clone()))
    }

    pub(super) fn write_down(&mut self, hold: HoldCopy) {
        self.holds.insert((hold.session, hold.gate.clone()), hold);
    }

    pub(super) fn strike_out(&mut self, session: SessionId, gate: &Name) -> Option<HoldCopy> {
        self.holds.remove(&(session, gate.clone()))
    }

    /// A hold is no longer part of a set. False if it is not here, or was not part of one.
    pub(super) fn keep(&mut self, session: SessionId, gate: &Name) -> bool {
        let hold = self.holds.get_mut(&(session, gate.clone()));
        hold.is_some_and(|hold| std::mem::take(&mut hold.reserved))
    }

    /// The owner says that a hold is over; a newer hold at the same gate stays.
    pub(super) fn lose(&mut self, session: SessionId, gate: &Name, fence: Fence) {
        if self
            .hold(session, gate)
            .is_some_and(|hold| hold.fence == fence)
        {
            self.strike_out(session, gate);
        }
    }

    pub(super) fn holds_of(&self, session: SessionId) -> impl Iterator<Item = &HoldCopy> {
        let holds = self.holds.iter();
        holds
            .filter(move |((of, _), _)| *of == session)
            .map(|(_, hold)| hold)
    }

    /// The holds in some shards.
    pub(super) fn holds_in(&self, shards: impl Fn(Shard) -> bool) -> Vec<HoldCopy> {
        let holds = self.holds.values();
        holds
            .filter(|hold| shards(Shard::of(&hold.gate)))
            .cloned()
            .collect()
    }

    /// A job is in hand. Old news about a job that has been taken again since changes nothing.
    pub(super) fn write_take(&mut self, take: TableTake) {
        let key = (take.take.job, take.take.session);
        let known = self.takes.get(&key);
        if known.is_none_or(|known| known.take.attempt < take.take.attempt) {
            self.takes.insert(key, take);
        }
    }

    fn found_take(&mut self, session: SessionId, taken: Taken) -> Option<&mut TableTake> {
        let take = self.takes.get_mut(&(taken.job, session));
        take.filter(|take| take.take.attempt == taken.attempt)
    }

    /// Whether a session has a job in hand of which its client does not know.
    pub(super) fn is_untold(&self, session: SessionId, taken: Taken) -> bool {
        let take = self.takes.get(&(taken.job, session));
        take.is_some_and(|take| take.take.attempt == taken.attempt && !take.told)
    }

    /// The shard of the queue of a job in hand.
    pub(super) fn shard_of(&self, job: JobId) -> Option<Shard> {
        let of_job = (job, SessionId::FIRST)..=(job, SessionId::LAST);
        let last = self
            .takes
            .range(of_job)
            .max_by_key(|(_, take)| take.take.attempt);
        last.map(|(_, take)| take.take.shard)
    }

    /// Marks a take as known to its client. False if there is no such take.
    pub(super) fn tell_take(&mut self, session: SessionId, taken: Taken) -> bool {
        let take = self.found_take(session, taken);
        take.map(|take| take.told = true).is_some()
    }

    pub(super) fn strike_take(&mut self, session: SessionId, taken: Taken) -> Option<TakeCopy> {
        let take = self.found_take(session, taken)?.take;
        self.takes.remove(&(taken.job, session));
        Some(take)
    }

    /// An entry of the log has moved a job: earlier takes of it are over.
    pub(super) fn settle_takes(&mut self, job: JobId, entry: Index) {
        let of_job = self
            .takes
            .range((job, SessionId::FIRST)..=(job, SessionId::LAST));
        let over = of_job.filter(|(_, take)| take.at < entry);
        let over: Vec<(JobId, SessionId)> = over.map(|(key, _)| *key).collect();
        for key in over {
            self.takes.remove(&key);
        }
    }

    pub(super) fn takes_of(&self, session: SessionId) -> Vec<TakeCopy> {
        let takes = self.takes.values().map(|take| take.take);
        takes.filter(|take| take.session == session).collect()
    }

    /// The jobs in hand of queues in some shards.
    pub(super) fn takes_in(&self, shards: impl Fn(Shard) -> bool) -> Vec<TakeCopy> {
        let takes = self.takes.values().map(|take| take.take);
        takes.filter(|take| shards(take.shard)).collect()
    }

    /// An owner is out, and its replies with it: nobody will hear of jobs that it gave out and did not announce.
    pub(super) fn drop_untold(
        &mut self,
        owner: (crate::ownership::NodeId, crate::ownership::Start),
    ) {
        self.takes.retain(|_, take| take.told || take.from != owner);
    }
}
