//! The recording of a running instance: one call per step, a few bytes each, never more than its bound.

use std::fmt::{Debug, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bytes::{self, put};
use super::{
    NODE_RECORD_BYTES_MAX, RECORD_BYTES_MAX, RECORD_BYTES_SPARE, RECORD_FORMAT, Record, RecordHead,
};
use crate::{Effects, NodeId, PACKET_HEAD_BYTES, Packet, Problem, Timer};

/// The bytes that a node has left for records. Clones share them.
#[derive(Clone, Debug)]
pub struct RecordAllowance(Arc<AtomicUsize>);

impl Default for RecordAllowance {
    /// All that a node may spend.
    fn default() -> Self {
        RecordAllowance::of(NODE_RECORD_BYTES_MAX)
    }
}

impl RecordAllowance {
    pub fn of(bytes: usize) -> RecordAllowance {
        RecordAllowance(Arc::new(AtomicUsize::new(bytes)))
    }

    pub fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The recording of the members that a node hosts of one instance.
#[derive(Debug)]
pub struct Recording {
    head: RecordHead,
    hosted: Vec<NodeId>,
    began: u64,
    over: bool,
    cut: u64,
    /// The words of asks and tells, each once.
    labels: Vec<String>,
    /// Whole steps; a chunk is never moved, so that no step waits for a large copy.
    chunks: Vec<Vec<u8>>,
    /// What the chunks take, which was taken from the allowance.
    reserved: usize,
    allowance: RecordAllowance,
    last_at: u64,
    last_member: NodeId,
    /// The step that is being written, and a word.
    step: Vec<u8>,
    word: String,
}

const CHUNK_BYTES_FIRST: usize = 256;
const CHUNK_BYTES_MAX: usize = 64 << 10;
/// More words than any problem has.
const LABELS_MAX: usize = 64;

impl Recording {
    /// A recording of an instance that begins now, in milliseconds since 1970.
    pub fn new(head: RecordHead, now: u64, allowance: &RecordAllowance) -> Recording {
        Recording {
            head,
            hosted: Vec::new(),
            began: now,
            over: false,
            cut: 0,
            labels: Vec::new(),
            chunks: Vec::new(),
            reserved: 0,
            allowance: allowance.clone(),
            last_at: now,
            last_member: NodeId(0),
            step: Vec::new(),
            word: String::new(),
        }
    }

    pub fn head(&self) -> &RecordHead {
        &self.head
    }

    /// A member was started. The effects of every step are those that its member left.
    pub fn started<Q: Problem>(&mut self, now: u64, id: NodeId, effects: &Effects<Q, Packet>) {
        self.hosted.push(id);
        self.put(now, id, bytes::START, |_| (), effects);
    }

    pub fn asked<Q: Problem>(
        &mut self,
        now: u64,
        id: NodeId,
        ask: Q::Ask,
        effects: &Effects<Q, Packet>,
    ) {
        let label = self.label(&ask);
        self.put(now, id, bytes::ASK, |step| put(step, label), effects);
    }

    /// A member took this packet; one that it refused is no step.
    pub fn received<Q: Problem>(
        &mut self,
        now: u64,
        id: NodeId,
        from: NodeId,
        packet: &[u8],
        effects: &Effects<Q, Packet>,
    ) {
        let input = |step: &mut Vec<u8>| {
            put(step, u64::from(from.0));
            put_message(step, packet);
        };
        self.put(now, id, bytes::PACKET, input, effects);
    }

    pub fn fired<Q: Problem>(
        &mut self,
        now: u64,
        id: NodeId,
        timer: Timer,
        effects: &Effects<Q, Packet>,
    ) {
        self.put(now, id, bytes::FIRE, |step| put(step, timer.0), effects);
    }

    /// The instance is over at this node: there will be no more steps.
    pub fn ended(&mut self) {
        self.over = true;
    }

    /// What is recorded takes so many bytes of the allowance.
    pub fn bytes(&self) -> usize {
        self.reserved
    }

    /// Whether there will soon be no room for another step, and a new instance would have much more: time to begin one. Where it
    /// would be full as soon as it has begun, because other recordings take the room, this one is cut instead.
    pub fn is_full_soon(&self) -> bool {
        let left = self.allowance.left();
        let room = match self.cut {
            0 => left.min(RECORD_BYTES_MAX - self.reserved),
            _ => 0,
        };
        room < RECORD_BYTES_SPARE && left + self.reserved >= room + RECORD_BYTES_SPARE
    }

    /// What is recorded so far.
    pub fn record(&self) -> Record {
        Record {
            steps: self.chunks.concat(),
            ..self.outline()
        }
    }

    /// The same without its steps, which are fetched in pieces.
    pub fn outline(&self) -> Record {
        Record {
            format: RECORD_FORMAT,
            head: self.head.clone(),
            hosted: self.hosted.clone(),
            began: self.began,
            over: self.over,
            cut: self.cut,
            labels: self.labels.clone(),
            steps: Vec::new(),
        }
    }

    /// How many bytes its steps have.
    pub fn length(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// At most so many bytes of its steps, from this one on. They never change: a recording only grows.
    pub fn piece(&self, from: usize, most: usize) -> Vec<u8> {
        let (mut skip, mut piece) = (from, Vec::new());
        for chunk in &self.chunks {
            let rest = chunk.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(chunk.len());
            piece.extend_from_slice(&rest[..rest.len().min(most - piece.len())]);
        }
        piece
    }

    fn label(&mut self, word: &impl Debug) -> u64 {
        self.word.clear();
        write!(self.word, "{word:?}").expect("a string takes every word");
        let known = self.labels.iter().position(|label| *label == self.word);
        let number = known.unwrap_or_else(|| {
            debug_assert!(self.labels.len() < LABELS_MAX, "{}", self.word);
            self.labels.push(self.word.clone());
            self.labels.len() - 1
        });
        number as u64
    }

    fn put<Q: Problem>(
        &mut self,
        now: u64,
        id: NodeId,
        kind: u8,
        input: impl FnOnce(&mut Vec<u8>),
        effects: &Effects<Q, Packet>,
    ) {
        if self.cut > 0 {
            self.cut += 1;
            return;
        }
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let other = id != self.last_member;
        let mut step = std::mem::take(&mut self.step);
        step.clear();
        step.push(
            kind | flag(other, bytes::OTHER_MEMBER)
                | flag(!effects.sends.is_empty(), bytes::SENDS)
                | flag(!effects.tells.is_empty(), bytes::TELLS)
                | flag(!effects.timers.is_empty(), bytes::TIMERS),
        );
        let at = now.max(self.last_at);
        put(&mut step, at - self.last_at);
        if other {
            put(&mut step, u64::from(id.0));
        }
        input(&mut step);
        if !effects.sends.is_empty() {
            put(&mut step, effects.sends.len() as u64);
            for (to, packet) in &effects.sends {
                put(&mut step, u64::from(to.0));
                put_message(&mut step, packet);
            }
        }
        if !effects.tells.is_empty() {
            put(&mut step, effects.tells.len() as u64);
            for tell in &effects.tells {
                let label = self.label(tell);
                put(&mut step, label);
            }
        }
        if !effects.timers.is_empty() {
            put(&mut step, effects.timers.len() as u64);
            for (_, timer) in &effects.timers {
                put(&mut step, timer.0);
            }
        }
        match self.append(&step) {
            true => (self.last_at, self.last_member) = (at, id),
            false => self.cut = 1,
        }
        self.step = step;
    }

    /// Puts a step behind the others, if there is room.
    fn append(&mut self, step: &[u8]) -> bool {
        if let Some(chunk) = self.chunks.last_mut()
            && chunk.capacity() - chunk.len() >= step.len()
        {
            chunk.extend_from_slice(step);
            return true;
        }
        let chunk = self.reserved.clamp(CHUNK_BYTES_FIRST, CHUNK_BYTES_MAX);
        let wanted = chunk.max(step.len());
        let fits = self.reserved + wanted <= RECORD_BYTES_MAX;
        if !fits || !self.allowance.take(wanted) {
            return false;
        }
        self.reserved += wanted;
        let mut chunk = Vec::with_capacity(wanted);
        chunk.extend_from_slice(step);
        self.chunks.push(chunk);
        true
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.allowance.give_back(self.reserved);
    }
}

/// All packets of an instance have the same head, but for the sum of the message.
fn put_message(step: &mut Vec<u8>, packet: &[u8]) {
    let message = packet.get(PACKET_HEAD_BYTES..).unwrap_or_default();
    put(step, message.len() as u64);
    step.extend_from_slice(message);
}
