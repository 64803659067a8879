//! A snapshot on its way to a member that lacks what the log no longer has. It travels piece by piece, and the receiver asks
//! for each, so that neither side has more than one of them in memory.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::error::DiskError;
use crate::image::{IMAGE_BYTES_MAX, snapshot_name};
use crate::members::Members;
use crate::origin::Origins;
use crate::seal::Fields;
use crate::shelf::{Shelf, Sink, Source};
use crate::store::{Base, SnapshotMark};

/// The longest piece, 256 KiB.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// After this many ticks without an answer a piece is sent again.
const REPEAT_TICKS: u32 = 4;

/// After this many ticks without progress the transfer is given up. Raft begins another when it hears from the receiver.
const GIVE_UP_TICKS: u32 = 40;

/// A part of a snapshot, with all that the receiver must know about the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The term of the sender, which leads.
    pub(crate) term: u64,
    pub(crate) base: Base,
    /// The length of the image.
    pub(crate) bytes: u64,
    /// The image's checksum.
    pub(crate) sum: u64,
    /// Where the piece begins.
    pub(crate) offset: u64,
    pub(crate) data: Bytes,
}

/// What a receiver asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) mark: SnapshotMark,
    /// Where the next piece begins; at the end if nothing is missing.
    pub(crate) offset: u64,
}

impl Piece {
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        let SnapshotMark { index, term } = self.base.mark;
        for field in [self.term, index, term, self.bytes, self.sum, self.offset] {
            into.extend_from_slice(&field.to_le_bytes());
        }
        self.base.members.write(into);
        self.base.origins.write(into);
        into.extend_from_slice(&self.data);
    }

    pub(crate) fn read(body: &Bytes) -> Option<Self> {
        let mut fields = Fields(body);
        let sender_term = fields.u64()?;
        let (index, term) = (fields.u64()?, fields.u64()?);
        let (bytes, sum, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let base = Base {
            mark: SnapshotMark { index, term },
            members: Members::read(&mut fields)?,
            origins: Origins::read(&mut fields)?,
        };
        let data = body.slice_ref(fields.rest());
        let end = offset.checked_add(data.len() as u64)?;
        let possible = sender_term > 0
            && index > 0
            && (1..=sender_term).contains(&term)
            && !base.members.voters.is_empty()
            && bytes <= IMAGE_BYTES_MAX
            && end <= bytes
            && (!data.is_empty() || bytes == 0)
            && data.len() <= PIECE_BYTES;
        possible.then_some(Self {
            term: sender_term,
            base,
            bytes,
            sum,
            offset,
            data,
        })
    }
}

impl Wanted {
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        for field in [self.mark.index, self.mark.term, self.offset] {
            into.extend_from_slice(&field.to_le_bytes());
        }
    }

    pub(crate) fn read(body: &Bytes) -> Option<Self> {
        let mut fields = Fields(body);
        let (index, term) = (fields.u64()?, fields.u64()?);
        let offset = fields.u64()?;
        fields.end()?;
        Some(Self {
            mark: SnapshotMark { index, term },
            offset,
        })
    }
}

/// What this node sends and receives.
#[derive(Default)]
pub(crate) struct Transfers {
    sending: BTreeMap<u64, Sending>,
    arriving: Option<Arriving>,
}

struct Sending {
    term: u64,
    base: Base,
    source: Result<Box<dyn Source>, DiskError>,
    offset: u64,
    /// Whether the piece at `offset` has been sent.
    sent: bool,
    /// Ticks since then.
    silent: u32,
    /// Ticks since the receiver last made progress.
    stuck: u32,
}

struct Arriving {
    from: u64,
    mark: SnapshotMark,
    sink: Box<dyn Sink>,
    received: u64,
}

/// The effect of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It concerns a transfer that has ended.
    Stale,
    /// The next piece is to be sent.
    Next,
    /// The receiver has everything.
    Done,
}

/// The effect of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Answer with this.
    Wants(Wanted),
    /// It was the last one: the image is complete. Answer with this.
    Complete(Wanted),
}

impl Transfers {
    /// Begins to send a snapshot, unless it is being sent already.
    pub(crate) fn begin(&mut self, to: u64, term: u64, base: Base, shelf: &dyn Shelf) {
        let under_way = self.sending.get(&to);
        if under_way.is_some_and(|sending| sending.base.mark == base.mark && sending.term == term) {
            return;
        }
        let source = shelf.source(&snapshot_name(base.mark.index));
        let sending = Sending {
            term,
            base,
            source,
            offset: 0,
            sent: false,
            silent: 0,
            stuck: 0,
        };
        self.sending.insert(to, sending);
    }

    /// The piece that a receiver lacks.
    pub(crate) fn piece(&mut self, to: u64, bytes_max: usize) -> Option<Result<Piece, DiskError>> {
        let sending = self.sending.get_mut(&to)?;
        (sending.sent, sending.silent) = (true, 0);
        let source = match &mut sending.source {
            Ok(source) => source,
            Err(error) => return Some(Err(error.clone())),
        };
        let read = source.read(sending.offset, bytes_max);
        Some(read.map(|data| Piece {
            term: sending.term,
            base: sending.base.clone(),
            bytes: source.bytes(),
            sum: source.sum(),
            offset: sending.offset,
            data: data.into(),
        }))
    }

    pub(crate) fn answered(&mut self, from: u64, wanted: Wanted) -> Progress {
        let Some(sending) = self.sending.get_mut(&from) else {
            return Progress::Stale;
        };
        let bytes = sending.source.as_ref().map_or(0, |source| source.bytes());
        if sending.base.mark != wanted.mark || wanted.offset > bytes {
            return Progress::Stale;
        }
        if wanted.offset == bytes {
            self.sending.remove(&from);
            return Progress::Done;
        }
        if wanted.offset == sending.offset && sending.sent {
            // A repeated answer; the piece is on its way.
            return Progress::Stale;
        }
        (sending.offset, sending.sent, sending.stuck) = (wanted.offset, false, 0);
        Progress::Next
    }

    /// Advances time. Returns the receivers to which a piece is sent again, and those that are given up.
    pub(crate) fn tick(&mut self) -> (Vec<u64>, Vec<u64>) {
        let (mut again, mut given_up) = (Vec::new(), Vec::new());
        for (to, sending) in &mut self.sending {
            sending.silent += 1;
            sending.stuck += 1;
            if sending.stuck >= GIVE_UP_TICKS {
                given_up.push(*to);
            } else if sending.silent >= REPEAT_TICKS {
                again.push(*to);
            }
        }
        self.sending.retain(|to, _| !given_up.contains(to));
        (again, given_up)
    }

    /// This node no longer leads.
    pub(crate) fn stop_sending(&mut self) {
        self.sending.clear();
    }

    /// Takes a piece, if it is the next one.
    pub(crate) fn arrived(
        &mut self,
        from: u64,
        piece: &Piece,
        shelf: &dyn Shelf,
    ) -> Result<Arrival, DiskError> {
        let mark = piece.base.mark;
        let wants = |offset| Arrival::Wants(Wanted { mark, offset });
        let known = self.arriving.as_ref();
        if !known.is_some_and(|arriving| arriving.from == from && arriving.mark == mark) {
            if piece.offset != 0 {
                return Ok(wants(0));
            }
            // Another snapshot that was arriving is no longer needed.
            self.arriving = None;
            let sink = shelf.sink(&snapshot_name(mark.index), mark.index, piece.sum)?;
            self.arriving = Some(Arriving {
                from,
                mark,
                sink,
                received: 0,
            });
        }
        let Some(mut arriving) = self.arriving.take() else {
            return Ok(wants(0));
        };
        if piece.offset == arriving.received {
            arriving.sink.write(&piece.data)?;
            arriving.received += piece.data.len() as u64;
        }
        let received = arriving.received;
        if received < piece.bytes {
            self.arriving = Some(arriving);
            return Ok(wants(received));
        }
        match arriving.sink.finish()? {
            true => Ok(Arrival::Complete(Wanted {
                mark,
                offset: received,
            })),
            false => Ok(wants(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use crate::shelf::Shelf;
    use rand_xoshiro::Xoshiro256StarStar;
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};

    fn base(index: u64) -> Base {
        Base {
            mark: SnapshotMark { index, term: 3 },
            members: Members::alone(1),
            origins: Origins::default(),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let piece = Piece {
            term: 4,
            base: base(9),
            bytes: 100,
            sum: 5,
            offset: 90,
            data: Bytes::from_static(b"ten bytes."),
        };
        let mut bytes = Vec::new();
        piece.write(&mut bytes);
        assert_eq!(Piece::read(&bytes.into()), Some(piece.clone()));
        for bad in [
            Piece {
                term: 2,
                ..piece.clone()
            },
            Piece {
                bytes: 99,
                ..piece.clone()
            },
            Piece {
                offset: u64::MAX,
                ..piece.clone()
            },
            Piece {
                base: base(0),
                ..piece.clone()
            },
            Piece {
                data: Bytes::new(),
                ..piece
            },
        ] {
            let mut bytes = Vec::new();
            bad.write(&mut bytes);
            assert_eq!(Piece::read(&bytes.into()), None, "{bad:?}");
        }
    }

    /// Every piece and every answer may be lost or repeated.
    #[test]
    fn an_image_arrives_whole_over_a_link_that_loses_and_repeats() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let here = Directory::lock(here.path()).unwrap();
        let there = Directory::lock(there.path()).unwrap();
        let mut rng = Xoshiro256StarStar::seed_from_u64(3);
        for (nth, length) in [(1u64, 0usize), (2, 1), (3, 10), (4, 95)] {
            let image: Vec<u8> = (0..length as u8).collect();
            let name = snapshot_name(nth);
            here.write_image(&name, nth, &image).unwrap();
            let (mut sender, mut receiver) = (Transfers::default(), Transfers::default());
            sender.begin(2, 5, base(nth), &here);
            let (mut round, mut done, mut next) = (0, false, true);
            while !done {
                round += 1;
                assert!(round < 1000, "it ends");
                let (again, given_up) = sender.tick();
                assert_eq!(given_up, [0; 0]);
                if !std::mem::take(&mut next) && again.is_empty() {
                    continue;
                }
                let piece = sender.piece(2, 10).unwrap().unwrap();
                for _ in 0..rng.next_u64() % 3 {
                    let arrival = receiver.arrived(1, &piece, &there).unwrap();
                    let (Arrival::Wants(wanted) | Arrival::Complete(wanted)) = arrival;
                    for _ in 0..rng.next_u64() % 3 {
                        match sender.answered(2, wanted) {
                            Progress::Done => done = true,
                            Progress::Next => next = true,
                            Progress::Stale => {}
                        }
                    }
                }
            }
            assert_eq!(there.read_image(&name, nth).unwrap(), image);
        }
    }

    #[test]
    fn a_receiver_that_says_nothing_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        dir.write_image("snapshot-9", 9, b"image").unwrap();
        let mut sender = Transfers::default();
        sender.begin(2, 5, base(9), &dir);
        let ticks = (0..).find(|_| sender.tick().1 == [2]);
        assert_eq!(ticks, Some(GIVE_UP_TICKS as usize - 1));
        assert!(sender.piece(2, 10).is_none());
    }
}
