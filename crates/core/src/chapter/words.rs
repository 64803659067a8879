//! What the chapters of one group say to each other.

use serde::{Deserialize, Serialize};

use crate::estate::Peer;
use crate::job::Body;
use crate::name::Name;
use crate::ownership::Index;
use crate::replicated::GroupMessage;
use crate::session::SessionId;

/// From the chapter of one node to that of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChapterLetter {
    /// Which group.
    pub group: Name,
    /// Of which season it is.
    pub season: Index,
    /// What it says.
    pub word: ChapterWord,
}

/// What a chapter says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChapterWord {
    /// The sender has ended the season before. The first word of every season.
    Report(Report),
    /// What the sender's next multicast carries.
    Content(Content),
    /// A packet of the algorithm.
    Packet(Vec<u8>),
    /// The sender has every message up to this number.
    Has(u64),
}

/// What a chapter knows at the end of a season.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The number of the last message that it has; nothing if it remembers none.
    pub(super) last: Option<u64>,
    /// The number of the last message that it has told its clients.
    pub(super) told: u64,
    /// The messages that the receiver may lack, up to the last one.
    pub(super) messages: Vec<Placed>,
}

/// What somebody sent, before it has a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Its number among all that its node has been given to send.
    pub(super) sequence: u64,
    pub(super) from: SessionId,
    pub(super) body: Body,
}

/// A message in its place, and which send of which node it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Placed {
    pub(super) message: GroupMessage,
    pub(super) node: Peer,
    pub(super) sequence: u64,
}
