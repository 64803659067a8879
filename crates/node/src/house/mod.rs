//! The house: the clients of the node ([`Connections`]), both halves of `core` ([`Services`]), the log ([`Submissions`]), and
//! what connects them. It starts no thread, and does no I/O except for one short file that is not flushed ([`KeptTouches`]).
//! The reactor, an embedded caller or another front door takes its lock, gives it a command, and lets go. What others are to
//! be told is then in their outboxes.

#[cfg(test)]
mod agreeing_tests;
mod answers;
#[cfg(test)]
mod arrow_tests;
mod asking;
#[cfg(any(test, debug_assertions))]
mod broken;
mod changes;
mod chapters;
mod client;
mod closings;
#[cfg(test)]
mod cluster_tests;
mod connections;
mod cost;
#[cfg(test)]
mod cost_tests;
mod counts;
mod deletes;
#[cfg(test)]
mod deletes_tests;
mod deliveries;
mod elections;
mod entry;
mod events;
#[cfg(test)]
mod everywhere_tests;
mod group;
mod jobs;
mod joining;
#[cfg(test)]
mod joining_tests;
mod later;
mod letters;
mod member;
mod owners;
#[cfg(test)]
mod pipeline_tests;
mod pools;
#[cfg(test)]
mod pools_tests;
mod present;
mod pubsub;
#[cfg(test)]
mod pubsub_tests;
mod receipts;
mod reload;
#[cfg(test)]
mod returning_tests;
mod seats;
mod services;
mod sight;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod slice_tests;
mod slices;
mod snapshots;
mod standing;
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
mod visits;
#[cfg(test)]
mod visits_tests;
#[cfg(test)]
mod waits_tests;
#[cfg(test)]
mod window_tests;

pub(crate) use answers::{Answers, settled_job, settled_jobs};
pub(crate) use asking::{Asking, with_misfits};
#[cfg(debug_assertions)]
pub(crate) use broken::broken_on_purpose;
pub(crate) use client::{ActsFor, Blocked, Cancelled, Client, ClientId, Outlet};
pub(crate) use closings::Closing;
use connections::Connections;
pub(crate) use cost::{CALL_COST, OLDER_COST, SHARE_COST, TURN_COST};
pub(crate) use counts::Worker;
pub use elections::Leader;
use elections::Terms;
pub(crate) use elections::{Term, vacancy_word};
pub(crate) use entry::{Entry, read_image, read_records, replay, written};
pub(crate) use events::{fence_reply, mode_words};
pub(crate) use group::Multicast;
pub(crate) use jobs::{Presented, checked_body};
pub(crate) use joining::RETURNS;
pub(crate) use member::Member;
pub(crate) use owners::SeenSessions;
pub(crate) use pools::taken_slots_reply;
pub(crate) use present::there;
pub use receipts::Holding;
use receipts::Receipts;
pub(crate) use receipts::{Form, Resuming, Wanted};
pub(crate) use seats::Seat;
pub(crate) use slices::{Answer, Rows, SLICE_ROWS, Slice};
pub(crate) use snapshots::Snapshots;
pub(crate) use touches::{KeptTouches, read_touches};
pub(crate) use unit::{Done, Step, Unit, aborted, numbered};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use testigo_core::estate::Peer;
use testigo_core::pool::SlotTaken;
use testigo_core::{
    Address, Answer as Answered, Limits, Local, Refusal, Replicated, SessionId, Settled, Ticket,
};
use testigo_engine::{LogSize, LogThread};

use crate::backup::Drawn;
use crate::clock::{Clock, wall_ms};
use crate::cluster::Moves;
use crate::completion::Completion;
use crate::stats::Stats;
use crate::users::{Checker, Claim, Guesses, Users};
use crate::wire::WireLimits;
use later::HeldBack;
pub(crate) use services::Half;
use services::Services;
use slices::Slices;
use submissions::Submissions;
use visits::Visits;

/// The state of a running node.
#[derive(Debug)]
pub(crate) struct House {
    /// This node and its start.
    own: Peer,
    clock: Clock,
    /// The time of the present turn.
    now: u64,
    /// When the reactor's last turn began.
    turned: u64,
    /// The connections, and what they are to be sent.
    pub(crate) connections: Connections,
    /// Both halves.
    pub(crate) services: Services,
    /// What was handed to the log and has not been answered.
    pub(crate) submissions: Submissions,
    /// `None` if the node is alone.
    member: Option<Box<Member>>,
    /// The way to the process group that shares the pools, if one does.
    wire_to_group: Option<group::GroupWire>,
    /// Callers in this process that listen to groups.
    group_listeners: deliveries::GroupListeners,
    /// The node's parts of groups that an algorithm orders.
    chapters: chapters::HouseChapters,
    users: Arc<Users>,
    /// The directory below which flows keep the files of their jobs.
    files_root: Option<PathBuf>,
    /// Users and addresses whose passwords are not checked for a while.
    guesses: Guesses,
    /// Checks hashed passwords, if there are any.
    checker: Option<Checker>,
    held_back: HeldBack,
    slices: Slices,
    /// What other nodes carry out for this one, and this one for them.
    visits: Visits,
    /// Where it is recorded what sessions may hold, until the house ends.
    touches: Option<KeptTouches>,
    snapshots: Snapshots,
    /// Who waits for the end of a vote on a pool's deletion.
    deletes: deletes::Deletes,

    seats: FxHashMap<SessionId, Seat>,
    tickets: FxHashMap<Ticket, Waiter>,
    /// Makes receipts, once the log has their key.
    receipts: Option<Receipts>,
    /// What waiting requests want to be told about their grants.
    wanted: FxHashMap<Ticket, Wanted>,
    next_instant: u64,
    /// The deadline until which the reactor sleeps. An earlier one must wake it.
    sleeps_until: u64,
    stopping: bool,
    counters: Counters,
    stats: Stats,
    /// The last terms of elections.
    terms: Terms,
    /// How ownership has moved.
    moves: Moves,
    /// A backup that somebody is fetching.
    pub(crate) backup: Option<Drawn>,
}

/// Who is told how a wait ended.
#[derive(Debug)]
enum Waiter {
    /// A connection that is blocked meanwhile.
    Blocked(ClientId),
    /// A connection that waits, blocked, for another node's answer to a request that does not wait for a gate or a job.
    Asking(ClientId, Asking),
    /// The same for a caller in this process.
    EmbeddedAsking(Arc<Completion<Result<Answered, Refusal>>>),
    /// A caller in this process.
    Embedded(Arc<Completion<Settled>>),
    /// A connection that goes on meanwhile, and is told of its slots by a push.
    Pushed(ClientId),
    /// A caller in this process that waits for slots.
    EmbeddedSlots(Arc<Completion<Vec<SlotTaken>>>),
}

/// What the front doors have done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commands: u64,
    /// Slices of long work.
    pub(crate) slices: u64,
}

/// What makes a house a member of a cluster.
#[derive(Debug)]
pub(crate) struct Membership {
    /// How long it acts without hearing from a majority.
    pub(crate) lease_ms: u64,
    /// The address of this node.
    pub(crate) address: Address,
    /// How far the engine's log is applied.
    pub(crate) delivered: u64,
    /// Whether it asks to be let in.
    pub(crate) joins: bool,
}

/// What a house is made of at the start.
#[derive(Debug)]
pub(crate) struct Foundations {
    pub(crate) own: Peer,
    pub(crate) clock: Clock,
    pub(crate) half: Half,
    pub(crate) touches: Option<KeptTouches>,
    pub(crate) replicated: Replicated,
    pub(crate) limits: Limits,
    pub(crate) wire: WireLimits,
    pub(crate) users: Arc<Users>,
    pub(crate) files_root: Option<PathBuf>,
    pub(crate) log_size: LogSize,
    pub(crate) snapshots: Snapshots,
    pub(crate) member: Option<Membership>,
}

impl House {
    pub(crate) fn new(foundations: Foundations) -> House {
        let Foundations {
            own,
            clock,
            half,
            touches,
            replicated,
            limits,
            wire,
            users,
            files_root,
            log_size,
            snapshots,
            member,
        } = foundations;
        let (now, mut stats) = (clock.now(), Stats::default());
        for (name, flow) in replicated.flows() {
            stats.begin(now, name, flow.queues().map(|(_, queue)| queue));
        }
        let services = Services::new(now, own, half, replicated, limits);
        let member = member.map(|member| Box::new(Member::new(now, own, member, &services)));
        let receipts = services.replicated().receipt_key().map(Receipts::new);
        House {
            own,
            clock,
            now,
            turned: now,
            connections: Connections::new(wire, now),
            services,
            member,
            wire_to_group: None,
            group_listeners: deliveries::GroupListeners::default(),
            chapters: chapters::HouseChapters::new(own),
            submissions: Submissions::new(log_size, wall_ms().saturating_sub(now)),
            users,
            files_root,
            guesses: Guesses::default(),
            checker: None,
            held_back: HeldBack::default(),
            slices: Slices::default(),
            visits: Visits::default(),
            touches,
            snapshots,
            deletes: deletes::Deletes::default(),
            seats: FxHashMap::default(),
            tickets: FxHashMap::default(),
            receipts,
            wanted: FxHashMap::default(),
            next_instant: INSTANT,
            sleeps_until: u64::MAX,
            stopping: false,
            counters: Counters::default(),
            stats,
            terms: Terms::default(),
            moves: Moves::default(),
            backup: None,
        }
    }

    pub(crate) fn local(&self) -> &Local {
        self.services.local()
    }

    pub(crate) fn replicated(&self) -> &Replicated {
        self.services.replicated()
    }

    /// This node and its start.
    pub(crate) fn own(&self) -> Peer {
        self.own
    }

    /// The time of the present turn.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    pub(crate) fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// Users and addresses whose passwords are not checked for a while.
    pub(crate) fn guesses(&self) -> &Guesses {
        &self.guesses
    }

    pub(crate) fn guesses_mut(&mut self) -> &mut Guesses {
        &mut self.guesses
    }

    /// Whether hashed passwords can be checked.
    pub(crate) fn checks_apart(&self) -> bool {
        self.checker.is_some()
    }

    pub(crate) fn set_checker(&mut self, checker: Checker) {
        self.checker = Some(checker);
    }

    /// Has a hashed password checked in another thread; false if that is not possible now.
    pub(crate) fn check_apart(&self, claim: Claim) -> bool {
        let checker = self.checker.as_ref();
        checker.is_some_and(|checker| checker.take(claim))
    }

    pub(crate) fn files_root(&self) -> Option<&Path> {
        self.files_root.as_deref()
    }

    /// How the flows are doing.
    pub(crate) fn stats(&self) -> &Stats {
        &self.stats
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn count_command(&mut self) {
        self.counters.commands += 1;
    }

    /// The command is served, and counted, once more.
    pub(crate) fn uncount_command(&mut self) {
        self.counters.commands -= 1;
    }

    /// Gives the house its log, once.
    pub(crate) fn move_in(&mut self, log: LogThread) {
        self.submissions.begin(log);
        self.snapshot_if_due();
    }

    /// Begins a turn: does what is due, but judges silence only when everybody was heard.
    pub(crate) fn begin_turn(&mut self) {
        self.look_at_the_clock();
        let gap_ms = self.now.saturating_sub(self.turned);
        self.turned = self.now;
        if gap_ms > ABSENT_MS {
            self.services.was_absent(gap_ms - ABSENT_MS);
        }
        self.answer_due();
        self.member_turn();
        self.services.expire(self.now);
        self.pass_on();
        self.visits_turn();
        self.pass_on();
        self.submissions.submit_own(self.now);
    }

    /// Ends the sessions that have been silent for too long. Everything said before `heard_until` has been heard. Says
    /// whether it had to look at any.
    pub(crate) fn judge_silence(&mut self, heard_until: u64) -> bool {
        if self
            .local()
            .next_silence()
            .is_none_or(|at| at > heard_until)
        {
            return false;
        }
        self.keep_waiting_alive();
        self.services.tick(heard_until);
        self.pass_on();
        self.submissions.submit_own(self.now);
        true
    }

    /// The longest sleep between two turns. While sessions may run out, the node wakes often enough to know that it was
    /// there.
    pub(crate) fn sleep_ms_max(&self) -> Option<u64> {
        self.local().next_silence().map(|_| NAP_MS_MAX)
    }

    /// Reads the clock for a caller outside of the reactor's turn.
    pub(crate) fn look_at_the_clock(&mut self) {
        self.now = self.clock.now();
        self.connections.tell_time(self.now);
    }

    /// The reactor sleeps until this deadline. An earlier one must wake it.
    pub(crate) fn sleep_until(&mut self, deadline: Option<u64>) {
        self.sleeps_until = deadline.unwrap_or(u64::MAX);
    }

    /// Whether the reactor must be woken for what another caller has done.
    pub(crate) fn needs_the_reactor(&mut self) -> bool {
        let due = self.next_deadline().unwrap_or(u64::MAX);
        let sooner = due < self.sleeps_until;
        if sooner {
            self.sleeps_until = due;
        }
        sooner || !self.connections.is_quiet() || self.long_work_due_ms() == Some(0)
    }

    /// A ticket for a request that was settled at once. Those of real waits are counters that never get that far.
    pub(crate) fn instant_ticket(&mut self) -> u64 {
        self.next_instant += 1;
        self.next_instant
    }
}

const INSTANT: u64 = 1 << 52;
/// If two turns lie further apart than this, the node was not there: it was stopped, starved, or busy with one thing. That
/// time counts as nobody's silence.
const ABSENT_MS: u64 = 100;
/// Below [`ABSENT_MS`], by more than a timer is late.
const NAP_MS_MAX: u64 = 75;
