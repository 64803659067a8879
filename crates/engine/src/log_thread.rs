//! The log on a thread of its own, so that whoever serves locks never waits for a disk: what
//! needs the log is submitted and answered later, by a delivery; everything else goes on. While
//! one flush is under way, submissions gather, and the next flush serves them all.

use std::collections::VecDeque;
use std::io;
use std::panic;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::engine::{Committed, Engine, Ticket};
use crate::error::{FlushError, ProposeError, SnapshotError};
use crate::image::WrittenSnapshot;
use crate::log::LogSize;
use crate::queue::{Batch, DrawImage, Queue, Request, SubmitError};

/// A running log. Dropping it without [`LogThread::close`] stops it as a crash would, after what
/// was submitted.
#[derive(Debug)]
pub struct LogThread {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<Result<(), FlushError>>>,
}

/// What the log says, in log order, on its own thread.
#[derive(Debug)]
pub enum Delivery {
    /// These are durable. Apply them in this order, then answer whoever submitted them.
    Committed {
        /// In log order.
        entries: Vec<Applied>,
        /// What the log holds since the last snapshot; see [`SnapshotPolicy`](crate::SnapshotPolicy).
        log: LogSize,
    },
    /// This submission was not taken, and never will be.
    Refused {
        /// The tag that it was submitted with.
        tag: u64,
        /// Why.
        error: ProposeError,
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
    /// Starts the thread. `deliver` is called on it, and the next flush waits for its return: it
    /// should hand the delivery on and wake whoever applies it.
    pub fn start(
        engine: Engine,
        deliver: impl FnMut(Delivery) + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let worker = Worker {
            engine,
            deliver,
            queue: Arc::clone(&queue),
            submitted: VecDeque::new(),
            image_thread: None,
        };
        let thread = thread::Builder::new().name("testigo-log".into());
        let thread = Some(thread.spawn(move || worker.run())?);
        Ok(Self { queue, thread })
    }

    /// Queues an entry. Never waits for the disk. The tag comes back with the delivery. The entry waits for
    /// [`LogThread::begin`], so that one flush serves everything that came with it.
    pub fn submit(&self, tag: u64, data: &[u8]) -> Result<(), SubmitError> {
        self.queue.append(tag, data)
    }

    /// Begins with what was submitted: at once, or when the flush under way has ended.
    pub fn begin(&self) {
        self.queue.begin();
    }

    /// Queues a snapshot: the state after everything delivered up to and with `index`. It is
    /// drawn and written beside the log, which goes on meanwhile; one at a time.
    pub fn snapshot(
        &self,
        index: u64,
        image: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> Result<(), SubmitError> {
        self.queue.snapshot(index, DrawImage(Box::new(image)))
    }

    /// Finishes what was submitted and ends cleanly; see [`Engine::close`]. A snapshot that is
    /// still being written is dropped.
    pub fn close(mut self, image: Option<Vec<u8>>) -> Result<(), FlushError> {
        self.queue.close(image);
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
            self.queue.close(None);
            // A panic of the callback was printed when it happened.
            let _ = thread.join();
        }
    }
}

struct Worker<D> {
    engine: Engine,
    deliver: D,
    queue: Arc<Queue>,
    /// In log order, what was proposed and not yet delivered.
    submitted: VecDeque<(Ticket, u64)>,
    image_thread: Option<JoinHandle<()>>,
}

impl<D: FnMut(Delivery)> Worker<D> {
    fn run(mut self) -> Result<(), FlushError> {
        let mut batch = Batch::default();
        loop {
            let mut closing = None;
            let mut written = None;
            self.queue.take(&mut batch);
            self.engine.look_for_room();
            for (tag, data) in batch.entries() {
                self.propose(tag, data);
            }
            for request in batch.requests.drain(..) {
                match request {
                    Request::Snapshot { index, image } => self.write_image(index, image),
                    Request::Written(result) => written = Some(result),
                    Request::Close { image } => closing = Some(image),
                }
            }
            self.flush();
            if let Some(written) = written {
                self.compact(written);
            }
            if let Some(image) = closing {
                self.finish_image();
                return self.engine.close(image.as_deref());
            }
        }
    }

    fn propose(&mut self, tag: u64, data: &[u8]) {
        match self.engine.propose(data) {
            Ok(ticket) => self.submitted.push_back((ticket, tag)),
            Err(error) => (self.deliver)(Delivery::Refused { tag, error }),
        }
    }

    fn flush(&mut self) {
        if self.submitted.is_empty() {
            return;
        }
        match self.engine.flush() {
            Ok(committed) => {
                let entries = committed.into_iter().map(|entry| self.tagged(entry));
                let entries = entries.collect();
                let log = self.engine.log_size();
                (self.deliver)(Delivery::Committed { entries, log });
            }
            Err(error) => {
                self.queue.stop();
                let unknown = self.submitted.drain(..).map(|(_, tag)| tag).collect();
                (self.deliver)(Delivery::Stopped { error, unknown });
            }
        }
    }

    fn tagged(&mut self, entry: Committed) -> Applied {
        let next = self.submitted.front();
        let own = next.is_some_and(|(ticket, _)| *ticket == entry.ticket);
        let tag = own.then(|| self.submitted.pop_front()).flatten();
        Applied {
            tag: tag.map(|(_, tag)| tag),
            entry,
        }
    }

    /// Writes the image on a thread of its own, which reports back through the queue.
    fn write_image(&mut self, index: u64, DrawImage(image): DrawImage) {
        if let Err(refused) = self.engine.compactable(index) {
            return self.compact(Err(refused));
        }
        self.finish_image();
        let writer = self.engine.image_writer();
        let queue = Arc::clone(&self.queue);
        let thread = thread::Builder::new().name("testigo-image".into());
        let started = thread.spawn(move || queue.written(writer.write(index, &image())));
        match started {
            Ok(thread) => self.image_thread = Some(thread),
            Err(error) => self.queue.written(Err(SnapshotError::Disk(error.into()))),
        }
    }

    fn compact(&mut self, written: Result<WrittenSnapshot, SnapshotError>) {
        let result = written.and_then(|written| {
            let bytes = written.bytes();
            self.engine.compact(written).map(|()| bytes)
        });
        self.queue.snapshot_ended();
        if let Err(SnapshotError::Stopped(_)) = &result {
            self.queue.stop();
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
