//! What the processes of a group multicast.

use serde::{Deserialize, Serialize};
use testigo_protocol::slots::{Letter, SlotsMessage, SlotsState};

use super::{Kept, Process};
use crate::name::Name;
use crate::pool::PoolDefinition;

/// The first byte of every message: the format of the rest.
const FORM: u8 = 1;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum GroupMessage {
    /// What each member says first in a new membership.
    Hello(Box<Hello>),
    /// From a pool's member to the others.
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

/// What a member knows when a view begins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The membership that it speaks of, sorted.
    pub(super) members: Vec<Process>,
    /// The nodes that it was configured with as members.
    pub(super) nodes: Vec<u32>,
    /// The last view that it was in, or 0.
    pub(super) settled: u64,
    /// How many views it has seen, at least.
    pub(super) views: u64,
    /// Its definitions and its ceiling.
    pub(super) kept: Kept,
    /// The pools whose slot owners it knows.
    pub(super) begun: Vec<u64>,
}

impl GroupMessage {
    pub(super) fn write(&self) -> Vec<u8> {
        let bytes = vec![FORM];
        postcard::to_extend(self, bytes).expect("all of it can be written")
    }

    /// `None` if the format is another.
    pub(super) fn read(bytes: &[u8]) -> Option<GroupMessage> {
        let (form, rest) = bytes.split_first()?;
        match *form == FORM {
            true => postcard::from_bytes(rest).ok(),
            false => None,
        }
    }
}

/// Whether a member of a pool with this many slots and members can take this in.
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
