//! Long work in slices. A command that looks through many rows (lists, searches, the state, statistics) does so a fixed
//! number of rows at a time, and others are served in between. The connection is blocked as if it waited for the log, the
//! reactor makes one slice at the end of each of its turns, and the complete answer is sent after the last one.
//!
//! New work gets its first slice before older work goes on, in turn, so long work does not hold up short work. Of the older
//! work only [`AT_ONCE`] go on together, and only while clients read what was made, so that few answers lie around.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use testigo_core::{Refusal, Word};

use super::{Blocked, ClientId, House};
use crate::completion::Completion;
use crate::wire::{Protocol, Reply, array_head, encode, refuse, text_head};

/// Rows per slice; a row that is much work counts as several.
pub(crate) const SLICE_ROWS: usize = 1_000;
/// Cap on long commands under way; more are refused.
pub(super) const LONG_MAX: usize = 1_000;
/// How many of those that did not end with their first slice go on together.
const AT_ONCE: usize = 4;

/// With more than this unread by all clients together, older work is held back. So answers are made as fast as they are read,
/// and a client that reads is not closed for what others have asked for.
const UNREAD_BYTES: usize = 16 << 20;
/// How long it is held back for clients that do not read.
const PATIENCE_MS: u64 = 1_000;

/// The remainder of a slice.
#[derive(Debug)]
pub(crate) struct Slice {
    left: usize,
}

impl Slice {
    #[cfg(test)]
    pub(crate) fn of(rows: usize) -> Slice {
        Slice { left: rows }
    }

    /// Whether there is room for another row.
    pub(crate) fn has_room(&self) -> bool {
        self.left > 0
    }

    /// Rows were looked at, or one that counts as several.
    pub(crate) fn spend(&mut self, rows: usize) {
        self.left = self.left.saturating_sub(rows);
    }

    /// As many of these places as there is room for. They are spent, and `from` moves behind them.
    pub(crate) fn places(&mut self, from: &mut usize, end: usize) -> Range<usize> {
        self.places_of(from, end, 1)
    }

    /// The same if each place counts as several rows.
    pub(crate) fn places_of(
        &mut self,
        from: &mut usize,
        end: usize,
        weight: usize,
    ) -> Range<usize> {
        let start = *from;
        let room = self.left.div_ceil(weight);
        *from = end.min(start.saturating_add(room)).max(start);
        self.spend((*from - start) * weight);
        start..*from
    }
}

/// The answer for a connection.
#[derive(Debug)]
pub(crate) enum Answer {
    Reply(Reply),
    /// Already encoded.
    Written(BytesMut),
}

/// The rows of a long answer, encoded as they are made.
#[derive(Debug)]
pub(crate) struct Rows {
    protocol: Protocol,
    /// The encoded rows, after some room for what comes before them.
    bytes: BytesMut,
    count: usize,
}

/// A cursor, the longest that comes before the rows: a name and some numbers.
const HEAD_BYTES: usize = 512;

impl Rows {
    pub(crate) fn new(protocol: Protocol) -> Rows {
        Rows {
            protocol,
            bytes: BytesMut::zeroed(HEAD_BYTES),
            count: 0,
        }
    }

    pub(crate) fn push(&mut self, row: &Reply) {
        encode(row, self.protocol, &mut self.bytes);
        self.count += 1;
    }

    pub(crate) fn extend(&mut self, row: Option<Reply>) {
        if let Some(row) = row {
            self.push(&row);
        }
    }

    /// A line of one long text.
    pub(crate) fn push_line(&mut self, line: &str) {
        self.bytes.extend_from_slice(line.as_bytes());
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The rows as an array.
    pub(crate) fn array(&mut self) -> Answer {
        let head = array_head(self.count);
        self.behind(&head)
    }

    /// The rows after the cursor for the next page.
    pub(crate) fn page(&mut self, next: &str) -> Answer {
        let mut head = array_head(2);
        encode(&Reply::text(next), self.protocol, &mut head);
        head.extend_from_slice(&array_head(self.count));
        self.behind(&head)
    }

    /// The lines as one text.
    pub(crate) fn text(&mut self) -> Answer {
        let head = text_head(self.bytes.len() - HEAD_BYTES);
        self.bytes.extend_from_slice(b"\r\n");
        self.behind(&head)
    }

    /// The rows as an array, after what is already encoded.
    pub(crate) fn array_behind(&mut self, mut before: BytesMut) -> BytesMut {
        before.extend_from_slice(&array_head(self.count));
        before.extend_from_slice(&self.bytes[HEAD_BYTES..]);
        before
    }

    fn behind(&mut self, head: &[u8]) -> Answer {
        let start = HEAD_BYTES - head.len();
        self.bytes[start..HEAD_BYTES].copy_from_slice(head);
        self.bytes.advance(start);
        Answer::Written(std::mem::take(&mut self.bytes))
    }
}

/// Makes a slice; returns the answer when it is complete.
type Make = Box<dyn FnMut(&House, &mut Slice) -> Result<Option<Answer>, Refusal> + Send>;
/// Makes a slice of what a caller in this process waits for; true when the result was given.
type Give = Box<dyn FnMut(&House, &mut Slice) -> bool + Send>;

enum Task {
    Client(ClientId, Make),
    Inner(Give),
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Task::Client(id, _) => write!(f, "Client({id:?})"),
            Task::Inner(_) => f.write_str("Inner"),
        }
    }
}

/// All long work under way.
#[derive(Debug, Default)]
pub(super) struct Slices {
    fresh: VecDeque<Task>,
    older: VecDeque<Task>,
    /// Whether older work comes first this time.
    older_first: bool,
    /// Since when older work has been held back, because clients have not read what was made before.
    held_since: Option<u64>,
}

impl Slices {
    fn len(&self) -> usize {
        self.fresh.len() + self.older.len()
    }

    /// The next task; while older work is held back, only a new one.
    fn next(&mut self, held: bool) -> Option<Task> {
        if held {
            return self.fresh.pop_front();
        }
        self.older_first = !self.older_first;
        let [first, second] = match self.older_first {
            true => [&mut self.older, &mut self.fresh],
            false => [&mut self.fresh, &mut self.older],
        };
        first.pop_front().or_else(|| second.pop_front())
    }

    /// Puts a task behind the others that go on together, or behind all if it was new.
    fn put_back(&mut self, task: Task, was_fresh: bool) {
        let at = match was_fresh {
            true => self.older.len(),
            false => self.older.len().min(AT_ONCE - 1),
        };
        self.older.insert(at, task);
    }

    /// The connections whose answers are being made.
    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        let tasks = self.fresh.iter().chain(&self.older);
        tasks.filter_map(|task| match task {
            Task::Client(id, _) => Some(*id),
            Task::Inner(_) => None,
        })
    }

    fn forget(&mut self, client: ClientId) {
        let others = |task: &Task| !matches!(task, Task::Client(id, _) if *id == client);
        self.fresh.retain(others);
        self.older.retain(others);
    }
}

impl House {
    /// Answers a connection one slice at a time; it is blocked until the answer is complete.
    pub(crate) fn in_slices(
        &mut self,
        id: ClientId,
        make: impl FnMut(&House, &mut Slice) -> Result<Option<Answer>, Refusal> + Send + 'static,
    ) -> Result<(), Refusal> {
        if self.slices.len() >= LONG_MAX {
            return Err(too_many());
        }
        self.slices
            .fresh
            .push_back(Task::Client(id, Box::new(make)));
        if let Some(client) = self.connections.client_mut(id) {
            client.blocked = Some(Blocked::Slicing);
        }
        Ok(())
    }

    /// Makes something for a caller in this process one slice at a time. The caller gets `None` if the node stops first, or
    /// has too much to do.
    pub(crate) fn give_in_slices<T: Send + 'static>(
        &mut self,
        mut make: impl FnMut(&House, &mut Slice) -> Option<T> + Send + 'static,
    ) -> Arc<Completion<Option<T>>> {
        let completion = Completion::new();
        let due = Due(Arc::clone(&completion));
        if self.slices.len() < LONG_MAX && !self.stopping {
            let give = move |house: &House, slice: &mut Slice| {
                let made = make(house, slice);
                let whole = made.is_some();
                if whole {
                    due.0.give(made);
                }
                whole
            };
            self.slices.fresh.push_back(Task::Inner(Box::new(give)));
        }
        completion
    }

    /// Whether there is long work to go on with.
    #[cfg(test)]
    pub(super) fn has_long_work(&self) -> bool {
        self.slices.len() > 0 || self.local().is_reordering()
    }

    /// When there is long work to go on with, if any: now, or when it has been held back long enough.
    pub(crate) fn long_work_due_ms(&mut self) -> Option<u64> {
        if self.local().is_reordering() {
            return Some(0);
        }
        match self.slices.len() {
            0 => None,
            _ if !self.slices.fresh.is_empty() => Some(0),
            _ => Some(self.held_back_ms()),
        }
    }

    /// How long older work is still held back: until clients have read, or until it is clear that some do not. Those are
    /// closed if all clients together leave too much unread.
    fn held_back_ms(&mut self) -> u64 {
        if self.connections.unread().bytes() <= UNREAD_BYTES {
            self.slices.held_since = None;
            return 0;
        }
        let since = *self.slices.held_since.get_or_insert(self.now);
        PATIENCE_MS.saturating_sub(self.now.saturating_sub(since))
    }

    /// Makes a slice of the next task, and of those behind it if that leaves room.
    pub(crate) fn make_slice(&mut self) {
        if self.local().is_reordering() {
            self.services.reorder();
        }
        let mut slice = Slice { left: SLICE_ROWS };
        let held = self.held_back_ms() > 0;
        while slice.has_room()
            && let Some(mut task) = {
                let fresh = self.slices.fresh.len();
                let next = self.slices.next(held);
                next.map(|task| (task, self.slices.fresh.len() < fresh))
            }
        {
            self.counters.slices += 1;
            // Every task costs something, however little it looks at.
            slice.spend(1);
            let over = match &mut task.0 {
                Task::Inner(give) => give(&*self, &mut slice),
                Task::Client(id, make) => {
                    let (id, made) = (*id, make(&*self, &mut slice));
                    match made.transpose() {
                        None => false,
                        Some(answer) => {
                            self.answer_long(id, answer);
                            true
                        }
                    }
                }
            };
            if !over {
                self.slices.put_back(task.0, task.1);
            }
        }
        self.send_replies();
    }

    fn answer_long(&mut self, id: ClientId, answer: Result<Answer, Refusal>) {
        // The next answer is held back again if this one is not read.
        self.slices.held_since = None;
        match answer {
            Err(refusal) => self.connections.unblock(id, refusal.into()),
            Ok(Answer::Reply(reply)) => self.connections.unblock(id, reply),
            Ok(Answer::Written(bytes)) => self.connections.unblock_with(id, bytes),
        }
    }

    pub(super) fn forget_long_work(&mut self, id: ClientId) {
        self.slices.forget(id);
    }

    /// The node stops: nobody waits for the rest.
    pub(super) fn drop_long_work(&mut self) {
        self.slices = Slices::default();
    }
}

/// A caller is not left waiting if the work is dropped.
struct Due<T>(Arc<Completion<Option<T>>>);

impl<T> Drop for Due<T> {
    fn drop(&mut self) {
        // A second answer is ignored.
        self.0.give(None);
    }
}

fn too_many() -> Refusal {
    refuse(
        Word::Busy,
        format!("{LONG_MAX} long commands are under way, the most at once; try again in a moment"),
    )
}
