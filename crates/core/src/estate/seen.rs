//! What nodes show each other of their books and tables, for the walks that look for cycles of waits.

use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::gate::{Definition, Mode};
use crate::name::Name;
use crate::ownership::{Index, Number};
use crate::session::SessionId;

/// What a home wants to see of another node's books and table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The look's number at this home.
    pub number: u64,
    /// Gates, each with a session that waits there.
    pub gates: Vec<(Name, SessionId)>,
    /// Sessions, each with the hold that an owner says it has.
    pub sessions: Vec<(SessionId, Option<(Name, Fence)>)>,
}

/// The answer to a look. Shards that are not open and sessions that live elsewhere are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The look that this answers.
    pub number: u64,
    /// Gates that the sender owns.
    pub gates: Vec<GateSeen>,
    /// Sessions whose home it is.
    pub sessions: Vec<SessionSeen>,
}

/// A gate, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateSeen {
    /// The gate.
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

/// A session inside a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insider {
    /// The session.
    pub session: SessionId,
    /// The hold's fence.
    pub fence: Fence,
    /// The mode.
    pub mode: Mode,
    /// Whether it leads its room.
    pub leads: bool,
}

/// A session that waits at a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// The session.
    pub session: SessionId,
    /// The number of its home's ask.
    pub ask: u64,
    /// How it wants to be inside.
    pub mode: Mode,
    /// How long it needs of a room's stay.
    pub needs_ms: Option<u64>,
}

/// A session, as its home sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSeen {
    /// The session.
    pub session: SessionId,
    /// The waits that block its client, by ask.
    pub waits: Vec<(u64, Name)>,
    /// The hold that was asked about, if it has it.
    pub holds: Option<(Name, Fence)>,
    /// The log's index when it came to its home.
    pub began: Index,
}
