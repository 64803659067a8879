//! When to take a snapshot: often enough that the log stays short to replay, seldom enough that
//! writing images costs little beside writing the log.

use crate::log::LogSize;

/// A snapshot is due after so many entries or bytes, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// Due after this many entries.
    pub entries: u64,
    /// Due after this many bytes.
    pub bytes: u64,
}

impl Default for SnapshotPolicy {
    /// 100,000 entries or 32 MiB: an eighth of [`LOG_BYTES_MAX`](crate::LOG_BYTES_MAX).
    fn default() -> Self {
        Self {
            entries: 100_000,
            bytes: 32 << 20,
        }
    }
}

impl SnapshotPolicy {
    /// Whether a log of this size should be replaced by a snapshot.
    pub fn due(&self, log: LogSize) -> bool {
        log.entries >= self.entries || log.bytes >= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_limit_makes_it_due() {
        let policy = SnapshotPolicy {
            entries: 10,
            bytes: 1000,
        };
        let due = |entries, bytes| policy.due(LogSize { entries, bytes });
        assert!(!due(9, 999));
        assert!(due(10, 0));
        assert!(due(0, 1000));
    }

    #[test]
    fn the_default_leaves_room_before_the_log_is_full() {
        assert!(SnapshotPolicy::default().bytes <= crate::LOG_BYTES_MAX / 4);
    }
}
