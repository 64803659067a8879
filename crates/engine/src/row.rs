//! How a log entry becomes rows of the store: our own frame, never protobuf's.
//!
//! An entry is cut into pieces that are each shorter than a disk sector together with what the
//! store's journal adds. A power cut can lose any sector of a write that was not yet flushed; cut
//! like this, a lost sector always hits the head of some piece, which the store takes for the end
//! of its journal. Were a lost sector to lie inside one long value, the store would find a whole
//! batch with a wrong checksum and refuse to open.

use bytes::Bytes;
use raft::eraftpb::Entry;
use xxhash_rust::xxh3::Xxh3;

use crate::bundle::BUNDLE_BYTES_MAX;
use crate::seal::Fields;

/// The longest value of a row. A sector has 512 bytes; the journal adds 22 and the key 11.
pub(crate) const PIECE_BYTES: usize = 448;

/// Checksum, term, kind and length, at the head of an entry's first piece.
const HEAD_BYTES: usize = 8 + 8 + 1 + 4;

/// What every key of a log row starts with.
const LOG: u8 = b'l';

/// The only kind of entry so far; changes of membership come with the cluster.
const NORMAL: u8 = 0;

pub(crate) type Key = [u8; 11];

/// Keys sort as (index, piece) does.
pub(crate) fn key(index: u64, piece: u16) -> Key {
    let mut key = [0; 11];
    key[0] = LOG;
    key[1..9].copy_from_slice(&index.to_be_bytes());
    key[9..].copy_from_slice(&piece.to_be_bytes());
    key
}

pub(crate) fn parse_key(key: &[u8]) -> Option<(u64, u16)> {
    let key: &Key = key.try_into().ok()?;
    let (index, piece) = key[1..].split_first_chunk::<8>()?;
    let piece = piece.try_into().ok()?;
    (key[0] == LOG).then_some((u64::from_be_bytes(*index), u16::from_be_bytes(piece)))
}

/// The rows of one entry, in order.
pub(crate) fn rows(entry: &Entry) -> impl Iterator<Item = (Key, Vec<u8>)> {
    let data = &entry.data;
    let len = u32::try_from(data.len()).expect("the engine bounds an entry's length");
    let mut first = Vec::with_capacity(PIECE_BYTES.min(HEAD_BYTES + data.len()));
    first.extend_from_slice(&checksum(entry.index, entry.term, NORMAL, data).to_le_bytes());
    first.extend_from_slice(&entry.term.to_le_bytes());
    first.push(NORMAL);
    first.extend_from_slice(&len.to_le_bytes());
    let (head, tail) = data.split_at(data.len().min(PIECE_BYTES - HEAD_BYTES));
    first.extend_from_slice(head);
    std::iter::once(first)
        .chain(tail.chunks(PIECE_BYTES).map(<[u8]>::to_vec))
        .zip(0..)
        .map(|(value, piece)| (key(entry.index, piece), value))
}

/// Puts entries together again from rows in key order.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    started: Option<Started>,
}

#[derive(Debug)]
struct Started {
    index: u64,
    piece: u16,
    sum: u64,
    term: u64,
    len: usize,
    data: Vec<u8>,
}

/// Rows that make no entry; holds the log index at which that was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadRow(pub(crate) u64);

impl Assembly {
    /// Takes the next row; answers an entry when this was its last piece.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Entry>, BadRow> {
        let (index, piece) = parse_key(key).ok_or(BadRow(0))?;
        let bad = BadRow(index);
        let mut started = match (self.started.take(), piece) {
            (None, 0) => Started::read(index, value).ok_or(bad)?,
            (Some(mut started), 1..) if (started.index, started.piece) == (index, piece - 1) => {
                started.piece = piece;
                started.data.extend_from_slice(value);
                started
            }
            _ => return Err(bad),
        };
        if started.data.len() < started.len {
            self.started = Some(started);
            return Ok(None);
        }
        if checksum(index, started.term, NORMAL, &started.data) != started.sum
            || started.data.len() != started.len
        {
            return Err(bad);
        }
        Ok(Some(Entry {
            index,
            term: started.term,
            data: Bytes::from(std::mem::take(&mut started.data)),
            ..Entry::default()
        }))
    }

    /// An error if the last entry has pieces missing.
    pub(crate) fn end(&self) -> Result<(), BadRow> {
        match &self.started {
            Some(started) => Err(BadRow(started.index)),
            None => Ok(()),
        }
    }
}

impl Started {
    fn read(index: u64, value: &[u8]) -> Option<Self> {
        let mut fields = Fields(value);
        let sum = fields.u64()?;
        let term = fields.u64()?;
        let kind = fields.u8()?;
        let len = usize::try_from(fields.u32()?).ok()?;
        (kind == NORMAL && len <= BUNDLE_BYTES_MAX).then(|| Self {
            index,
            piece: 0,
            sum,
            term,
            len,
            data: fields.rest().to_vec(),
        })
    }
}

fn checksum(index: u64, term: u64, kind: u8, data: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&index.to_le_bytes());
    hash.update(&term.to_le_bytes());
    hash.update(&[kind]);
    hash.update(data);
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u64, term: u64, data: Vec<u8>) -> Entry {
        Entry {
            index,
            term,
            data: data.into(),
            ..Entry::default()
        }
    }

    fn assemble(rows: &[(Key, Vec<u8>)]) -> Result<Vec<Entry>, BadRow> {
        let mut assembly = Assembly::default();
        let mut entries = Vec::new();
        for (key, value) in rows {
            entries.extend(assembly.push(key, value)?);
        }
        assembly.end()?;
        Ok(entries)
    }

    #[test]
    fn entries_of_every_length_come_back() {
        let edge = PIECE_BYTES - HEAD_BYTES;
        let lens = [0, 1, 100, edge - 1, edge, edge + 1];
        let long = [edge + PIECE_BYTES, edge + PIECE_BYTES + 1, 100_000];
        let entries: Vec<_> = (7..)
            .zip(lens.into_iter().chain(long))
            .map(|(index, len)| entry(index, 3, vec![index as u8; len]))
            .collect();
        let rows: Vec<_> = entries.iter().flat_map(rows).collect();
        assert!(rows.iter().all(|(_, value)| value.len() <= PIECE_BYTES));
        assert!(rows.is_sorted());
        assert_eq!(assemble(&rows).unwrap(), entries);
    }

    #[test]
    fn the_longest_entry_has_few_enough_pieces() {
        let longest = entry(1, 1, vec![0; BUNDLE_BYTES_MAX]);
        assert!(rows(&longest).count() <= usize::from(u16::MAX));
    }

    #[test]
    fn a_flipped_bit_a_lost_or_a_foreign_row_is_noticed() {
        let good: Vec<_> = rows(&entry(9, 2, vec![5; 1000])).collect();
        assert_eq!(good.len(), 3);
        for row in 0..good.len() {
            for byte in 0..good[row].1.len() {
                let mut bad = good.clone();
                bad[row].1[byte] ^= 0x10;
                assert!(assemble(&bad).is_err(), "row {row} byte {byte}");
            }
            let mut short = good.clone();
            short.remove(row);
            assert_eq!(assemble(&short), Err(BadRow(9)), "row {row} lost");
        }
        let mut foreign = good.clone();
        foreign[0].0 = key(8, 0);
        assert!(assemble(&foreign).is_err());
        assert_eq!(assemble(&[(*b"m__________", vec![])]), Err(BadRow(0)));
    }
}
