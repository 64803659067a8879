//! A message as bytes, for members that are processes of their own: a short head, and the message in postcard.
//!
//! ```text
//! format   1  PACKET_FORMAT; rises when the encoding of any message changes
//! tag      4  little-endian: problem, algorithm and setup, which both ends must share
//! sum      4  little-endian: xxh3 of the message, with the tag as seed
//! message  …  postcard
//! ```
//!
//! Whatever arrives is read under limits and refused with a reason, never with a panic.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::node_id::naming_only_the_first;
use crate::{NodeId, Setup};

/// The encoding that this library writes and reads.
pub const PACKET_FORMAT: u8 = 1;

/// Longer packets are refused. The longest message, a token with two tables for [`MEMBERS_MAX`] nodes, takes half.
///
/// [`MEMBERS_MAX`]: crate::MEMBERS_MAX
pub const PACKET_BYTES_MAX: usize = 16 * 1024;

/// What a packet has besides its message.
pub const PACKET_HEAD_BYTES: usize = 9;

/// What two members must share to understand each other: a problem, an algorithm and its setup.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PacketTag(u32);

impl PacketTag {
    pub(crate) fn of(problem: &str, algorithm: &str, setup: &Setup) -> PacketTag {
        let (users, bound) = (setup.users, setup.delay_bound);
        let mut text = format!("{problem} {algorithm} users={users} delay-bound={bound}");
        for (word, value) in setup.chosen() {
            text.push_str(&format!(" {word}={value}"));
        }
        PacketTag(xxh3_64(text.as_bytes()) as u32)
    }

    fn sum(self, message: &[u8]) -> u32 {
        xxh3_64_with_seed(message, u64::from(self.0)) as u32
    }
}

impl fmt::Display for PacketTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Why a packet was refused. None of these changes the member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketError {
    TooShort {
        bytes: usize,
    },
    TooLong {
        bytes: usize,
    },
    OtherFormat {
        found: u8,
    },
    OtherTag {
        found: PacketTag,
        own: PacketTag,
    },
    Damaged,
    /// Whole, and yet no message of this algorithm among this many members.
    Unreadable {
        members: usize,
    },
    /// From a number that is not that of another member.
    Stranger {
        from: NodeId,
        members: usize,
    },
    /// A message that no member would send as things stand: the algorithm's own assertions fail at it.
    Impossible {
        from: NodeId,
    },
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketError::TooShort { bytes } => write!(
                f,
                "a packet of {bytes} bytes is cut off: its head alone has {PACKET_HEAD_BYTES}"
            ),
            PacketError::TooLong { bytes } => write!(
                f,
                "a packet of {bytes} bytes is too long: at most {PACKET_BYTES_MAX}"
            ),
            PacketError::OtherFormat { found } => write!(
                f,
                "a packet in format {found}: this member reads format {PACKET_FORMAT}"
            ),
            PacketError::OtherTag { found, own } => write!(
                f,
                "a packet of another algorithm or setup: its tag is {found}, this member's is {own}"
            ),
            PacketError::Damaged => {
                f.write_str("a packet was damaged or cut off: its checksum does not match")
            }
            PacketError::Unreadable { members } => write!(
                f,
                "a packet holds no message of this algorithm, or names a node that is not one of {members}"
            ),
            PacketError::Stranger { from, members } => write!(
                f,
                "a packet from node {from}, which is none of the other members: {members} are numbered from 0"
            ),
            PacketError::Impossible { from } => write!(
                f,
                "a message from node {from} that cannot occur in this state of the algorithm"
            ),
        }
    }
}

impl std::error::Error for PacketError {}

pub(crate) fn seal<M: Serialize>(tag: PacketTag, message: &M) -> Vec<u8> {
    let packet = postcard::to_extend(message, vec![0; PACKET_HEAD_BYTES])
        .expect("a message of plain data can be encoded");
    close(tag, packet)
}

/// Fills in the head.
pub(crate) fn close(tag: PacketTag, mut packet: Vec<u8>) -> Vec<u8> {
    debug_assert!(packet.len() <= PACKET_BYTES_MAX);
    let sum = tag.sum(&packet[PACKET_HEAD_BYTES..]);
    packet[0] = PACKET_FORMAT;
    packet[1..5].copy_from_slice(&tag.0.to_le_bytes());
    packet[5..9].copy_from_slice(&sum.to_le_bytes());
    packet
}

/// The message of a packet, which names only the first `members` nodes.
pub(crate) fn open<M: DeserializeOwned>(
    tag: PacketTag,
    members: usize,
    packet: &[u8],
) -> Result<M, PacketError> {
    read(members, check(tag, packet)?)
}

/// The message without the head of a packet, which names only the first `members` nodes.
pub(crate) fn read<M: DeserializeOwned>(members: usize, message: &[u8]) -> Result<M, PacketError> {
    match naming_only_the_first(members, || postcard::take_from_bytes(message)) {
        Ok((message, [])) => Ok(message),
        _ => Err(PacketError::Unreadable { members }),
    }
}

/// The bytes of the message in a packet that is whole and has this tag.
fn check(own: PacketTag, packet: &[u8]) -> Result<&[u8], PacketError> {
    let bytes = packet.len();
    if bytes > PACKET_BYTES_MAX {
        return Err(PacketError::TooLong { bytes });
    }
    let [format, d0, d1, d2, d3, s0, s1, s2, s3, message @ ..] = packet else {
        return Err(PacketError::TooShort { bytes });
    };
    if *format != PACKET_FORMAT {
        return Err(PacketError::OtherFormat { found: *format });
    }
    let found = PacketTag(u32::from_le_bytes([*d0, *d1, *d2, *d3]));
    if found != own {
        return Err(PacketError::OtherTag { found, own });
    }
    if own.sum(message) != u32::from_le_bytes([*s0, *s1, *s2, *s3]) {
        return Err(PacketError::Damaged);
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(users: usize) -> PacketTag {
        PacketTag::of("mutex", "central", &Setup::new(users))
    }

    fn opened(packet: &[u8]) -> Result<(NodeId, u64), PacketError> {
        open(tag(3), 3, packet)
    }

    #[test]
    fn the_encoding_is_pinned() {
        // A change here is another format: members of before could not be understood.
        let packet = seal(tag(3), &(NodeId(2), 300u64));
        assert_eq!(packet, PINNED);
        assert_eq!(opened(&packet), Ok((NodeId(2), 300)));
    }
    const PINNED: [u8; 12] = [1, 210, 213, 149, 243, 11, 18, 195, 177, 2, 172, 2];

    #[test]
    fn a_tag_is_a_problem_an_algorithm_and_a_setup() {
        let setup = Setup::new(3);
        let mut star = setup.clone();
        star.choose("tree", "star").expect("a tree");
        let all = [
            tag(3),
            tag(4),
            PacketTag::of("mutex", "raymond", &setup),
            PacketTag::of("mutex", "raymond", &star),
            PacketTag::of("rooms", "raymond", &setup),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one), "{i}");
        }
        assert_eq!(tag(3), tag(3));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_refused() {
        let packet = seal(tag(3), &(NodeId(2), 300u64));
        for bit in 0..8 * packet.len() {
            let mut flipped = packet.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(opened(&flipped).is_err(), "bit {bit}");
        }
        for length in 0..packet.len() {
            assert!(opened(&packet[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn each_refusal_says_what_would_be_right() {
        let packet = seal(tag(3), &(NodeId(2), 300u64));
        let with = |at: usize, byte| {
            let mut other = packet.clone();
            other[at] = byte;
            opened(&other).expect_err("refused").to_string()
        };
        assert_eq!(
            with(0, 9),
            "a packet in format 9: this member reads format 1"
        );
        assert!(with(1, packet[1] ^ 1).contains(&format!("this member's is {}", tag(3))));
        assert!(with(11, 0).contains("checksum"));
        let refused = |packet: &[u8]| opened(packet).expect_err("refused").to_string();
        assert!(refused(&packet[..8]).contains("8 bytes is cut off"));
        let long = vec![1; PACKET_BYTES_MAX + 1];
        assert!(refused(&long).contains("16385 bytes is too long: at most 16384"));
        for odd in [
            close(tag(3), [packet.as_slice(), &[0]].concat()),
            seal(tag(3), &(NodeId(3), 300u64)),
        ] {
            assert!(refused(&odd).contains("not one of 3"));
        }
    }
}
