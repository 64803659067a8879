//! What nodes say to each other: a home tells owners what its sessions want, and an owner tells homes about sessions inside
//! and waiting. A frame about a gate names its shard's number, and one about an opened session also the index of its home, so
//! a frame from before a title or a move is never taken for a later one.

use serde::{Deserialize, Serialize};

use super::seen::{Look, Seen};
use crate::branch::Parcel;
use crate::codec::OwnedCommand;
use crate::command::{Answer, Taken};
use crate::error::Refusal;
use crate::fence::Fence;
use crate::gate::Mode;
use crate::job::JobId;
use crate::name::Name;
use crate::ownership::{Index, Number, Shard};
use crate::session::SessionId;

/// One message from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    /// A home asks an owner for something at a gate.
    Ask(Ask),
    /// A home no longer wants an answer. It gives back a grant that is already on its way.
    Cancel {
        /// The ask.
        ask: u64,
        /// The gate.
        gate: Name,
        /// The number of its shard.
        number: Number,
    },
    /// An owner answers an ask.
    Answer {
        /// The ask.
        ask: u64,
        /// The gate.
        gate: Name,
        /// The number of its shard.
        number: Number,
        /// The session.
        session: SessionId,
        /// The index of its home, for an opened one.
        home: Index,
        /// The answer.
        answer: Result<Answer, Refusal>,
    },
    /// An owner tells the home of a session inside a gate something.
    Tell {
        /// The session.
        session: SessionId,
        /// The index of its home, for an opened one.
        home: Index,
        /// The gate.
        gate: Name,
        /// The number of its shard.
        number: Number,
        /// Held with which fence.
        fence: Fence,
        /// The word.
        word: TellWord,
    },
    /// A member reports what its sessions hold in all shards that a log entry gave to the receiver.
    Report {
        /// The entry.
        entry: Index,
        /// What they hold.
        holds: Vec<Held>,
        /// The jobs that they have in hand.
        takes: Vec<InHand>,
    },
    /// A session has moved to the sender, its new home, which says what the session claims and asks what it has.
    Claims {
        /// The session.
        session: SessionId,
        /// The index of its new home.
        home: Index,
        /// What its client says it holds.
        claims: Vec<Held>,
    },
    /// What a session that has moved has at the sender.
    Has {
        /// The session.
        session: SessionId,
        /// The index of its home.
        home: Index,
        /// What it holds.
        holds: Vec<Held>,
        /// The jobs that it has in hand.
        takes: Vec<InHand>,
        /// How far the sender had applied the log: what the session no longer has may belong to others by then.
        at: Index,
    },
    /// A set is complete: what was reserved for it is now held like anything else.
    Kept {
        /// The session.
        session: SessionId,
        /// The index of its home, for an opened one.
        home: Index,
        /// The gate.
        gate: Name,
        /// The number of its shard.
        number: Number,
        /// The hold's fence.
        fence: Fence,
    },
    /// A home looks for cycles of waits among some of its sessions.
    Look(Look),
    /// The answer to a look.
    Seen(Seen),
    /// A word about an instance of the algorithm that moves a gate's ownership.
    Branch {
        /// The gate.
        gate: Name,
        /// The instance: the number under which the shard's owner became its owner.
        since: Number,
        /// The last fence that the sender knows of.
        last: Fence,
        /// The word.
        word: BranchWord,
    },
    /// Asks the owner for another number, so that the algorithms of the shard's gates begin anew.
    Renew {
        /// The shard.
        shard: Shard,
        /// The number under which its owner became its owner.
        since: Number,
    },
    /// An implicit session has ended: everything it had is given back.
    Ended {
        /// The session.
        session: SessionId,
    },
    /// An owner tells a home that one of its sessions has a job, before the session is answered.
    Took {
        /// Who has which.
        take: InHand,
        /// The number of the queue's shard.
        number: Number,
    },
    /// An owner tells a home that one of its sessions no longer has a job.
    Laid {
        /// The session.
        session: SessionId,
        /// What it had.
        taken: Taken,
    },
    /// A home gives back a job of one of its sessions, and no longer reports it.
    Return {
        /// The session.
        session: SessionId,
        /// The index of its home, for an opened one.
        home: Index,
        /// The shard of the job's queue.
        shard: Shard,
        /// Its number.
        number: Number,
        /// Which job, under which attempt.
        taken: Taken,
    },
}

impl Frame {
    /// Whether it is only about jobs in hand.
    pub(super) fn is_of_job(&self) -> bool {
        use Frame::{Laid, Return, Took};
        matches!(self, Took { .. } | Return { .. } | Laid { .. })
    }
}

/// A word about an instance of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BranchWord {
    /// The owner begins it.
    Begin {
        /// Whether everybody may ask at once: nobody was inside.
        go: bool,
    },
    /// Everybody may ask now: those who were inside at the beginning have been let in.
    Go,
    /// A message of the algorithm.
    Parcel(Parcel),
    /// The sender wants a token that may be idle.
    Wish,
    /// The owner asks whether anybody at the receiver is inside or waits.
    AskUse,
    /// The answer to the owner.
    Use {
        /// Whether anybody does.
        used: bool,
    },
}

/// What a home asks for at a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Its number among those of this home.
    pub ask: u64,
    /// The session.
    pub session: SessionId,
    /// The index of its home, for an opened one.
    pub home: Index,
    /// The gate.
    pub gate: Name,
    /// The number of its shard.
    pub number: Number,
    /// For how long it was asked for at earlier owners.
    pub age_ms: u64,
    /// The request.
    pub command: OwnedCommand,
    /// Whether it is for a set that is not complete yet.
    pub reserved: bool,
}

/// What an owner tells a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TellWord {
    /// Others wait.
    Wanted,
    /// It has lost its hold: the hold limit is over.
    Expired,
    /// It has lost its hold: a later grant is inside.
    Overruled,
}

/// Something that a session holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The session.
    pub session: SessionId,
    /// The index of its home, for an opened one.
    pub home: Index,
    /// The gate.
    pub gate: Name,
    /// How it is inside.
    pub mode: Mode,
    /// The hold's fence.
    pub fence: Fence,
    /// How much longer it may hold, if the gate limits holds.
    pub left_ms: Option<u64>,
    /// Whether the grant is proven: an entry in a table always is, a client's claim only with its receipt.
    pub proven: bool,
    /// Whether it is part of a set that is not complete yet, so that its client does not know of it.
    pub reserved: bool,
    /// For how long it has been held.
    pub held_ms: u64,
    /// Its reason.
    pub reason: Option<Box<str>>,
}

/// A job that a session has in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InHand {
    /// The session.
    pub session: SessionId,
    /// The index of its home, for an opened one.
    pub home: Index,
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: Fence,
    /// The shard of the job's queue.
    pub shard: Shard,
    /// For how long it has been held.
    pub held_ms: u64,
    /// How far the sender had applied the log.
    pub at: Index,
}
