//! What a client asks and what it is answered, for everything that the local half decides alone. What must be logged
//! first is a [`Change`](crate::Change) and has no place here, so the node cannot take one for the other.

use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::gate::Ask;
use crate::local::Taken;
use crate::name::Name;
use crate::wait::Ticket;

/// A command of a session to the local half. It borrows its texts, so that an uncontended lock allocates nothing.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// `LOCK`.
    Lock(Lock<'a>),
    /// `LOCKALL`.
    LockAll(LockAll<'a>),
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
    /// Ends a wait of the session (`CLIENT UNBLOCK`).
    Cancel {
        /// Which wait.
        ticket: Ticket,
    },
    /// Nothing but a sign of life.
    Renew,
}

/// `LOCK name [SHARED] [PERMITS h] [ROOM r [NEEDS ms]] [CLASS c] [WAIT ms] [REASON text] [ID token]`.
#[derive(Clone, Debug, Default)]
pub struct Lock<'a> {
    /// The gate's name.
    pub gate: &'a str,
    /// How to be inside.
    pub ask: Ask<'a>,
    /// Rooms: how long the newcomer will stay; it enters only a room with that much time left.
    pub needs_ms: Option<u64>,
    /// The priority class; 0 is most urgent.
    pub class: Option<u32>,
    /// How long to wait: 0 to try, nothing for as long as the limit allows.
    pub wait_ms: Option<u64>,
    /// What for, shown to others.
    pub reason: Option<&'a str>,
    /// Repeating a request with the same ID in the same session gives the same answer, not a second lock.
    pub id: Option<&'a str>,
    /// The client does not block while it waits.
    pub asynchronous: bool,
}

/// `LOCKALL n (name [SHARED|PERMITS h|ROOM r])… [WAIT ms]`: all or none.
#[derive(Clone, Debug, Default)]
pub struct LockAll<'a> {
    /// The gates and how to be inside each.
    pub gates: &'a [(&'a str, Ask<'a>)],
    /// As for [`Lock::wait_ms`].
    pub wait_ms: Option<u64>,
    /// As for [`Lock::reason`].
    pub reason: Option<&'a str>,
    /// As for [`Lock::id`].
    pub id: Option<&'a str>,
    /// As for [`Lock::asynchronous`].
    pub asynchronous: bool,
}

/// The answer to a command that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request is settled at once.
    Settled(Settled),
    /// The request waits; an [`Event::Settled`](crate::Event::Settled) with this ticket will end it.
    Waiting(Ticket),
    /// The gate was given back.
    Released,
    /// The writer is a reader now, with a new fence that joining readers share.
    Downgraded(Fence),
    /// The wait was cancelled; its event says so too.
    Cancelled,
    /// Heard.
    Renewed,
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
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The gate's name.
    pub gate: &'a str,
    /// The fence that it was granted with.
    pub fence: Fence,
    /// How it is inside.
    pub ask: Ask<'a>,
    /// Whether the caller has verified that this very session was granted it. A claim without proof takes nothing from
    /// anybody and gives way to one with proof.
    pub proven: bool,
}

/// The answer to a resumed session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// What became of each claim, in the order of the claims.
    pub claims: Vec<ClaimEnd>,
    /// Everything that the session holds now, claimed or not.
    pub holds: Vec<(Name, Fence)>,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimEnd {
    /// The session is inside.
    Held,
    /// A better claim, or the end of the hold, has overtaken it.
    Lost,
    /// It cannot be true; the sentence says why.
    Refused(String),
}
