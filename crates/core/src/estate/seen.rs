//! What nodes show each other of their books and tables, for the walks that look for circles of waits.

use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::gate::{Definition, Mode};
use crate::name::Name;
use crate::ownership::{Index, Number};
use crate::session::SessionId;

/// What a home wants to see of another node's books and table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Its number among those of this home.
    pub number: u64,
    /// Gates, each with a session that waits there.
    pub gates: Vec<(Name, SessionId)>,
    /// Sessions, each with what an owner says that it holds.
    pub sessions: Vec<(SessionId, Option<(Name, Fence)>)>,
}

/// What there is to see; nothing of shards that are not open and of sessions that live elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Which look this answers.
    pub number: u64,
    /// Gates that the sender owns.
    pub gates: Vec<GateSeen>,
    /// Sessions whose home it is.
    pub sessions: Vec<SessionSeen>,
}

/// A gate, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateSeen {
    /// Which.
    pub gate: Name,
    /// The number of its shard.
    pub number: Number,
    /// Who may be inside together.
    pub definition: Definition,
    /// The room inside, and what is left of its stay.
    pub room: Option<(Name, Option<u64>)>,
    /// Who is inside.
    pub inside: Vec<Insider>,
    /// Who waits, the next one first.
    pub queue: Vec<Queued>,
}

/// Somebody inside a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insider {
    /// Who.
    pub session: SessionId,
    /// With which fence.
    pub fence: Fence,
    /// How.
    pub mode: Mode,
    /// Whether it leads its room.
    pub leads: bool,
}

/// Somebody who waits at a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// Who.
    pub session: SessionId,
    /// With which ask of its home.
    pub ask: u64,
    /// How it wants to be inside.
    pub mode: Mode,
    /// What it needs of a room's stay.
    pub needs_ms: Option<u64>,
}

/// A session, as its home sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSeen {
    /// Which.
    pub session: SessionId,
    /// What its client is blocked for, by ask.
    pub waits: Vec<(u64, Name)>,
    /// What it was said to hold, if it does.
    pub holds: Option<(Name, Fence)>,
    /// When it came to its home: the log's index then.
    pub began: Index,
}
