//! What people and monitors see of an estate. Reading changes nothing.

use std::collections::BTreeSet;

use super::table::{Asked, What};
use super::{Ask, Estate, Peer};
use crate::command::{Command, Lock, Taken};
use crate::error::Refusal;
use crate::gate::Definition;
use crate::local::{AWAITED_NAMED, GateView, HeldView, HoldView, SessionView, WaiterView};
use crate::name::Name;
use crate::ownership::{Index, NodeId, Shard, Start};
use crate::replicated::Replicated;
use crate::session::SessionId;
use crate::wait::Ticket;

/// Shards that one entry of the log gave to this node, and that are shut until it knows everybody inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shut<'a> {
    /// The entry.
    pub entry: Index,
    /// How many shards.
    pub shards: usize,
    /// The starts that have not reported what their sessions hold there.
    pub missing: &'a BTreeSet<Peer>,
    /// The sessions without a home that may hold something there.
    pub orphans: &'a BTreeSet<SessionId>,
}

impl Estate {
    /// How a session of this home is inside a gate, wherever the gate is owned.
    pub fn hold_of(&self, session: SessionId, gate: &str) -> Option<HoldView<'_>> {
        let here = self.local.hold_of(session, gate);
        here.or_else(|| {
            let gate = Name::known(gate).ok()?;
            let hold = self.table.hold(session, &gate)?;
            Some(HoldView {
                mode: &hold.mode,
                fence: hold.fence,
                until: hold.until,
                proven: hold.proven,
                since: hold.since,
            })
        })
    }

    /// A gate, with those who ask for it while its shard is not open.
    pub fn gate_view(
        &self,
        replicated: &Replicated,
        name: &str,
        people_max: usize,
    ) -> Result<GateView, Refusal> {
        let (parked, orphans) = self.openings.parked(name);
        let known = self.local.gate_with(name, people_max);
        let mut view = match (known, parked.first()) {
            (Ok(view), _) => view,
            (Err(refusal), None) => return Err(refusal),
            (Err(refusal), Some((_, ask))) => {
                let definition = lock_of(ask).and_then(|lock| Definition::implicit(lock.ask));
                let definition = definition.ok_or(refusal)?;
                GateView::idle(ask.gate.clone(), definition)
            }
        };
        let orphans = orphans.into_iter().flatten().copied();
        view.awaits.extend(orphans.take(AWAITED_NAMED));
        view.waiting += parked.len();
        let room = people_max.saturating_sub(view.waiters.len());
        let created = replicated.gate(name);
        let waiters = parked.into_iter().filter_map(|(since, ask)| {
            let lock = lock_of(ask)?;
            let implicit = created.is_none();
            let mode = view.definition.mode(name, implicit, lock.ask).ok()?;
            let wait_ms = lock.wait_ms.unwrap_or(u64::MAX);
            Some(WaiterView {
                session: ask.session,
                label: None,
                ticket: Ticket(ask.ask),
                mode,
                class: lock
                    .class
                    .unwrap_or_else(|| view.definition.class_default()),
                since,
                until: since.saturating_add(wait_ms),
                reason: lock.reason.map(str::to_owned),
                overtaken: 0,
                set: vec![ask.gate.clone()],
                kept: false,
                needs_ms: lock.needs_ms,
            })
        });
        let waiters: Vec<WaiterView> = waiters.take(room).collect();
        view.waiters.extend(waiters);
        Ok(view)
    }

    /// A session of this home, with all that it holds and waits for on any node.
    pub fn session_view(&self, session: SessionId) -> Option<SessionView> {
        let mut view = self.local.session_view(session)?;
        let holds = self.table.holds_of(session);
        view.holds.extend(holds.map(|hold| hold.gate.clone()));
        let asks = self.table.asks_of(session);
        let asks = asks.filter_map(|ask| self.table.ask(ask));
        let entering = |asked: &&Asked| matches!(asked.what, What::Enter(_));
        let asks = asks.filter(entering).filter(|asked| asked.ticket.is_none());
        view.waits.extend(asks.map(|asked| asked.gate.clone()));
        Some(view)
    }

    /// The jobs that a session of this home has in hand, wherever their queues are owned, except those on their way through
    /// the log.
    pub fn jobs_in_hand(&self, session: SessionId) -> Vec<Taken> {
        let here = self.local.jobs_of(session).into_iter();
        let here = here.filter(|held| !held.settling);
        let here = here.map(|held| (held.job, held.attempt));
        let elsewhere = self.table.takes_of(session).into_iter();
        let elsewhere = elsewhere.map(|take| (take.job, take.attempt));
        let all = here.chain(elsewhere);
        all.map(|(job, attempt)| Taken { job, attempt }).collect()
    }

    /// The same for people, including those on their way.
    pub fn jobs_held(&self, session: SessionId) -> Vec<HeldView> {
        let mut held = self.local.jobs_of(session);
        for take in self.table.takes_of(session) {
            if held.iter().all(|other| other.job != take.job) {
                held.push(HeldView {
                    job: take.job,
                    session: Some(session),
                    attempt: take.attempt,
                    since: take.since,
                    settling: false,
                });
            }
        }
        held
    }

    /// Whether a shard that this node owns is open.
    pub fn is_open(&self, shard: Shard) -> bool {
        self.openings.is_open(shard)
    }

    /// Which shards are shut, and what they wait for.
    pub fn waits(&self) -> impl Iterator<Item = Shut<'_>> {
        let waits = self.openings.waits().into_iter();
        waits.map(|(entry, shards, missing, orphans)| Shut {
            entry,
            shards,
            missing,
            orphans,
        })
    }

    /// The same with everything else that is under way, for whoever reads a failed run.
    pub fn shut(&self) -> String {
        let inside = self.local.session_list().into_iter();
        let inside: Vec<_> = inside
            .flat_map(|session| self.local.holds_of(session))
            .collect();
        format!(
            "{:?}; early {:?}; resuming {:?}; owed {:?}; inside {inside:?}",
            self.openings.waits(),
            self.early,
            self.resuming,
            self.owed
        )
    }

    /// Whether this start was ever a member; only then can a view leave it out.
    pub fn was_member(&self) -> bool {
        self.joined
    }

    /// The node.
    pub fn node(&self) -> NodeId {
        self.own.0
    }

    /// Its start.
    pub fn start(&self) -> Start {
        self.own.1
    }
}

fn lock_of(ask: &Ask) -> Option<Lock<'_>> {
    match ask.command.command() {
        Command::Lock(lock) => Some(lock),
        _ => None,
    }
}
