//! Takes, settles and give-backs that have travelled as bytes do what they would have done without.

use crate::door::{Door, Way};
use crate::model::Run;

fn walk(seed: u64, way: Way) -> (Door, Result<(), String>) {
    let mut run = Run::new(seed, Door::listening(way));
    let ended = (0..400).try_for_each(|_| run.step());
    (run.stage.door, ended)
}

#[test]
fn jobs_that_are_asked_for_in_bytes_are_given_alike() {
    for seed in 0..100 {
        let [here, there] = [Way::Direct, Way::Bytes].map(|way| walk(seed, way));
        assert_eq!(here.0.heard, there.0.heard, "seed {seed}");
        assert_eq!((here.1, there.1), (Ok(()), Ok(())), "seed {seed}");
        assert!(there.0.sent.len() > 50, "seed {seed}");
    }
}

/// The specimen.
#[test]
fn an_attempt_that_is_lost_on_the_way_is_noticed() {
    let differs = |seed: &u64| walk(*seed, Way::Direct).0.heard != walk(*seed, Way::Lossy).0.heard;
    assert!((0..20).filter(differs).count() > 10);
}
