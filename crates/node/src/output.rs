//! What a connection is to be sent: bytes of its own, and between them bodies that are in memory once, however many
//! connections are to be sent them.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::{AddAssign, SubAssign};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf, Bytes, BytesMut};

use crate::wire::{Protocol, Reply, encode};

/// A shorter body is copied, because sharing it would not cost less.
pub(crate) const LENT_BYTES_MIN: usize = 1 << 10;
/// What a piece costs besides its bytes.
const PIECE_BYTES: usize = 64;
/// Memory beyond this is given back when it is not used.
const KEPT_BYTES: usize = 64 << 10;
/// How many pieces are offered to a socket at a time.
pub(crate) const SLICES: usize = 16;

/// How much a connection is to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    /// All bytes that it will read.
    pub(crate) all: usize,
    /// The memory that only this connection needs.
    pub(crate) own: usize,
    /// The bodies that are lent to it.
    pub(crate) lent: usize,
}

/// A body that several connections are sent. It counts until the last of them has read it or is to be closed.
#[derive(Clone, Debug)]
pub(crate) struct Lent(Arc<Body>);

#[derive(Debug)]
struct Body {
    bytes: Bytes,
    /// The bytes of all such bodies.
    total: Arc<AtomicUsize>,
}

/// The output of a connection, in order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pieces: VecDeque<Piece>,
    in_pieces: Amount,
    /// What comes after the pieces.
    tail: BytesMut,
    /// How many bytes of the tail's memory were sent.
    sent: usize,
}

#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    lent: bool,
}

impl Lent {
    pub(crate) fn new(bytes: Bytes, total: &Arc<AtomicUsize>) -> Lent {
        total.fetch_add(bytes.len(), Ordering::Relaxed);
        let total = Arc::clone(total);
        Lent(Arc::new(Body { bytes, total }))
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Output {
    pub(crate) fn amount(&self) -> Amount {
        let mut amount = self.in_pieces;
        amount.all += self.tail.len();
        amount.own += self.tail.len();
        amount
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.tail.is_empty()
    }

    /// Says how many bytes the reply has.
    pub(crate) fn encode(&mut self, reply: &Reply, protocol: Protocol) -> usize {
        let before = self.tail.len();
        encode(reply, protocol, &mut self.tail);
        self.tail.len() - before
    }

    pub(crate) fn copy(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// Appends what somebody else has written.
    pub(crate) fn take_over(&mut self, bytes: BytesMut) {
        match self.tail.is_empty() {
            true => self.tail = bytes,
            false => self.tail.extend_from_slice(&bytes),
        }
    }

    pub(crate) fn share(&mut self, body: &Lent) {
        self.seal_tail();
        let bytes = body.0.bytes.clone();
        self.push(Piece { bytes, lent: true });
    }

    /// Moves another output behind this one.
    pub(crate) fn append(&mut self, other: &mut Output) {
        if self.is_empty() {
            std::mem::swap(self, other);
        } else if other.pieces.is_empty() {
            self.tail.extend_from_slice(&other.tail);
        } else {
            self.seal_tail();
            for piece in other.pieces.drain(..) {
                self.push(piece);
            }
            self.tail = std::mem::take(&mut other.tail);
        }
        other.clear();
    }

    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            let bytes = self.tail.split().freeze();
            self.push(Piece { bytes, lent: false });
        }
    }

    fn push(&mut self, piece: Piece) {
        self.in_pieces += piece.amount();
        self.pieces.push_back(piece);
    }

    /// The beginning, piece by piece.
    pub(crate) fn slices(&self) -> ([IoSlice<'_>; SLICES], usize) {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let pieces = self.pieces.iter().map(|piece| &piece.bytes[..]);
        let tail = Some(&self.tail[..]).filter(|tail| !tail.is_empty());
        let mut count = 0;
        for (slice, bytes) in slices.iter_mut().zip(pieces.chain(tail)) {
            *slice = IoSlice::new(bytes);
            count += 1;
        }
        (slices, count)
    }

    /// So many bytes were sent.
    pub(crate) fn advance(&mut self, mut sent: usize) {
        while let Some(first) = self.pieces.front_mut()
            && sent > 0
        {
            let before = first.amount();
            let of_first = sent.min(first.bytes.len());
            first.bytes.advance(of_first);
            sent -= of_first;
            self.in_pieces -= before;
            match first.bytes.is_empty() {
                true => drop(self.pieces.pop_front()),
                false => self.in_pieces += first.amount(),
            }
        }
        self.tail.advance(sent);
        self.sent += sent;
    }

    /// Copies the beginning, as much as there is room for.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> usize {
        let mut count = 0;
        while count < into.len() && !self.is_empty() {
            let (slices, _) = self.slices();
            let part = slices[0].len().min(into.len() - count);
            into[count..count + part].copy_from_slice(&slices[0][..part]);
            self.advance(part);
            count += part;
        }
        count
    }

    /// All of it in one piece.
    pub(crate) fn into_bytes(mut self) -> BytesMut {
        if self.pieces.is_empty() {
            return self.tail;
        }
        let mut bytes = BytesMut::with_capacity(self.amount().all);
        for piece in self.pieces.drain(..) {
            bytes.extend_from_slice(&piece.bytes);
        }
        bytes.extend_from_slice(&self.tail);
        bytes
    }

    /// Releases the memory of what was sent, as soon as that is most of it.
    pub(crate) fn give_back_sent(&mut self) {
        if self.sent > KEPT_BYTES.max(self.tail.len()) {
            self.tail = BytesMut::from(&self.tail[..]);
            self.sent = 0;
        }
    }

    /// Forgets what is left. Clearing makes room again that advancing has used up; a large buffer is not kept.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.in_pieces = Amount::default();
        self.sent = 0;
        match self.tail.capacity() > KEPT_BYTES {
            true => self.tail = BytesMut::new(),
            false => self.tail.clear(),
        }
    }
}

impl Piece {
    fn amount(&self) -> Amount {
        let all = self.bytes.len();
        Amount {
            all,
            own: PIECE_BYTES + if self.lent { 0 } else { all },
            lent: usize::from(self.lent),
        }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, more: Amount) {
        self.all += more.all;
        self.own += more.own;
        self.lent += more.lent;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, less: Amount) {
        self.all -= less.all;
        self.own -= less.own;
        self.lent -= less.lent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lent(total: &Arc<AtomicUsize>, byte: u8, len: usize) -> Lent {
        Lent::new(vec![byte; len].into(), total)
    }

    #[test]
    fn what_is_read_is_what_was_written_whatever_the_pieces() {
        let total = Arc::new(AtomicUsize::new(0));
        for step in [1, 2, 3, 7, 100] {
            let mut first = Output::default();
            first.copy(b"a");
            first.share(&lent(&total, b'b', 5));
            first.share(&lent(&total, b'c', 2));
            first.copy(b"dd");
            let mut second = Output::default();
            second.copy(b"e");
            second.share(&lent(&total, b'f', 3));
            second.copy(b"g");
            first.append(&mut second);
            assert!(second.is_empty());
            assert_eq!((first.amount().all, first.amount().lent), (15, 3));
            let mut read = Vec::new();
            while !first.is_empty() {
                let mut part = vec![0; step];
                let count = first.read(&mut part);
                read.extend_from_slice(&part[..count]);
            }
            assert_eq!(read, b"abbbbbccddefffg");
            assert_eq!(first.amount(), Amount::default());
        }
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_lent_body_counts_once_until_nobody_has_it() {
        let total = Arc::new(AtomicUsize::new(0));
        let body = lent(&total, b'x', 5_000);
        let others: Vec<Lent> = (0..100).map(|_| body.clone()).collect();
        drop(body);
        assert_eq!(total.load(Ordering::Relaxed), 5_000);
        drop(others);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_slow_reader_keeps_no_memory_of_what_it_has_read() {
        let mut output = Output::default();
        output.copy(&vec![b'x'; 4 * KEPT_BYTES]);
        output.advance(3 * KEPT_BYTES);
        output.give_back_sent();
        assert_eq!(output.amount().all, KEPT_BYTES);
        assert!(output.tail.capacity() < 2 * KEPT_BYTES);
    }
}
