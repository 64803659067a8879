//! What a node needs from an engine, whatever that is built on: members, everything in one order, on disk, and frames between
//! the members. Raft provides it; other engines may.

use bytes::Bytes;

use crate::delivery::DiskRoom;
use crate::engine::{Committed, Engine};
use crate::error::{FlushError, ProposeError, SnapshotError};
use crate::image::{ImageWriter, WrittenSnapshot};
use crate::links::{Links, Peer};
use crate::log::LogSize;
use crate::members::{MemberChange, MemberError, Members};
use crate::open::StoredSnapshot;
use crate::origin::Origin;
use crate::reads::ReadIndex;
use crate::wire::{FrameError, Outgoing};

/// Sends frames to other nodes, for a log in a group.
pub trait Sends: Send {
    /// Sends a frame. Never waits. A frame that cannot be sent now may be lost; it will be repeated.
    fn send(&mut self, to: u64, frame: Bytes);

    /// These were all frames of one turn; those for one node may go out together. Never waits.
    fn flush(&mut self) {}
}

/// An engine for group communication. It does nothing by itself: its driver passes it time and frames, sends what it says,
/// and lets it flush. One turn is any number of asks, then [`Group::begin`], send, [`Group::flush`], send, apply.
pub trait Group: Send {
    /// This node's number and its start.
    fn own(&self) -> Peer;

    /// The members, after everything that was handed out.
    fn members(&self) -> &Members;

    /// The leader and its term, as far as this node knows.
    fn leader(&self) -> (Option<u64>, u64);

    /// Proposes other members; only the leader can.
    fn change_members(&mut self, change: MemberChange) -> Result<(), MemberError>;

    /// Submits an entry, which comes out of the log once, whoever leads.
    fn propose(&mut self, data: &[u8]) -> Result<Origin, ProposeError>;

    /// Asks for an index that is at least as high as anything applied anywhere before.
    fn ask_read(&mut self) -> u64;

    /// The starts that have asked this node for such an index while it led, itself included.
    fn take_asked(&mut self) -> Vec<Peer>;

    /// The starts that it has answered, itself included.
    fn take_answered(&mut self) -> Vec<Peer>;

    /// Stops answering a start, as long as this node leads without a break.
    fn refuse_reads(&mut self, peer: Peer);

    /// Answers a start again.
    fn allow_reads(&mut self, peer: Peer);

    /// The links of this start to others. They need neither the log nor its disk.
    fn links(&self) -> Links;

    /// Lets another member lead, if this node does.
    fn lead(&mut self, node: u64);

    /// Takes a frame from a member.
    fn step(&mut self, from: u64, frame: &Bytes) -> Result<(), FrameError>;

    /// Advances time.
    fn tick(&mut self);

    /// Begins a flush. Says whether it will wait for the disk.
    fn begin(&mut self) -> bool;

    /// Ends the flush, and hands out what is committed.
    fn flush(&mut self) -> Result<Vec<Committed>, FlushError>;

    /// The frames to be sent.
    fn take_outgoing(&mut self) -> Vec<Outgoing>;

    /// Answers to asks.
    fn take_reads(&mut self) -> Vec<ReadIndex>;

    /// Another member's snapshot, to be loaded before what the same flush handed out.
    fn take_restored(&mut self) -> Option<StoredSnapshot>;

    /// How much of what this start proposed has come out of the log, or may have: everything up to this sequence.
    fn applied(&self) -> u64;

    /// The last index that was handed out.
    fn delivered(&self) -> u64;

    /// How much a snapshot would compact.
    fn log_size(&self) -> LogSize;

    /// Measures the free space on the disk.
    fn look_for_room(&mut self) -> u64;

    /// What this node has room for, at the last look.
    fn room(&self) -> DiskRoom;

    /// The lowest sequence of those submissions that will never be committed, and why: no disk has room, and no leader was
    /// given them. Their sequences are used again.
    fn take_refused(&mut self) -> Option<(u64, ProposeError)>;

    /// Why nothing that was submitted has come out of the log for long, if that is for lack of room. It still may.
    fn take_stuck(&mut self) -> Option<ProposeError>;

    /// Writes snapshots on another thread, if one at this index would be new and committed.
    fn image_writer(&self, index: u64) -> Result<ImageWriter, SnapshotError>;

    /// Lets a written snapshot replace the log up to its index.
    fn compact(&mut self, written: WrittenSnapshot) -> Result<(), SnapshotError>;

    /// Ends cleanly, with an image for the next open.
    fn close(self: Box<Self>, image: Option<&[u8]>) -> Result<(), FlushError>;
}

impl Group for Engine {
    fn own(&self) -> Peer {
        Engine::own(self)
    }

    fn members(&self) -> &Members {
        Engine::members(self)
    }

    fn leader(&self) -> (Option<u64>, u64) {
        (Engine::leader(self), self.term())
    }

    fn change_members(&mut self, change: MemberChange) -> Result<(), MemberError> {
        Engine::change_members(self, change)
    }

    fn propose(&mut self, data: &[u8]) -> Result<Origin, ProposeError> {
        Engine::propose(self, data)
    }

    fn ask_read(&mut self) -> u64 {
        Engine::ask_read(self)
    }

    fn take_asked(&mut self) -> Vec<Peer> {
        Engine::take_asked(self)
    }

    fn take_answered(&mut self) -> Vec<Peer> {
        Engine::take_answered(self)
    }

    fn refuse_reads(&mut self, peer: Peer) {
        Engine::refuse_reads(self, peer);
    }

    fn allow_reads(&mut self, peer: Peer) {
        Engine::allow_reads(self, peer);
    }

    fn links(&self) -> Links {
        Engine::links(self)
    }

    fn lead(&mut self, node: u64) {
        self.hand_over_to(node);
    }

    fn step(&mut self, from: u64, frame: &Bytes) -> Result<(), FrameError> {
        Engine::step(self, from, frame)
    }

    fn tick(&mut self) {
        Engine::tick(self);
    }

    fn begin(&mut self) -> bool {
        Engine::begin(self)
    }

    fn flush(&mut self) -> Result<Vec<Committed>, FlushError> {
        Engine::flush(self)
    }

    fn take_outgoing(&mut self) -> Vec<Outgoing> {
        Engine::take_outgoing(self)
    }

    fn take_reads(&mut self) -> Vec<ReadIndex> {
        Engine::take_reads(self)
    }

    fn take_restored(&mut self) -> Option<StoredSnapshot> {
        Engine::take_restored(self)
    }

    fn applied(&self) -> u64 {
        Engine::applied(self)
    }

    fn delivered(&self) -> u64 {
        Engine::delivered(self)
    }

    fn log_size(&self) -> LogSize {
        Engine::log_size(self)
    }

    fn look_for_room(&mut self) -> u64 {
        Engine::look_for_room(self);
        self.rooms.own()
    }

    fn room(&self) -> DiskRoom {
        Engine::room(self)
    }

    fn take_refused(&mut self) -> Option<(u64, ProposeError)> {
        self.refused.take()
    }

    fn take_stuck(&mut self) -> Option<ProposeError> {
        self.stuck.take()
    }

    fn image_writer(&self, index: u64) -> Result<ImageWriter, SnapshotError> {
        self.compactable(index)?;
        Ok(Engine::image_writer(self))
    }

    fn compact(&mut self, written: WrittenSnapshot) -> Result<(), SnapshotError> {
        Engine::compact(self, written)
    }

    fn close(self: Box<Self>, image: Option<&[u8]>) -> Result<(), FlushError> {
        Engine::close(*self, image)
    }
}
