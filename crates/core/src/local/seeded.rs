//! The hash of names. Names come from outside, and a client must not be able to choose names that collide. `core` draws no
//! random numbers, so the secret is an argument. Each eight bytes are mixed in by a multiplication to 128 bits whose halves
//! are folded: for short texts that is several times as fast as SipHash.

use std::hash::{BuildHasher, Hasher};

#[derive(Clone, Debug)]
pub(super) struct Seeded {
    start: u64,
    factor: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Folding {
    state: u64,
    factor: u64,
}

/// Odd numbers without structure (digits of π and of e), so that a seed of zero mixes too.
const PI: u64 = 0x243f_6a88_85a3_08d3;
const E: u64 = 0xb7e1_5162_8aed_2a6b;

impl Seeded {
    pub(super) fn new(seed: u64) -> Seeded {
        let start = fold(seed ^ PI, E);
        Seeded {
            start,
            factor: fold(start ^ seed, PI) | 1,
        }
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folding;
    fn build_hasher(&self) -> Folding {
        Folding {
            state: self.start,
            factor: self.factor,
        }
    }
}

impl Hasher for Folding {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last));
        self.state = self.state.wrapping_add(bytes.len() as u64);
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }

    #[inline]
    fn finish(&self) -> u64 {
        fold(self.state, self.factor)
    }
}

impl Folding {
    #[inline]
    fn mix(&mut self, word: u64) {
        self.state = fold(self.state ^ word, self.factor).wrapping_add(E);
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_spread_and_the_seed_matters() {
        let buckets = |seed| {
            let hash = Seeded::new(seed);
            let mut buckets = vec![0u32; 1024];
            for number in 0..10_240 {
                buckets[hash.hash_one(format!("gate/{number}")) as usize % 1024] += 1;
            }
            buckets
        };
        for seed in [0, 1, u64::MAX] {
            // Ten each on average; with a random hash, more than thirty in one is next to impossible.
            assert!(buckets(seed).into_iter().all(|count| count <= 30));
        }
        assert_ne!(buckets(0), buckets(1));
    }

    #[test]
    fn a_zero_at_the_end_makes_another_name() {
        let hash = Seeded::new(7);
        assert_ne!(hash.hash_one("ab"), hash.hash_one("ab\0"));
        assert_ne!(hash.hash_one(""), hash.hash_one("\0\0\0\0\0\0\0\0"));
    }

    #[test]
    fn a_single_byte_counts() {
        let hash = Seeded::new(7);
        assert_ne!(hash.hash_one(0_u8), hash.hash_one(1_u8));
    }
}
