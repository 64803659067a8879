//! The log on its own thread, so that code that serves locks need not wait for a disk: what needs the log is submitted, and
//! answered later by a delivery; everything else goes on. Submissions gather during a flush, and the next flush serves them
//! all.
//!
//! To wake a thread and be woken by it takes a good part of the time of a quick disk. A caller that can wait for such a disk
//! may therefore do the log's work itself, as a [`Flusher`].
//!
//! In a group ([`LogThread::start_among`]) the same holds for frames: the thread that hears or says one does the work at
//! once, and only what must wait for a disk is left to the log's own thread. The links have their own desk, so that what one
//! start says to another waits for no flush. [`ByHand`] is the same without any thread, for a simulator.

use std::io;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::delivery::Delivery;
use crate::elections::TICK_MS;
use crate::error::FlushError;
use crate::link_desk::{Deliver, LinkAsk, LinkDesk, SharedSends};
use crate::links::Peer;
use crate::members::MemberChange;
use crate::queue::{Ask, DrawImage, Queue, SubmitError};
use crate::seam::{Group, Sends};
use crate::wire::is_numbered;
use crate::worker::Worker;

/// A running log. Dropping it without [`LogThread::close`] stops it like a crash, after what was submitted.
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

/// Passes frames to a log, from the threads that read them from sockets.
#[derive(Debug, Clone)]
pub struct Hearer {
    desk: Arc<Desk>,
}

/// Does the work of a log that has no thread, when called; see [`LogThread::by_hand`].
#[derive(Debug)]
pub struct ByHand {
    desk: Arc<Desk>,
}

/// What the log's thread and the flushers share.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) queue: Queue,
    /// The thread with this lock does the log's work. `None` after the end.
    worker: Mutex<Option<Worker>>,
    /// Whether the last flush was quick.
    pub(crate) quick: AtomicBool,
    /// `None` if the node is alone.
    links: Option<LinkDesk>,
    /// Set if nothing is done unless a [`ByHand`] says so.
    pub(crate) by_hand: bool,
}

impl LogThread {
    /// Starts the log of a node that is alone. `deliver` is called on the thread that does the log's work, and the next flush
    /// waits until it returns: it should pass the delivery on and wake the thread that applies it.
    pub fn start(
        engine: impl Group + 'static,
        deliver: impl FnMut(Delivery) + Send + 'static,
    ) -> io::Result<Self> {
        let worker = Worker::new(Box::new(engine), None, Box::new(deliver));
        Self::with_thread(Desk::new(worker, None, false))
    }

    /// Starts the log of a member. `deliver` is called on the threads that do the log's and the links' work, one call at a
    /// time for each of the two. It may say and submit, but must not wait.
    pub fn start_among(
        engine: impl Group + 'static,
        sends: Box<dyn Sends>,
        deliver: impl Fn(Delivery) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::with_thread(Desk::among(Box::new(engine), sends, deliver, false))
    }

    /// The log of a member without a thread: it does nothing unless the other half says so.
    pub fn by_hand(
        engine: impl Group + 'static,
        sends: Box<dyn Sends>,
        deliver: impl Fn(Delivery) + Send + Sync + 'static,
    ) -> (Self, ByHand) {
        let desk = Arc::new(Desk::among(Box::new(engine), sends, deliver, true));
        let by_hand = ByHand {
            desk: Arc::clone(&desk),
        };
        (Self { desk, thread: None }, by_hand)
    }

    fn with_thread(desk: Desk) -> io::Result<Self> {
        let desk = Arc::new(desk);
        let own = Arc::clone(&desk);
        let thread = thread::Builder::new().name("testigo-log".into());
        let thread = Some(thread.spawn(move || Desk::run(&own))?);
        Ok(Self { desk, thread })
    }

    /// A handle that can do the log's work.
    pub fn flusher(&self) -> Flusher {
        Flusher {
            desk: Arc::clone(&self.desk),
        }
    }

    /// A handle that passes frames to the log.
    pub fn hearer(&self) -> Hearer {
        Hearer {
            desk: Arc::clone(&self.desk),
        }
    }

    /// Queues an entry. Never waits for the disk. The tag comes back with the delivery. The entry waits for
    /// [`LogThread::begin`], so that one flush serves everything that came with it.
    pub fn submit(&self, tag: u64, data: &[u8]) -> Result<(), SubmitError> {
        self.desk.queue.append(tag, data)
    }

    /// Begins with what was submitted, asked for and said: at once, or when the present flush has ended. What was said is
    /// sent now.
    pub fn begin(&self) {
        self.desk.begin(false);
    }

    /// Takes a frame from this node; see [`Hearer::hear`].
    pub fn hear(&self, from: u64, frame: Bytes) {
        self.desk.hear(from, [frame]);
    }

    /// Sends a payload to a start of another node: it arrives once and in order with all that is sent there, unless either
    /// start ends. It goes out with [`LogThread::begin`] and waits for no disk.
    pub fn say(&self, to: Peer, payload: Vec<u8>) {
        self.desk.ask_links(LinkAsk::Say { to, payload });
    }

    /// Asks for an index that is at least as high as anything applied anywhere before; [`Delivery::Read`] answers. Tags must
    /// rise.
    pub fn ask_read(&self, tag: u64) {
        self.desk.queue.ask(Ask::Read { tag });
    }

    /// Proposes other members, if this node leads; [`Delivery::MembersChanged`] answers.
    pub fn change_members(&self, tag: u64, change: MemberChange) {
        self.desk.queue.ask(Ask::ChangeMembers { tag, change });
    }

    /// These starts were left out: ends the links to them, and to earlier starts of their nodes, with what waits on them.
    pub fn end_links(&self, peers: Vec<Peer>) {
        self.desk.ask_links(LinkAsk::End(peers));
    }

    /// Stops answering a start's reads, as long as this node leads without a break; [`Delivery::ReadsRefused`] says from
    /// when.
    pub fn refuse_reads(&self, tag: u64, peer: Peer) {
        self.desk.queue.ask(Ask::RefuseReads { peer, tag });
    }

    /// Answers a start's reads again.
    pub fn allow_reads(&self, peer: Peer) {
        self.desk.queue.ask(Ask::AllowReads(peer));
    }

    /// Lets another member lead, if this node does.
    pub fn lead(&self, node: u64) {
        self.desk.queue.ask(Ask::Lead(node));
    }

    /// How many invalid frames were dropped.
    pub fn frames_refused(&self) -> u64 {
        self.desk.links.as_ref().map_or(0, LinkDesk::refused)
    }

    /// Queues a snapshot of the state after everything delivered up to and including `index`. It is made and written beside
    /// the log, which goes on meanwhile; one at a time.
    pub fn snapshot(
        &self,
        index: u64,
        image: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> Result<(), SubmitError> {
        let image = DrawImage(Box::new(image));
        self.desk.queue.snapshot(index, image)
    }

    /// Finishes what was submitted and ends cleanly; see [`Group::close`]. A snapshot that is still being written is dropped.
    pub fn close(mut self, image: Option<Vec<u8>>) -> Result<(), FlushError> {
        self.desk.queue.close(image);
        if self.desk.by_hand {
            return self.desk.work().unwrap_or(Ok(()));
        }
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
    /// Whether the disk is quick enough to wait for.
    pub fn is_quick(&self) -> bool {
        self.desk.quick.load(Ordering::Relaxed)
    }

    /// Makes what was submitted durable and delivers it before returning. If another thread is at work already, the log's own
    /// thread goes on with it.
    pub fn flush(&self) {
        if self.desk.links.is_some() {
            return self.desk.begin(true);
        }
        let mut worker = match self.desk.worker.try_lock() {
            Ok(worker) => worker,
            Err(TryLockError::WouldBlock) => return self.desk.queue.begin(),
            Err(TryLockError::Poisoned(_)) => return,
        };
        if let Some(worker) = worker.as_mut() {
            self.desk.queue.take_entries(&mut worker.batch);
            worker.work(&self.desk, true);
        }
    }
}

impl Hearer {
    /// Takes a frame from this node. The caller's thread handles it unless another is at work; it waits for a disk only if
    /// that is quick. Invalid frames are dropped.
    pub fn hear(&self, from: u64, frame: Bytes) {
        self.desk.hear(from, [frame]);
    }

    /// Takes several frames from this node and handles them together.
    pub fn hear_all(&self, from: u64, frames: impl IntoIterator<Item = Bytes>) {
        self.desk.hear(from, frames);
    }
}

impl ByHand {
    /// Advances time.
    pub fn tick(&self) {
        self.desk.queue.ask(Ask::Tick);
        self.desk.ask_links(LinkAsk::Tick);
    }

    /// Does the links' work, which no present flush holds up.
    pub fn links(&self) {
        if let Some(links) = &self.desk.links {
            links.pass();
        }
    }

    /// Does everything that was asked for, up to a flush of the disk. Says whether there is a flush to end with
    /// [`ByHand::flush`]; until then this does nothing more.
    pub fn begin(&self) -> bool {
        self.links();
        if self.is_begun() {
            return true;
        }
        let mut seat = self.desk.seat();
        if let Some(worker) = seat.as_mut() {
            self.desk.queue.take(&mut worker.batch);
            worker.work(&self.desk, false);
        }
        drop(seat);
        self.is_begun()
    }

    /// Ends a flush.
    pub fn flush(&self) {
        let mut seat = self.desk.seat();
        if let Some(worker) = seat.as_mut().filter(|worker| worker.is_begun()) {
            worker.end(&self.desk);
        }
    }

    /// Whether a flush was begun and the disk is at it.
    pub fn is_begun(&self) -> bool {
        let seat = self.desk.seat();
        seat.as_ref().is_some_and(Worker::is_begun)
    }

    /// Whether there is something to do.
    pub fn is_asked(&self) -> bool {
        self.desk.queue.may_be_taken()
    }

    /// Does everything that was asked for, with all flushes.
    pub fn turn(&self) {
        while self.begin() || self.is_asked() {
            self.flush();
        }
    }
}

impl Desk {
    fn new(worker: Worker, links: Option<LinkDesk>, by_hand: bool) -> Self {
        Self {
            queue: Queue::default(),
            worker: Mutex::new(Some(worker)),
            quick: AtomicBool::new(false),
            links,
            by_hand,
        }
    }

    fn among(
        engine: Box<dyn Group>,
        sends: Box<dyn Sends>,
        deliver: impl Fn(Delivery) + Send + Sync + 'static,
        by_hand: bool,
    ) -> Self {
        let sends: SharedSends = Arc::new(Mutex::new(sends));
        let deliver: Deliver = Arc::new(deliver);
        let links = LinkDesk::new(&*engine, Arc::clone(&sends), Arc::clone(&deliver));
        let deliver = Box::new(move |delivery| deliver(delivery));
        let worker = Worker::new(engine, Some(sends), deliver);
        Self::new(worker, Some(links), by_hand)
    }

    /// Runs the log's own thread.
    fn run(self: &Arc<Self>) -> Result<(), FlushError> {
        let tick = Duration::from_millis(TICK_MS);
        let mut due = Instant::now() + tick;
        loop {
            match &self.links {
                None => self.queue.wait(),
                Some(links) => {
                    self.queue.wait_until(due);
                    let now = Instant::now();
                    if now >= due {
                        // After a delay, missed ticks are not made up for.
                        due = now + tick;
                        self.queue.ask(Ask::Tick);
                        links.ask(LinkAsk::Tick);
                        links.pass();
                    }
                }
            }
            if let Some(closed) = self.work() {
                return closed;
            }
        }
    }

    /// A caller that works by hand is the only one.
    fn seat(&self) -> MutexGuard<'_, Option<Worker>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does everything that waits, including the disk. If that was to close, or a thread has panicked, says how it ended.
    fn work(self: &Arc<Self>) -> Option<Result<(), FlushError>> {
        // A thread that panicked has left the log as a crash would.
        let Ok(mut seat) = self.worker.lock() else {
            return Some(Ok(()));
        };
        let Some(worker) = seat.as_mut() else {
            return Some(Ok(()));
        };
        if worker.is_begun() {
            worker.end(self);
        }
        // Only now, because what a flusher submits later must come later.
        self.queue.take(&mut worker.batch);
        let image = worker.work(self, true)?;
        worker.finish_image();
        let worker = seat.take();
        Some(worker.map_or(Ok(()), |worker| worker.engine.close(image.as_deref())))
    }

    /// Sends what was said, and does what was asked for on the caller's thread.
    fn begin(self: &Arc<Self>, may_wait: bool) {
        let Some(links) = &self.links else {
            return self.queue.begin();
        };
        if self.by_hand {
            return;
        }
        links.pass();
        if !self.pass(may_wait) {
            self.queue.begin();
        }
    }

    fn hear(self: &Arc<Self>, from: u64, frames: impl IntoIterator<Item = Bytes>) {
        let Some(links) = &self.links else {
            return;
        };
        let (mut of_links, mut of_log) = (false, false);
        for frame in frames {
            if is_numbered(&frame) {
                links.ask(LinkAsk::Heard { from, frame });
                of_links = true;
            } else {
                self.queue.ask(Ask::Heard { from, frame });
                of_log = true;
            }
        }
        if self.by_hand {
            return;
        }
        if of_links {
            links.pass();
        }
        if of_log {
            self.pass(self.quick.load(Ordering::Relaxed));
        }
    }

    pub(crate) fn refuse_frame(&self) {
        if let Some(links) = &self.links {
            links.refuse();
        }
    }

    fn ask_links(&self, ask: LinkAsk) {
        if let Some(links) = &self.links {
            links.ask(ask);
        }
    }

    /// Does what was asked for, unless another thread is at it, which then goes on with it. Says whether it did.
    fn pass(self: &Arc<Self>, may_wait: bool) -> bool {
        loop {
            let mut seat = match self.worker.try_lock() {
                Ok(seat) => seat,
                Err(TryLockError::WouldBlock) => return false,
                Err(TryLockError::Poisoned(_)) => return true,
            };
            let Some(worker) = seat.as_mut() else {
                return true;
            };
            if worker.is_begun() {
                // The log's own thread was told.
                if !may_wait {
                    return false;
                }
                worker.end(self);
            }
            self.queue.take_entries(&mut worker.batch);
            if !worker.batch.is_empty() {
                worker.work(self, may_wait);
            }
            drop(seat);
            // A thread that found another at work has queued its asks before.
            if !self.queue.is_asked() {
                return true;
            }
        }
    }
}

#[cfg(test)]
#[path = "log_thread_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "among_tests.rs"]
mod among_tests;
