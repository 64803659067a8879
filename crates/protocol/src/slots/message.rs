//! What members multicast, and what the group delivers to them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Cycle, Labelled, SlotTable, Standing};
use crate::NodeId;
use crate::quorum::NodeSet;

/// A message to the whole group, its sender included.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum SlotsMessage {
    /// REQUEST_SLOTS. Of the slots wanted, users already wait for the urgent ones.
    Request {
        number: u32,
        wanted: u32,
        urgent: u32,
        /// Who is asked first; `None` to ask everybody.
        donors: Option<NodeSet>,
    },
    /// DONATE_SLOTS: an answer to a request, often with no slot; where requests stand, also an answer to what
    /// is left of one.
    Donate {
        to: NodeId,
        /// The request that it answers; `None` if it answers one that stands.
        number: Option<u32>,
        /// The label that the slots have, if it answers a wish for one.
        label: Option<u32>,
        slots: Arc<[u32]>,
    },
    /// The sender no longer wants what its standing wish asks for.
    Withdraw,
    /// The sender's users lack this many slots with a label. If `passed`, some were served since it last said so, and the
    /// rest line up again.
    Wish {
        label: u32,
        wanted: u32,
        passed: bool,
    },
    /// PUT_STATUS: the primary's state, for newcomers.
    Status {
        newcomers: NodeSet,
        state: Arc<SlotsState>,
    },
    /// MERGE_STATUS: what the members of a component own, from its primary; or, without a primary, a
    /// newcomer's word that it owns nothing.
    MergeStatus { state: Arc<SlotsState> },
    /// How many free slots its sender has, and nothing else.
    Tell,
    /// An operator's word that this member will never come back with what it owned.
    Retire { member: NodeId },
    /// The sender has had its turn among the members: its other users, who lack this many slots, line up again.
    Pass { wanted: u32 },
}

/// A message with the view in which it was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Letter {
    pub view: u64,
    /// How many free slots its sender has, if requests name their donors; otherwise 0.
    pub free: u32,
    pub message: SlotsMessage,
}

/// All that the members of a component have in common.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SlotsState {
    pub table: SlotTable,
    /// The members that share this state, including newcomers that do not know it yet.
    pub component: NodeSet,
    /// Those of them that know it.
    pub initialised: NodeSet,
    /// The members that are out of reach with what they own.
    pub absent: NodeSet,
    pub primary: Option<NodeId>,
    /// Newcomers that have not been sent a status yet, in the order in which they came.
    pub pending: Vec<NodeId>,
    pub cycles: Vec<Cycle>,
    pub standing: Vec<Standing>,
    /// Wishes for slots with a label, the oldest first.
    pub labelled: Vec<Labelled>,
    /// Every member that may own a slot somewhere.
    pub provisioned: NodeSet,
    /// Slots that two components claimed, sorted: frozen for good.
    pub disputed: Vec<u32>,
}

/// Who is connected, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Group {
    /// The same at all members of a view, and different in every other view.
    pub view: u64,
    pub members: NodeSet,
}

/// Why the view changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Change {
    /// A process connected, and knows nothing.
    Joined(NodeId),
    /// It left, or its process ended while its machine went on: nothing uses its slots any more.
    Departed(NodeId),
    /// Members are out of reach; their machines may or may not have stopped.
    Parted,
    /// Members are in reach that were not.
    Merged,
    /// Only with a log: a member is in reach again, with what it owned.
    Returned(NodeId),
    /// Only with a log: a new process of the member owns what the previous one owned.
    Restarted(NodeId),
    /// Only with a log: it was restored from a copy, so numbers begin at this one.
    Raised(u32),
}

/// What the group communication system delivers, in one order to all members of a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Delivery {
    View { group: Group, change: Change },
    Letter { from: NodeId, letter: Letter },
}
