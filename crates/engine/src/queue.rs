//! What waits for the log's thread. Adding never waits for the disk; taking takes everything at once, so that one flush
//! serves all that wait.

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

/// How many bytes of received frames may wait, 64 MiB. More are lost, as if on the way.
pub const HEARD_BYTES_MAX: usize = 64 << 20;

/// Why a request was not queued. It certainly had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// [`QUEUED_MAX`] or [`QUEUED_BYTES_MAX`] is reached: the disk is slower than the requests.
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

/// Work for the log's thread. Entries are one run of bytes, so that no submitter gives away memory that another thread would
/// have to free.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    data: Vec<u8>,
    /// The tags of the entries, and where each ends.
    entries: Vec<(u64, usize)>,
    /// What is to be done before the entries are proposed.
    pub(crate) asks: Vec<Ask>,
    pub(crate) requests: Vec<Request>,
}

/// A request to a log in a group. Any thread that does the log's work also does this.
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

/// A request to the log's own thread apart from entries. None depends on the entries that wait with it.
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
    /// The bytes of the frames in it.
    heard_bytes: usize,
    /// Whether it may be taken.
    begun: bool,
    /// Whether the log has no room for the entries, which wait for a snapshot.
    held: bool,
    snapshot_in_progress: bool,
    stopped: bool,
}

/// How much memory an emptied batch may keep.
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

    /// Whether it ends the log.
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

    /// Nothing is held any more: what waits is to be refused.
    fn stop(&mut self) {
        self.stopped = true;
        self.held = false;
        self.begun = self.may_be_taken();
    }
}

impl Queue {
    /// Adds an entry; it may be taken after [`Queue::begin`].
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

    /// Adds an ask for the thread that does the log's work next.
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

    /// Whether anything waits that may be taken, begun or not.
    pub(crate) fn may_be_taken(&self) -> bool {
        self.lock().may_be_taken()
    }

    /// Makes the log's thread look at the log, whatever waits.
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

    /// Whatever the result, entries that waited for it may be taken again.
    pub(crate) fn snapshot_ended(&self) {
        let mut waiting = self.lock();
        waiting.snapshot_in_progress = false;
        waiting.held = false;
        waiting.begun = waiting.may_be_taken();
    }

    /// Puts a batch's entries from the nth on back, before those that came later, to wait for a snapshot. Nothing waits after
    /// the end.
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

    /// Waits until there is something to take.
    pub(crate) fn wait(&self) {
        let waiting = self.lock();
        let begun = self.arrived.wait_while(waiting, |waiting| !waiting.begun);
        drop(begun.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until there is something to take or an ask, or until the time has come.
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

    /// Takes everything that waits, into a batch whose memory is reused. Entries that are held stay.
    pub(crate) fn take(&self, batch: &mut Batch) {
        let mut waiting = self.lock();
        waiting.take_entries(batch);
        waiting.begun = false;
        std::mem::swap(&mut waiting.batch.requests, &mut batch.requests);
    }

    /// Like [`Queue::take`], without the requests for the log's own thread.
    pub(crate) fn take_entries(&self, batch: &mut Batch) {
        self.lock().take_entries(batch);
    }

    fn put(&self, mut waiting: MutexGuard<'_, Waiting>, request: Request) {
        waiting.batch.requests.push(request);
        waiting.begun = true;
        drop(waiting);
        self.arrived.notify_one();
    }

    /// No code panics while it holds the lock, so a poisoned one is intact.
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
