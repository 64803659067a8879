//! What the local half reports in addition to its answers: ends of waits, losses, requests to give back, and, if observed,
//! every entry and exit.

use serde::{Deserialize, Serialize};

use crate::command::Settled;
use crate::fence::Fence;
use crate::gate::{Candidacy, Mode};
use crate::job::JobId;
use crate::local::Touch;
use crate::name::Name;
use crate::ownership::Shard;
use crate::session::SessionId;
use crate::wait::Ticket;

/// Something that happened. Events are in the order in which they happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A waiting request has been answered.
    Settled {
        /// Whose request.
        session: SessionId,
        /// The request's ticket.
        ticket: Ticket,
        /// How it ended.
        settled: Settled,
    },
    /// Others wait for what this session holds. Sent once per hold.
    Wanted {
        /// Who holds.
        session: SessionId,
        /// The gate.
        gate: Name,
        /// The hold's fence.
        fence: Fence,
    },
    /// A session is no longer inside, and has not asked for that.
    Lost {
        /// Who was inside.
        session: SessionId,
        /// The gate.
        gate: Name,
        /// The hold's fence.
        fence: Fence,
        /// Why.
        loss: Loss,
    },
    /// An opened session was silent for its whole TTL. It keeps what it holds until the node has logged its close.
    RunOut {
        /// The session.
        session: SessionId,
    },
    /// A session has ended, and everything it had is given back.
    SessionEnded {
        /// The session.
        session: SessionId,
    },
    /// Every awaited session has resumed, closed or run out: all gates grant again.
    Recovered,
    /// What a session may hold, for the next start. The node stores it before it tells the grants that follow this event or
    /// are answered together with it.
    Touched(Touch),
    /// Half of the fences under a shard's number are used: its owner should hand it to itself
    /// ([`Change::Titles`](crate::Change::Titles)).
    FencesLow {
        /// The shard.
        shard: Shard,
    },
    /// The workers of these jobs died or failed: log a [`JobChange::Lose`](crate::JobChange::Lose). Until then nobody holds
    /// the jobs.
    Died {
        /// The jobs and their attempts.
        jobs: Vec<(JobId, Fence)>,
    },
    /// A candidate now leads, or a leader has changed what it says of itself.
    Elected {
        /// The session.
        session: SessionId,
        /// The election.
        election: Name,
        /// Its term.
        term: Fence,
        /// What it says of itself.
        candidacy: Candidacy,
        /// Whether it already led in this term.
        again: bool,
    },
    /// A leader no longer leads. If a candidate is elected in the same step, that event comes next.
    Vacant {
        /// Who led.
        session: SessionId,
        /// The election.
        election: Name,
        /// Its term.
        term: Fence,
        /// What it said of itself.
        candidacy: Candidacy,
        /// Since when it led, as far as this node knows.
        since: u64,
        /// Why.
        why: Vacancy,
    },
    /// Observed only: a request began to wait.
    Waits {
        /// Who waits.
        session: SessionId,
        /// The request's ticket.
        ticket: Ticket,
        /// Which gate; a set sends one event per gate.
        gate: Name,
        /// How it wants to be inside.
        mode: Mode,
        /// Its class.
        class: u32,
        /// Whether it enters several gates together.
        set: bool,
    },
    /// Observed only: a session is inside.
    Entered {
        /// The session.
        session: SessionId,
        /// The gate.
        gate: Name,
        /// The mode.
        mode: Mode,
        /// Its class.
        class: u32,
        /// The hold's fence.
        fence: Fence,
        /// How it came in.
        turn: Turn,
        /// The request, if it had waited.
        ticket: Option<Ticket>,
        /// How many gates the request entered together.
        together: u32,
    },
    /// Observed only: a session is outside again, or no longer inside as a writer (then `Entered` follows).
    Left {
        /// The session.
        session: SessionId,
        /// The gate.
        gate: Name,
        /// With which fence it was inside.
        fence: Fence,
    },
    /// Observed only: a wait ended without entering.
    Gone {
        /// Who waited.
        session: SessionId,
        /// The request's ticket.
        ticket: Ticket,
    },
}

/// Why a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The hold limit or the room's stay was over.
    Lease,
    /// A proven claim conflicts with it: it is a later grant's, or the hold itself was claimed without proof.
    Claim,
}

/// Why a leader no longer leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vacancy {
    /// It resigned.
    Resigned,
    /// Its session has ended.
    Ended,
    /// After a crash, a later leader's claim overruled it.
    Lost,
}

/// What entitled a session to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// By its place in the queue. Only this overtakes.
    Order,
    /// Through the open door of the room that is inside.
    Door,
    /// Past waiters that cannot enter before this very session gives something back.
    Dependents,
    /// Because of the algorithm that moves the gate's ownership.
    Algorithm,
    /// It was already inside, as a writer that has become a reader.
    Kept,
    /// It says that it was inside before the crash.
    Claimed {
        /// Whether it proved that.
        proven: bool,
    },
}
