//! What was asked and is not answered yet, and what can be said about it when the connection breaks.

use std::time::{Duration, Instant};

use super::{CallId, HoldId, IDS_KEPT};
use crate::election::release_line;
use crate::pool::{Take, slot_of};
use crate::request::{Lock, milliseconds, words};

/// A call that has no answer yet.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) asked: Instant,
    pub(super) what: What,
    /// Whether it is on its way: from then on only an answer can tell whether it was done.
    pub(super) sent: bool,
    /// Whether nobody waits for it any more.
    pub(super) cancelled: bool,
    /// Whether it was sent before, over a connection that broke.
    pub(super) doubtful: bool,
    /// How many nodes have refused it because they could not serve.
    pub(super) turned_away: usize,
}

#[derive(Debug)]
pub(super) enum What {
    /// A command with a plain answer.
    Line { line: Vec<String>, again: Again },
    /// The same with any bytes.
    Bytes { line: Vec<Vec<u8>> },
    /// `SESSION OPEN`.
    Open {
        ttl: Duration,
        label: Option<String>,
    },
    /// `LOCK` or `LOCKALL`, numbered within its session.
    Lock { lock: Lock, serial: u64 },
    /// `POOL TAKE`.
    Take { take: Take },
    /// `UNLOCK`.
    Release { gate: String, fence: u64 },
    /// `DOWNGRADE`.
    Downgrade { hold: HoldId, gate: String },
    /// `SESSION CLOSE`.
    Close,
}

/// Whether a command may be sent again if its answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// A second time could do it twice.
    Never,
    /// Twice is the same as once, as long as the same session lives.
    InSession,
    /// Twice is the same as once.
    Always,
}

/// A command on its way.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) of: Of,
}

/// What a command was sent for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// `HELLO`.
    Greeting,
    /// `SESSION RESUME` with these claims.
    Resume(Vec<HoldId>),
    /// A sign of life, or a command whose answer does not matter.
    Nothing,
    /// The call.
    Question(CallId),
}

impl What {
    /// The command, `waited` after it was first sent.
    pub(super) fn line(&self, waited: Duration) -> Vec<Vec<u8>> {
        let words = match self {
            What::Bytes { line } => return line.clone(),
            What::Line { line, .. } => line.clone(),
            What::Open { ttl, label } => {
                let mut line = words(["SESSION", "OPEN", "TTL"]);
                line.push(milliseconds(*ttl));
                if let Some(label) = label {
                    line.extend(["LABEL".into(), label.clone()]);
                }
                line
            }
            What::Lock { lock, serial } => lock.line(&format!("t{serial}"), waited),
            What::Take { take } => take.line(waited),
            What::Release { gate, fence } => release_line(gate, *fence),
            What::Downgrade { gate, .. } => words(["DOWNGRADE", gate, "GRANT"]),
            What::Close => words(["SESSION", "CLOSE"]),
        };
        words.into_iter().map(String::into_bytes).collect()
    }

    /// Whether a node without a majority also does and answers it: the answer then says nothing about the session.
    pub(super) fn needs_no_majority(&self) -> bool {
        let name = match self {
            What::Take { .. } => return true,
            What::Release { gate, .. } => return slot_of(gate).is_some(),
            What::Line { line, .. } => line.first().map(String::as_bytes),
            What::Bytes { line } => line.first().map(Vec::as_slice),
            What::Open { .. } | What::Lock { .. } | What::Downgrade { .. } | What::Close => None,
        };
        let free = ["AUTH", "HELLO", "POOL", "QUIT", "RESET"];
        let is = |free: &&str| name.is_some_and(|name| name.eq_ignore_ascii_case(free.as_bytes()));
        free.iter().any(is)
    }

    /// Whether it may be sent again. A lock is known by its ID as long as the node keeps that; `locks` were requested so far.
    /// A release names the fence, so a second one can only be refused.
    pub(super) fn again(&self, locks: u64) -> Again {
        match self {
            What::Line { again, .. } => *again,
            What::Bytes { .. } | What::Open { .. } => Again::Never,
            // Resuming the session shows whether it was done: then the fence differs, and the hold is lost.
            What::Downgrade { .. } => Again::Never,
            What::Lock { lock, .. } if lock.campaigns() => Again::InSession,
            What::Lock { serial, .. } if locks - serial < IDS_KEPT => Again::InSession,
            What::Lock { .. } => Again::Never,
            // Slots that it got without anybody hearing of it are not claimed when the session resumes, and go back then.
            What::Take { .. } => Again::InSession,
            What::Release { .. } | What::Close => Again::InSession,
        }
    }
}
