//! What a session asks and what it is answered, for everything that the local half decides alone. What must be logged
//! first is a [`Change`](crate::Change) and has no place here, so the node cannot take one for the other.
//!
//! Both travel as bytes ([`encode`](crate::encode), [`decode`](crate::decode)): a command is the same whether it comes from
//! a connection here or from another node.

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
    /// A connection that opened no session begins its implicit one.
    Connect,
    /// The session's connection is gone. An implicit session ends with it; an opened one keeps what it holds and its places
    /// in the queues until it is resumed or runs out.
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
        /// If given, the fence that the caller believes to hold.
        fence: Option<Fence>,
    },
    /// `DOWNGRADE name`: from writer to reader, without leaving.
    Downgrade {
        /// The gate's name.
        gate: &'a str,
    },
    /// Ends a wait of the session, for a gate or a job (`CLIENT UNBLOCK`).
    Cancel {
        /// Which wait.
        ticket: Ticket,
    },
    /// `JOB TAKE`.
    Take(#[serde(borrow)] Take<'a>),
    /// From now on a take waits for these of its queues only, and not at all if there are none.
    Narrow {
        /// Which take.
        ticket: Ticket,
        /// The queues that are left.
        queues: Cow<'a, [QueueId]>,
    },
    /// Whether the session has a job in hand. Whoever has not learns no more than that.
    CheckJob(Taken),
    /// The holder wants its job changed through the log: from now on only the log's answer, or [`Command::Withdraw`], moves it.
    Settle(Taken),
    /// An administrator wants a waiting job changed through the log. Needs no session.
    Reserve {
        /// The job.
        job: JobId,
    },
    /// Nothing came of what a job was settled or reserved for: it is held or waits as before. If its holder is gone
    /// meanwhile, that is a death, which the log is to know of. Needs no session.
    Withdraw {
        /// The job.
        job: JobId,
    },
    /// `JOB BACK`: a job waits again, where it was. Nothing is counted against it.
    GiveBack(Taken),
    /// Everything that the session has in hand waits again, without a death: it leaves in good order.
    GiveBackAll,
    /// The holder failed at its job: that counts as a death, which the log is to know of.
    Fail(Taken),
    /// `ELECT RESIGN`: the leader leads no longer, or the candidate is none.
    Resign {
        /// The election's name, as [`Name::election`] makes it.
        election: &'a str,
    },
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
    /// How long to wait: 0 to try, nothing for as long as the limit allows.
    pub wait_ms: Option<u64>,
    /// What for, shown to others.
    #[serde(borrow)]
    pub reason: Option<&'a str>,
    /// Repeating a request with the same ID in the same session gives the same answer, not a second lock.
    #[serde(borrow)]
    pub id: Option<&'a str>,
    /// The client does not block while it waits.
    pub asynchronous: bool,
}

/// `LOCKALL n (name [SHARED|PERMITS h|ROOM r])… [WAIT ms]`: all or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockAll<'a> {
    /// The gates and how to be inside each.
    #[serde(borrow)]
    pub gates: Cow<'a, [(&'a str, Ask<'a>)]>,
    /// As for [`Lock::wait_ms`].
    pub wait_ms: Option<u64>,
    /// As for [`Lock::reason`].
    #[serde(borrow)]
    pub reason: Option<&'a str>,
    /// As for [`Lock::id`].
    #[serde(borrow)]
    pub id: Option<&'a str>,
    /// As for [`Lock::asynchronous`].
    pub asynchronous: bool,
}

/// `JOB TAKE queue… [NAME n] [WAIT ms]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take<'a> {
    /// From which queues, the preferred one first.
    pub queues: Cow<'a, [QueueId]>,
    /// Only the job of this name.
    #[serde(borrow)]
    pub name: Option<&'a str>,
    /// How long to wait; without it, not at all.
    pub wait_ms: Option<u64>,
}

/// A job in somebody's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Which.
    pub job: JobId,
    /// The number that everything done with it must name.
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
    /// The job is out of its queue, under this attempt.
    Reserved(Fence),
    /// It is done, and there is nothing more to say.
    Done,
}

/// How a request to enter ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Settled {
    /// Inside.
    Entered(Grant),
    /// Inside all gates of the set, in the order of the request.
    EnteredAll(Box<[Grant]>),
    /// A job in hand.
    Taken(Taken),
    /// Not inside, nothing in hand: the wait is over.
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
    /// The wait limit, or a try that did not succeed.
    TimedOut,
    /// The client asked for it.
    Cancelled,
    /// The session ended.
    SessionEnded,
}

/// What a resuming session says it still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim<'a> {
    /// The gate's name.
    pub gate: &'a str,
    /// The fence that it was granted with.
    pub fence: Fence,
    /// How it is inside.
    #[serde(borrow)]
    pub ask: Ask<'a>,
    /// Whether the caller has verified that this very session was granted it. A claim without proof takes nothing from
    /// anybody and gives way to one with proof.
    pub proven: bool,
}

/// The answer to a resumed session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// What became of each claim, in the order of the claims.
    pub claims: Vec<ClaimEnd>,
    /// Everything that the session holds now, claimed or not.
    pub holds: Vec<(Name, Fence)>,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimEnd {
    /// The session is inside.
    Held,
    /// A better claim, or the end of the hold, has overtaken it.
    Lost,
    /// It cannot be true; the sentence says why.
    Refused(String),
}
