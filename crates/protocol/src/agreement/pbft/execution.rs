//! Execution, and checkpoints: what a quorum has executed is stable, and the log up to it is discarded. Who is behind fetches it.

use std::fmt;
use std::ops::Not;

use serde::{Deserialize, Serialize};

use super::super::sha256::sha256;
use super::{Config, Digest, LogEntry, Pbft, Signed, Tell};
use crate::Output;

impl Pbft {
    /// Executes what is committed, in order of the numbers.
    pub(super) fn execute(&mut self, config: &Config, out: &mut Output<Self>) {
        loop {
            let n = self.executed.len() as u32 + 1;
            let Some(slot) = self.slots.get(&(self.view, n)).filter(|s| s.committed) else {
                return;
            };
            let digest_of_n = slot.pre_prepare.flatten();
            let first = !self.executed.contains(&digest_of_n);
            self.executed.push(digest_of_n);
            self.tell_executed_from(n, out);
            self.given_up = 0;
            if let Some(command) = digest_of_n {
                self.requests.remove(&command);
                // A primary may give one request two numbers; it takes effect at the first.
                if first {
                    self.reply(command, n, out);
                }
            }
            if n.is_multiple_of(Config::CHECKPOINT_EVERY) {
                let digest = digest(&self.executed);
                out.send_all(config.all(), &Signed::Checkpoint { n, digest });
            }
        }
    }

    pub(super) fn tell_executed_from(&self, first: u32, out: &mut Output<Self>) {
        let executed = self.executed.iter().enumerate();
        for (at, &command) in executed.skip(first as usize - 1) {
            let (index, term) = (at as u32 + 1, 0);
            let entry = LogEntry { term, command };
            out.tell(Tell::Applied { index, entry, term });
        }
    }

    /// A quorum has executed the same up to here: what led to it is not needed any more.
    pub(super) fn stabilise(
        &mut self,
        n: u32,
        digest: StateDigest,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        if n <= self.low {
            return;
        }
        (self.low, self.low_digest) = (n, digest);
        self.seq = self.seq.max(n);
        self.slots.retain(|(_, number), _| *number > n);
        self.prepared.retain(|number, _| *number > n);
        self.checkpoints.retain(|number, _| *number > n);
        if self.executed.len() < n as usize {
            out.send_all(self.id.others(config.replicas), &Signed::Fetch { n });
        }
    }

    pub(super) fn hear_state(
        &mut self,
        executed: &[Digest],
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let known = self.executed.len();
        if known >= self.low as usize || digest(executed) != self.low_digest {
            return;
        }
        self.executed = executed.to_vec();
        self.tell_executed_from(known as u32 + 1, out);
        let executed = &self.executed;
        self.requests
            .retain(|command| !executed.contains(&Some(*command)));
        self.execute(config, out);
    }
}

/// The SHA-256 of an executed sequence: a liar's state is held against it, so nobody may find another sequence that has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct StateDigest([u8; 32]);

/// The digest of an executed sequence.
pub(super) fn digest(executed: &[Digest]) -> StateDigest {
    let mut bytes = Vec::new();
    for entry in executed {
        bytes.push(u8::from(entry.is_some()));
        if let Some(command) = entry {
            bytes.extend(command.client.0.to_le_bytes());
            bytes.extend(command.number.to_le_bytes());
        }
    }
    StateDigest(sha256(&bytes))
}

/// Some other digest, as a liar says it.
impl Not for StateDigest {
    type Output = StateDigest;

    fn not(self) -> StateDigest {
        StateDigest(self.0.map(|byte| !byte))
    }
}

/// Its first eight bytes, which are enough to tell digests apart in a trace.
impl fmt::LowerHex for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
