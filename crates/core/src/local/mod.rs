//! The local half: what only the owner of a gate knows. Holders, waiters, implicit gates, implicit sessions, the counts of
//! fences. It answers at memory speed, without log or disk, and after a crash it is rebuilt from what the surviving sessions
//! claim.
//!
//! It has three entry points: [`Local::apply`] for what a session asks, [`Local::follow`] for what the log says, and
//! [`Local::tick`] for the passing of time; only the last judges silence. A release and the grants that follow from it are
//! one step.

mod admission;
mod awaited;
mod books;
mod deadlock;
mod doors;
mod election;
mod enter;
mod follow;
mod hands;
mod image;
mod lock;
mod request;
mod resume;
mod seeded;
mod sessions;
mod set;
mod slices;
mod standing;
mod tick;
mod touches;
mod unlock;
mod view;
mod waiting;

pub(crate) use awaited::AWAITED_NAMED;
pub(crate) use books::HoldCopy;
pub(crate) use doors::Census;
pub(crate) use election::no_candidate;
pub(crate) use hands::TakeCopy;
pub use hands::{HeldView, JobCounters, LinePlace, QueueView, TakerView};
pub(crate) use image::Books;
pub use image::Image;
pub(crate) use request::{check_reason, name_asked};
pub use slices::People;
pub(crate) use touches::Touched;
pub use touches::{Touch, Touches};
pub(crate) use unlock::{not_held, other_fence};
pub use view::{
    BlockedBy, Edge, GateSummary, GateView, HoldView, HolderView, SessionView, WaiterView,
};

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use crate::arena::Arena;
use crate::command::{Answer, Command};
use crate::error::{Refusal, Word};
use crate::event::Event;
use crate::fence::{Fence, Fences};
use crate::gate::{Definition, Gate, GateKey, Hold, HoldKey, Kind, Rule, Standing};
use crate::limits::Limits;
use crate::name::Name;
use crate::ownership::Shard;
use crate::replicated::{Replicated, no_session};
use crate::session::{Session, SessionId, SessionKey, State};
use crate::timer::{Target, Timer, Timers};
use crate::wait::Wait;
use awaited::Awaited;
use hands::Hands;
use seeded::Seeded;

/// The local half of a node.
#[derive(Debug)]
pub struct Local {
    limits: Limits,
    /// The latest time that it was told; earlier times are ignored.
    now: u64,
    names: HashMap<Name, GateKey, Seeded>,
    gates: Arena<Gate>,
    session_ids: FxHashMap<SessionId, SessionKey>,
    sessions: Arena<Session>,
    holds: Arena<Hold>,
    /// Finds a session among the many inside a crowded gate.
    crowd: FxHashMap<(GateKey, SessionKey), HoldKey>,
    waits: Arena<Wait>,
    /// How many of the gates are elections.
    elections: usize,
    hands: Hands,
    /// The legs of all waits: the holds that may still come.
    waiting_legs: usize,
    /// How many sessions both hold something and are blocked; at 0 there can be no deadlock.
    entangled: u32,
    fences: Fences,
    /// When holds and waits end.
    timers: Timers,
    /// When sessions will have been silent for too long.
    silences: Timers,
    /// How long the node could not hear anybody, in total.
    absent_ms: u64,
    /// Numbers holds, waits and sessions in order of arrival.
    serial: u64,
    /// Sessions not heard of since a crash, and what waits for them.
    awaited: Awaited,
    /// Touched shards, summed over all sessions.
    touched: usize,
    /// How many holds were claimed without proof.
    unproven: usize,
    observed: bool,
    /// Set while there is no lease: nothing is granted.
    frozen: bool,
    /// Gates with a door at which somebody arrived, left or was let in.
    stirred: Vec<GateKey>,
    /// Who has left which created gate, if anybody wants to know.
    departures: Option<Vec<Departure>>,
    counters: Counters,
}

/// Cap on departures that are kept until they are taken.
const DEPARTURES_MAX: usize = 10_000;

/// A stay at a gate that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Departure {
    pub(crate) gate: Name,
    pub(crate) session: SessionId,
    pub(crate) kind: Kind,
    pub(crate) asked: u64,
    pub(crate) entered: u64,
    pub(crate) left: u64,
}

/// A gate with more sessions inside is crowded. A session that entered before that stays among the first ones of the list,
/// because only those ahead of it leave.
const CROWD: u32 = 8;

/// Event counts so far, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Grants, counted per gate.
    pub grants: u64,
    /// Holds given back, on request or by the end of their session.
    pub releases: u64,
    /// Holds lost to a hold limit or a claim.
    pub losses: u64,
    /// Requests that had to wait.
    pub waits: u64,
    /// Waits that ended without entering.
    pub waits_ended: u64,
    /// Requests refused because their wait could not have ended.
    pub deadlocks: u64,
    /// Holders and waiters looked at to tell whether a wait could end.
    pub deadlock_steps: u64,
    /// Leaders elected; each is a grant, too.
    pub terms: u64,
}

impl Local {
    /// The local half of a node whose view ([`Change::View`](crate::Change::View)) was just applied.
    ///
    /// With the [`Image`] of a clean stop right before this view, holders and waiters are restored. Without it (or with an
    /// older one, which its numbers rule out) the node recovers: no gate grants until every orphan among the logged sessions
    /// has resumed, closed or run out. `seed` keys the hash table of names, to protect it from hostile names; it changes no
    /// answer.
    pub fn start(
        now: u64,
        limits: Limits,
        seed: u64,
        replicated: &Replicated,
        image: Option<Image>,
    ) -> Local {
        Local::start_after(now, limits, seed, replicated, (image, None))
    }

    /// Like [`Local::start`], but with what the sessions may be known to have touched: everything up to the last grant told
    /// before the crash. Then only gates in those shards wait, for those sessions.
    pub fn start_after(
        now: u64,
        limits: Limits,
        seed: u64,
        replicated: &Replicated,
        (image, mut touches): (Option<Image>, Option<Touches>),
    ) -> Local {
        let mut local = Local::bare(now, limits, seed, replicated);
        let books = image.and_then(|image| image.fitting(&local.fences));
        for (id, record) in replicated.sessions() {
            let label = record.label.as_deref();
            let s = local.add_session(now, id, record.ttl_ms, label, State::Disconnected);
            if books.is_none() && replicated.is_orphan(record) {
                let known = touches.as_mut().map(|touches| touches.take(id));
                local.await_session(s, known.unwrap_or_else(Touched::unknown));
            }
        }
        local.line_up(replicated);
        if let Some(books) = books {
            local.restore(now, books);
        }
        local
    }

    /// A local half with nobody inside, nobody waiting and no session.
    pub(crate) fn bare(now: u64, limits: Limits, seed: u64, replicated: &Replicated) -> Local {
        let mut local = Local {
            limits,
            now,
            names: HashMap::with_hasher(Seeded::new(seed)),
            gates: Arena::new(),
            session_ids: FxHashMap::default(),
            sessions: Arena::new(),
            holds: Arena::new(),
            crowd: FxHashMap::default(),
            waits: Arena::new(),
            elections: 0,
            hands: Hands::default(),
            waiting_legs: 0,
            entangled: 0,
            fences: Fences::new(replicated.ownership()),
            timers: Timers::default(),
            silences: Timers::default(),
            absent_ms: 0,
            serial: 0,
            awaited: Awaited::default(),
            touched: 0,
            unproven: 0,
            observed: false,
            frozen: false,
            stirred: Vec::new(),
            departures: None,
            counters: Counters::default(),
        };
        for (name, definition) in replicated.gates() {
            local.create(name.clone(), definition.clone(), Standing::Created);
        }
        local
    }

    /// Carries out a session's command at time `now`; every request of a session comes this way. Further effects are appended
    /// to `out`. A refusal has changed nothing, except that the session was heard of.
    pub fn apply(
        &mut self,
        now: u64,
        replicated: &Replicated,
        session: SessionId,
        command: &Command<'_>,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        self.expire(now, out);
        match command {
            Command::Connect => self.connect(session),
            Command::Disconnect => self.disconnect(session, out),
            Command::Resume { claims } => self.resume(session, claims, out),
            Command::Renew => self.acting(session).map(|_| Answer::Done),
            Command::Lock(lock) => self.lock(session, lock, out),
            Command::LockAll(set) => self.lock_all(session, set, out),
            Command::Unlock { gate, fence } => self.unlock(session, gate, *fence, out),
            Command::Downgrade { gate } => self.downgrade(session, gate, out),
            Command::Cancel { ticket } => self.cancel(session, *ticket, out),
            Command::Take(take) => self.take_job(session, replicated, take, out),
            Command::Narrow { ticket, queues } => self.narrow_take(session, *ticket, queues, out),
            Command::CheckJob(taken) => self.check_job(session, *taken),
            Command::Settle(taken) => self.settle_job(session, *taken),
            Command::Reserve { job } => self.reserve(replicated, *job, out),
            Command::Withdraw { job } => self.withdraw_job(replicated, *job, out),
            Command::GiveBack(taken) => self.give_back(session, replicated, *taken, out),
            Command::GiveBackAll => self.give_back_all(session, replicated, out),
            Command::Fail(taken) => self.fail_job(session, *taken, out),
            Command::Resign { election } => self.resign(session, election, out),
        }
    }

    /// When the next session may have been silent for too long; `None` if no session is open.
    pub fn next_silence(&self) -> Option<u64> {
        self.silences.next()
    }

    /// When [`Local::tick`] should be called next: never late, sometimes needlessly early.
    pub fn next_deadline(&self) -> Option<u64> {
        self.timers
            .next()
            .into_iter()
            .chain(self.silences.next())
            .min()
    }

    /// Whether a fence still names a holder of the gate (`FENCE CHECK`).
    pub fn fence_check(&self, gate: &str, fence: Fence) -> bool {
        self.names.get(gate).is_some_and(|g| {
            let mut inside = self.gates[*g].inside.inside(&self.holds);
            inside.any(|(_, hold)| hold.fence == fence)
        })
    }

    /// Sets whether every entry, exit and wait is reported as an event, for subscribers and monitors.
    pub fn observe(&mut self, observed: bool) {
        self.observed = observed;
    }

    /// The fence below which lie all grants from before this node's start and from before the gate's present number.
    pub fn floor(&self, gate: &str) -> Fence {
        self.fences.number(Shard::of(gate)).floor()
    }

    /// Event counts so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A session that may give commands.
    fn acting(&mut self, id: SessionId) -> Result<SessionKey, Refusal> {
        let s = self.session(id)?;
        let now = self.now;
        let session = &mut self.sessions[s];
        if session.state == State::RunOut {
            return Err(no_session(id));
        }
        if session.awaited {
            return Err(Refusal::new(
                Word::Unavailable,
                format!("session {id} is older than this node's start; RESUME it first"),
            ));
        }
        session.hear(now, self.absent_ms);
        Ok(s)
    }

    fn session(&self, id: SessionId) -> Result<SessionKey, Refusal> {
        self.session_ids
            .get(&id)
            .copied()
            .ok_or_else(|| no_session(id))
    }

    /// The session's hold of a gate. The first few inside are searched; those behind them are in the index.
    fn held(&self, g: GateKey, s: SessionKey) -> Option<HoldKey> {
        let gate = &self.gates[g];
        let mut first = gate.inside.inside(&self.holds).take(CROWD as usize);
        match first.find(|(_, hold)| hold.session == s) {
            Some((h, _)) => Some(h),
            None if gate.inside.len() <= CROWD => None,
            None => self.crowd.get(&(g, s)).copied(),
        }
    }

    fn create(&mut self, name: Name, definition: Definition, standing: Standing) -> GateKey {
        let shard = Shard::of(&name);
        self.create_in(shard, name, definition, standing)
    }

    /// Like [`Local::create`], for a name whose shard is known.
    fn create_in(
        &mut self,
        shard: Shard,
        name: Name,
        definition: Definition,
        standing: Standing,
    ) -> GateKey {
        self.elections += usize::from(definition.rule == Rule::Election);
        let gate = Gate::new(name.clone(), shard, definition, standing);
        let g = self.gates.insert(gate);
        self.names.insert(name, g);
        g
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Whether grants can be made in a shard: there must be fences, and no awaited session may hold something there.
    #[inline]
    fn granting(&self, shard: Shard) -> bool {
        self.fences.suffices(shard, self.limits.set_size)
            && !self.awaited.shuts(shard)
            && !self.frozen
    }

    /// The next fence of a shard. When they run low, the node should hand the shard to itself.
    fn next_fence(&mut self, shard: Shard, out: &mut Vec<Event>) -> Fence {
        let (fence, low) = self.fences.next(shard);
        if low {
            out.push(Event::FencesLow { shard });
        }
        fence
    }

    fn arm(&mut self, at: u64, serial: u64, target: Target) {
        if let Target::Session(_) = target {
            self.silences.arm(at, serial, target);
            if self.silences.overgrown(self.sessions.len()) {
                let mut silences = std::mem::take(&mut self.silences);
                silences.sweep(|timer| self.lives(timer));
                self.silences = silences;
            }
            return;
        }
        self.timers.arm(at, serial, target);
        let living = self.holds.len() + self.waits.len() + self.hands.takers();
        if self.timers.overgrown(living) {
            let mut timers = std::mem::take(&mut self.timers);
            timers.sweep(|timer| self.lives(timer));
            self.timers = timers;
        }
    }

    /// Whether the object of a timer is still the one for which it was set.
    fn lives(&self, timer: &Timer) -> bool {
        match timer.target {
            Target::Hold(key) => self
                .holds
                .find(key)
                .is_some_and(|hold| hold.serial == timer.serial),
            Target::Wait(key) => self
                .waits
                .find(key)
                .is_some_and(|wait| wait.ticket.0 == timer.serial),
            Target::Take(ticket) => self.hands.is_waiting(ticket),
            Target::Session(key) => self
                .sessions
                .find(key)
                .is_some_and(|session| session.serial == timer.serial),
        }
    }
}

#[cfg(test)]
mod deadlock_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod stall_tests;
#[cfg(test)]
mod tests;
