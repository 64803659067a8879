//! Recovery after a crash: which sessions are awaited, and what waits for them. A session may hold something in every shard
//! that it has touched, so those shards are *shut*: nothing is granted there until the session has resumed, closed or run
//! out. All other shards grant at once.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Local;
use super::touches::Touched;
use crate::event::Event;
use crate::gate::GateKey;
use crate::name::called;
use crate::ownership::Shard;
use crate::session::{SessionId, SessionKey};

/// Sessions from before the crash that may hold something and have not been heard of since.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// Those that may hold anything: while there is one, every shard is shut.
    everywhere: BTreeSet<SessionId>,
    /// Those known to hold something in certain shards only.
    somewhere: BTreeSet<SessionId>,
    by_shard: BTreeSet<(Shard, SessionId)>,
    /// The gates of shut shards at which somebody waits.
    parked: FxHashMap<Shard, FxHashSet<GateKey>>,
}

impl Awaited {
    /// A session may hold something in the shards that it has touched.
    fn add(&mut self, session: SessionId, touched: &Touched) {
        if touched.everywhere() {
            self.everywhere.insert(session);
        } else if touched.shards().len() > 0 {
            self.somewhere.insert(session);
            let shards = touched.shards().map(|shard| (shard, session));
            self.by_shard.extend(shards);
        }
    }

    /// What a session holds is now known. Returns the gates with waiters in shards that are no longer shut.
    fn remove(&mut self, session: SessionId, touched: &Touched) -> Vec<GateKey> {
        self.somewhere.remove(&session);
        for shard in touched.shards() {
            self.by_shard.remove(&(shard, session));
        }
        let mut opened: Vec<Shard> = match self.everywhere.remove(&session) {
            true => self.parked.keys().copied().collect(),
            false => touched.shards().collect(),
        };
        opened.retain(|shard| !self.shuts(*shard));
        let gates = opened.iter().filter_map(|shard| self.parked.remove(shard));
        let mut gates: Vec<GateKey> = gates.flatten().collect();
        gates.sort_unstable();
        gates
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.everywhere.is_empty() && self.somewhere.is_empty()
    }

    /// Whether nothing is granted in a shard.
    #[inline]
    pub(super) fn shuts(&self, shard: Shard) -> bool {
        !self.is_over() && self.sessions_of(shard).next().is_some()
    }

    /// The sessions that a shard waits for.
    fn sessions_of(&self, shard: Shard) -> impl Iterator<Item = SessionId> {
        let there = (shard, SessionId::FIRST)..=(shard, SessionId::LAST);
        let there = self.by_shard.range(there).map(|(_, session)| *session);
        self.everywhere.iter().copied().chain(there)
    }

    fn all(&self) -> impl Iterator<Item = SessionId> {
        let everywhere = self.everywhere.iter();
        everywhere.chain(&self.somewhere).copied()
    }

    /// Somebody waits at a gate. If its shard is shut, the gate is looked at again when the shard opens.
    pub(super) fn park(&mut self, shard: Shard, g: GateKey) {
        if self.shuts(shard) {
            self.parked.entry(shard).or_default().insert(g);
        }
    }

    /// A gate is gone.
    pub(super) fn unpark(&mut self, shard: Shard, g: GateKey) {
        if let Some(gates) = self.parked.get_mut(&shard) {
            gates.remove(&g);
        }
    }
}

/// Cap on awaited sessions that are named for a gate.
pub(crate) const AWAITED_NAMED: usize = 16;

impl Local {
    /// Whether sessions from before a crash are still awaited, so that some gates, or all, do not grant.
    pub fn recovering(&self) -> bool {
        !self.awaited.is_over()
    }

    /// Whether no gate grants, because an awaited session may hold anything.
    pub fn recovering_everywhere(&self) -> bool {
        !self.awaited.everywhere.is_empty()
    }

    /// How many awaited sessions may hold something.
    pub fn awaited(&self) -> usize {
        self.awaited.everywhere.len() + self.awaited.somewhere.len()
    }

    /// Some of the awaited sessions that may hold something.
    pub fn awaited_sessions(&self) -> Vec<SessionId> {
        self.awaited.all().take(AWAITED_NAMED).collect()
    }

    /// Some of the sessions for which a gate or queue of that name waits.
    pub fn awaited_at(&self, name: &str) -> Vec<SessionId> {
        self.awaited_in(Shard::of(name))
    }

    pub(super) fn awaited_in(&self, shard: Shard) -> Vec<SessionId> {
        let sessions = self.awaited.sessions_of(shard);
        sessions.take(AWAITED_NAMED).collect()
    }

    /// Why a gate does not grant, for people.
    pub(super) fn why_shut(&self, gate: &str, shard: Shard) -> String {
        const NAMED: usize = 3;
        let mut sessions = self.awaited.sessions_of(shard);
        let named: Vec<String> = sessions
            .by_ref()
            .take(NAMED)
            .map(|s| s.to_string())
            .collect();
        let others = match sessions.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let s = if named.len() == 1 { "" } else { "s" };
        let named = named.join(", ");
        format!(
            "{} may still be held by session{s} {named}{others}, not heard from since the crash",
            called(gate)
        )
    }

    /// A session from before the crash is awaited.
    pub(super) fn await_session(&mut self, s: SessionKey, touched: Touched) {
        self.awaited.add(self.sessions[s].id, &touched);
        self.sessions[s].awaited = true;
        self.set_touched(s, touched);
    }

    /// An awaited session has resumed or ended. Gates that waited for nobody else grant again. A claim cannot have closed a
    /// knot of waits, because a session that resumes is blocked in no call.
    pub(super) fn heard_of(
        &mut self,
        now: u64,
        session: SessionId,
        touched: &Touched,
        out: &mut Vec<Event>,
    ) {
        let recovering = self.recovering();
        let gates = self.awaited.remove(session, touched);
        if recovering && !self.recovering() {
            out.push(Event::Recovered);
        }
        for g in gates {
            self.advance(now, g, out);
        }
    }
}
