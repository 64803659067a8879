//! What was handed to the log and is not answered yet, what the node itself still has to hand to it, and how the log is
//! doing.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use testigo_core::{Change, Name, Refusal, Word};
use testigo_engine::{
    DISK_RESERVE_BYTES, DiskRoom, ENTRY_BYTES_MAX, FlushError, LogSize, LogThread, MemberChange,
    Peer, ProposeError, Room, SubmitError,
};

use super::answers::Answers;
use super::client::ClientId;
use super::entry::{Entry, write};
use crate::completion::Completion;
use crate::stats::ProcessKey;
use crate::wire::refuse;

/// No more memory than this is kept for the next entry.
const WRITING_KEPT_BYTES: usize = 64 << 10;
/// How long the node holds its own changes back after the log has refused one, in milliseconds.
const OWN_PAUSE_MS: u64 = 250;
/// How long a change that found no room in the log's queue waits for another try, in milliseconds.
const OWN_RETRY_MS: u64 = 10;

/// The log, and who waits for what in it.
#[derive(Debug)]
pub(crate) struct Submissions {
    log: Option<LogThread>,
    /// Submissions by their tags.
    under_way: FxHashMap<u64, Submission>,
    next_tag: u64,
    /// Something was submitted or said with which the log has not been told to begin.
    unbegun: bool,
    /// The memory in which entries are encoded.
    writing: Vec<u8>,
    /// How far the wall clock was ahead of the node's own at the last entry.
    wall_offset: u64,
    /// The node's own changes that found no room in the log's queue.
    own: VecDeque<Change>,
    /// Until then they wait, because the log refused one.
    own_after: u64,
    size: LogSize,
    /// The free space on the disk when something was last written, or refused for lack of space.
    free_bytes: u64,
    /// How much room was last said to be there, and whether it was said that another node leads for lack of it.
    room: (Room, bool),
    /// Why the log writes nothing any more.
    failed: Option<String>,
    /// Whether it will when there is room.
    waits: bool,
    /// Who is told about that.
    watchers: Vec<Arc<Completion<String>>>,
}

/// A change on its way through the log.
#[derive(Debug)]
pub(super) struct Submission {
    /// What was encoded, so that it need not be decoded again.
    pub(super) entry: Entry,
    pub(super) answers: Answers,
    /// The process that wants it. Its connection may be gone when the log has decided.
    pub(super) process: Option<ProcessKey>,
}

impl Submissions {
    pub(super) fn new(size: LogSize, wall_offset: u64) -> Submissions {
        Submissions {
            log: None,
            under_way: FxHashMap::default(),
            next_tag: 0,
            unbegun: false,
            writing: Vec::new(),
            wall_offset,
            own: VecDeque::new(),
            own_after: 0,
            size,
            free_bytes: u64::MAX,
            room: (Room::Enough, false),
            failed: None,
            waits: false,
            watchers: Vec::new(),
        }
    }

    /// Gives it its log, once.
    pub(super) fn begin(&mut self, log: LogThread) {
        self.log = Some(log);
    }

    /// Takes the log, to end it.
    pub(super) fn end(&mut self) -> Option<LogThread> {
        self.log.take()
    }

    pub(super) fn log(&self) -> Option<&LogThread> {
        self.log.as_ref()
    }

    /// How many submissions the log has not answered.
    pub(crate) fn len(&self) -> usize {
        self.under_way.len()
    }

    #[cfg(test)]
    pub(super) fn tags(&self) -> Vec<u64> {
        self.under_way.keys().copied().collect()
    }

    /// The changes that are on their way.
    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        let submissions = self.under_way.values();
        submissions.map(|submission| &submission.entry.change)
    }

    /// The connections that wait for the log.
    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        let submissions = self.under_way.values();
        submissions.filter_map(|submission| submission.answers.client())
    }

    /// Whether a change of a flow is on its way, so that its rights are not known yet.
    pub(crate) fn is_changing(&self, name: &Name) -> bool {
        self.changes().any(|change| match change {
            Change::ApplyFlow { flow, .. }
            | Change::ApplyFlowOver { flow, .. }
            | Change::DeleteFlow { flow } => flow == name,
            _ => false,
        })
    }

    /// Puts an entry into the log's queue; returns its tag.
    pub(super) fn submit(&mut self, now: u64, submission: Submission) -> Result<u64, Refusal> {
        let tag = self.queue(now, &submission.entry)?;
        self.under_way.insert(tag, submission);
        Ok(tag)
    }

    fn queue(&mut self, now: u64, entry: &Entry) -> Result<u64, Refusal> {
        let log = self.log.as_ref().filter(|_| self.failed.is_none());
        let Some(log) = log else {
            return Err(self.no_log());
        };
        self.next_tag += 1;
        self.wall_offset = entry.at.saturating_sub(now);
        self.writing = write(entry, std::mem::take(&mut self.writing));
        let bytes = self.writing.len();
        if bytes > ENTRY_BYTES_MAX {
            self.writing = Vec::new();
            return Err(refuse(
                Word::Limit,
                format!(
                    "this takes {bytes} bytes of the log; at most {ENTRY_BYTES_MAX} are allowed"
                ),
            ));
        }
        let submitted = log.submit(self.next_tag, &self.writing);
        if self.writing.capacity() > WRITING_KEPT_BYTES {
            self.writing = Vec::new();
        }
        match submitted {
            Ok(()) => {
                self.unbegun = true;
                Ok(self.next_tag)
            }
            Err(SubmitError::Full | SubmitError::SnapshotInProgress) => Err(refuse(
                Word::Busy,
                "too much waits for the disk; try again in a moment",
            )),
            Err(SubmitError::Stopped) => Err(self.no_log()),
        }
    }

    fn no_log(&self) -> Refusal {
        let why = self.failed.as_deref().unwrap_or("the log is closed");
        let then = match self.waits {
            true => "the node goes on when there is room",
            false => "the node is ending",
        };
        refuse(Word::Unavailable, format!("{why}; {then}"))
    }

    /// Sends a payload to a start of another node.
    pub(super) fn say(&mut self, to: Peer, payload: Vec<u8>) {
        self.ask_log(|log| log.say(to, payload));
    }

    /// Asks for a read index.
    pub(super) fn ask_read(&mut self, tag: u64) {
        self.ask_log(|log| log.ask_read(tag));
    }

    /// Stops answering a start's reads. The rule has at most one such order under way per start, so they need no tags.
    pub(super) fn refuse_reads(&mut self, peer: Peer) {
        self.ask_log(|log| log.refuse_reads(0, peer));
    }

    /// Answers them again.
    pub(super) fn allow_reads(&mut self, peer: Peer) {
        self.ask_log(|log| log.allow_reads(peer));
    }

    /// Proposes other members.
    pub(super) fn change_members(&mut self, tag: u64, change: MemberChange) {
        self.ask_log(|log| log.change_members(tag, change));
    }

    /// Lets another node lead.
    pub(super) fn lead(&mut self, node: u64) {
        self.ask_log(|log| log.lead(node));
    }

    /// These starts have left: ends the links to them.
    pub(super) fn end_links(&mut self, peers: Vec<Peer>) {
        self.ask_log(|log| log.end_links(peers));
    }

    fn ask_log(&mut self, ask: impl FnOnce(&LogThread)) {
        if let Some(log) = &self.log {
            ask(log);
            self.unbegun = true;
        }
    }

    /// Takes a submission that the log has answered, or cannot answer.
    pub(super) fn take(&mut self, tag: u64) -> Option<Submission> {
        self.under_way.remove(&tag)
    }

    /// Takes all submissions, because the log answers none of them any more.
    pub(super) fn take_all(&mut self) -> Vec<(u64, Submission)> {
        self.under_way.drain().collect()
    }

    /// Keeps the node's own change until the log takes it: what has happened cannot be undone.
    pub(super) fn keep_own(&mut self, change: Change) {
        self.own.push_back(change);
    }

    /// Submits the node's own changes. Those that find no room are tried again with the next turn, or after a pause.
    pub(super) fn submit_own(&mut self, now: u64) {
        while now >= self.own_after
            && self.failed.is_none()
            && let Some(change) = self.own.pop_front()
        {
            let entry = Entry::new(change);
            let tag = match self.queue(now, &entry) {
                Ok(tag) => tag,
                // It would never find room, and hold up those behind it.
                Err(refusal) if refusal.word == Word::Limit => {
                    log::error!("a change of this node's own is lost: {refusal}");
                    continue;
                }
                Err(_) => return self.own.push_front(entry.change),
            };
            let submission = Submission {
                entry,
                answers: Answers::Nobody,
                process: None,
            };
            self.under_way.insert(tag, submission);
        }
    }

    /// The log refused a submission. The node's own is kept for another try; any other is returned.
    pub(super) fn refused(
        &mut self,
        now: u64,
        tag: u64,
        error: &ProposeError,
    ) -> Option<Submission> {
        if let ProposeError::DiskFull { free_bytes } = error {
            self.free_bytes = *free_bytes;
        }
        let submission = self.take(tag)?;
        if !matches!(submission.answers, Answers::Nobody) {
            return Some(submission);
        }
        self.keep_own(submission.entry.change);
        self.own_after = now + OWN_PAUSE_MS;
        None
    }

    /// When the node's own changes that wait for room are tried again.
    pub(super) fn own_due(&self, now: u64) -> Option<u64> {
        let wait = self.failed.is_none() && !self.own.is_empty();
        wait.then(|| self.own_after.max(now + OWN_RETRY_MS))
    }

    /// Whether something was submitted with which the log has not been told to begin.
    pub(crate) fn is_unbegun(&self) -> bool {
        self.unbegun
    }

    /// The same, for a caller that does the log's work itself.
    pub(crate) fn take_unbegun(&mut self) -> bool {
        std::mem::take(&mut self.unbegun)
    }

    /// Lets the log begin with what was submitted since the last time.
    pub(crate) fn begin_flush(&mut self) {
        let unbegun = self.take_unbegun();
        if let Some(log) = self.log.as_ref().filter(|_| unbegun) {
            log.begin();
        }
    }

    pub(super) fn wall_offset(&self) -> u64 {
        self.wall_offset
    }

    pub(crate) fn size(&self) -> LogSize {
        self.size
    }

    /// The log has grown to this size.
    pub(super) fn grown(&mut self, size: LogSize, free_bytes: u64) {
        self.size = size;
        self.free_bytes = free_bytes;
    }

    /// A member's disk has more or less room than before: says so once.
    pub(super) fn has_room(&mut self, room: DiskRoom) {
        let DiskRoom {
            room,
            free_bytes,
            handed_to,
        } = room;
        self.free_bytes = free_bytes;
        let (before, handed) = self.room;
        self.room = (room, handed && room != Room::Enough);
        match handed_to.filter(|_| !handed) {
            Some(node) => {
                log::warn!(
                    "the disk is nearly full: {free_bytes} bytes are free; this node lets node {node} lead, which has room"
                );
                self.room.1 = true;
            }
            None if room == before => {}
            None => match room {
                Room::Enough => log::info!("the disk has room again: {free_bytes} bytes are free"),
                Room::Short => log::warn!("the disk is nearly full: {free_bytes} bytes are free"),
                Room::None => log::warn!(
                    "the disk is full: {free_bytes} bytes are free; this node takes nothing from its leader until there is room"
                ),
            },
        }
    }

    /// Everything in the log is now in a snapshot.
    pub(super) fn merged(&mut self) {
        self.size = LogSize::default();
    }

    /// Why nothing durable can change any more; or, if the disk was full at the last write, why only short changes still fit.
    pub(crate) fn trouble(&self) -> Option<String> {
        let free_bytes = self.free_bytes;
        let full = || {
            (free_bytes < DISK_RESERVE_BYTES)
                .then(|| ProposeError::DiskFull { free_bytes }.to_string())
        };
        self.failed.clone().or_else(full)
    }

    /// The free space as measured last.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    /// Why the log writes nothing any more, if so.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Notes that the disk has failed, and tells those who watch, unless the node only waits for room. False if it was known.
    pub(super) fn fail(&mut self, error: &FlushError, waits: bool) -> bool {
        if self.failed.is_some() {
            return false;
        }
        self.failed = Some(error.to_string());
        self.waits = waits;
        if waits {
            return true;
        }
        for watcher in self.watchers.drain(..) {
            watcher.give(error.to_string());
        }
        true
    }

    /// Tells a caller in this process when the disk has failed.
    pub(crate) fn watch(&mut self, watcher: Arc<Completion<String>>) {
        match &self.failed {
            Some(why) if !self.waits => watcher.give(why.clone()),
            _ => self.watchers.push(watcher),
        }
    }
}
