//! When to take a snapshot: often enough that the log is short to replay, seldom enough that writing images costs little
//! compared to writing the log.

use crate::engine::LOG_BYTES_MAX;
use crate::log::LogSize;

/// A snapshot is due after this many entries or bytes, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// Due after this many entries.
    pub entries: u64,
    /// Due after this many bytes.
    pub bytes: u64,
}

impl Default for SnapshotPolicy {
    /// 100,000 entries or 32 MiB: an eighth of [`LOG_BYTES_MAX`].
    fn default() -> Self {
        Self {
            entries: 100_000,
            bytes: 32 << 20,
        }
    }
}

impl SnapshotPolicy {
    /// Whether a snapshot should replace a log of this size, given the size of the last image and how many bytes of it have
    /// gone since. A large image is written less often: the log grows as long as the image. An image that is mostly gone is
    /// rewritten. So disk use and writing stay in proportion to what lives.
    pub fn due(&self, log: LogSize, image_bytes: u64, gone_bytes: u64) -> bool {
        if gone_bytes >= self.bytes.max(image_bytes / 2) {
            return true;
        }
        let bytes = image_bytes.clamp(self.bytes, self.bytes.max(LOG_BYTES_MAX / 2));
        let entries = self
            .entries
            .saturating_mul(bytes / self.bytes.max(1))
            .max(1);
        log.entries >= entries || log.bytes >= bytes
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
        let due = |entries, bytes| policy.due(LogSize { entries, bytes }, 0, 0);
        assert!(!due(9, 999));
        assert!(due(10, 0));
        assert!(due(0, 1000));
    }

    #[test]
    fn a_large_image_is_written_more_seldom_but_before_the_log_is_full() {
        let policy = SnapshotPolicy::default();
        let due = |bytes, image| policy.due(LogSize { entries: 1, bytes }, image, 0);
        assert!(due(32 << 20, 1 << 20) && !due(32 << 20, 100 << 20));
        assert!(due(100 << 20, 100 << 20));
        assert!(due(LOG_BYTES_MAX / 2, 4 << 30));
    }

    #[test]
    fn an_image_of_what_is_gone_is_written_anew() {
        let (policy, log) = (SnapshotPolicy::default(), LogSize::default());
        assert!(!policy.due(log, 1 << 30, (512 << 20) - 1));
        assert!(policy.due(log, 1 << 30, 512 << 20));
        assert!(!policy.due(log, 32 << 20, (32 << 20) - 1));
        assert!(policy.due(log, 32 << 20, 32 << 20));
    }

    #[test]
    fn the_default_leaves_room_before_the_log_is_full() {
        assert!(SnapshotPolicy::default().bytes <= LOG_BYTES_MAX / 4);
    }
}
