//! Takes that wait, at one pool of a node and at all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use rustc_hash::FxHashMap;

use super::counter::Many;
use crate::error::{Refusal, Word};
use crate::limits::Limits;
use crate::session::SessionId;
use crate::wait::Ticket;

#[derive(Clone, Copy, Debug)]
pub(super) struct PoolWait {
    pub(super) ticket: Ticket,
    pub(super) session: SessionId,
    pub(super) many: Many,
    /// The number of the label that its slots must have.
    pub(super) label: Option<u32>,
    pub(super) since: u64,
    pub(super) deadline: u64,
}

/// The takes that wait at one pool. Tickets rise, so the take that came first has the lowest.
#[derive(Debug, Default)]
pub(super) struct Waits {
    takes: BTreeMap<Ticket, PoolWait>,
    /// By the label that they wait for; takes without a label have the line `None`.
    lines: BTreeMap<Option<u32>, WaitLine>,
    deadlines: BTreeSet<(u64, Ticket)>,
}

/// Takes that wait for the same label, or for any slot.
#[derive(Debug, Default)]
struct WaitLine {
    tickets: BTreeSet<Ticket>,
    /// How many slots they need at least.
    demand: u64,
}

impl Waits {
    pub(super) fn insert(&mut self, wait: PoolWait) {
        let line = self.lines.entry(wait.label).or_default();
        line.tickets.insert(wait.ticket);
        line.demand += u64::from(wait.many.least());
        self.deadlines.insert((wait.deadline, wait.ticket));
        self.takes.insert(wait.ticket, wait);
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<PoolWait> {
        let wait = self.takes.remove(&ticket)?;
        self.deadlines.remove(&(wait.deadline, ticket));
        if let Some(line) = self.lines.get_mut(&wait.label) {
            line.tickets.remove(&ticket);
            line.demand -= u64::from(wait.many.least());
            if line.tickets.is_empty() {
                self.lines.remove(&wait.label);
            }
        }
        Some(wait)
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&PoolWait> {
        self.takes.get(&ticket)
    }

    /// All of them, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PoolWait> {
        self.takes.values()
    }

    pub(super) fn len(&self) -> usize {
        self.takes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.takes.is_empty()
    }

    /// The first of the takes that wait for a label, or for any slot.
    pub(super) fn first_of(&self, label: Option<u32>) -> Option<&PoolWait> {
        let first = self.lines.get(&label)?.tickets.first()?;
        self.takes.get(first)
    }

    /// The next take in the line of this one.
    pub(super) fn next_of(&self, wait: &PoolWait) -> Option<Ticket> {
        let after = (Bound::Excluded(wait.ticket), Bound::Unbounded);
        let line = self.lines.get(&wait.label)?;
        line.tickets.range(after).next().copied()
    }

    /// How many slots the takes need that wait for a label, or for any slot.
    pub(super) fn demand(&self, label: Option<u32>) -> u64 {
        self.lines.get(&label).map_or(0, |line| line.demand)
    }

    /// The labels that a take waits for, in order.
    pub(super) fn labels(&self) -> impl Iterator<Item = u32> {
        self.lines.keys().filter_map(|label| *label)
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The takes whose time is over, in the order in which they came.
    pub(super) fn over(&self, now: u64) -> Vec<Ticket> {
        let over = self.deadlines.range(..=(now, Ticket(u64::MAX)));
        let mut over: Vec<Ticket> = over.map(|(_, ticket)| *ticket).collect();
        over.sort_unstable();
        over
    }
}

/// The takes that wait at all pools of a node.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The key of the pool that each waits for.
    pools: FxHashMap<Ticket, u64>,
    sessions: FxHashMap<SessionId, BTreeSet<Ticket>>,
    pub(super) limits: WaitLimits,
}

/// How many takes may wait at a node, as in queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitLimits {
    /// Of all sessions.
    waiters: usize,
    /// Of one session.
    waits_per_session: usize,
}

impl WaitLimits {
    pub(super) fn of(limits: &Limits) -> WaitLimits {
        WaitLimits {
            waiters: limits.waiters,
            waits_per_session: limits.waits_per_session,
        }
    }
}

impl Waiting {
    pub(super) fn new(limits: WaitLimits) -> Waiting {
        Waiting {
            pools: FxHashMap::default(),
            sessions: FxHashMap::default(),
            limits,
        }
    }

    /// Refuses one more wait of a session beyond the limits.
    pub(super) fn check(&self, session: SessionId) -> Result<(), Refusal> {
        let WaitLimits {
            waiters,
            waits_per_session,
        } = self.limits;
        let own = self.sessions.get(&session).map_or(0, BTreeSet::len);
        if own >= waits_per_session {
            return Err(limit("waits_per_session", waits_per_session));
        }
        if self.pools.len() >= waiters {
            return Err(limit("waiters", waiters));
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, wait: &PoolWait, pool: u64) {
        self.pools.insert(wait.ticket, pool);
        let own = self.sessions.entry(wait.session).or_default();
        own.insert(wait.ticket);
    }

    pub(super) fn remove(&mut self, wait: &PoolWait) {
        self.pools.remove(&wait.ticket);
        if let Some(own) = self.sessions.get_mut(&wait.session) {
            own.remove(&wait.ticket);
            if own.is_empty() {
                self.sessions.remove(&wait.session);
            }
        }
    }

    /// The sessions that wait, in no order.
    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.keys().copied()
    }

    /// Whether a session waits.
    pub(super) fn has(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// Whether a take belongs to a session.
    pub(super) fn is_of(&self, ticket: Ticket, session: SessionId) -> bool {
        let own = self.sessions.get(&session);
        own.is_some_and(|own| own.contains(&ticket))
    }

    /// The takes of a session, in order.
    pub(super) fn of(&self, session: SessionId) -> impl Iterator<Item = Ticket> {
        self.sessions.get(&session).into_iter().flatten().copied()
    }

    /// The key of the pool that a take waits for.
    pub(super) fn pool(&self, ticket: Ticket) -> Option<u64> {
        self.pools.get(&ticket).copied()
    }
}

fn limit(name: &str, value: usize) -> Refusal {
    let why = format!("the limit {name} of {value} is reached; give something back and try again");
    Refusal::new(Word::Limit, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_knows_what_those_need_who_are_left() {
        let mut waits = Waits::default();
        let takes = [
            (Many::Exactly(3), None),
            (Many::UpTo(5), None),
            (Many::Exactly(2), Some(7)),
        ];
        for (ticket, (many, label)) in (1..).zip(takes) {
            waits.insert(PoolWait {
                ticket: Ticket(ticket),
                session: SessionId::opened(1),
                many,
                label,
                since: 0,
                deadline: 100 - ticket,
            });
        }
        let demand = |waits: &Waits| [None, Some(7)].map(|label| waits.demand(label));
        assert_eq!(demand(&waits), [4, 2]);
        assert!(waits.remove(Ticket(1)).is_some() && waits.remove(Ticket(1)).is_none());
        assert_eq!(demand(&waits), [1, 2]);
        let first = waits.first_of(None).map(|wait| wait.ticket);
        assert_eq!((first, waits.next_deadline()), (Some(Ticket(2)), Some(97)));
        waits.remove(Ticket(3));
        assert_eq!((demand(&waits), waits.labels().count()), ([1, 0], 0));
    }
}
