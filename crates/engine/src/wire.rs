//! Frames between the nodes of a group: what an engine has to say to another one, as bytes. The links carry them and make
//! sure of the sender; an engine takes only frames that are intact and meant for it.
//!
//! ```text
//! sum      8  xxh3 of all that follows
//! version  1
//! kind     1  what the body is
//! group    4  of which the engine is a member; there is one now
//! from     8  the sender's node
//! to       8  the receiver's
//! body
//! ```

use bytes::Bytes;
use raft::eraftpb::Message;
use xxhash_rust::xxh3::xxh3_64;

use crate::bundle::BUNDLE_BYTES_MAX;
use crate::links::Numbered;
use crate::message;
use crate::pieces::{Piece, Wanted};
use crate::seal::Fields;

/// The version of the frames that this version of the engine sends and accepts.
pub const WIRE_VERSION: u8 = 1;

/// The longest frame, 4 MiB: entries up to [`MESSAGE_BYTES_MAX`](crate::MESSAGE_BYTES_MAX) and their overhead.
pub const FRAME_BYTES_MAX: usize = 4 << 20;

/// The group that every node is in.
pub(crate) const GROUP: u32 = 0;

const SUM_BYTES: usize = 8;
const HEAD_BYTES: usize = SUM_BYTES + 1 + 1 + 4 + 8 + 8;

const MESSAGE: u8 = 1;
const SUBMISSION: u8 = 2;
const PIECE: u8 = 3;
const WANTED: u8 = 4;
const NUMBERED: u8 = 5;
const ROOM: u8 = 6;

/// A frame for another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The node that it is for.
    pub to: u64,
    /// What to pass to [`Engine::step`](crate::Engine::step) there.
    pub frame: Bytes,
}

/// Why a frame was not accepted. It had no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It is longer than [`FRAME_BYTES_MAX`], or too short to be one.
    #[error("a frame of {0} bytes is none")]
    Length(usize),
    /// Its checksum is wrong.
    #[error("the frame fails its checksum")]
    Damaged,
    /// Another version of the engine sent it.
    #[error("the frame is of version {0}, and this engine speaks version {WIRE_VERSION}")]
    Version(u8),
    /// The leader believes that this node has more than it has: its directory is an older copy.
    #[error("this node has acknowledged entries that it does not have")]
    Behind,
    /// It belongs to another group.
    #[error("the frame is of group {0}")]
    Group(u32),
    /// It is from or for other nodes than those of the link.
    #[error("the frame is from node {from} to node {to}")]
    Nodes {
        /// Who sent it.
        from: u64,
        /// Whom it is for.
        to: u64,
    },
    /// It is intact, but no engine says such a thing.
    #[error("the frame says what cannot be: {0}")]
    Impossible(&'static str),
}

/// The contents of a frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    /// A message of raft's.
    Message(Message),
    /// A bundle for the leader's log.
    Submission(Bytes),
    /// A part of a snapshot.
    Piece(Piece),
    /// A request for a part of a snapshot.
    Wanted(Wanted),
    /// What one start says to another.
    Numbered(Numbered),
    /// How many bytes are free on the sender's disk.
    Room(u64),
}

/// Makes a frame; `None` for a kind that does not travel.
pub(crate) fn write(said: &Said, from: u64, to: u64) -> Option<Bytes> {
    let mut bytes = vec![0; HEAD_BYTES];
    let kind = match said {
        Said::Message(message) => message::write(message, &mut bytes).then_some(MESSAGE)?,
        Said::Submission(bundle) => {
            bytes.extend_from_slice(bundle);
            SUBMISSION
        }
        Said::Piece(piece) => {
            piece.write(&mut bytes);
            PIECE
        }
        Said::Wanted(wanted) => {
            wanted.write(&mut bytes);
            WANTED
        }
        Said::Numbered(numbered) => {
            numbered.write(&mut bytes);
            NUMBERED
        }
        Said::Room(free_bytes) => {
            bytes.extend_from_slice(&free_bytes.to_le_bytes());
            ROOM
        }
    };
    (bytes[8], bytes[9]) = (WIRE_VERSION, kind);
    bytes[10..14].copy_from_slice(&GROUP.to_le_bytes());
    bytes[14..22].copy_from_slice(&from.to_le_bytes());
    bytes[22..HEAD_BYTES].copy_from_slice(&to.to_le_bytes());
    let sum = xxh3_64(&bytes[SUM_BYTES..]);
    bytes[..SUM_BYTES].copy_from_slice(&sum.to_le_bytes());
    Some(bytes.into())
}

/// Whether a frame belongs to the links, according to its head.
pub(crate) fn is_numbered(frame: &Bytes) -> bool {
    frame.get(SUM_BYTES + 1) == Some(&NUMBERED)
}

/// Reads a frame that a link brought `to` this node `from` another.
pub(crate) fn read(frame: &Bytes, from: u64, to: u64) -> Result<Said, FrameError> {
    let length = frame.len();
    if !(HEAD_BYTES..=FRAME_BYTES_MAX).contains(&length) {
        return Err(FrameError::Length(length));
    }
    let head = |fields: &mut Fields<'_>| {
        let sum = fields.u64()?;
        let whole = xxh3_64(fields.rest()) == sum;
        let (version, kind) = (fields.u8()?, fields.u8()?);
        let (group, nodes) = (fields.u32()?, (fields.u64()?, fields.u64()?));
        Some((whole, version, kind, group, nodes))
    };
    let head = head(&mut Fields(frame)).ok_or(FrameError::Length(length))?;
    let body = frame.slice(HEAD_BYTES..);
    match head {
        (false, ..) => Err(FrameError::Damaged),
        (_, version, ..) if version != WIRE_VERSION => Err(FrameError::Version(version)),
        (_, _, _, group, _) if group != GROUP => Err(FrameError::Group(group)),
        (.., nodes) if nodes != (from, to) || from == to || from == 0 => Err(FrameError::Nodes {
            from: nodes.0,
            to: nodes.1,
        }),
        (_, _, kind, ..) => said(kind, &body, from, to),
    }
}

fn said(kind: u8, body: &Bytes, from: u64, to: u64) -> Result<Said, FrameError> {
    let said = match kind {
        MESSAGE => message::read(body, from, to).map(Said::Message),
        SUBMISSION if body.len() <= BUNDLE_BYTES_MAX => Some(Said::Submission(body.clone())),
        PIECE => Piece::read(body).map(Said::Piece),
        WANTED => Wanted::read(body).map(Said::Wanted),
        NUMBERED => Numbered::read(body).map(Said::Numbered),
        ROOM => room(body).map(Said::Room),
        _ => None,
    };
    said.ok_or(FrameError::Impossible("its body is of no known shape"))
}

fn room(body: &Bytes) -> Option<u64> {
    let mut fields = Fields(body);
    let free_bytes = fields.u64()?;
    fields.end()?;
    Some(free_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raft::eraftpb::MessageType;
    use rand_xoshiro::Xoshiro256StarStar;
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};

    fn heartbeat() -> Said {
        Said::Message(Message {
            msg_type: MessageType::MsgHeartbeat,
            from: 2,
            to: 3,
            term: 9,
            ..Message::default()
        })
    }

    /// With a checksum that holds.
    fn sealed(mut frame: Vec<u8>) -> Bytes {
        let sum = xxh3_64(&frame[SUM_BYTES..]).to_le_bytes();
        frame[..SUM_BYTES].copy_from_slice(&sum);
        frame.into()
    }

    #[test]
    fn what_was_said_is_heard_and_only_by_whom_it_is_for() {
        let frame = write(&heartbeat(), 2, 3).unwrap();
        assert_eq!(read(&frame, 2, 3), Ok(heartbeat()));
        let nodes = Err(FrameError::Nodes { from: 2, to: 3 });
        for (from, to) in [(2, 4), (1, 3), (3, 2)] {
            assert_eq!(read(&frame, from, to), nodes);
        }
        let mut later = frame.to_vec();
        later[8] = WIRE_VERSION + 1;
        assert_eq!(read(&sealed(later), 2, 3), Err(FrameError::Version(2)));
        let mut another = frame.to_vec();
        another[10] = 1;
        assert_eq!(read(&sealed(another), 2, 3), Err(FrameError::Group(1)));
        let mut unknown = frame.to_vec();
        unknown[9] = 77;
        assert!(matches!(
            read(&sealed(unknown), 2, 3),
            Err(FrameError::Impossible(_))
        ));
    }

    #[test]
    fn any_flipped_bit_and_any_lost_byte_is_noticed() {
        let good = write(&heartbeat(), 2, 3).unwrap();
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.to_vec();
                bad[at] ^= 1 << bit;
                assert_eq!(read(&bad.into(), 2, 3), Err(FrameError::Damaged));
            }
            assert!(read(&good.slice(..at), 2, 3).is_err(), "length {at}");
        }
        let long = Bytes::from(vec![0; FRAME_BYTES_MAX + 1]);
        assert_eq!(read(&long, 2, 3), Err(FrameError::Length(long.len())));
    }

    #[test]
    fn bytes_that_somebody_made_up_never_panic() {
        let mut rng = Xoshiro256StarStar::seed_from_u64(8);
        for round in 0..20_000u64 {
            let mut bytes = vec![0; HEAD_BYTES + rng.next_u64() as usize % 200];
            bytes
                .iter_mut()
                .for_each(|byte| *byte = rng.next_u64() as u8);
            (bytes[8], bytes[9]) = (WIRE_VERSION, 1 + (round % 6) as u8);
            bytes[10..14].fill(0);
            bytes[14..22].copy_from_slice(&2u64.to_le_bytes());
            bytes[22..30].copy_from_slice(&3u64.to_le_bytes());
            if let Ok(said) = read(&sealed(bytes), 2, 3) {
                assert_eq!(read(&write(&said, 2, 3).unwrap(), 2, 3), Ok(said));
            }
        }
    }
}
