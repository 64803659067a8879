//! What members multicast, and what their group delivers to them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Cycle, Labelled, SlotTable, Standing};
use crate::NodeId;
use crate::quorum::NodeSet;

/// A message to the whole group, its sender included.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum SlotsMessage {
    /// REQUEST_SLOTS. Users wait for the urgent part of what is wanted.
    Request {
        number: u32,
        wanted: u32,
        urgent: u32,
        /// Who is asked: everybody, or first of all only these.
        donors: Option<NodeSet>,
    },
    /// DONATE_SLOTS: an answer to a request, often of no slot; where requests stand, also an answer to what
    /// was left of one.
    Donate {
        to: NodeId,
        /// The request that it answers; none where it answers one that stands.
        number: Option<u32>,
        /// The label that they have, where it answers a wish for one.
        label: Option<u32>,
        slots: Arc<[u32]>,
    },
    /// What the sender's request left to be wished for is not wanted any more.
    Withdraw,
    /// Users of the sender lack so many slots with a label. Some were served since it last said so: the others line up
    /// again.
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
    /// MERGE_STATUS: what the members of a component own, by its primary; or, without a primary, the word
    /// of a newcomer that it owns nothing.
    MergeStatus { state: Arc<SlotsState> },
    /// How many free slots its sender has, and nothing else.
    Tell,
    /// An operator's word that this member will never come back with what it owned.
    Retire { member: NodeId },
    /// A user of the sender was served out of its turn among all members: the others, who lack so many slots, line up
    /// again.
    Pass { wanted: u32 },
}

/// A message with the view that it was sent in.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Letter {
    pub view: u64,
    /// How many free slots its sender has, where requests name their donors; else 0.
    pub free: u32,
    pub message: SlotsMessage,
}

/// All that the members of a component have in common.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SlotsState {
    pub table: SlotTable,
    /// Those who share this state; newcomers are among them before they know it.
    pub component: NodeSet,
    /// Those of them who know it.
    pub initialised: NodeSet,
    /// Those who are out of reach with what they own.
    pub absent: NodeSet,
    pub primary: Option<NodeId>,
    /// Newcomers that have not been sent a status, in the order in which they came.
    pub pending: Vec<NodeId>,
    pub cycles: Vec<Cycle>,
    pub standing: Vec<Standing>,
    /// Wishes for slots with a label, the oldest first.
    pub labelled: Vec<Labelled>,
    /// Everybody who may own a slot somewhere.
    pub provisioned: NodeSet,
    /// Slots that two components claimed, in order: frozen for good.
    pub disputed: Vec<u32>,
}

/// Who is connected, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Group {
    /// The same at all members of a view, and of no other view.
    pub view: u64,
    pub members: NodeSet,
}

/// Why a view is another one than before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Change {
    /// A process connected, and knows nothing.
    Joined(NodeId),
    /// It left, or its process ended while its machine went on: nothing uses its slots any more.
    Departed(NodeId),
    /// Members are out of reach; their machines may have stopped, or not.
    Parted,
    /// Members are in reach that were not.
    Merged,
    /// Where a log keeps the state: a member is in reach again, with what it owned.
    Returned(NodeId),
    /// Where a log keeps the state: a member's process is another one, which owns what the one before owned.
    Restarted(NodeId),
    /// Where a log keeps the state: it was restored from a copy, so numbers begin at this one.
    Raised(u32),
}

/// What the group communication system delivers, in one order to all members of a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Delivery {
    View { group: Group, change: Change },
    Letter { from: NodeId, letter: Letter },
}
