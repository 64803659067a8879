//! Everything that one flush makes durable is one entry of raft's log: a bundle. A hundred small proposals then cost
//! the log what one costs, and a flush that is torn loses all of them or none.

use bytes::Bytes;

use crate::engine::ENTRY_BYTES_MAX;

/// What the length before a proposal takes.
const LENGTH_BYTES: usize = 4;

/// The longest bundle: one proposal of the greatest length still fits.
pub(crate) const BUNDLE_BYTES_MAX: usize = ENTRY_BYTES_MAX + LENGTH_BYTES;

/// Proposals in the making of one entry.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    bytes: Vec<u8>,
    count: u32,
}

impl Bundle {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn has_room_for(&self, len: usize) -> bool {
        self.bytes.len() + LENGTH_BYTES + len <= BUNDLE_BYTES_MAX
    }

    /// Adds a proposal and says the how manieth it is, counted from 0.
    pub(crate) fn push(&mut self, data: &[u8]) -> u32 {
        let len = u32::try_from(data.len()).expect("the engine bounds a proposal's length");
        self.bytes.extend_from_slice(&len.to_le_bytes());
        self.bytes.extend_from_slice(data);
        self.count += 1;
        self.count - 1
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.count = 0;
        // The next one will be about as long.
        let next = Vec::with_capacity(self.bytes.len());
        std::mem::replace(&mut self.bytes, next)
    }
}

/// The proposals of a bundle, in order; nothing for bytes that are none.
pub(crate) fn split(bundle: &Bytes) -> Option<Vec<Bytes>> {
    let mut proposals = Vec::new();
    let mut at = 0;
    while at < bundle.len() {
        let length = bundle.get(at..at + LENGTH_BYTES)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        at += LENGTH_BYTES;
        let end = at.checked_add(length).filter(|end| *end <= bundle.len())?;
        proposals.push(bundle.slice(at..end));
        at = end;
    }
    Some(proposals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_come_out_as_they_went_in() {
        let mut bundle = Bundle::default();
        let proposals = [&b"a"[..], b"", b"three"];
        let numbers = proposals.map(|proposal| bundle.push(proposal));
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(split(&bundle.take().into()).unwrap(), proposals);
        assert!(bundle.is_empty());
        assert_eq!(split(&Bytes::new()), Some(Vec::new()));
    }

    #[test]
    fn bytes_that_are_no_bundle_are_noticed() {
        for bad in [&b"\x01"[..], b"\x02\0\0\0a", b"\xff\xff\xff\xffa"] {
            assert_eq!(split(&Bytes::from_static(bad)), None, "{bad:?}");
        }
    }

    #[test]
    fn the_longest_proposal_fits_alone() {
        let mut bundle = Bundle::default();
        assert!(bundle.has_room_for(ENTRY_BYTES_MAX));
        bundle.push(b"x");
        assert!(!bundle.has_room_for(ENTRY_BYTES_MAX));
    }
}
