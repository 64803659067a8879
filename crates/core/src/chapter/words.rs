//! What the chapters of one group say to each other.

use serde::{Deserialize, Serialize};

use crate::estate::Peer;
use crate::job::Body;
use crate::name::Name;
use crate::ownership::Index;
use crate::replicated::GroupMessage;
use crate::session::SessionId;

/// From one node's chapter to another's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChapterLetter {
    /// The group.
    pub group: Name,
    /// Its season.
    pub season: Index,
    /// What it says.
    pub word: ChapterWord,
}

/// The contents of a letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChapterWord {
    /// The sender has ended the previous season. The first word of every season.
    Report(Report),
    /// What the sender's next multicast carries.
    Content(Content),
    /// A packet of the algorithm.
    Packet(Vec<u8>),
    /// The sender has every message up to this number.
    Has(u64),
}

/// What a chapter has at the end of a season.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The number of the last message that it has; `None` if it remembers none.
    pub(super) last: Option<u64>,
    /// The number of the last message that it has told its clients.
    pub(super) told: u64,
    /// The messages that the receiver may lack, up to the last one.
    pub(super) messages: Vec<Placed>,
}

/// A message before it has a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Its number among all messages that its node was given to send.
    pub(super) sequence: u64,
    pub(super) from: SessionId,
    pub(super) body: Body,
}

/// A message in its place, and the node and send that it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Placed {
    pub(super) message: GroupMessage,
    pub(super) node: Peer,
    pub(super) sequence: u64,
}
