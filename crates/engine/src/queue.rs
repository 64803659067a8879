//! What waits for the log's thread. Putting something in never waits for the disk; taking out
//! takes everything at once, which is what makes one flush serve all that wait.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::SnapshotError;
use crate::image::WrittenSnapshot;

/// How many requests may wait for the log's thread.
pub const QUEUED_MAX: usize = 65_536;

/// How many bytes may wait for the log's thread, 32 MiB: half of what one flush may hold.
pub const QUEUED_BYTES_MAX: usize = 32 << 20;

/// Why a request was not queued. It is certain that nothing came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// [`QUEUED_MAX`] or [`QUEUED_BYTES_MAX`] is reached; the disk is slower than what is asked.
    #[error("too much waits for the disk")]
    Full,
    /// A snapshot is still being written.
    #[error("a snapshot is being written")]
    SnapshotInProgress,
    /// The log's thread has stopped writing; its last delivery said why.
    #[error("the log has stopped")]
    Stopped,
}

/// Makes an image, on the thread that writes it.
pub(crate) struct DrawImage(pub(crate) Box<dyn FnOnce() -> Vec<u8> + Send>);

impl fmt::Debug for DrawImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an image to be drawn")
    }
}

#[derive(Debug)]
pub(crate) enum Request {
    Append { tag: u64, data: Vec<u8> },
    Snapshot { index: u64, image: DrawImage },
    Written(Result<WrittenSnapshot, SnapshotError>),
    Close { image: Option<Vec<u8>> },
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: Vec<Request>,
    /// Whether they may be taken.
    begun: bool,
    bytes: usize,
    snapshot_in_progress: bool,
    stopped: bool,
}

impl Queue {
    /// Puts an entry in; it may be taken once [`Queue::begin`] was called.
    pub(crate) fn append(&self, tag: u64, data: Vec<u8>) -> Result<(), SubmitError> {
        let mut waiting = self.lock();
        if waiting.stopped {
            return Err(SubmitError::Stopped);
        }
        if waiting.requests.len() >= QUEUED_MAX || waiting.bytes + data.len() > QUEUED_BYTES_MAX {
            return Err(SubmitError::Full);
        }
        waiting.bytes += data.len();
        waiting.requests.push(Request::Append { tag, data });
        Ok(())
    }

    /// Lets the log's thread take what waits.
    pub(crate) fn begin(&self) {
        let mut waiting = self.lock();
        if !waiting.requests.is_empty() && !std::mem::replace(&mut waiting.begun, true) {
            drop(waiting);
            self.arrived.notify_one();
        }
    }

    pub(crate) fn snapshot(&self, index: u64, image: DrawImage) -> Result<(), SubmitError> {
        let mut waiting = self.lock();
        if waiting.stopped {
            return Err(SubmitError::Stopped);
        }
        if waiting.snapshot_in_progress {
            return Err(SubmitError::SnapshotInProgress);
        }
        waiting.snapshot_in_progress = true;
        self.put(waiting, Request::Snapshot { index, image });
        Ok(())
    }

    pub(crate) fn written(&self, written: Result<WrittenSnapshot, SnapshotError>) {
        self.put(self.lock(), Request::Written(written));
    }

    pub(crate) fn snapshot_ended(&self) {
        self.lock().snapshot_in_progress = false;
    }

    /// The last request: nothing is queued after it.
    pub(crate) fn close(&self, image: Option<Vec<u8>>) {
        let mut waiting = self.lock();
        waiting.stopped = true;
        self.put(waiting, Request::Close { image });
    }

    /// Refuses whatever is submitted from now on.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
    }

    /// Everything that waits, in order; waits until it may be taken.
    pub(crate) fn take(&self) -> Vec<Request> {
        let waiting = self.lock();
        let mut waiting = self
            .arrived
            .wait_while(waiting, |waiting| !waiting.begun)
            .unwrap_or_else(PoisonError::into_inner);
        waiting.begun = false;
        waiting.bytes = 0;
        std::mem::take(&mut waiting.requests)
    }

    fn put(&self, mut waiting: MutexGuard<'_, Waiting>, request: Request) {
        waiting.requests.push(request);
        waiting.begun = true;
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Nothing panics while it holds the lock, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_wait_are_taken_in_order() {
        let queue = Queue::default();
        for tag in 0..3 {
            queue.append(tag, vec![0]).unwrap();
        }
        queue.close(None);
        assert_eq!(queue.append(3, vec![0]), Err(SubmitError::Stopped));
        let tags: Vec<_> = queue
            .take()
            .iter()
            .map(|request| match request {
                Request::Append { tag, .. } => Some(*tag),
                _ => None,
            })
            .collect();
        assert_eq!(tags, [Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn bytes_and_requests_are_bounded_until_taken() {
        let queue = Queue::default();
        queue.append(0, vec![0; QUEUED_BYTES_MAX]).unwrap();
        assert_eq!(queue.append(1, vec![0]), Err(SubmitError::Full));
        queue.begin();
        queue.take();
        for tag in 0..QUEUED_MAX as u64 {
            queue.append(tag, vec![0]).unwrap();
        }
        assert_eq!(queue.append(1, vec![0]), Err(SubmitError::Full));
    }

    #[test]
    fn one_snapshot_at_a_time() {
        let queue = Queue::default();
        let image = || DrawImage(Box::new(Vec::new));
        queue.snapshot(1, image()).unwrap();
        let refused = queue.snapshot(2, image());
        assert_eq!(refused, Err(SubmitError::SnapshotInProgress));
        queue.snapshot_ended();
        queue.snapshot(2, image()).unwrap();
    }
}
