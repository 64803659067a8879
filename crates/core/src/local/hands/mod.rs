//! Who has which job in hand, and who waits for one: the local half of queues. A take is decided here at memory speed and
//! never logged. Everything durable is up to the replicated half, which this one reads and follows.
//!
//! A job is in exactly one of three states. It *waits* in its queue's line; it is *held* by a session under an attempt
//! number; or it is *settling*: its holder's change is on its way through the log, and until the log has decided nobody else
//! gets the job.

mod follow;
mod give_back;
mod line;
mod moves;
mod take;
mod view;

pub use line::LinePlace;
pub(crate) use moves::{LaidDown, TakeCopy};
pub use view::{HeldView, QueueView, TakerView};

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::fence::Fence;
use crate::job::{JobId, QueueId};
use crate::name::Name;
use crate::session::SessionKey;
use crate::wait::Ticket;
use line::Line;

/// The books of all queues that this node owns.
#[derive(Debug, Default)]
pub(super) struct Hands {
    lines: FxHashMap<QueueId, Line>,
    /// Queues that have another order, and too many jobs to be brought into it at once.
    reordered: BTreeSet<QueueId>,
    held: FxHashMap<JobId, Held>,
    takers: BTreeMap<Ticket, Taker>,
    /// Set in a cluster: a line hands out only after it was opened.
    guarded: bool,
    /// Jobs that guests no longer have; their homes must be told.
    laid: Vec<LaidDown>,
    pub(super) counters: JobCounters,
}

/// A job that does not wait.
#[derive(Debug)]
struct Held {
    /// `None` if its session has ended or an administrator has reserved it.
    holder: Option<SessionKey>,
    attempt: Fence,
    since: u64,
    /// Whether a change of it is on its way through the log.
    settling: bool,
    /// Whether its session ended meanwhile: if the log refuses the change, that was a death.
    orphan: bool,
}

/// A take that waits.
#[derive(Debug)]
struct Taker {
    session: SessionKey,
    queues: Box<[QueueId]>,
    name: Option<Name>,
    since: u64,
}

/// Counts of what happened to jobs, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounters {
    /// Jobs created.
    pub created: u64,
    /// Jobs taken.
    pub taken: u64,
    /// Jobs passed on.
    pub passed: u64,
    /// Jobs deleted.
    pub deleted: u64,
    /// Jobs given back.
    pub given_back: u64,
    /// Jobs whose worker died or failed.
    pub died: u64,
    /// Of those, jobs that went to a reject queue.
    pub rejected: u64,
}

impl Hands {
    pub(super) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.takers.contains_key(&ticket)
    }

    pub(super) fn takers(&self) -> usize {
        self.takers.len()
    }

    fn leave_lines(&mut self, ticket: Ticket, taker: &Taker) {
        for queue in &taker.queues {
            if let Some(line) = self.lines.get_mut(queue) {
                line.takers.remove(&ticket);
            }
        }
    }
}
