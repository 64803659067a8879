//! The hash of names. Names come from outside, so their hash must not be guessable; and `core` draws no random number,
//! so the secret is an argument.

use std::hash::{BuildHasher, DefaultHasher, Hasher};

#[derive(Clone, Debug)]
pub(super) struct Seeded(u64);

impl Seeded {
    pub(super) fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }
}

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;
    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}
