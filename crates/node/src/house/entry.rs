//! Entries of the log, and how they and its snapshots are written.

use serde::{Deserialize, Serialize};
use testigo_core::{Change, Records};

use crate::clock::wall_ms;

/// An entry of the log: a change, and the wall clock's time as a note.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) change: Change,
}

/// The first byte of an entry and of a snapshot: how the rest is written.
const FORMAT: u8 = 3;
/// The format before, which differs in one thing: snapshots end before the key of receipts.
const FORMAT_WITHOUT_KEY: u8 = 2;

impl Entry {
    pub(super) const EMPTY: Entry = Entry {
        at: 0,
        change: Change::Jobs(Vec::new()),
    };

    pub(crate) fn new(change: Change) -> Entry {
        Entry {
            at: wall_ms(),
            change,
        }
    }
}

/// A value as the log and its snapshots keep it.
pub(crate) fn written<T: Serialize>(value: &T) -> Vec<u8> {
    write(value, Vec::new())
}

/// As [`written`], in the memory of something that is no longer wanted.
pub(super) fn write<T: Serialize>(value: &T, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.clear();
    bytes.push(FORMAT);
    postcard::to_extend(value, bytes).expect("records are plain data and memory grows")
}

/// Reads what [`written`] made. The sentence says why not.
pub(crate) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    match bytes {
        [FORMAT | FORMAT_WITHOUT_KEY, rest @ ..] => {
            postcard::from_bytes(rest).map_err(|error| error.to_string())
        }
        [format, ..] => Err(format!(
            "its format is {format}; this version reads {FORMAT}"
        )),
        [] => Err("it is empty".into()),
    }
}

/// Reads a snapshot, also one from before there were receipts: the next entry of the log then brings their key.
pub(crate) fn read_records(bytes: &[u8]) -> Result<Records, String> {
    match bytes {
        [FORMAT_WITHOUT_KEY, ..] => read(&[bytes, &[0]].concat()),
        bytes => read(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_from_before_receipts_is_read() {
        let mut bytes = written(&Records::default());
        assert_eq!(bytes.pop(), Some(0), "the key comes last");
        bytes[0] = FORMAT_WITHOUT_KEY;
        assert_eq!(read_records(&bytes), Ok(Records::default()));
        bytes[0] = FORMAT;
        assert!(read_records(&bytes).is_err());
    }
}
