//! What waits for the log's thread. Putting something in never waits for the disk; taking out
//! takes everything at once, which is what makes one flush serve all that wait.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;

use crate::error::SnapshotError;
use crate::image::WrittenSnapshot;
use crate::links::Peer;
use crate::members::MemberChange;

/// How many requests may wait for the log's thread.
pub const QUEUED_MAX: usize = 65_536;

/// How many bytes may wait for the log's thread, 32 MiB: half of what one flush may hold.
pub const QUEUED_BYTES_MAX: usize = 32 << 20;

/// How many bytes of frames that were heard may wait, 64 MiB. What comes beyond is lost, as on the way.
pub const HEARD_BYTES_MAX: usize = 64 << 20;

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

/// What the log's thread has to do. Entries are one run of bytes, so that whoever submits one gives no memory away that
/// another thread would have to free.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    data: Vec<u8>,
    /// The tags of the entries and where each ends.
    entries: Vec<(u64, usize)>,
    /// What is to be done before the entries are proposed.
    pub(crate) asks: Vec<Ask>,
    pub(crate) requests: Vec<Request>,
}

/// What is asked of a log among others; whoever does the log's work does this, too.
#[derive(Debug)]
pub(crate) enum Ask {
    Heard { from: u64, frame: Bytes },
    Tick,
    Read { tag: u64 },
    ChangeMembers { tag: u64, change: MemberChange },
    RefuseReads { peer: Peer, tag: u64 },
    AllowReads(Peer),
    Lead(u64),
}

/// What is asked of the log's own thread beside entries. None of it depends on the entries that wait with it.
#[derive(Debug)]
pub(crate) enum Request {
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
    batch: Batch,
    /// Of the frames in it.
    heard_bytes: usize,
    /// Whether it may be taken.
    begun: bool,
    /// The log has no room for the entries; they wait for a snapshot.
    held: bool,
    snapshot_in_progress: bool,
    stopped: bool,
}

/// What an emptied batch may keep of its memory.
const KEPT_BYTES: usize = 1 << 20;

impl Batch {
    /// Every entry with its tag, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut start = 0;
        self.entries.iter().map(move |(tag, end)| {
            let data = &self.data[start..*end];
            start = *end;
            (*tag, data)
        })
    }

    fn clear(&mut self) {
        self.data.clear();
        self.data.shrink_to(KEPT_BYTES);
        self.entries.clear();
        self.asks.clear();
        self.requests.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.asks.is_empty() && self.requests.is_empty()
    }

    pub(crate) fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    /// It says to end the log.
    pub(crate) fn closes(&self) -> bool {
        let close = |request: &Request| matches!(request, Request::Close { .. });
        self.requests.iter().any(close)
    }
}

impl Waiting {
    fn may_be_taken(&self) -> bool {
        let entries = !self.batch.entries.is_empty() && !self.held;
        entries || !self.batch.requests.is_empty() || !self.batch.asks.is_empty()
    }

    fn take_entries(&mut self, batch: &mut Batch) {
        batch.clear();
        std::mem::swap(&mut self.batch.asks, &mut batch.asks);
        self.heard_bytes = 0;
        if !self.held {
            std::mem::swap(&mut self.batch.data, &mut batch.data);
            std::mem::swap(&mut self.batch.entries, &mut batch.entries);
            self.begun &= !self.batch.requests.is_empty();
        }
    }

    /// Nobody is held any more: what waits is to be refused.
    fn stop(&mut self) {
        self.stopped = true;
        self.held = false;
        self.begun = self.may_be_taken();
    }
}

impl Queue {
    /// Puts an entry in; it may be taken once [`Queue::begin`] was called.
    pub(crate) fn append(&self, tag: u64, data: &[u8]) -> Result<(), SubmitError> {
        let mut waiting = self.lock();
        if waiting.stopped {
            return Err(SubmitError::Stopped);
        }
        let batch = &mut waiting.batch;
        let end = batch.data.len() + data.len();
        if batch.entries.len() >= QUEUED_MAX || end > QUEUED_BYTES_MAX {
            return Err(SubmitError::Full);
        }
        batch.data.extend_from_slice(data);
        batch.entries.push((tag, end));
        Ok(())
    }

    /// Puts something in for whoever does the log's work next.
    pub(crate) fn ask(&self, ask: Ask) {
        let mut waiting = self.lock();
        if let Ask::Heard { frame, .. } = &ask {
            if waiting.heard_bytes + frame.len() > HEARD_BYTES_MAX {
                return;
            }
            waiting.heard_bytes += frame.len();
        }
        waiting.batch.asks.push(ask);
    }

    /// Whether somebody has asked for something.
    pub(crate) fn is_asked(&self) -> bool {
        !self.lock().batch.asks.is_empty()
    }

    /// Whether something waits that may be taken, begun or not.
    pub(crate) fn may_be_taken(&self) -> bool {
        self.lock().may_be_taken()
    }

    /// Makes the log's thread look after the log, whatever waits.
    pub(crate) fn wake(&self) {
        self.lock().begun = true;
        self.arrived.notify_one();
    }

    /// Lets the log's thread take what waits.
    pub(crate) fn begin(&self) {
        let mut waiting = self.lock();
        if waiting.may_be_taken() && !std::mem::replace(&mut waiting.begun, true) {
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

    /// Whatever came of it, entries that waited for it are taken again.
    pub(crate) fn snapshot_ended(&self) {
        let mut waiting = self.lock();
        waiting.snapshot_in_progress = false;
        waiting.held = false;
        waiting.begun = waiting.may_be_taken();
    }

    /// Puts a batch's entries from the nth on back, in front of those that came after them, to wait for a snapshot. Nothing
    /// waits after the end.
    pub(crate) fn hold(&self, held: &Batch, nth: usize) {
        let mut waiting = self.lock();
        let later = Batch {
            data: std::mem::take(&mut waiting.batch.data),
            entries: std::mem::take(&mut waiting.batch.entries),
            ..Batch::default()
        };
        let batch = &mut waiting.batch;
        for (tag, data) in held.entries().skip(nth).chain(later.entries()) {
            batch.data.extend_from_slice(data);
            batch.entries.push((tag, batch.data.len()));
        }
        waiting.held = !waiting.stopped;
        waiting.begun = waiting.may_be_taken();
    }

    /// The last request: nothing is queued after it.
    pub(crate) fn close(&self, image: Option<Vec<u8>>) {
        let mut waiting = self.lock();
        waiting.stop();
        self.put(waiting, Request::Close { image });
    }

    /// Refuses whatever is submitted from now on.
    pub(crate) fn stop(&self) {
        self.lock().stop();
    }

    /// Waits until there is something that may be taken.
    pub(crate) fn wait(&self) {
        let waiting = self.lock();
        let begun = self.arrived.wait_while(waiting, |waiting| !waiting.begun);
        drop(begun.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until there is something that may be taken, or something was asked for, or the time has come.
    pub(crate) fn wait_until(&self, due: Instant) {
        let mut waiting = self.lock();
        loop {
            let patience = due.saturating_duration_since(Instant::now());
            if waiting.begun || !waiting.batch.asks.is_empty() || patience.is_zero() {
                return;
            }
            let arrived = self.arrived.wait_timeout(waiting, patience);
            waiting = match arrived {
                Ok((waiting, _)) => waiting,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Everything that waits, into a batch whose memory is used again. Entries that are held stay.
    pub(crate) fn take(&self, batch: &mut Batch) {
        let mut waiting = self.lock();
        waiting.take_entries(batch);
        waiting.begun = false;
        std::mem::swap(&mut waiting.batch.requests, &mut batch.requests);
    }

    /// As [`Queue::take`], without what only the log's own thread does.
    pub(crate) fn take_entries(&self, batch: &mut Batch) {
        self.lock().take_entries(batch);
    }

    fn put(&self, mut waiting: MutexGuard<'_, Waiting>, request: Request) {
        waiting.batch.requests.push(request);
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
        let entries = [(0, &b"a"[..]), (1, b""), (2, b"three")];
        for (tag, data) in entries {
            queue.append(tag, data).unwrap();
        }
        queue.close(None);
        assert_eq!(queue.append(3, b"d"), Err(SubmitError::Stopped));
        let mut batch = Batch::default();
        queue.take_entries(&mut batch);
        assert_eq!(batch.entries().collect::<Vec<_>>(), entries);
        assert!(batch.requests.is_empty());
        queue.wait();
        queue.take(&mut batch);
        assert_eq!(batch.entries().count(), 0);
        assert!(matches!(batch.requests[..], [Request::Close { .. }]));
    }

    #[test]
    fn bytes_and_requests_are_bounded_until_taken() {
        let queue = Queue::default();
        queue.append(0, &vec![0; QUEUED_BYTES_MAX]).unwrap();
        assert_eq!(queue.append(1, &[0]), Err(SubmitError::Full));
        queue.begin();
        let mut batch = Batch::default();
        queue.take(&mut batch);
        for tag in 0..QUEUED_MAX as u64 {
            queue.append(tag, &[0]).unwrap();
        }
        assert_eq!(queue.append(1, &[0]), Err(SubmitError::Full));
        queue.begin();
        queue.take(&mut batch);
        assert!(batch.data.capacity() <= KEPT_BYTES.max(QUEUED_MAX));
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
