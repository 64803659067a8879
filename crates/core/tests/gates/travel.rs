//! A command that has travelled as bytes does what it would have done without, on every seeded walk; bytes that were
//! damaged on the way are refused.

use super::door::{Door, Way};
use super::garbage::Chaos;
use super::model::random::Random;
use super::properties::Pair;
use super::survival::Node;
use testigo_core::*;

type Walk = fn(u64, Way) -> Door;

fn chaos(seed: u64, way: Way) -> Door {
    let mut chaos = Chaos::new(seed, Door::listening(way));
    for _ in 0..100 {
        chaos.step();
    }
    chaos.door
}

fn life(seed: u64, way: Way) -> Door {
    let mut node = Node::new(seed, Door::listening(way));
    node.live(30);
    node.crash();
    node.live(30);
    node.door
}

fn pair(seed: u64, way: Way) -> Door {
    let mut pair = Pair::new(seed, Door::listening(way));
    for _ in 0..60 {
        pair.step();
        pair.compare();
    }
    pair.door
}

#[test]
fn what_travels_as_bytes_is_answered_alike() {
    for walk in [chaos, life, pair] as [Walk; 3] {
        for seed in 0..200 {
            let [here, there] = [Way::Direct, Way::Bytes].map(|way| walk(seed, way));
            assert_eq!(here.heard, there.heard, "seed {seed}");
            assert!(there.sent.len() > 20, "seed {seed}");
        }
    }
}

/// The specimen.
#[test]
fn what_is_lost_on_the_way_is_noticed() {
    for walk in [chaos, life] as [Walk; 2] {
        let differs = |seed: &u64| walk(*seed, Way::Direct).heard != walk(*seed, Way::Lossy).heard;
        assert!((0..20).filter(differs).count() > 3);
    }
}

#[test]
fn damaged_bytes_are_refused_or_another_command_and_panic_nowhere() {
    let (mut refused, mut read) = (0, 0);
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut victim = Chaos::new(seed, Door::default());
        for sent in chaos(seed, Way::Bytes).sent {
            let bytes = sent.bytes();
            assert_eq!(OwnedCommand::from(&sent.command()), sent);
            for end in 0..bytes.len() {
                assert!(OwnedCommand::read(&bytes[..end]).is_err(), "{sent:?}");
            }
            let longer = [bytes, &[0]].concat();
            let refusal = OwnedCommand::read(&longer).unwrap_err();
            assert_eq!(refusal.word, Word::BadArg);
            for _ in 0..20 {
                let mut damaged = bytes.to_vec();
                let at = random.below(bytes.len() as u64) as usize;
                damaged[at] ^= 1 << random.below(8);
                // What can be read is a command, which the local half answers or refuses like any other.
                match OwnedCommand::read(&damaged) {
                    Err(_) => refused += 1,
                    Ok(other) => {
                        let again = OwnedCommand::from(&other.command());
                        assert_eq!(again.command(), other.command());
                        victim.obey(&other.command());
                        read += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 1_000 && read > 1_000, "{refused} {read}");
}
