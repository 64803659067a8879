//! What people and monitors see of an estate. Reading changes nothing.

use std::collections::BTreeSet;

use super::table::{Asked, What};
use super::{Estate, Peer};
use crate::command::Taken;
use crate::local::{HeldView, HoldView, SessionView};
use crate::name::Name;
use crate::ownership::{Index, NodeId, Shard, Start};
use crate::session::SessionId;

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
            })
        })
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
