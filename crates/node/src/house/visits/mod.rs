//! Commands that other nodes carry out. A command whose route leads away is a *call*: it travels to its owner together with
//! who gives it, and a *visit* carries it out there, a client without a socket, so that the code of commands is the same
//! everywhere. The reply travels back as it was encoded. A node also calls itself if a command has several owners.
//!
//! A call that was certainly not carried out, or that changes nothing, is routed again. One that may have changed something
//! at a node that was lost, or that does not answer in time, ends as UNKNOWN. A look at the state of all members does not
//! wait long for anybody: what has come is shown, and missing members are named.

mod calls;
mod flows;
mod merge;
mod merge_rows;
mod plan;
mod reads;
mod states;
mod visit;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use testigo_core::estate::Peer;
use testigo_core::{Index, Number, SessionId, Shard, Taken};

use super::{ClientId, Step};
use crate::commands::{Effect, Merge, Route};
use crate::wire::{KeptCommand, Protocol};

/// How long a command that does not itself wait is tried, in milliseconds.
const CALL_MS_MAX: u64 = 10_000;
/// How long a look at all members waits for those that do not answer, in milliseconds.
const LOOK_MS_MAX: u64 = 1_000;
/// After this long a call for which nobody was in charge is routed again, in milliseconds.
const RETRY_MS: u64 = 20;
/// Cap on visits at one node, including those that wait until they can be carried out; more are refused.
const VISITS_MAX: usize = 100_000;

/// A command for another node.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    /// The sender's number for it.
    pub(crate) call: u64,
    /// The shards that it is about, with the numbers that the sender knows. The receiver must own all of them, and may wait
    /// for all except the first.
    shards: Vec<(Shard, Number)>,
    caller: Caller,
    asks: Asks,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Asks {
    Command(KeptCommand),
    Unit(Vec<Step>),
}

/// Who gives a command, as its home knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Caller {
    /// The name of its user; `None` for a program that embeds this process. All nodes have the same users.
    user: Option<String>,
    resp3: bool,
    session: Option<(SessionId, Index)>,
    /// Flow and process.
    presented: Option<(String, String)>,
    name: String,
    address: String,
}

impl Caller {
    fn protocol(&self) -> Protocol {
        match self.resp3 {
            true => Protocol::Resp3,
            false => Protocol::Resp2,
        }
    }
}

/// The outcome of a call.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Replied {
    /// It was carried out; this is the reply.
    Written(Vec<u8>, Option<Taken>),
    /// It was not carried out: there is another owner.
    Moved,
    /// It was not carried out: it was cancelled, or there is no room.
    Nothing,
}

/// Everything under way.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    next_call: u64,
    /// What connections of this node wait for.
    errands: FxHashMap<ClientId, Errand>,
    /// When errands are given up.
    dues: BTreeSet<(u64, ClientId)>,
    /// Unanswered calls.
    calls: BTreeMap<u64, Sent>,
    /// Errands to be routed again, by when.
    again: BTreeSet<(u64, ClientId)>,
    /// Visits that are carried out here.
    here: FxHashMap<ClientId, Visit>,
    /// Visits that cannot be carried out yet.
    waiting: Vec<Waiting>,
    reads: reads::WaitingReads,
    /// Members with clients that listen to channels.
    listeners: BTreeSet<Peer>,
    /// Members that were told that clients of this node listen.
    told_listening: BTreeSet<Peer>,
}

/// A command of a connection that other nodes carry out.
#[derive(Debug)]
struct Errand {
    line: KeptCommand,
    unit: Option<Vec<Step>>,
    route: Route,
    session: Option<SessionId>,
    /// When it is given up.
    due: u64,
    /// Its unanswered calls.
    calls: BTreeSet<u64>,
    /// The answers, by node.
    replies: BTreeMap<Peer, Vec<u8>>,
    /// How the answers are merged.
    merge: Option<Merge>,
    /// The node that has the requested page.
    page: Option<Peer>,
    /// Not carried out, as far as is known: to be routed again.
    unserved: bool,
}

/// An unanswered call.
#[derive(Debug)]
struct Sent {
    to: Peer,
    /// `None` if nobody waits for it any more.
    client: Option<ClientId>,
    session: Option<SessionId>,
    effect: Effect,
}

/// A visit that is being carried out.
#[derive(Debug)]
struct Visit {
    from: Peer,
    call: u64,
    shards: Vec<(Shard, Number)>,
    taken: Option<Taken>,
}

#[derive(Debug)]
struct Waiting {
    from: Peer,
    call: Call,
    due: u64,
    /// When it is tried again, at the latest.
    retry_at: u64,
    /// When the owners of other shards are asked again.
    want_at: u64,
}

impl Visits {
    /// When something next has to be done.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        let again = self.again.first().map(|(at, _)| *at);
        let errands = self.dues.first().map(|(due, _)| *due);
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|waiting| waiting.due.min(waiting.retry_at));
        [again, errands, waiting.min(), self.reads.due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Connections whose commands other nodes carry out.
    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.errands.keys().copied().chain(self.reads.clients())
    }
}
