//! Frames: one [`Change`] as bytes with their checksum. A frame is on disk completely or not at all.
//!
//! ```text
//! sum       8  xxh3 of all that follows, with the segment's salt as seed
//! sequence  8  one more than the frame's before it, through all segments
//! length    4  of the body
//! body         fields, each a tag and its bytes
//! ```
//!
//! Frames begin at multiples of [`ALIGNMENT`], so that a reader that has lost its place can look for the next one. The salt
//! is drawn anew for every segment: neither a file's earlier contents nor bytes made to look like a frame are taken for one.

use bytes::Bytes;
use raft::eraftpb::{Entry, EntryType, HardState};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::members::Members;
use crate::origin::Origins;
use crate::seal::Fields;
use crate::start::Start;
use crate::store::{Change, CleanStopMark, SnapshotMark};

/// Where frames may begin.
pub(crate) const ALIGNMENT: usize = 8;

const SUM_BYTES: usize = 8;
const HEAD_BYTES: usize = SUM_BYTES + 8 + 4;

const ENTRY: u8 = 1;
const HARD_STATE: u8 = 2;
/// Members, as written before there were learners.
const VOTERS: u8 = 3;
const START: u8 = 4;
const SNAPSHOT: u8 = 5;
const CLEAN_STOP: u8 = 6;
const CLEAN_STOP_CONSUMED: u8 = 7;
const MEMBER_CHANGE: u8 = 8;
const MEMBERS: u8 = 9;
const ORIGINS: u8 = 10;
const NODE: u8 = 11;
const VOID: u8 = 12;

/// Appends a change as a frame, padded to where the next may begin.
pub(crate) fn write(change: &Change, sequence: u64, salt: u64, into: &mut Vec<u8>) {
    let start = into.len();
    into.extend_from_slice(&[0; HEAD_BYTES]);
    write_body(change, into);
    let len = u32::try_from(into.len() - start - HEAD_BYTES);
    let len = len.expect("the engine bounds what is flushed at once");
    let frame = &mut into[start..];
    frame[SUM_BYTES..SUM_BYTES + 8].copy_from_slice(&sequence.to_le_bytes());
    frame[SUM_BYTES + 8..HEAD_BYTES].copy_from_slice(&len.to_le_bytes());
    let sum = xxh3_64_with_seed(&frame[SUM_BYTES..], salt);
    frame[..SUM_BYTES].copy_from_slice(&sum.to_le_bytes());
    let end = start + frame.len().next_multiple_of(ALIGNMENT);
    into.resize(end, 0);
}

fn write_body(change: &Change, into: &mut Vec<u8>) {
    let numbers = |into: &mut Vec<u8>, tag: u8, values: &[u64]| {
        into.push(tag);
        for value in values {
            into.extend_from_slice(&value.to_le_bytes());
        }
    };
    let sized = |into: &mut Vec<u8>, bytes: &[u8]| {
        let len = u32::try_from(bytes.len()).expect("the engine bounds an entry's length");
        into.extend_from_slice(&len.to_le_bytes());
        into.extend_from_slice(bytes);
    };
    // First, because it concerns what came before this change.
    if change.void {
        into.push(VOID);
    }
    for entry in &change.entries {
        match entry.entry_type {
            EntryType::EntryNormal => numbers(into, ENTRY, &[entry.index, entry.term]),
            _ => {
                numbers(into, MEMBER_CHANGE, &[entry.index, entry.term]);
                sized(into, &entry.context);
            }
        }
        sized(into, &entry.data);
    }
    if let Some(hard) = &change.hard_state {
        numbers(into, HARD_STATE, &[hard.term, hard.vote, hard.commit]);
    }
    if let Some(node) = change.node {
        numbers(into, NODE, &[node]);
    }
    if let Some(members) = &change.members {
        into.push(MEMBERS);
        members.write(into);
    }
    if let Some(origins) = &change.origins {
        into.push(ORIGINS);
        origins.write(into);
    }
    if let Some(start) = change.start {
        let values = [start.number(), start.generation()].map(u64::from);
        numbers(into, START, &values);
    }
    if let Some(mark) = change.snapshot {
        numbers(into, SNAPSHOT, &[mark.index, mark.term]);
    }
    match change.clean_stop {
        Some(CleanStopMark::Set(start)) => numbers(into, CLEAN_STOP, &[start]),
        Some(CleanStopMark::Consumed) => into.push(CLEAN_STOP_CONSUMED),
        None => {}
    }
}

/// A frame with a valid checksum.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) sequence: u64,
    pub(crate) body: Bytes,
    /// Its length with padding.
    pub(crate) len: usize,
}

/// The frame that begins at `at`, if there is one.
pub(crate) fn read(bytes: &Bytes, at: usize, salt: u64) -> Option<Frame> {
    let mut fields = Fields(bytes.get(at..)?);
    let sum = fields.u64()?;
    let checked = fields.rest();
    let sequence = fields.u64()?;
    let len = usize::try_from(fields.u32()?).ok()?;
    let body = at.checked_add(HEAD_BYTES)?;
    let end = body.checked_add(len).filter(|end| *end <= bytes.len())?;
    let checked = checked.get(..end - at - SUM_BYTES)?;
    (xxh3_64_with_seed(checked, salt) == sum).then(|| Frame {
        sequence,
        body: bytes.slice(body..end),
        len: (end - at).next_multiple_of(ALIGNMENT),
    })
}

/// Whether a frame that begins at `at` or later has this number or a higher one.
pub(crate) fn any_from(bytes: &Bytes, at: usize, salt: u64, sequence: u64) -> bool {
    let starts = (at.next_multiple_of(ALIGNMENT)..bytes.len()).step_by(ALIGNMENT);
    let numbered = starts.filter(|at| {
        let number = bytes.get(at + SUM_BYTES..).map(Fields);
        let number = number.and_then(|mut fields| fields.u64());
        number.is_some_and(|number| number >= sequence)
    });
    let mut frames = numbered.filter_map(|at| read(bytes, at, salt));
    frames.any(|frame| frame.sequence >= sequence)
}

/// The change in a frame; `None` for a body that no version has written.
pub(crate) fn parse(body: &Bytes) -> Option<Change> {
    let mut change = Change::default();
    let mut fields = Fields(body);
    while fields.end().is_none() {
        parse_field(body, &mut fields, &mut change)?;
    }
    Some(change)
}

/// How a reader would understand a frame without checking that it is complete.
pub(crate) fn parse_half(frame: &Bytes) -> Change {
    let mut change = Change::default();
    let body = frame.slice(HEAD_BYTES.min(frame.len())..);
    let mut fields = Fields(&body);
    while parse_field(&body, &mut fields, &mut change).is_some() {}
    change
}

fn parse_field(body: &Bytes, fields: &mut Fields<'_>, change: &mut Change) -> Option<()> {
    match fields.u8()? {
        tag @ (ENTRY | MEMBER_CHANGE) => {
            let mut entry = Entry {
                index: fields.u64()?,
                term: fields.u64()?,
                ..Entry::default()
            };
            let mut sized = || {
                let len = usize::try_from(fields.u32()?).ok()?;
                Some(body.slice_ref(fields.bytes(len)?))
            };
            if tag == MEMBER_CHANGE {
                entry.entry_type = EntryType::EntryConfChange;
                entry.context = sized()?;
            }
            entry.data = sized()?;
            change.entries.push(entry);
        }
        HARD_STATE => {
            change.hard_state = Some(HardState {
                term: fields.u64()?,
                vote: fields.u64()?,
                commit: fields.u64()?,
                ..HardState::default()
            });
        }
        VOTERS => {
            let count = fields.u64()?;
            let voters = (0..count).map(|_| fields.u64());
            change.members = Some(Members {
                voters: voters.collect::<Option<_>>()?,
                ..Members::default()
            });
        }
        MEMBERS => change.members = Some(Members::read(fields)?),
        ORIGINS => change.origins = Some(Origins::read(fields)?),
        NODE => change.node = Some(fields.u64()?),
        VOID => change.void = true,
        START => {
            let number = u32::try_from(fields.u64()?).ok()?;
            let generation = u32::try_from(fields.u64()?).ok()?;
            change.start = Some(Start::new(number, generation));
        }
        SNAPSHOT => {
            change.snapshot = Some(SnapshotMark {
                index: fields.u64()?,
                term: fields.u64()?,
            });
        }
        CLEAN_STOP => change.clean_stop = Some(CleanStopMark::Set(fields.u64()?)),
        CLEAN_STOP_CONSUMED => change.clean_stop = Some(CleanStopMark::Consumed),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;

    const SALT: u64 = 0x5A17;

    fn origins() -> Origins {
        let mut origins = Origins::default();
        let origin = Origin {
            node: 2,
            start: 5,
            sequence: 1,
        };
        assert!(origins.take(origin, 7));
        origins
    }

    fn change(data: &[u8]) -> Change {
        Change {
            entries: vec![
                Entry {
                    index: 8,
                    term: 3,
                    data: data.to_vec().into(),
                    ..Entry::default()
                },
                Entry {
                    entry_type: EntryType::EntryConfChange,
                    index: 9,
                    term: 3,
                    data: Bytes::from_static(b"raft's own"),
                    context: Bytes::from_static(b"who"),
                    ..Entry::default()
                },
            ],
            hard_state: Some(HardState {
                term: 3,
                vote: 1,
                commit: 8,
                ..HardState::default()
            }),
            node: Some(2),
            members: Some(Members::alone(2)),
            origins: Some(origins()),
            void: true,
            start: Some(Start::new(5, 1)),
            snapshot: Some(SnapshotMark { index: 7, term: 2 }),
            clean_stop: Some(CleanStopMark::Set(5)),
            sync: true,
        }
    }

    fn written(data: &[u8], sequence: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&change(data), sequence, SALT, &mut bytes);
        bytes
    }

    #[test]
    fn what_was_written_is_read() {
        for len in [0, 1, 7, 8, 5000] {
            let bytes = Bytes::from([vec![9; 16], written(&vec![4; len], 77)].concat());
            let frame = read(&bytes, 16, SALT).unwrap();
            assert_eq!((frame.sequence, frame.len), (77, bytes.len() - 16));
            let (read, wanted) = (parse(&frame.body).unwrap(), change(&vec![4; len]));
            assert_eq!(read.entries, wanted.entries);
            assert_eq!(read.hard_state, wanted.hard_state);
            assert_eq!((read.node, read.void), (wanted.node, wanted.void));
            assert_eq!(read.members, wanted.members);
            assert_eq!(read.origins, wanted.origins);
            assert_eq!((read.start, read.snapshot), (wanted.start, wanted.snapshot));
            assert_eq!(read.clean_stop, wanted.clean_stop);
        }
    }

    #[test]
    fn any_flipped_bit_any_lost_byte_and_another_salt_break_a_frame() {
        let good = written(b"the body", 3);
        assert!(read(&good.clone().into(), 0, SALT + 1).is_none());
        let padding = read(&good.clone().into(), 0, SALT).unwrap().body.len() + HEAD_BYTES;
        for at in 0..padding {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert!(read(&bad.into(), 0, SALT).is_none(), "byte {at} bit {bit}");
            }
            assert!(read(&good[..at].to_vec().into(), 0, SALT).is_none());
        }
    }

    #[test]
    fn a_frame_is_found_behind_bytes_that_are_none() {
        let mut bytes = written(b"one", 3);
        let broken = bytes.len();
        bytes[9] ^= 1;
        bytes.extend(written(b"two", 4));
        let bytes = Bytes::from(bytes);
        assert!(any_from(&bytes, 0, SALT, 4));
        assert!(!any_from(&bytes, 0, SALT, 5), "its number is lower");
        assert!(!any_from(&bytes, 0, SALT + 1, 4), "another segment's");
        assert!(!any_from(&bytes, broken + 1, SALT, 4), "it begins before");
    }

    #[test]
    fn voters_of_before_are_members() {
        let body = b"\x03\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0";
        let change = parse(&Bytes::from_static(body)).unwrap();
        assert_eq!(change.members, Some(Members::alone(2)));
    }

    #[test]
    fn a_body_of_no_known_shape_is_refused() {
        for bad in [
            &b"\x63"[..],
            b"\x09",
            b"\x02short",
            b"\x03\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert!(parse(&Bytes::from_static(bad)).is_none(), "{bad:?}");
        }
    }
}
