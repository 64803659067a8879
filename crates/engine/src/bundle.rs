//! Everything that one flush makes durable is one entry of raft's log: a bundle. So a hundred small proposals cost the log as
//! much as one, and a torn flush loses all of them or none.
//!
//! ```text
//! mark      4  ffffffff: no length, so that it is known from a bundle of the format before
//! node      8  who proposed what follows
//! start     8
//! sequence  8  of the first proposal; the others follow it one by one
//! then, for every proposal:
//! length    4
//! bytes
//! ```
//!
//! Before proposals were numbered, a bundle began with its first length.

use bytes::Bytes;

use crate::engine::ENTRY_BYTES_MAX;
use crate::origin::Origin;
use crate::seal::Fields;

/// The first bytes of a bundle with an origin. No proposal has this length.
const MARK: u32 = u32::MAX;

const HEAD_BYTES: usize = 4 + 3 * 8;

/// The bytes of the length before a proposal.
const LENGTH_BYTES: usize = 4;

/// The longest bundle: one proposal of the maximum length still fits.
pub(crate) const BUNDLE_BYTES_MAX: usize = HEAD_BYTES + LENGTH_BYTES + ENTRY_BYTES_MAX;

/// Proposals that are being gathered for one entry.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    bytes: Vec<u8>,
    count: u64,
}

/// The contents of a bundle.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Of the first proposal; `None` in an old bundle.
    pub(crate) origin: Option<Origin>,
    pub(crate) proposals: Vec<Bytes>,
}

impl Bundle {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many proposals it has.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    pub(crate) fn has_room_for(&self, len: usize) -> bool {
        self.bytes.len().max(HEAD_BYTES) + LENGTH_BYTES + len <= BUNDLE_BYTES_MAX
    }

    /// Adds a proposal, which must be the start's next one.
    pub(crate) fn push(&mut self, origin: Origin, data: &[u8]) {
        if self.count == 0 {
            self.bytes.extend_from_slice(&MARK.to_le_bytes());
            for field in [origin.node, origin.start, origin.sequence] {
                self.bytes.extend_from_slice(&field.to_le_bytes());
            }
        }
        let len = u32::try_from(data.len()).expect("the engine bounds a proposal's length");
        self.bytes.extend_from_slice(&len.to_le_bytes());
        self.bytes.extend_from_slice(data);
        self.count += 1;
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.count = 0;
        // The next one will be about as long.
        let next = Vec::with_capacity(self.bytes.len());
        std::mem::replace(&mut self.bytes, next)
    }
}

/// The contents of a bundle, in order; `None` if the bytes are not a bundle.
pub(crate) fn split(bundle: &Bytes) -> Option<Contents> {
    let mut fields = Fields(bundle);
    let origin = head(&mut fields)?;
    let mut proposals = Vec::new();
    while let Some(proposal) = next(&mut fields)? {
        proposals.push(bundle.slice_ref(proposal));
    }
    Some(Contents { origin, proposals })
}

/// The origin of a bundle's first proposal, and how many there are; `None` if the bytes are not a numbered bundle.
pub(crate) fn origin(bundle: &[u8]) -> Option<(Origin, u64)> {
    let mut fields = Fields(bundle);
    let origin = head(&mut fields)??;
    let mut count = 0;
    while next(&mut fields)?.is_some() {
        count += 1;
    }
    Some((origin, count))
}

fn head(fields: &mut Fields<'_>) -> Option<Option<Origin>> {
    if !fields.rest().starts_with(&MARK.to_le_bytes()) {
        return Some(None);
    }
    fields.u32()?;
    let (node, start, sequence) = (fields.u64()?, fields.u64()?, fields.u64()?);
    Some(Some(Origin {
        node,
        start,
        sequence,
    }))
}

/// The next proposal, if there is one; the outer `None` is for broken bytes.
fn next<'a>(fields: &mut Fields<'a>) -> Option<Option<&'a [u8]>> {
    if fields.end().is_some() {
        return Some(None);
    }
    let length = usize::try_from(fields.u32()?).ok()?;
    fields.bytes(length).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Origin = Origin {
        node: 3,
        start: 7,
        sequence: 41,
    };

    #[test]
    fn proposals_come_out_as_they_went_in() {
        let mut bundle = Bundle::default();
        let proposals = [&b"a"[..], b"", b"three"];
        for (after, proposal) in (0..).zip(proposals) {
            bundle.push(FIRST.later(after), proposal);
        }
        let bytes = Bytes::from(bundle.take());
        assert_eq!(origin(&bytes), Some((FIRST, 3)));
        let contents = split(&bytes).unwrap();
        assert_eq!(contents.proposals, proposals);
        assert_eq!(contents.origin, Some(FIRST));
        assert!(bundle.is_empty());
    }

    #[test]
    fn a_bundle_of_before_has_no_origin() {
        let contents = split(&Bytes::from_static(b"\x02\0\0\0ab\x01\0\0\0c")).unwrap();
        assert_eq!(contents.proposals, [&b"ab"[..], b"c"]);
        assert_eq!((contents.origin, origin(b"\x01\0\0\0c")), (None, None));
        assert!(split(&Bytes::new()).unwrap().proposals.is_empty());
    }

    #[test]
    fn bytes_that_are_no_bundle_are_noticed() {
        for bad in [
            &b"\x01"[..],
            b"\x02\0\0\0a",
            b"\xfe\xff\xff\xffa",
            b"\xff\xff\xff\xff",
            b"\xff\xff\xff\xff\x03\0\0\0\0\0\0\0",
        ] {
            assert_eq!(split(&Bytes::from_static(bad)), None, "{bad:?}");
        }
    }

    #[test]
    fn the_longest_proposal_fits_alone() {
        let mut bundle = Bundle::default();
        assert!(bundle.has_room_for(ENTRY_BYTES_MAX));
        assert!(!bundle.has_room_for(ENTRY_BYTES_MAX + 1));
        bundle.push(FIRST, b"x");
        assert!(!bundle.has_room_for(ENTRY_BYTES_MAX));
    }
}
