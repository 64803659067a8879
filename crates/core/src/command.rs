//! What a session asks and how it is answered, for everything that the local half decides alone. What must be logged first is
//! a [`Change`](crate::Change), so the node cannot mistake one for the other.
//!
//! Both travel as bytes ([`encode`](crate::encode), [`decode`](crate::decode)): a command is the same whether it comes from a
//! connection here or from another node.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::gate::Ask;
use crate::job::{JobId, QueueId};
use crate::name::Name;
use crate::wait::Ticket;

/// A command of a session to the local half. It borrows its texts, so that an uncontended lock allocates nothing;
/// [`OwnedCommand`](crate::OwnedCommand) is what is kept or sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command<'a> {
    /// A connection that has opened no session begins its implicit one.
    Connect,
    /// The session's connection is gone. An implicit session ends with it; an opened one keeps its holds and its places in
    /// the queues until it is resumed or runs out.
    Disconnect,
    /// `SESSION RESUME`: a client is back on another connection.
    Resume {
        /// What it says it holds.
        #[serde(borrow)]
        claims: Cow<'a, [Claim<'a>]>,
    },
    /// Nothing but a sign of life.
    Renew,
    /// `LOCK`.
    Lock(#[serde(borrow)] Lock<'a>),
    /// `LOCKALL`.
    LockAll(#[serde(borrow)] LockAll<'a>),
    /// `UNLOCK name [fence]`.
    Unlock {
        /// The gate's name.
        gate: &'a str,
        /// The fence that the caller believes to hold, if given.
        fence: Option<Fence>,
    },
    /// `DOWNGRADE name`: from writer to reader, without leaving.
    Downgrade {
        /// The gate's name.
        gate: &'a str,
    },
    /// Ends a wait of the session, for a gate or a job (`CLIENT UNBLOCK`).
    Cancel {
        /// The request's ticket.
        ticket: Ticket,
    },
    /// `JOB TAKE`.
    Take(#[serde(borrow)] Take<'a>),
    /// From now on a take waits only for these of its queues; without any it ends.
    Narrow {
        /// Which take.
        ticket: Ticket,
        /// The remaining queues.
        queues: Cow<'a, [QueueId]>,
    },
    /// Whether the session has a job in hand. Another session learns nothing more.
    CheckJob(Taken),
    /// The holder wants to change its job through the log: from now on only the log's answer, or [`Command::Withdraw`], moves
    /// it.
    Settle(Taken),
    /// An administrator wants to change a waiting job through the log. Needs no session.
    Reserve {
        /// The job.
        job: JobId,
    },
    /// A change for which a job was settling or reserved did not happen: the job is held or waits as before. If its holder is
    /// gone meanwhile, that is a death, which must be logged. Needs no session.
    Withdraw {
        /// The job.
        job: JobId,
    },
    /// `JOB BACK`: a job waits again in its old place. No death is counted.
    GiveBack(Taken),
    /// All jobs that the session has in hand wait again, without a death: it leaves cleanly.
    GiveBackAll,
    /// The holder failed at its job: that counts as a death, which must be logged.
    Fail(Taken),
    /// `ELECT RESIGN`: ends a leadership or a candidacy.
    Resign {
        /// The election's name, as [`Name::election`] makes it.
        election: &'a str,
    },
}

impl Command<'_> {
    /// Why a request to enter says it is made.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Command::Lock(lock) => lock.reason,
            Command::LockAll(set) => set.reason,
            _ => None,
        }
    }
}

/// `LOCK name [SHARED] [PERMITS h] [ROOM r [NEEDS ms]] [CLASS c] [WAIT ms] [REASON text] [ID token]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock<'a> {
    /// The gate's name.
    pub gate: &'a str,
    /// How to be inside.
    #[serde(borrow)]
    pub ask: Ask<'a>,
    /// Rooms: how long the newcomer will stay; it enters only a room with that much time left.
    pub needs_ms: Option<u64>,
    /// The priority class; 0 is most urgent.
    pub class: Option<u32>,
    /// How long to wait: 0 to try once, `None` for as long as the limit allows.
    pub wait_ms: Option<u64>,
    /// Why, shown to others.
    #[serde(borrow)]
    pub reason: Option<&'a str>,
    /// A request repeated with the same ID in the same session gets the same answer, not a second lock.
    #[serde(borrow)]
    pub id: Option<&'a str>,
    /// Whether the client does something else while it waits.
    pub asynchronous: bool,
}

/// `LOCKALL n (name [SHARED|PERMITS h|ROOM r])… [WAIT ms]`: all or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockAll<'a> {
    /// The gates and how to be inside each.
    #[serde(borrow)]
    pub gates: Cow<'a, [(&'a str, Ask<'a>)]>,
    /// See [`Lock::wait_ms`].
    pub wait_ms: Option<u64>,
    /// See [`Lock::reason`].
    #[serde(borrow)]
    pub reason: Option<&'a str>,
    /// See [`Lock::id`].
    #[serde(borrow)]
    pub id: Option<&'a str>,
    /// See [`Lock::asynchronous`].
    pub asynchronous: bool,
}

/// `JOB TAKE queue… [NAME n] [WAIT ms]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take<'a> {
    /// The queues, the preferred one first.
    pub queues: Cow<'a, [QueueId]>,
    /// If given, only the job with this name is taken.
    #[serde(borrow)]
    pub name: Option<&'a str>,
    /// How long to wait; `None` for not at all.
    pub wait_ms: Option<u64>,
}

/// A job that a session holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The job.
    pub job: JobId,
    /// The number that every change of the job must name.
    pub attempt: Fence,
}

/// The answer to a command that was not refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The request is settled at once.
    Settled(Settled),
    /// The request waits; an [`Event::Settled`](crate::Event::Settled) with this ticket will end it.
    Waiting(Ticket),
    /// The writer is a reader now, with a new fence that joining readers share.
    Downgraded(Fence),
    /// The session is resumed.
    Resumed(Resumed),
    /// The job is on its way through the log.
    Settling {
        /// How long it was held.
        held_ms: u64,
    },
    /// The job is out of its line, under this attempt.
    Reserved(Fence),
    /// Done, with nothing more to say.
    Done,
}

/// How a request that may wait ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Settled {
    /// The session is inside.
    Entered(Grant),
    /// The session is inside all gates of the set, in the order of the request.
    EnteredAll(Box<[Grant]>),
    /// The session has a job in hand.
    Taken(Taken),
    /// The wait ended with nothing.
    Ended(WaitEnd),
}

/// A grant: the fence, and when the hold ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The fencing number.
    pub fence: Fence,
    /// How long the hold may last, counted from the grant.
    pub lease_ms: Option<u64>,
}

/// Why a wait ended without entering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitEnd {
    /// The wait limit was reached, or a try did not succeed.
    TimedOut,
    /// The client cancelled it.
    Cancelled,
    /// The session ended.
    SessionEnded,
}

/// A hold that a resuming session says it still has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim<'a> {
    /// The gate's name.
    pub gate: &'a str,
    /// The fence of the grant.
    pub fence: Fence,
    /// How it is inside.
    #[serde(borrow)]
    pub ask: Ask<'a>,
    /// Whether the caller has verified that this session was granted it. A claim without proof takes nothing from anybody and
    /// gives way to one with proof.
    pub proven: bool,
    /// When it was granted, if that is proven, by the clock of the node that is asked.
    pub since: Option<u64>,
    /// When the hold ends by itself at the latest, if that is proven. From then on the claim is lost.
    pub until: Option<u64>,
    /// The reason that the session gave.
    pub reason: Option<&'a str>,
}

/// The answer to a resumed session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// The outcome of each claim, in the order of the claims.
    pub claims: Vec<ClaimEnd>,
    /// Everything that the session holds now, claimed or not.
    pub holds: Vec<(Name, Fence)>,
}

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimEnd {
    /// The session is inside.
    Held,
    /// A better claim has overruled it, or the hold has ended.
    Lost,
    /// It cannot be true; the sentence says why.
    Refused(String),
}
