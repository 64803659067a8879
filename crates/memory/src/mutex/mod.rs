//! Mutual exclusion among threads, by reads and writes alone.

mod bakery;
mod dijkstra;
mod lamport_fast;
mod peterson;
mod tournament;
mod tsm;

use crate::ThreadAlgorithm;

pub use tsm::{Tsm, TsmForm};

/// Every algorithm here, in the order in which they are listed to people; specimens last.
pub static ALGORITHMS: &[&ThreadAlgorithm] = &[
    &dijkstra::DIJKSTRA,
    &peterson::PETERSON_2,
    &peterson::PETERSON_N,
    &tournament::TOURNAMENT,
    &tsm::TSM,
    &lamport_fast::LAMPORT_FAST,
    &lamport_fast::LAMPORT_TIMED,
    &bakery::BAKERY,
    &bakery::ADAPTIVE_BAKERY,
    &peterson::PETERSON_N_PRINTED,
    &tournament::TOURNAMENT_PRINTED,
    &tsm::TSM_PRINTED,
    &tsm::TSM_FROZEN,
    &lamport_fast::LAMPORT_HASTY,
    &bakery::ADAPTIVE_BAKERY_PRINTED,
];
