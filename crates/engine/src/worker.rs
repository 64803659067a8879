//! What the thread needs that does the log's work: the engine, and who waits for what in it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::delivery::{Applied, Delivery, DiskRoom, Standing};
use crate::engine::Committed;
use crate::error::{FlushError, ProposeError, SnapshotError};
use crate::image::WrittenSnapshot;
use crate::link_desk::{SharedSends, send};
use crate::links::Peer;
use crate::log_thread::{Desk, QUICK};
use crate::members::MemberError;
use crate::origin::Origin;
use crate::queue::{Ask, Batch, DrawImage, Request};
use crate::seam::Group;
use crate::wire::FrameError;

pub(crate) struct Worker {
    pub(crate) engine: Box<dyn Group>,
    /// The free space on the disk at the last look.
    free_bytes: u64,
    deliver: Box<dyn FnMut(Delivery) + Send>,
    /// The batch in progress.
    pub(crate) batch: Batch,
    /// Proposals that are not delivered yet, in log order.
    submitted: VecDeque<(Origin, u64)>,
    image_thread: Option<JoinHandle<()>>,
    /// Whether the last snapshot failed, so that nothing can wait for it.
    snapshot_failed: bool,
    /// Whether there was no room for all proposals.
    full: bool,
    /// A snapshot that is written and has not replaced the log yet.
    written: Option<Result<WrittenSnapshot, SnapshotError>>,
    /// `None` if the node is alone.
    among: Option<Among>,
}

/// What a log in a group has in addition.
struct Among {
    sends: SharedSends,
    /// Whether a flush was begun and is left to a thread that may wait for the disk.
    begun: bool,
    /// Whether the disk has failed, so that nothing more is done.
    stopped: bool,
    /// Whether the leader has said so.
    behind: bool,
    /// What was last delivered.
    standing: Standing,
    room: DiskRoom,
    delivered: u64,
    /// The numbers of the engine's asks, and their tags.
    reads: VecDeque<(u64, u64)>,
    /// To be delivered when the turn is over.
    refused: Vec<(Peer, u64)>,
    changed: Vec<(u64, Result<(), MemberError>)>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("own", &self.engine.own())
            .field("submitted", &self.submitted)
            .finish_non_exhaustive()
    }
}

/// How to close: with an image, or without.
pub(crate) type Closing = Option<Vec<u8>>;

impl Worker {
    pub(crate) fn new(
        engine: Box<dyn Group>,
        sends: Option<SharedSends>,
        deliver: Box<dyn FnMut(Delivery) + Send>,
    ) -> Self {
        let among = sends.map(|sends| Among {
            sends,
            begun: false,
            stopped: false,
            behind: false,
            standing: Standing::default(),
            room: DiskRoom::default(),
            delivered: engine.delivered(),
            reads: VecDeque::new(),
            refused: Vec::new(),
            changed: Vec::new(),
        });
        Self {
            engine,
            free_bytes: u64::MAX,
            deliver,
            batch: Batch::default(),
            submitted: VecDeque::new(),
            image_thread: None,
            snapshot_failed: false,
            full: false,
            written: None,
            among,
        }
    }

    /// Does what the batch says. A caller that may not wait for the disk leaves that to the log's own thread. If the batch
    /// says to close, returns how.
    pub(crate) fn work(&mut self, desk: &Arc<Desk>, may_wait: bool) -> Option<Closing> {
        let mut closing = None;
        let mut batch = std::mem::take(&mut self.batch);
        if self.among.is_none() || batch.has_entries() {
            self.free_bytes = self.engine.look_for_room();
        }
        for ask in batch.asks.drain(..) {
            self.hear(desk, ask);
        }
        self.full = !self.propose(desk, &batch);
        for request in batch.requests.drain(..) {
            match request {
                Request::Snapshot { index, image } => self.write_image(desk, index, image),
                Request::Written(result) => self.written = Some(result),
                Request::Close { image } => closing = Some(image),
            }
        }
        self.batch = batch;
        match self.among.as_ref().map(|among| among.stopped) {
            Some(false) if self.begin() && !may_wait => desk.queue.wake(),
            Some(false) => self.end(desk),
            alone => {
                if alone.is_none() {
                    self.flush(desk);
                }
                self.after_flush(desk);
            }
        }
        closing
    }

    fn after_flush(&mut self, desk: &Desk) {
        if std::mem::take(&mut self.full) {
            let index = self.engine.delivered();
            (self.deliver)(Delivery::Full { index });
        }
        if let Some(written) = self.written.take() {
            self.compact(desk, written);
        }
    }

    /// Does what this node's house or other nodes ask for.
    fn hear(&mut self, desk: &Desk, ask: Ask) {
        let Some(among) = self.among.as_mut().filter(|among| !among.stopped) else {
            return;
        };
        match ask {
            Ask::Heard { from, frame } => {
                if let Err(error) = self.engine.step(from, &frame) {
                    among.behind |= error == FrameError::Behind;
                    desk.refuse_frame();
                }
            }
            Ask::Tick => {
                self.free_bytes = self.engine.look_for_room();
                self.engine.tick();
                self.answer_for_want_of_room();
            }
            Ask::Read { tag } => among.reads.push_back((self.engine.ask_read(), tag)),
            Ask::ChangeMembers { tag, change } => {
                among
                    .changed
                    .push((tag, self.engine.change_members(change)));
            }
            Ask::RefuseReads { peer, tag } => {
                self.engine.refuse_reads(peer);
                among.refused.push((peer, tag));
            }
            Ask::AllowReads(peer) => {
                self.engine.allow_reads(peer);
                among.refused.retain(|(refused, _)| *refused != peer);
            }
            Ask::Lead(node) => self.engine.lead(node),
        }
    }

    /// No disk has room: answers those who would wait for it.
    fn answer_for_want_of_room(&mut self) {
        if let Some((first, error)) = self.engine.take_refused() {
            let kept = |(origin, _): &(Origin, u64)| origin.sequence < first;
            let kept = self.submitted.partition_point(kept);
            for (_, tag) in self.submitted.split_off(kept) {
                let error = error.clone();
                (self.deliver)(Delivery::Refused { tag, error });
            }
        }
        let stuck = self.engine.take_stuck();
        if let Some(error) = stuck.filter(|_| !self.submitted.is_empty()) {
            let unknown = self.submitted.drain(..).map(|(_, tag)| tag).collect();
            (self.deliver)(Delivery::Stuck { unknown, error });
        }
    }

    /// Proposes the batch's entries, as far as the log has room; says whether it had room for all.
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

    /// Alone, only submissions need a flush.
    fn flush(&mut self, desk: &Desk) {
        if self.submitted.is_empty() {
            return;
        }
        let begun = Instant::now();
        let flushed = self.engine.flush();
        desk.quick
            .store(begun.elapsed() <= QUICK, Ordering::Relaxed);
        match flushed {
            Ok(committed) => self.deliver_committed(committed),
            Err(error) => self.stop(desk, error),
        }
    }

    /// In a group: sends what need not wait for the disk. Says whether the rest must.
    fn begin(&mut self) -> bool {
        let waits = self.engine.begin();
        self.send();
        if let Some(among) = &mut self.among {
            among.begun = true;
        }
        waits
    }

    /// Whether a flush was begun and left to a thread that may wait.
    pub(crate) fn is_begun(&self) -> bool {
        self.among.as_ref().is_some_and(|among| among.begun)
    }

    /// Ends the flush that was begun, and delivers the results.
    pub(crate) fn end(&mut self, desk: &Desk) {
        let waits = self.engine.begin();
        let begun = Instant::now();
        let flushed = self.engine.flush();
        if waits {
            let quick = begun.elapsed() <= QUICK;
            desk.quick.store(quick, Ordering::Relaxed);
        }
        self.send();
        match flushed {
            Ok(committed) => self.tell(committed),
            Err(error) => self.stop(desk, error),
        }
        self.after_flush(desk);
    }

    fn send(&mut self) {
        let outgoing = self.engine.take_outgoing();
        if let Some(among) = self.among.as_ref().filter(|_| !outgoing.is_empty()) {
            send(&among.sends, outgoing);
        }
    }

    fn tell(&mut self, committed: Vec<Committed>) {
        if let Some(snapshot) = self.engine.take_restored() {
            let unknown = self.passed_over(&committed);
            (self.deliver)(Delivery::Restored { snapshot, unknown });
        }
        let delivered = self.engine.delivered();
        let Some(among) = &mut self.among else { return };
        among.begun = false;
        if std::mem::replace(&mut among.delivered, delivered) != delivered {
            self.deliver_committed(committed);
        }
        self.tell_standing();
        self.tell_room();
        let (asked, answered) = (self.engine.take_asked(), self.engine.take_answered());
        if !asked.is_empty() {
            (self.deliver)(Delivery::Asked(asked));
        }
        if !answered.is_empty() {
            (self.deliver)(Delivery::Answered(answered));
        }
        let Some(among) = &mut self.among else { return };
        let term = among.standing.term;
        for (peer, tag) in among.refused.drain(..) {
            (self.deliver)(Delivery::ReadsRefused { peer, tag, term });
        }
        for (tag, result) in among.changed.drain(..) {
            (self.deliver)(Delivery::MembersChanged { tag, result });
        }
        for read in self.engine.take_reads() {
            let answered = |(ask, _): &(u64, u64)| *ask <= read.ask;
            let answered = drain_while(&mut among.reads, answered);
            if let Some((_, tag)) = answered.last() {
                let (tag, index) = (*tag, read.index);
                (self.deliver)(Delivery::Read { tag, index });
            }
        }
    }

    fn tell_standing(&mut self) {
        let Some(among) = &mut self.among else { return };
        let (leader, term) = self.engine.leader();
        let members = self.engine.members();
        let (told, behind) = (&among.standing, among.behind);
        if (told.leader, told.term, &told.members, told.behind) != (leader, term, members, behind) {
            among.standing = Standing {
                leader,
                term,
                leads: leader == Some(self.engine.own().node),
                members: members.clone(),
                behind,
            };
            (self.deliver)(Delivery::Standing(among.standing.clone()));
        }
    }

    fn tell_room(&mut self) {
        let Some(among) = &mut self.among else { return };
        let room = self.engine.room();
        let told = &mut among.room;
        if (told.room, told.handed_to) != (room.room, room.handed_to) {
            *told = room;
            (self.deliver)(Delivery::Room(room));
        }
    }

    fn deliver_committed(&mut self, committed: Vec<Committed>) {
        let entries = committed.into_iter().map(|entry| self.tagged(entry));
        let entries = entries.collect();
        let (log, free_bytes) = (self.engine.log_size(), self.free_bytes);
        let delivered = self.engine.delivered();
        (self.deliver)(Delivery::Committed {
            entries,
            delivered,
            log,
            free_bytes,
        });
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

    /// The tags of submissions that another member's snapshot may contain.
    fn passed_over(&mut self, committed: &[Committed]) -> Vec<u64> {
        let (own, applied) = (self.engine.own(), self.engine.applied());
        let origins = committed.iter().filter_map(|entry| entry.origin);
        // Entries that follow the snapshot come with their tags.
        let mut follow = origins.filter(|of| (of.node, of.start) == (own.node, own.start));
        let next = follow.next().map_or(u64::MAX, |origin| origin.sequence);
        let over = |(origin, _): &(Origin, u64)| origin.sequence <= applied.min(next - 1);
        let unknown = drain_while(&mut self.submitted, over).into_iter();
        unknown.map(|(_, tag)| tag).collect()
    }

    /// The disk has failed.
    fn stop(&mut self, desk: &Desk, error: FlushError) {
        if let Some(among) = &mut self.among {
            (among.begun, among.stopped) = (false, true);
        }
        desk.queue.stop();
        let unknown = self.submitted.drain(..).map(|(_, tag)| tag).collect();
        (self.deliver)(Delivery::Stopped { error, unknown });
    }

    /// Writes the image on a thread of its own, which reports back through the queue.
    fn write_image(&mut self, desk: &Arc<Desk>, index: u64, DrawImage(image): DrawImage) {
        let writer = match self.engine.image_writer(index) {
            Ok(writer) => writer,
            Err(refused) => return self.compact(desk, Err(refused)),
        };
        if desk.by_hand {
            return desk.queue.written(writer.write(index, &image()));
        }
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

    pub(crate) fn finish_image(&mut self) {
        if let Some(thread) = self.image_thread.take() {
            let _ = thread.join();
        }
    }
}

/// Drains the elements at the front for which `is_so` holds.
fn drain_while<T>(from: &mut VecDeque<T>, is_so: impl Fn(&T) -> bool) -> Vec<T> {
    let count = from.iter().take_while(|one| is_so(one)).count();
    from.drain(..count).collect()
}
