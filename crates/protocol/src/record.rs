//! What a node records of the members that it hosts, so that a real run can be replayed in the laboratory. A
//! [`Recording`] takes every step of one instance in a few bytes; [`Records`] keeps the last instances of each gate;
//! a [`Record`] is what leaves the node. Everything is bounded: a recording that comes to its bound is cut, and says so.

mod bytes;
mod kept;
mod recording;

pub use kept::Records;
pub use recording::{RecordAllowance, Recording};

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{NodeId, Setup, SetupError, Timer};

use bytes::Bytes;

/// The most bytes that one node records of one instance: at 15 bytes per step, 280,000 steps.
pub const RECORD_BYTES_MAX: usize = 4 << 20;
/// A recording is full soon when this much of its bound is left. A new instance, begun then, is recorded from its start.
pub const RECORD_BYTES_SPARE: usize = RECORD_BYTES_MAX / 4;
/// The most bytes that one node keeps of the instances of a gate that are over.
pub const GATE_RECORD_BYTES_MAX: usize = 8 << 20;
/// How many instances of a gate are kept that are over.
pub const RECORDS_PER_GATE_MAX: usize = 4;
/// The most bytes that one node spends on records, of all gates together.
pub const NODE_RECORD_BYTES_MAX: usize = 64 << 20;
/// The encoding of [`Record`]; rises when it changes.
pub const RECORD_FORMAT: u8 = 1;

/// Which run a record belongs to, the same at every node that takes part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordHead {
    pub gate: String,
    pub algorithm: String,
    /// How many nodes have users: [`Setup::users`].
    pub users: u32,
    /// As [`Setup::delay_bound`].
    pub delay_bound: u64,
    /// As [`Setup::chosen`] says it.
    pub chosen: Vec<(String, String)>,
    /// Two numbers that name it: the shard, and the number of its title.
    pub instance: (u64, u64),
    /// The name of every member, those with users first.
    pub members: Vec<String>,
}

impl RecordHead {
    /// The head of an instance of this algorithm with this setup.
    pub fn new(
        gate: &str,
        algorithm: &str,
        setup: &Setup,
        instance: (u64, u64),
        members: Vec<String>,
    ) -> RecordHead {
        let chosen = setup.chosen().into_iter();
        RecordHead {
            gate: gate.into(),
            algorithm: algorithm.into(),
            users: setup.users as u32,
            delay_bound: setup.delay_bound,
            chosen: chosen.map(|(word, value)| (word.into(), value)).collect(),
            instance,
            members,
        }
    }

    /// The setup that the instance has.
    pub fn setup(&self) -> Result<Setup, SetupError> {
        let mut setup = Setup::new(self.users as usize);
        setup.delay_bound = self.delay_bound;
        for (word, value) in &self.chosen {
            setup.choose(word, value)?;
        }
        Ok(setup)
    }
}

/// What one node has recorded of one instance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    format: u8,
    pub head: RecordHead,
    /// The members that this node hosts.
    pub hosted: Vec<NodeId>,
    /// When it began, in milliseconds since 1970.
    pub began: u64,
    /// Whether the instance is over at this node.
    pub over: bool,
    /// How many steps at the end are missing, because there was no room for them.
    pub cut: u64,
    labels: Vec<String>,
    steps: Vec<u8>,
}

/// One step of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedStep {
    /// In milliseconds since 1970, by the clock of the node; it never runs backward within a record.
    pub at: u64,
    pub member: NodeId,
    pub input: RecordedInput,
    /// To whom, and the message without the head of its packet.
    pub sends: Vec<(NodeId, Vec<u8>)>,
    pub tells: Vec<String>,
    /// The timers that it set.
    pub timers: Vec<Timer>,
}

/// What a member was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordedInput {
    Start,
    Ask(String),
    /// The next packet of this member: links keep the order. The message is that of the packet, without its head.
    Packet {
        from: NodeId,
        message: Vec<u8>,
    },
    Fire(Timer),
}

/// A record that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordError(pub String);

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for RecordError {}

impl Record {
    /// The record as bytes, for a wire or a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("a record of plain data can be encoded")
    }

    /// Reads what [`to_bytes`](Record::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Record, RecordError> {
        match (bytes.first(), postcard::take_from_bytes::<Record>(bytes)) {
            (Some(&RECORD_FORMAT), Ok((record, []))) => Ok(record),
            (Some(&RECORD_FORMAT), _) => Err(RecordError("a record that is damaged".into())),
            (Some(found), _) => Err(RecordError(format!(
                "a record in format {found}: this program reads format {RECORD_FORMAT}"
            ))),
            (None, _) => Err(RecordError("a record without a byte".into())),
        }
    }

    /// How many bytes of steps it has.
    pub fn length(&self) -> usize {
        self.steps.len()
    }

    /// Gives an outline its steps: those that were fetched before, and a piece that follows them.
    pub fn with_steps(mut self, before: Option<Record>, piece: &[u8]) -> Record {
        self.steps = before.map_or(Vec::new(), |before| before.steps);
        self.steps.extend_from_slice(piece);
        self
    }

    /// Whether every step of the instance so far is in it.
    pub fn is_whole(&self) -> bool {
        self.cut == 0
    }

    /// The steps in their order.
    pub fn steps(&self) -> Result<Vec<RecordedStep>, RecordError> {
        let mut bytes = Bytes::new(&self.steps, self.head.members.len(), &self.labels);
        let mut steps = Vec::new();
        let (mut at, mut member) = (self.began, NodeId(0));
        while !bytes.is_empty() {
            let step = bytes.step(at, member);
            let place = steps.len() + 1;
            let step = step.ok_or_else(|| RecordError(format!("step {place} is damaged")))?;
            (at, member) = (step.at, step.member);
            steps.push(step);
        }
        Ok(steps)
    }
}

#[cfg(test)]
mod tests;
