//! Sectors: the unit that a disk writes completely or not at all. Every sector of a segment has its own checksum, so that a
//! torn write, which leaves some sectors new and the others as they were, can be told from damage.
//!
//! ```text
//! payload   496  the next bytes of the segment's frames
//! sequence    8  the flush that wrote the sector; 0 for one that only fills the file up
//! pages       4  how long the file was known to be, durably, when the sector was written
//! sum         4  xxh3 of all that, with the sector's place in the file as seed
//! ```
//!
//! A position in the payload is called an offset here, a position in the file a byte.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::pages::PAGE_BYTES;

pub(crate) const SECTOR_BYTES: usize = 512;
pub(crate) const PAYLOAD_BYTES: usize = 496;

const PAGES_AT: usize = PAYLOAD_BYTES + 8;
const SUM_AT: usize = PAGES_AT + 4;

/// The sequence of a sector that no flush has written yet.
pub(crate) const BLANK: u64 = 0;

/// Where an offset is in the file.
pub(crate) fn byte_of(offset: u64) -> u64 {
    const PAYLOAD: u64 = PAYLOAD_BYTES as u64;
    offset / PAYLOAD * SECTOR_BYTES as u64 + offset % PAYLOAD
}

/// What the sectors of one write have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) sequence: u64,
    /// The known length of the file.
    pub(crate) file_bytes: u64,
}

/// Lays payload into whole pages that begin at a byte of the file, after what the first page already has: sealed sectors, and
/// the payload of one that is not full yet.
pub(crate) fn lay(pages: &mut [u8], first_byte: u64, kept: &[u8], payload: &[u8], stamp: Stamp) {
    pages[..kept.len()].copy_from_slice(kept);
    let (mut at, mut rest) = (kept.len(), payload);
    while !rest.is_empty() {
        let room = PAYLOAD_BYTES - at % SECTOR_BYTES;
        let (now, later) = rest.split_at(room.min(rest.len()));
        pages[at..at + now.len()].copy_from_slice(now);
        at += now.len();
        if at % SECTOR_BYTES == PAYLOAD_BYTES {
            at = at.next_multiple_of(SECTOR_BYTES);
        }
        rest = later;
    }
    let unsealed = kept.len() / SECTOR_BYTES;
    let sectors = pages.chunks_exact_mut(SECTOR_BYTES).enumerate();
    for (nth, sector) in sectors.skip(unsealed) {
        seal(sector, first_byte / SECTOR_BYTES as u64 + nth as u64, stamp);
    }
}

fn seal(sector: &mut [u8], place: u64, stamp: Stamp) {
    let pages = stamp.file_bytes / PAGE_BYTES as u64;
    let pages = u32::try_from(pages).expect("the engine bounds what is flushed at once");
    sector[PAYLOAD_BYTES..PAGES_AT].copy_from_slice(&stamp.sequence.to_le_bytes());
    sector[PAGES_AT..SUM_AT].copy_from_slice(&pages.to_le_bytes());
    let sum = sum(&sector[..SUM_AT], place);
    sector[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
}

#[expect(clippy::cast_possible_truncation, reason = "a checksum of 32 bits")]
fn sum(checked: &[u8], place: u64) -> u32 {
    xxh3_64_with_seed(checked, place) as u32
}

/// The stamp of a sector, if the sector is intact and in its place.
fn stamp(sector: &[u8], place: u64) -> Option<Stamp> {
    let number = |at: usize| sector.get(at..at + 4)?.try_into().ok();
    if u32::from_le_bytes(number(SUM_AT)?) != sum(&sector[..SUM_AT], place) {
        return None;
    }
    let sequence = sector[PAYLOAD_BYTES..PAGES_AT].try_into().ok()?;
    Some(Stamp {
        sequence: u64::from_le_bytes(sequence),
        file_bytes: u64::from(u32::from_le_bytes(number(PAGES_AT)?)) * PAGE_BYTES as u64,
    })
}

/// A file's sectors, as far as they are intact.
#[derive(Debug, Default)]
pub(crate) struct Sectors {
    /// Their payload, one after the other, including that of broken sectors.
    pub(crate) payload: Vec<u8>,
    /// The highest sequence of any of them.
    pub(crate) sequence_max: u64,
    /// The length that the file was once known to have.
    pub(crate) file_bytes: u64,
    /// What a torn write cannot have caused: the byte of a broken sector, or where the file was cut.
    pub(crate) broken: Option<Broken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    At { byte: u64 },
    Cut { found: u64, known: u64 },
}

/// Reads a whole file. Zeroes beyond its known length are no damage: it was being extended.
pub(crate) fn read(bytes: &[u8]) -> Sectors {
    let mut read = Sectors::default();
    let mut bad = Vec::new();
    for (place, sector) in (0..).zip(bytes.chunks(SECTOR_BYTES)) {
        match stamp(sector, place) {
            Some(stamp) => {
                read.sequence_max = read.sequence_max.max(stamp.sequence);
                read.file_bytes = read.file_bytes.max(stamp.file_bytes);
            }
            None => bad.push((place, sector)),
        }
        let payload = &sector[..sector.len().min(PAYLOAD_BYTES)];
        read.payload.extend_from_slice(payload);
    }
    let (found, known) = (bytes.len() as u64, read.file_bytes);
    let bad = bad.into_iter().map(|(place, sector)| {
        let growing = sector.iter().all(|byte| *byte == 0);
        (place * SECTOR_BYTES as u64, growing)
    });
    let bad = bad.filter(|(byte, growing)| !growing || *byte < known);
    read.broken = match found < known {
        true => Some(Broken::Cut { found, known }),
        false => bad.map(|(byte, _)| Broken::At { byte }).next(),
    };
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(sequence: u64) -> Stamp {
        Stamp {
            sequence,
            file_bytes: 2 * PAGE_BYTES as u64,
        }
    }

    fn laid(kept: &[u8], payload: &[u8], sequence: u64) -> Vec<u8> {
        let mut pages = vec![0; 2 * PAGE_BYTES];
        lay(&mut pages, 0, kept, payload, stamp(sequence));
        pages
    }

    #[test]
    fn payload_comes_back_and_goes_on_within_a_sector() {
        let first = laid(&[], &[1; 700], 1);
        let kept = &first[..byte_of(700) as usize];
        let second = laid(kept, &[2; 1000], 2);
        assert_eq!(second[..SECTOR_BYTES], first[..SECTOR_BYTES]);
        let read = read(&second);
        assert_eq!(read.broken, None);
        assert_eq!((read.sequence_max, read.file_bytes), (2, 8192));
        assert_eq!(read.payload[..700], [1; 700]);
        assert_eq!(read.payload[700..1700], [2; 1000]);
    }

    #[test]
    fn a_sector_that_is_full_ends_where_the_next_begins() {
        let first = laid(&[], &[1; PAYLOAD_BYTES], 1);
        assert_eq!(byte_of(PAYLOAD_BYTES as u64), SECTOR_BYTES as u64);
        let second = laid(&first[..SECTOR_BYTES], &[2; 10], 2);
        assert_eq!(
            read(&second).payload[PAYLOAD_BYTES..PAYLOAD_BYTES + 10],
            [2; 10]
        );
    }

    #[test]
    fn a_flipped_bit_a_sector_elsewhere_and_a_cut_are_noticed() {
        let good = laid(&[], &[7; 3000], 9);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            let byte = (at / SECTOR_BYTES * SECTOR_BYTES) as u64;
            assert_eq!(read(&bad).broken, Some(Broken::At { byte }), "byte {at}");
            let known = good.len() as u64;
            let found = at as u64;
            let cut = (at >= SECTOR_BYTES).then_some(Broken::Cut { found, known });
            assert!(cut.is_none() || read(&good[..at]).broken == cut, "cut {at}");
        }
        let mut swapped = good.clone();
        swapped.copy_within(512..1024, 1024);
        assert_eq!(read(&swapped).broken, Some(Broken::At { byte: 1024 }));
    }

    #[test]
    fn zeroes_are_no_damage_only_where_the_file_was_growing() {
        let mut file = laid(&[], &[7; 100], 9);
        file.extend([0; 1300]);
        assert_eq!(read(&file).broken, None);
        file[5 * SECTOR_BYTES..6 * SECTOR_BYTES].fill(0);
        assert_eq!(read(&file).broken, Some(Broken::At { byte: 2560 }));
    }
}
