//! Drawing a sample: by a hash of the seed and the name, so that the same seed draws the same mutants
//! whatever order they are listed in.

/// So many of the names, by lot.
pub(super) fn drawn(mut names: Vec<String>, seed: u64, count: usize) -> Vec<String> {
    names.sort_by_cached_key(|name| (hash(seed, name), name.clone()));
    names.truncate(count);
    names
}

/// FNV-1a, with its bits mixed at the end.
pub(super) fn hash(seed: u64, text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in seed.to_le_bytes().iter().chain(text.as_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_from_any_order() {
        let names: Vec<String> = (0..100).map(|n| format!("m{n}")).collect();
        let backwards: Vec<String> = names.iter().rev().cloned().collect();
        let sample = drawn(names.clone(), 1, 10);
        assert_eq!(sample.len(), 10);
        assert_eq!(drawn(backwards, 1, 10), sample);
        assert_ne!(drawn(names.clone(), 2, 10), sample);
        assert_eq!(
            drawn(names.clone(), 1, 12)[..10],
            sample,
            "a larger sample goes on"
        );
        assert_eq!(drawn(names, 1, 1_000).len(), 100);
    }
}
