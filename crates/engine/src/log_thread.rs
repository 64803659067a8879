//! The log on a thread of its own, so that whoever serves locks need not wait for a disk: what
//! needs the log is submitted and answered later, by a delivery; everything else goes on. While
//! one flush is under way, submissions gather, and the next flush serves them all.
//!
//! Waking a thread and being woken by it takes a good part of the time that a quick disk takes. Whoever can wait for such a
//! disk may therefore do the log's work itself, as a [`Flusher`].

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::engine::Committed;
use crate::error::{FlushError, ProposeError, SnapshotError};
use crate::image::WrittenSnapshot;
use crate::log::LogSize;
use crate::origin::Origin;
use crate::queue::{Batch, DrawImage, Queue, Request, SubmitError};
use crate::seam::Group;

/// A running log. Dropping it without [`LogThread::close`] stops it as a crash would, after what
/// was submitted.
#[derive(Debug)]
pub struct LogThread {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<Result<(), FlushError>>>,
}

/// A flush that took no longer than this was quick.
pub const QUICK: Duration = Duration::from_micros(500);

/// Does the log's work on the caller's thread.
#[derive(Debug, Clone)]
pub struct Flusher {
    desk: Arc<Desk>,
}

/// What the log's thread and the flushers share.
#[derive(Debug)]
struct Desk {
    queue: Queue,
    /// Whoever has this does the log's work. Nobody does after the end.
    worker: Mutex<Option<Worker>>,
    /// The last flush was quick.
    quick: AtomicBool,
}

/// What the log says, in log order, on the thread that does its work.
#[derive(Debug)]
pub enum Delivery {
    /// These are durable. Apply them in this order, then answer whoever submitted them.
    Committed {
        /// In log order.
        entries: Vec<Applied>,
        /// What the log holds since the last snapshot; see [`SnapshotPolicy`](crate::SnapshotPolicy).
        log: LogSize,
        /// What was free on the disk before it, if the system says.
        free_bytes: u64,
    },
    /// This submission was not taken, and never will be.
    Refused {
        /// The tag that it was submitted with.
        tag: u64,
        /// Why.
        error: ProposeError,
    },
    /// The log is full. What is submitted waits until a snapshot replaces it: of the state after everything delivered, up to
    /// and with this index. If that snapshot fails, what waits is refused.
    Full {
        /// Where the log ends.
        index: u64,
    },
    /// A snapshot ended: it has replaced the log up to its index and has so many bytes, or nothing has
    /// changed.
    Snapshot(Result<u64, SnapshotError>),
    /// The disk failed, and the log writes nothing more.
    Stopped {
        /// Why.
        error: FlushError,
        /// The submissions whose fate is unknown until the directory is opened again.
        unknown: Vec<u64>,
    },
}

/// A committed entry and who submitted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The tag that it was submitted with; none if another member proposed it.
    pub tag: Option<u64>,
    /// The entry.
    pub entry: Committed,
}

impl LogThread {
    /// Starts the thread. `deliver` is called on the thread that does the log's work, and the next
    /// flush waits for its return: it should hand the delivery on and wake whoever applies it.
    pub fn start(
        engine: impl Group + 'static,
        deliver: impl FnMut(Delivery) + Send + 'static,
    ) -> io::Result<Self> {
        let worker = Worker {
            engine: Box::new(engine),
            free_bytes: u64::MAX,
            deliver: Box::new(deliver),
            batch: Batch::default(),
            submitted: VecDeque::new(),
            image_thread: None,
            snapshot_failed: false,
        };
        let desk = Arc::new(Desk {
            queue: Queue::default(),
            worker: Mutex::new(Some(worker)),
            quick: AtomicBool::new(false),
        });
        let own = Arc::clone(&desk);
        let thread = thread::Builder::new().name("testigo-log".into());
        let thread = Some(thread.spawn(move || Desk::run(&own))?);
        Ok(Self { desk, thread })
    }

    /// Somebody who may do the log's work.
    pub fn flusher(&self) -> Flusher {
        Flusher {
            desk: Arc::clone(&self.desk),
        }
    }

    /// Queues an entry. Never waits for the disk. The tag comes back with the delivery. The entry waits for
    /// [`LogThread::begin`], so that one flush serves everything that came with it.
    pub fn submit(&self, tag: u64, data: &[u8]) -> Result<(), SubmitError> {
        self.desk.queue.append(tag, data)
    }

    /// Begins with what was submitted: at once, or when the flush under way has ended.
    pub fn begin(&self) {
        self.desk.queue.begin();
    }

    /// Queues a snapshot: the state after everything delivered up to and with `index`. It is
    /// drawn and written beside the log, which goes on meanwhile; one at a time.
    pub fn snapshot(
        &self,
        index: u64,
        image: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> Result<(), SubmitError> {
        let image = DrawImage(Box::new(image));
        self.desk.queue.snapshot(index, image)
    }

    /// Finishes what was submitted and ends cleanly; see [`Group::close`]. A snapshot that is
    /// still being written is dropped.
    pub fn close(mut self, image: Option<Vec<u8>>) -> Result<(), FlushError> {
        self.desk.queue.close(image);
        self.join().unwrap_or(Ok(()))
    }

    fn join(&mut self) -> Option<Result<(), FlushError>> {
        match self.thread.take()?.join() {
            Ok(closed) => Some(closed),
            Err(panicked) => panic::resume_unwind(panicked),
        }
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.desk.queue.close(None);
            // A panic of the callback was printed when it happened.
            let _ = thread.join();
        }
    }
}

impl Flusher {
    /// Whether the disk is quick enough to be waited for.
    pub fn is_quick(&self) -> bool {
        self.desk.quick.load(Ordering::Relaxed)
    }

    /// Makes what was submitted durable, and delivers it, before it returns; unless somebody is at work already: then the
    /// log's own thread goes on with it.
    pub fn flush(&self) {
        let mut worker = match self.desk.worker.try_lock() {
            Ok(worker) => worker,
            Err(TryLockError::WouldBlock) => return self.desk.queue.begin(),
            Err(TryLockError::Poisoned(_)) => return,
        };
        if let Some(worker) = worker.as_mut() {
            self.desk.queue.take_entries(&mut worker.batch);
            worker.work(&self.desk);
        }
    }
}

impl Desk {
    /// The log's own thread.
    fn run(self: &Arc<Self>) -> Result<(), FlushError> {
        loop {
            self.queue.wait();
            // Whoever panicked has left the log as a crash would.
            let Ok(mut seat) = self.worker.lock() else {
                return Ok(());
            };
            let Some(worker) = seat.as_mut() else {
                return Ok(());
            };
            // Only now: what a flusher submits later must come later.
            self.queue.take(&mut worker.batch);
            if let Some(image) = worker.work(self) {
                worker.finish_image();
                let worker = seat.take();
                return worker.map_or(Ok(()), |worker| worker.engine.close(image.as_deref()));
            }
        }
    }
}

struct Worker {
    engine: Box<dyn Group>,
    /// What the disk had free when it was last looked at.
    free_bytes: u64,
    deliver: Box<dyn FnMut(Delivery) + Send>,
    /// What is being worked on.
    batch: Batch,
    /// In log order, what was proposed and not yet delivered.
    submitted: VecDeque<(Origin, u64)>,
    image_thread: Option<JoinHandle<()>>,
    /// The last snapshot did, so that nothing can wait for it.
    snapshot_failed: bool,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("own", &self.engine.own())
            .field("submitted", &self.submitted)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// Does what the batch says. If that is to close, says with which image.
    fn work(&mut self, desk: &Arc<Desk>) -> Option<Option<Vec<u8>>> {
        let (mut closing, mut written) = (None, None);
        let mut batch = std::mem::take(&mut self.batch);
        self.free_bytes = self.engine.look_for_room();
        let all_had_room = self.propose(desk, &batch);
        for request in batch.requests.drain(..) {
            match request {
                Request::Snapshot { index, image } => self.write_image(desk, index, image),
                Request::Written(result) => written = Some(result),
                Request::Close { image } => closing = Some(image),
            }
        }
        self.batch = batch;
        self.flush(desk);
        if !all_had_room {
            let index = self.engine.delivered();
            (self.deliver)(Delivery::Full { index });
        }
        if let Some(written) = written {
            self.compact(desk, written);
        }
        closing
    }

    /// Proposes the batch's entries, as far as there is room in the log; whether there was for all.
    fn propose(&mut self, desk: &Desk, batch: &Batch) -> bool {
        let may_wait = !std::mem::take(&mut self.snapshot_failed) && !batch.closes();
        for (nth, (tag, data)) in batch.entries().enumerate() {
            match self.engine.propose(data) {
                Ok(origin) => self.submitted.push_back((origin, tag)),
                Err(ProposeError::LogFull) if may_wait => {
                    desk.queue.hold(batch, nth);
                    return false;
                }
                Err(error) => (self.deliver)(Delivery::Refused { tag, error }),
            }
        }
        true
    }

    fn flush(&mut self, desk: &Desk) {
        if self.submitted.is_empty() {
            return;
        }
        let begun = Instant::now();
        let flushed = self.engine.flush();
        desk.quick
            .store(begun.elapsed() <= QUICK, Ordering::Relaxed);
        match flushed {
            Ok(committed) => {
                let entries = committed.into_iter().map(|entry| self.tagged(entry));
                let entries = entries.collect();
                let (log, free_bytes) = (self.engine.log_size(), self.free_bytes);
                (self.deliver)(Delivery::Committed {
                    entries,
                    log,
                    free_bytes,
                });
            }
            Err(error) => {
                desk.queue.stop();
                let unknown = self.submitted.drain(..).map(|(_, tag)| tag).collect();
                (self.deliver)(Delivery::Stopped { error, unknown });
            }
        }
    }

    fn tagged(&mut self, entry: Committed) -> Applied {
        let next = self.submitted.front();
        let own = next.is_some_and(|(origin, _)| Some(*origin) == entry.origin);
        let tag = own.then(|| self.submitted.pop_front()).flatten();
        Applied {
            tag: tag.map(|(_, tag)| tag),
            entry,
        }
    }

    /// Writes the image on a thread of its own, which reports back through the queue.
    fn write_image(&mut self, desk: &Arc<Desk>, index: u64, DrawImage(image): DrawImage) {
        let writer = match self.engine.image_writer(index) {
            Ok(writer) => writer,
            Err(refused) => return self.compact(desk, Err(refused)),
        };
        self.finish_image();
        let own = Arc::clone(desk);
        let thread = thread::Builder::new().name("testigo-image".into());
        let started = thread.spawn(move || own.queue.written(writer.write(index, &image())));
        match started {
            Ok(thread) => self.image_thread = Some(thread),
            Err(error) => desk.queue.written(Err(SnapshotError::Disk(error.into()))),
        }
    }

    fn compact(&mut self, desk: &Desk, written: Result<WrittenSnapshot, SnapshotError>) {
        let result = written.and_then(|written| {
            let bytes = written.bytes();
            self.engine.compact(written).map(|()| bytes)
        });
        self.snapshot_failed = result.is_err();
        desk.queue.snapshot_ended();
        if let Err(SnapshotError::Stopped(_)) = &result {
            desk.queue.stop();
        }
        (self.deliver)(Delivery::Snapshot(result));
    }

    fn finish_image(&mut self) {
        if let Some(thread) = self.image_thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[path = "log_thread_tests.rs"]
mod tests;
