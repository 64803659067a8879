//! When to stand for election: drawn from the engine's own generator. Raft draws from the thread's, so after everything that
//! raft does its draw is overwritten, and a simulated run repeats byte for byte.

use raft::{RawNode, StateRole};

use crate::log::Log;

/// How often [`Engine::tick`](crate::Engine::tick) must be called, in milliseconds.
pub const TICK_MS: u64 = 50;

/// A leader sends a heartbeat every 100 ms.
pub(crate) const HEARTBEAT_TICKS: usize = 2;

/// A node that has heard from no leader for 0.6 to 1.2 seconds stands for election.
pub(crate) const ELECTION_TICKS: usize = 12;

/// Raft's present state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) term: u64,
    pub(crate) leader: u64,
    pub(crate) role: StateRole,
}

impl Standing {
    pub(crate) fn of(node: &RawNode<Log>) -> Self {
        Self {
            term: node.raft.term,
            leader: node.raft.leader_id,
            role: node.raft.state,
        }
    }
}

/// The election timeouts of one start.
#[derive(Debug)]
pub(crate) struct Elections {
    generator: u64,
    timeout: usize,
}

impl Elections {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            generator: seed,
            timeout: ELECTION_TICKS,
        }
    }

    /// Draws another timeout, for another attempt.
    pub(crate) fn draw(&mut self) {
        // SplitMix64.
        self.generator = self.generator.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.generator;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        self.timeout = ELECTION_TICKS + (bits % ELECTION_TICKS as u64) as usize;
    }

    /// Replaces whatever raft has drawn by the timeout.
    pub(crate) fn overwrite(&self, node: &mut RawNode<Log>) {
        node.raft.set_randomized_election_timeout(self.timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_spread_and_follow_the_seed() {
        let drawn = |seed| {
            let mut elections = Elections::new(seed);
            let mut draw = || {
                elections.draw();
                elections.timeout
            };
            (0..200).map(|_| draw()).collect::<Vec<_>>()
        };
        let range = ELECTION_TICKS..2 * ELECTION_TICKS;
        assert!(drawn(1).iter().all(|timeout| range.contains(timeout)));
        assert!(range.clone().all(|timeout| drawn(1).contains(&timeout)));
        assert_eq!(drawn(5), drawn(5));
        assert_ne!(drawn(5), drawn(6));
    }
}
