//! Shards: every name belongs to one of 65,536, and is owned together with everything else in it.
//!
//! The hash is part of the data format: all nodes and all versions must agree on it. It is FNV-1a with 64 bits, whose four
//! words of 16 bits are folded into one by exclusive or. A client can choose names that all fall into one shard. That harms
//! nobody: tables of names are keyed by a secret of their own (`local/seeded.rs`), and a shard whose grants run out gets
//! another number.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a name belongs to: shards are owned, not names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shard(pub u16);

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Shard {
    /// How many shards there are.
    pub const COUNT: usize = 1 << 16;
    /// The last shard.
    pub const LAST: Shard = Shard(u16::MAX);

    /// The shard of a gate.
    pub fn of(gate: &str) -> Shard {
        folded(mixed(OFFSET, gate))
    }

    /// The shard of a queue, by its full name `flow/queue`.
    pub fn of_queue(flow: &str, queue: &str) -> Shard {
        let flow = mixed(mixed(OFFSET, flow), "/");
        folded(mixed(flow, queue))
    }
}

fn mixed(state: u64, text: &str) -> u64 {
    text.bytes().fold(state, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(PRIME)
    })
}

fn folded(hash: u64) -> Shard {
    let hash = hash ^ hash >> 32;
    Shard((hash ^ hash >> 16) as u16)
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a_folded() {
        // The first three are published vectors of FNV-1a with 64 bits.
        for (name, hash) in [
            ("", 0xcbf2_9ce4_8422_2325_u64),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(mixed(OFFSET, name), hash);
            let words = [0, 16, 32, 48].map(|shift| (hash >> shift) as u16);
            let fold = words.into_iter().fold(0, |fold, word| fold ^ word);
            assert_eq!(Shard::of(name), Shard(fold));
        }
        assert_eq!(Shard::of("a"), Shard(0x19a2));
        assert_eq!(Shard::of("foobar"), Shard(0x5434));
        assert_eq!(Shard::of("deploy"), Shard(0xd180));
        assert_eq!(Shard::of("shop/orders"), Shard(0x53d1));
        assert_eq!(Shard::of_queue("shop", "orders"), Shard::of("shop/orders"));
    }

    #[test]
    fn names_spread_over_the_shards() {
        let mut names = vec![0u32; Shard::COUNT];
        for number in 0..8 * Shard::COUNT {
            names[usize::from(Shard::of(&format!("gate/{number}")).0)] += 1;
        }
        // Eight each on average; with random names, forty in one is next to impossible.
        assert!(names.iter().all(|count| *count < 40));
        let empty = names.iter().filter(|count| **count == 0).count();
        assert!(empty < 100, "{empty} shards have no name");
    }
}
