//! What the local half tells beside its answers: ends of waits, losses, requests to give back, and, if somebody
//! looks, every entry and exit.

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

/// Something that happened, in the order in which it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A waiting request has its answer.
    Settled {
        /// Whose request.
        session: SessionId,
        /// Which request.
        ticket: Ticket,
        /// How it ended.
        settled: Settled,
    },
    /// Others wait for what this session holds. Told once a hold.
    Wanted {
        /// Who holds.
        session: SessionId,
        /// What.
        gate: Name,
        /// With which fence.
        fence: Fence,
    },
    /// A session is no longer inside, without having asked for it.
    Lost {
        /// Who was inside.
        session: SessionId,
        /// Which gate.
        gate: Name,
        /// With which fence.
        fence: Fence,
        /// Why.
        loss: Loss,
    },
    /// An opened session was silent for its whole TTL. The node logs its close; until then it keeps what it holds.
    RunOut {
        /// Which session.
        session: SessionId,
    },
    /// A session is gone and everything of it given back.
    SessionEnded {
        /// Which session.
        session: SessionId,
    },
    /// Every awaited session has resumed, closed or run out: all gates grant again.
    Recovered,
    /// What a session may hold, for the next start. The node keeps it before it tells the grants that come behind this one
    /// or are answered together with it.
    Touched(Touch),
    /// Half of the fences under a shard's number are used: its owner hands it to itself
    /// ([`Change::Titles`](crate::Change::Titles)).
    FencesLow {
        /// Which shard.
        shard: Shard,
    },
    /// Workers of these jobs, under these attempts, died or failed: log a [`JobChange::Lose`](crate::JobChange::Lose). Until
    /// then the jobs are in nobody's hands.
    Died {
        /// The jobs and their attempts.
        jobs: Vec<(JobId, Fence)>,
    },
    /// A candidate leads now, or a leader has changed what it says of itself.
    Elected {
        /// Who.
        session: SessionId,
        /// Which election.
        election: Name,
        /// Its term.
        term: Fence,
        /// What it says of itself.
        candidacy: Candidacy,
        /// Whether it led before, in the same term.
        again: bool,
    },
    /// A leader leads no longer. If a candidate is elected in the same step, that comes next.
    Vacant {
        /// Who led.
        session: SessionId,
        /// Which election.
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
        /// Which request.
        ticket: Ticket,
        /// Which gate; a set tells this once a gate.
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
        /// Who.
        session: SessionId,
        /// Which gate.
        gate: Name,
        /// How.
        mode: Mode,
        /// Its class.
        class: u32,
        /// With which fence.
        fence: Fence,
        /// Whether it came in its turn.
        turn: Turn,
        /// The request, if it had waited.
        ticket: Option<Ticket>,
        /// How many gates the request entered together.
        together: u32,
    },
    /// Observed only: a session is outside again, or inside no longer as a writer (then `Entered` follows).
    Left {
        /// Who.
        session: SessionId,
        /// Which gate.
        gate: Name,
        /// With which fence it was inside.
        fence: Fence,
    },
    /// Observed only: a wait is over without having entered.
    Gone {
        /// Who waited.
        session: SessionId,
        /// Which request.
        ticket: Ticket,
    },
}

/// Why a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The hold limit or the room's stay is over.
    Lease,
    /// A proven claim conflicts with it: a later grant's, or the hold itself was claimed without proof.
    Claim,
}

/// Why a leader leads no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vacancy {
    /// It said so.
    Resigned,
    /// Its session is over.
    Ended,
    /// A later leader's claim overrules it, after a crash.
    Lost,
}

/// By what right a session entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// By its place in the queue. Only this overtakes.
    Order,
    /// Through the open door of the room that is inside.
    Door,
    /// Past waiters that cannot enter before this very session has given something back.
    Dependents,
    /// Because the algorithm says so by which the gate's ownership travels.
    Algorithm,
    /// It was inside already, as a writer that is a reader now.
    Kept,
    /// It says that it was inside before the crash.
    Claimed {
        /// Whether it proved that.
        proven: bool,
    },
}
