//! Why a command was refused: one word for programs and one sentence for people. A refusal never changes state, so repeating
//! the command is always safe. The only exception has its own word, [`Word::Unknown`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{Name, called};
use crate::session::SessionId;

/// The first word of an error on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Word {
    /// The command is wrong, and will be wrong if it is repeated.
    BadArg,
    /// There is no gate with that name, and this request cannot create one.
    NoGate,
    /// The user has no right to do this. The node decides that; `core` knows no users.
    Denied,
    /// The session already holds what it asks for.
    Held,
    /// The session does not hold what it wants to give back.
    NotHeld,
    /// A newer fact has overtaken the caller's: another fence, a closed session, a later attempt.
    Stale,
    /// Only the clock could end the wait.
    Deadlock,
    /// A named limit is reached.
    Limit,
    /// Another use is in the way; it may work later.
    Busy,
    /// The node cannot answer yet (it is recovering) or any more.
    Unavailable,
    /// The outcome is unknown. The node says so about changes that were on their way to the log.
    Unknown,
    /// There is no such flow.
    NoFlow,
    /// There is no such queue.
    NoQueue,
    /// There is no such job.
    NoJob,
    /// The caller does not hold the job.
    NotYours,
    /// The queue has as many jobs as its limit allows.
    Full,
    /// The flow's graph does not allow the process to do this.
    NoRight,
    /// A living job of the flow already has this name.
    Duplicate,
    /// The text is not a valid flow.
    BadFlow,
    /// There is no such pool.
    NoPool,
}

impl Word {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Word::BadArg => "BADARG",
            Word::NoGate => "NOGATE",
            Word::Denied => "DENIED",
            Word::Held => "HELD",
            Word::NotHeld => "NOTHELD",
            Word::Stale => "STALE",
            Word::Deadlock => "DEADLOCK",
            Word::Limit => "LIMIT",
            Word::Busy => "BUSY",
            Word::Unavailable => "UNAVAILABLE",
            Word::Unknown => "UNKNOWN",
            Word::NoFlow => "NOFLOW",
            Word::NoQueue => "NOQUEUE",
            Word::NoJob => "NOJOB",
            Word::NotYours => "NOTYOURS",
            Word::Full => "FULL",
            Word::NoRight => "NORIGHT",
            Word::Duplicate => "DUPLICATE",
            Word::BadFlow => "BADFLOW",
            Word::NoPool => "NOPOOL",
        }
    }
}

/// A refused command. The state is as it was before, unless the word is [`Word::Unknown`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The word on which programs decide.
    pub word: Word,
    /// What was wrong, where, and what would be right.
    pub sentence: String,
    /// For [`Word::Deadlock`]: who waits for what, each link blocked by the next and the last by the first.
    pub cycle: Vec<CycleLink>,
}

/// One link of a cycle of waits: `session` waits for `gate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleLink {
    /// Who waits.
    pub session: SessionId,
    /// The gate.
    pub gate: Name,
    /// Whether the next link's session is inside that gate, or only ahead in its queue.
    pub blocker_holds: bool,
}

/// Links of a cycle that the sentence of a refusal names.
const CYCLE_NAMED: usize = 64;

impl Refusal {
    pub(crate) fn new(word: Word, sentence: impl Into<String>) -> Refusal {
        Refusal {
            word,
            sentence: sentence.into(),
            cycle: Vec::new(),
        }
    }

    pub(crate) fn deadlock(cycle: Vec<CycleLink>) -> Refusal {
        let mut sentence = String::from("nobody could end this wait: ");
        let left_out = cycle.len().saturating_sub(CYCLE_NAMED);
        for (at, link) in cycle.iter().enumerate() {
            // Of a long cycle the first ones are named, and the last one.
            if left_out > 0 && (CYCLE_NAMED - 1..cycle.len() - 1).contains(&at) {
                if at == CYCLE_NAMED - 1 {
                    sentence.push_str(&format!("; {left_out} more in the same way"));
                }
                continue;
            }
            let next = &cycle[(at + 1) % cycle.len()];
            if at > 0 {
                sentence.push_str("; ");
            }
            let how = if link.blocker_holds {
                "held by"
            } else {
                "behind"
            };
            sentence.push_str(&format!(
                "session {} waits for {} {how} session {}",
                link.session,
                called(&link.gate),
                next.session
            ));
        }
        sentence.push_str("; give something back before asking for more");
        Refusal {
            word: Word::Deadlock,
            sentence,
            cycle,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.word.as_str(), self.sentence)
    }
}

impl std::error::Error for Refusal {}
