//! What nodes say to each other: a home to the owners of what its sessions want, and an owner to the homes of those inside
//! and waiting. A frame about a gate names the number of its shard, one about an opened session also the index of its home: so
//! what was said before a title or a move is never taken for something said after it.

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

/// One thing that a node says to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    /// A home asks an owner for something at a gate.
    Ask(Ask),
    /// A home does not want an answer any more. A grant that is on its way it will give back.
    Cancel {
        /// Which ask.
        ask: u64,
        /// About which gate.
        gate: Name,
        /// The number of its shard.
        number: Number,
    },
    /// An owner answers an ask.
    Answer {
        /// Which ask.
        ask: u64,
        /// About which gate.
        gate: Name,
        /// The number of its shard.
        number: Number,
        /// Whose.
        session: SessionId,
        /// The index of its home, for an opened one.
        home: Index,
        /// What.
        answer: Result<Answer, Refusal>,
    },
    /// An owner tells the home of a session inside a gate something.
    Tell {
        /// Whom.
        session: SessionId,
        /// The index of its home, for an opened one.
        home: Index,
        /// About which gate.
        gate: Name,
        /// The number of its shard.
        number: Number,
        /// Held with which fence.
        fence: Fence,
        /// What.
        word: TellWord,
    },
    /// A member says what its sessions hold in all shards that an entry of the log gave to the receiver.
    Report {
        /// The entry.
        entry: Index,
        /// What they hold.
        holds: Vec<Held>,
        /// The jobs that they have in hand.
        takes: Vec<InHand>,
    },
    /// A session has moved here: its new home says what it claims, and asks what it has.
    Claims {
        /// Which session.
        session: SessionId,
        /// The index of its new home.
        home: Index,
        /// What its client says it holds.
        claims: Vec<Held>,
    },
    /// What a session that has moved has at the sender.
    Has {
        /// Which session.
        session: SessionId,
        /// The index of its home.
        home: Index,
        /// What it holds.
        holds: Vec<Held>,
        /// The jobs that it has in hand.
        takes: Vec<InHand>,
        /// How far the sender had applied the log: what it has not got any more, others may have by then.
        at: Index,
    },
    /// A set is whole: what was reserved for it is held like anything else.
    Kept {
        /// Whose.
        session: SessionId,
        /// The index of its home, for an opened one.
        home: Index,
        /// Which gate.
        gate: Name,
        /// The number of its shard.
        number: Number,
        /// With which fence.
        fence: Fence,
    },
    /// A home looks whether some of its sessions wait in a circle.
    Look(Look),
    /// What it sees.
    Seen(Seen),
    /// About an instance of the algorithm by which a gate's ownership travels.
    Branch {
        /// Which gate.
        gate: Name,
        /// The instance: since which number the shard is its owner's.
        since: Number,
        /// The last fence that the sender knows of.
        last: Fence,
        /// What.
        word: BranchWord,
    },
    /// The algorithms of a shard's gates should begin anew: its owner is asked for another number.
    Renew {
        /// Which shard.
        shard: Shard,
        /// Since which number it is its owner's.
        since: Number,
    },
    /// An implicit session is over: everything of it is given back.
    Ended {
        /// Which session.
        session: SessionId,
    },
    /// An owner tells a home that a session of it has a job, before the session is answered.
    Took {
        /// Who has which.
        take: InHand,
        /// The number of the queue's shard.
        number: Number,
    },
    /// An owner tells a home that a session of it has a job no longer.
    Laid {
        /// Which session.
        session: SessionId,
        /// What it had.
        taken: Taken,
    },
    /// A home gives back a job that a session of it has, and does not report it any more.
    Return {
        /// Which session.
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
    /// Whether it is about jobs in hand alone.
    pub(super) fn is_of_job(&self) -> bool {
        use Frame::{Laid, Return, Took};
        matches!(self, Took { .. } | Return { .. } | Laid { .. })
    }
}

/// What is said about an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BranchWord {
    /// Its owner begins it.
    Begin {
        /// Whether everybody may ask at once: nobody was inside.
        go: bool,
    },
    /// Whoever was inside is let in: now everybody may ask.
    Go,
    /// A message of the algorithm.
    Parcel(Parcel),
    /// The sender wants a token that may rest.
    Wish,
    /// The owner asks whether anybody is inside or waits at the receiver.
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
    /// For whom.
    pub session: SessionId,
    /// The index of its home, for an opened one.
    pub home: Index,
    /// At which gate.
    pub gate: Name,
    /// The number of its shard.
    pub number: Number,
    /// For how long it was asked for before, at earlier owners.
    pub age_ms: u64,
    /// What.
    pub command: OwnedCommand,
    /// Whether it is for a set that is not whole yet.
    pub reserved: bool,
}

/// What an owner tells a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TellWord {
    /// Others wait.
    Wanted,
    /// It holds no longer: its hold limit is over.
    Expired,
    /// It holds no longer: a later grant is inside.
    Overruled,
}

/// Something that a session holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Which session.
    pub session: SessionId,
    /// The index of its home, for an opened one.
    pub home: Index,
    /// Which gate.
    pub gate: Name,
    /// How it is inside.
    pub mode: Mode,
    /// With which fence.
    pub fence: Fence,
    /// For how much longer, if the gate limits holds.
    pub left_ms: Option<u64>,
    /// Whether the grant is proven: a table's entry is; a client's claim only with its receipt.
    pub proven: bool,
    /// Whether it is part of a set that is not whole yet, so that its client does not know of it.
    pub reserved: bool,
}

/// A job that a session has in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InHand {
    /// Which session.
    pub session: SessionId,
    /// The index of its home, for an opened one.
    pub home: Index,
    /// Which job.
    pub job: JobId,
    /// Under which attempt.
    pub attempt: Fence,
    /// The shard of the queue in which it lies.
    pub shard: Shard,
    /// For how long.
    pub held_ms: u64,
    /// How far the sender had applied the log.
    pub at: Index,
}
