//! Entries of the log, and how they, snapshots and the image of a clean stop are encoded. What older versions wrote can be
//! read, too.

use serde::{Deserialize, Serialize};
use testigo_core::{
    Applied, Change, Image, NodeId, Origin, Records, Refusal, Replicated, Stamp, Start, before,
};
use testigo_engine::Committed;

use crate::clock::wall_ms;

/// An entry of the log: a change, and the wall clock for information.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) change: Change,
}

/// The first byte of everything stored: the format of the rest.
const FORMAT: u8 = 9;
/// The previous format, different in one thing: snapshots end before the pools that are being deleted.
const FORMAT_WITHOUT_CLOSINGS: u8 = 8;
/// The one before, different in one thing: snapshots end before the sessions that ended without their node's word.
const FORMAT_WITHOUT_ENDS: u8 = 7;
/// The one before, different in one thing: snapshots end before the decisions, the groups, the moves without slots and the
/// numbers of resumes.
const FORMAT_WITHOUT_DECISIONS: u8 = 6;
/// The one before, different in one thing: snapshots end before the pools.
const FORMAT_WITHOUT_POOLS: u8 = 5;
/// The one before, different in one thing: snapshots end before the cluster.
const FORMAT_WITHOUT_CLUSTER: u8 = 4;
/// The one before: one node, which owns everything in epochs.
const FORMAT_OF_EPOCHS: u8 = 3;
/// The one before, different in one thing: snapshots end before the key of receipts.
const FORMAT_WITHOUT_KEY: u8 = 2;

impl Entry {
    pub(crate) fn new(change: Change) -> Entry {
        Entry {
            at: wall_ms(),
            change,
        }
    }

    /// What the log says about it.
    pub(crate) fn stamp(&self, logged: &Committed) -> Stamp {
        let origin = logged.origin.map(|origin| Origin {
            node: NodeId(origin.node),
            start: Start(origin.start),
            sequence: origin.sequence,
        });
        Stamp {
            at: self.at,
            origin,
            term: logged.position.term,
        }
    }
}

/// A value as the log and its snapshots store it.
pub(crate) fn written<T: Serialize>(value: &T) -> Vec<u8> {
    write(value, Vec::new())
}

/// Like [`written`], reusing the memory of `bytes`.
pub(super) fn write<T: Serialize>(value: &T, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.clear();
    bytes.push(FORMAT);
    postcard::to_extend(value, bytes).expect("records are plain data and memory grows")
}

/// Reads what [`written`] made. The error says what is wrong.
pub(crate) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    match bytes {
        [
            FORMAT
            | FORMAT_WITHOUT_CLOSINGS
            | FORMAT_WITHOUT_ENDS
            | FORMAT_WITHOUT_DECISIONS
            | FORMAT_WITHOUT_POOLS
            | FORMAT_WITHOUT_CLUSTER,
            rest @ ..,
        ] => decoded(rest),
        bytes => Err(unknown(bytes)),
    }
}

/// Applies an entry of the log that a start finds; the error says why it cannot be read. What was refused then is refused
/// again.
pub(crate) fn replay(
    replicated: &mut Replicated,
    logged: &Committed,
) -> Result<Result<Applied, Refusal>, String> {
    #[derive(Deserialize)]
    struct Before {
        at: u64,
        change: before::Change,
    }
    match &*logged.data {
        [FORMAT_OF_EPOCHS | FORMAT_WITHOUT_KEY, rest @ ..] => {
            let Before { at, change } = decoded(rest)?;
            Ok(replicated.apply_before(at, change))
        }
        bytes => {
            let entry: Entry = read(bytes)?;
            Ok(replicated.apply(entry.stamp(logged), &entry.change))
        }
    }
}

/// Reads a snapshot. One from before there were receipts lacks their key: the next entry of the log brings it.
pub(crate) fn read_records(bytes: &[u8]) -> Result<Records, String> {
    match bytes {
        [FORMAT_OF_EPOCHS, rest @ ..] => decoded::<before::Records>(rest).map(Into::into),
        [FORMAT_WITHOUT_KEY, rest @ ..] => {
            decoded::<before::Records>(&[rest, &[0]].concat()).map(Into::into)
        }
        // A cluster without identity and nodes, no pools, no decisions and no groups.
        [FORMAT_WITHOUT_CLUSTER, rest @ ..] => decoded(&[rest, &[0; 10][..]].concat()),
        [FORMAT_WITHOUT_POOLS, rest @ ..] => decoded(&[rest, &[0; 8][..]].concat()),
        [FORMAT_WITHOUT_DECISIONS, rest @ ..] => decoded(&[rest, &[0; 6][..]].concat()),
        [FORMAT_WITHOUT_ENDS, rest @ ..] => decoded(&[rest, &[0; 2][..]].concat()),
        [FORMAT_WITHOUT_CLOSINGS, rest @ ..] => decoded(&[rest, &[0][..]].concat()),
        bytes => read(bytes),
    }
}

/// Reads the image of a clean stop.
pub(crate) fn read_image(bytes: &[u8]) -> Result<Image, String> {
    match bytes {
        [FORMAT_OF_EPOCHS | FORMAT_WITHOUT_KEY, rest @ ..] => {
            decoded::<before::Image>(rest).map(Into::into)
        }
        bytes => read(bytes),
    }
}

fn decoded<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    postcard::from_bytes(bytes).map_err(|error| error.to_string())
}

fn unknown(bytes: &[u8]) -> String {
    match bytes.first() {
        Some(format) => {
            format!("its format is {format}; this version reads {FORMAT_WITHOUT_KEY} to {FORMAT}")
        }
        None => "it is empty".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_of_before_ends_before_what_was_added_later() {
        let records = Replicated::new(testigo_core::Limits::default());
        let mut bytes = written(records.records());
        for (format, shorter) in [
            (FORMAT_WITHOUT_CLOSINGS, 1),
            (FORMAT_WITHOUT_ENDS, 1),
            (FORMAT_WITHOUT_DECISIONS, 4),
            (FORMAT_WITHOUT_POOLS, 2),
            (FORMAT_WITHOUT_CLUSTER, 2),
        ] {
            bytes[0] = format;
            bytes.truncate(bytes.len() - shorter);
            assert_eq!(read_records(&bytes).as_ref(), Ok(records.records()));
        }
        bytes.pop();
        assert!(read_records(&bytes).is_err());
    }
}
