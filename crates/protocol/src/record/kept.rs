//! The recordings of the instances that are over.

use std::collections::VecDeque;

use super::{GATE_RECORD_BYTES_MAX, RecordAllowance, Recording};
use super::{RECORD_BYTES_SPARE, RECORDS_PER_GATE_MAX};

/// The last instances of the gates of a node, the oldest first.
#[derive(Debug, Default)]
pub struct Records {
    kept: VecDeque<Recording>,
    allowance: RecordAllowance,
}

impl Records {
    /// With this allowance, for all recordings together.
    pub fn new(allowance: RecordAllowance) -> Records {
        Records {
            kept: VecDeque::new(),
            allowance,
        }
    }

    /// What new recordings are given.
    pub fn allowance(&self) -> &RecordAllowance {
        &self.allowance
    }

    /// Keeps the recording of an instance that is over, and forgets the oldest ones beyond the bounds.
    pub fn keep(&mut self, mut recording: Recording) {
        recording.ended();
        let gate = recording.head().gate.clone();
        self.kept.push_back(recording);
        while self.is_beyond(&gate) {
            let oldest = self.kept.iter().position(|r| r.head().gate == gate);
            self.kept
                .remove(oldest.expect("one of this gate was just kept"));
        }
        self.make_room();
    }

    /// Forgets the oldest recordings while those that run have little left to take. Call it before an instance begins.
    pub fn make_room(&mut self) {
        while self.allowance.left() < RECORD_BYTES_SPARE && !self.kept.is_empty() {
            self.kept.pop_front();
        }
    }

    /// A gate is no more.
    pub fn forget(&mut self, gate: &str) {
        self.kept.retain(|recording| recording.head().gate != gate);
    }

    /// The recordings of a gate, the oldest first.
    pub fn of(&self, gate: &str) -> impl Iterator<Item = &Recording> {
        self.kept
            .iter()
            .filter(move |recording| recording.head().gate == gate)
    }

    fn is_beyond(&self, gate: &str) -> bool {
        let bytes: usize = self.of(gate).map(Recording::bytes).sum();
        self.of(gate).count() > RECORDS_PER_GATE_MAX || bytes > GATE_RECORD_BYTES_MAX
    }
}
