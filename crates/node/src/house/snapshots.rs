//! When the log is merged into a snapshot: when it has grown long, when it is full, and when most of the last snapshot is
//! jobs that are gone. So disk use stays in proportion to what lives.

use testigo_engine::{DiskError, SnapshotError, SnapshotPolicy, SubmitError};

use super::{House, written};

/// The last snapshot and the next one.
#[derive(Debug)]
pub(crate) struct Snapshots {
    pub(crate) policy: SnapshotPolicy,
    /// The size of the last one.
    pub(crate) image_bytes: u64,
    /// The weight of the jobs in it.
    pub(crate) jobs_bytes: u64,
    /// The weight of the jobs in the one that is being written.
    pub(crate) drawn_bytes: u64,
    /// The last entry that was applied.
    pub(crate) applied: u64,
}

impl House {
    pub(super) fn snapshot_if_due(&mut self) {
        let known = &self.snapshots;
        let (_, jobs_bytes) = self.replicated().job_sizes();
        let gone_bytes = known.jobs_bytes.saturating_sub(jobs_bytes);
        if known
            .policy
            .due(self.submissions.size(), known.image_bytes, gone_bytes)
        {
            self.snapshot();
        }
    }

    /// Starts a snapshot of the state after everything that was applied.
    pub(super) fn snapshot(&mut self) {
        let Some(log) = self.submissions.log() else {
            return;
        };
        let index = self.snapshots.applied;
        // Cheap: jobs are shared with the copy until they change.
        let records = self.replicated().records().clone();
        match log.snapshot(index, move || written(&records)) {
            Ok(()) => self.snapshots.drawn_bytes = self.replicated().job_sizes().1,
            // One at a time is enough: when it ends, the need for another is checked.
            Err(SubmitError::SnapshotInProgress) => {}
            Err(error) => log::warn!("no snapshot was taken: {error}"),
        }
    }

    pub(super) fn snapshot_ended(&mut self, ended: Result<u64, SnapshotError>) {
        match ended {
            Ok(image_bytes) => {
                self.submissions.merged();
                self.snapshots.image_bytes = image_bytes;
                self.snapshots.jobs_bytes = self.snapshots.drawn_bytes;
                // More jobs may have gone while it was written, and nothing else may come that checks.
                self.snapshot_if_due();
            }
            Err(SnapshotError::Stopped(error)) => self.disk_failed(&error),
            Err(SnapshotError::Disk(error @ DiskError::Failed(_))) => {
                self.disk_failed(&error.into());
            }
            Err(error) => log::warn!("no snapshot was taken: {error}"),
        }
    }
}
