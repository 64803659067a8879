//! What the processes of a group multicast.

use serde::{Deserialize, Serialize};
use testigo_protocol::slots::{Letter, SlotsMessage, SlotsState};

use super::{Kept, Process};
use crate::name::Name;
use crate::pool::PoolDefinition;

/// The first byte of every message. Whoever does not know it understands nothing of the rest.
const FORM: u8 = 1;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum GroupMessage {
    /// What each member says first in a new membership.
    Hello(Box<Hello>),
    /// Of one pool's member to the others.
    Letter {
        pool: Name,
        created: u64,
        letter: Letter,
    },
    Create {
        view: u64,
        token: u64,
        pool: Name,
        definition: PoolDefinition,
    },
    Delete {
        view: u64,
        token: u64,
        pool: Name,
    },
}

/// What a member is like when a view begins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Of which membership it speaks, in order.
    pub(super) members: Vec<Process>,
    /// The nodes that it was told are members.
    pub(super) nodes: Vec<u32>,
    /// The last view that it was in, or 0.
    pub(super) settled: u64,
    /// How many views it has seen, at least.
    pub(super) views: u64,
    /// The definitions that it has, and above which number it has used none.
    pub(super) kept: Kept,
    /// The pools whose slots it knows the owners of.
    pub(super) begun: Vec<u64>,
}

impl GroupMessage {
    pub(super) fn write(&self) -> Vec<u8> {
        let bytes = vec![FORM];
        postcard::to_extend(self, bytes).expect("all of it can be written")
    }

    /// Nothing if it is not of this form.
    pub(super) fn read(bytes: &[u8]) -> Option<GroupMessage> {
        let (form, rest) = bytes.split_first()?;
        match *form == FORM {
            true => postcard::from_bytes(rest).ok(),
            false => None,
        }
    }
}

/// Whether a member of a pool with so many slots and so many members can take this in.
pub(super) fn is_sound(message: &SlotsMessage, slots: u32, members: usize) -> bool {
    let state_is = |state: &SlotsState| {
        let known = state.table.slots() == slots;
        let nothing = state.table.is_empty() && state.initialised.is_empty();
        let owners = state.table.lines().filter_map(|(_, owned)| owned.owner);
        (known || nothing) && owners.into_iter().all(|owner| owner.index() < members)
    };
    match message {
        SlotsMessage::Request { .. }
        | SlotsMessage::Withdraw
        | SlotsMessage::Pass { .. }
        | SlotsMessage::Tell
        | SlotsMessage::Wish { .. } => true,
        SlotsMessage::Donate { to, slots: all, .. } => {
            to.index() < members && all.iter().all(|slot| *slot < slots)
        }
        SlotsMessage::Status { state, .. } | SlotsMessage::MergeStatus { state } => state_is(state),
        SlotsMessage::Retire { .. } => false,
    }
}
