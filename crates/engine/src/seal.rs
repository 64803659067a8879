//! Little-endian fields and the checksum on everything that reaches the disk.

use xxhash_rust::xxh3::xxh3_64;

/// The bytes that a seal adds.
pub(crate) const SEAL_BYTES: usize = 8;

/// Puts the checksum of `body` before it.
pub(crate) fn seal(body: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(SEAL_BYTES + body.len());
    sealed.extend_from_slice(&xxh3_64(body).to_le_bytes());
    sealed.extend_from_slice(body);
    sealed
}

/// The body, if its checksum holds.
pub(crate) fn unseal(sealed: &[u8]) -> Option<&[u8]> {
    let (sum, body) = sealed.split_first_chunk::<SEAL_BYTES>()?;
    (u64::from_le_bytes(*sum) == xxh3_64(body)).then_some(body)
}

/// Reads one field after the other; every read returns `None` when the bytes end.
#[derive(Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// `None` unless every byte was read.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_breaks_with_any_flipped_bit_and_any_lost_byte() {
        let sealed = seal(b"the body");
        assert_eq!(unseal(&sealed), Some(&b"the body"[..]));
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal(&flipped), None, "bit {bit}");
        }
        for len in 0..sealed.len() {
            assert_eq!(unseal(&sealed[..len]), None, "length {len}");
        }
    }

    #[test]
    fn fields_end_where_the_bytes_end() {
        let mut fields = Fields(&[1, 2, 0, 0, 0, 9]);
        assert_eq!((fields.u8(), fields.u32()), (Some(1), Some(2)));
        assert_eq!(fields.u64(), None);
        assert_eq!(fields.end(), None);
        assert_eq!((fields.u8(), fields.end()), (Some(9), Some(())));
    }
}
