//! The house: both halves of `core`, the log, and everybody who talks to them. It does no I/O of its own, but for one short
//! file that is not flushed ([`KeptTouches`]), and starts no thread; the reactor, an embedded caller or another door takes its lock, says what is asked, and leaves. What
//! others are to be told stands in their outboxes then.

mod answers;
#[cfg(test)]
mod arrow_tests;
mod changes;
mod client;
mod closings;
mod counts;
mod entry;
mod events;
mod jobs;
mod later;
mod owners;
#[cfg(test)]
mod pipeline_tests;
mod present;
mod pubsub;
mod receipts;
mod reload;
mod seats;
mod sight;
#[cfg(test)]
mod slice_tests;
mod slices;
mod snapshots;
#[cfg(test)]
mod standstill_tests;
mod stop;
mod strangers;
mod submissions;
#[cfg(test)]
mod tests;
mod touches;
mod unit;
mod unread;
#[cfg(test)]
mod window_tests;

pub(crate) use answers::Answers;
pub(crate) use client::{Blocked, Cancelled, Client, ClientId, Outlet, Place};
pub(crate) use closings::{Closing, Closings};
pub(crate) use counts::Worker;
pub(crate) use entry::{Entry, read_image, read_records, replay, written};
pub(crate) use events::{NODE, fence_reply, mode_words};
pub(crate) use jobs::{Presented, checked_body};
pub(crate) use owners::SeenSessions;
pub(crate) use pubsub::Channels;
pub use receipts::Holding;
use receipts::Receipts;
pub(crate) use receipts::{Form, Wanted};
pub(crate) use seats::Seat;
pub(crate) use slices::{Answer, Rows, SLICE_ROWS, Slice};
pub(crate) use snapshots::Snapshots;
pub(crate) use touches::{KeptTouches, read_touches};
pub(crate) use unit::{Step, Unit, aborted};

use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use testigo_core::{Event, Limits, Local, Replicated, SessionId, Settled, Ticket};
use testigo_engine::{LogSize, LogThread};

use crate::clock::{Clock, wall_ms};
use crate::completion::Completion;
use crate::stats::Stats;
use crate::users::{Checker, Guesses, Users};
use crate::wire::WireLimits;
use later::HeldBack;
use slices::Slices;
use strangers::Strangers;
use submissions::Submissions;
use unread::Unread;

/// The state of a running node.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) clock: Clock,
    /// The time of the present turn.
    pub(crate) now: u64,
    /// When the reactor's last turn began.
    turned: u64,
    pub(crate) local: Local,
    pub(crate) replicated: Replicated,
    pub(crate) limits: Limits,
    pub(crate) wire: WireLimits,
    pub(crate) users: Arc<Users>,
    /// Below which directory flows keep the files of their jobs.
    pub(crate) files_root: Option<PathBuf>,
    /// Who guesses passwords.
    pub(crate) guesses: Guesses,
    /// Works out hashed passwords, if there are any.
    pub(crate) checker: Option<Checker>,
    held_back: HeldBack,
    strangers: Strangers,
    slices: Slices,
    /// What the local half told and nobody has passed on yet.
    pub(crate) events: Vec<Event>,

    /// Where it is written down what sessions may hold, until the house ends.
    touches: Option<KeptTouches>,
    pub(crate) submissions: Submissions,
    snapshots: Snapshots,

    pub(crate) clients: FxHashMap<ClientId, Client>,
    next_client: u64,
    seats: FxHashMap<SessionId, Seat>,
    tickets: FxHashMap<Ticket, Waiter>,
    /// Makes receipts, once the log has their key.
    receipts: Option<Receipts>,
    /// What requests that wait want to be told of their grants.
    wanted: FxHashMap<Ticket, Wanted>,
    next_instant: u64,
    pub(crate) channels: Channels,
    /// Connections with something to be sent, or to be closed.
    pub(crate) unsent: Vec<ClientId>,
    pub(crate) unread: Unread,
    /// Bytes kept of commands that are not finished, as of the last turn.
    pub(crate) unfinished_bytes: usize,
    /// Connections that were blocked and go on with what they have sent meanwhile.
    pub(crate) unblocked: Vec<ClientId>,
    /// The deadline that the reactor sleeps for. An earlier one must wake it.
    pub(crate) sleeps_until: u64,
    pub(crate) stopping: bool,
    pub(crate) counters: Counters,
    pub(crate) closings: Closings,
    pub(crate) stats: Stats,
}

/// Who is told how a wait ended.
#[derive(Debug)]
enum Waiter {
    /// A connection that does nothing else meanwhile.
    Blocked(ClientId),
    /// A caller in this process.
    Embedded(Arc<Completion<Settled>>),
}

/// What the doors have done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: u64,
    pub(crate) commands: u64,
    /// Slices of long work.
    pub(crate) slices: u64,
}

/// What a house is made of at the start.
#[derive(Debug)]
pub(crate) struct Foundations {
    pub(crate) clock: Clock,
    pub(crate) local: Local,
    pub(crate) touches: Option<KeptTouches>,
    pub(crate) replicated: Replicated,
    pub(crate) limits: Limits,
    pub(crate) wire: WireLimits,
    pub(crate) users: Arc<Users>,
    pub(crate) files_root: Option<PathBuf>,
    pub(crate) log_size: LogSize,
    pub(crate) snapshots: Snapshots,
}

impl House {
    pub(crate) fn new(foundations: Foundations) -> House {
        let Foundations {
            clock,
            local,
            touches,
            replicated,
            limits,
            wire,
            users,
            files_root,
            log_size,
            snapshots,
        } = foundations;
        let (now, mut stats) = (clock.now(), Stats::default());
        for (name, flow) in replicated.flows() {
            stats.begin(now, name, flow.queues().map(|(_, queue)| queue));
        }
        let receipts = replicated.receipt_key().map(Receipts::new);
        House {
            clock,
            now,
            turned: now,
            local,
            replicated,
            limits,
            wire,
            users,
            files_root,
            guesses: Guesses::default(),
            checker: None,
            held_back: HeldBack::default(),
            strangers: Strangers::default(),
            slices: Slices::default(),
            events: Vec::new(),
            touches,
            submissions: Submissions::new(log_size, wall_ms().saturating_sub(now)),
            snapshots,
            clients: FxHashMap::default(),
            next_client: 0,
            seats: FxHashMap::default(),
            tickets: FxHashMap::default(),
            receipts,
            wanted: FxHashMap::default(),
            next_instant: INSTANT,
            channels: Channels::default(),
            unsent: Vec::new(),
            unread: Unread::default(),
            unfinished_bytes: 0,
            unblocked: Vec::new(),
            sleeps_until: u64::MAX,
            stopping: false,
            counters: Counters::default(),
            closings: Closings::default(),
            stats,
        }
    }

    /// Gives the house its log, once.
    pub(crate) fn move_in(&mut self, log: LogThread) {
        self.submissions.begin(log);
        self.snapshot_if_due();
    }

    /// A turn begins: what is due happens, except that silence is judged only when everybody was heard.
    pub(crate) fn begin_turn(&mut self) {
        self.now = self.clock.now();
        let gap_ms = self.now.saturating_sub(self.turned);
        self.turned = self.now;
        if gap_ms > ABSENT_MS {
            self.local.was_absent(gap_ms - ABSENT_MS);
        }
        self.answer_due();
        self.local.expire(self.now, &mut self.events);
        self.pass_on();
        self.submissions.submit_own(self.now);
    }

    /// Ends the sessions that have been silent for too long. All that was said before `heard_until` has been heard.
    /// Says whether it had to look at one.
    pub(crate) fn judge_silence(&mut self, heard_until: u64) -> bool {
        if self.local.next_silence().is_none_or(|at| at > heard_until) {
            return false;
        }
        self.keep_waiting_alive();
        self.local.tick(heard_until, &mut self.events);
        self.pass_on();
        self.submissions.submit_own(self.now);
        true
    }

    /// The longest sleep between two turns: while sessions may run out, the node looks up often enough to know that it
    /// was there.
    pub(crate) fn sleep_ms_max(&self) -> Option<u64> {
        self.local.next_silence().map(|_| NAP_MS_MAX)
    }

    /// Reads the clock for a caller that is not the reactor's turn.
    pub(crate) fn look_at_the_clock(&mut self) {
        self.now = self.clock.now();
    }

    /// Whether the reactor must be woken for what a caller outside of it has done.
    pub(crate) fn needs_the_reactor(&mut self) -> bool {
        let due = self.next_deadline().unwrap_or(u64::MAX);
        let sooner = due < self.sleeps_until;
        if sooner {
            self.sleeps_until = due;
        }
        sooner
            || !self.unsent.is_empty()
            || !self.unblocked.is_empty()
            || self.long_work_due_ms() == Some(0)
    }

    /// A ticket for a request that was settled at once. Those of real waits are counters that never get so far.
    pub(crate) fn instant_ticket(&mut self) -> u64 {
        self.next_instant += 1;
        self.next_instant
    }
}

const INSTANT: u64 = 1 << 52;
/// Where two turns lie further apart than this, the node was not there: it was stopped, starved, or busy with one thing.
/// That time is nobody's silence.
const ABSENT_MS: u64 = 100;
/// Below [`ABSENT_MS`] by more than a timer is late.
const NAP_MS_MAX: u64 = 75;
