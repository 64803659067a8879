//! Links between two starts, for what members say to each other outside of the log. Frames are numbered. The receiver takes
//! only the next one, and the sender repeats what is not acknowledged. So what was sent arrives once and in order, until the
//! link ends for good with either start.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::seal::Fields;
use crate::wire::{self, FrameError, Outgoing, Said};

/// The longest payload of a frame, 1 MiB.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// How much may wait for one member's acknowledgement, 32 MiB.
pub const UNACKNOWLEDGED_BYTES_MAX: usize = 32 << 20;

/// How much of that may be on its way, 1 MiB.
const UNDER_WAY_BYTES_MAX: usize = 1 << 20;

/// After this many ticks without an acknowledgement everything is sent again.
const REPEAT_TICKS: u32 = 3;

/// An acknowledgement waits for a frame to go with, until the next tick, or until this much was taken, 256 KiB.
const UNTOLD_BYTES_MAX: usize = 256 << 10;

/// One run of a node's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// The node.
    pub node: u64,
    /// Its start.
    pub start: u64,
}

/// A payload that a member has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The sender.
    pub from: Peer,
    /// What it gave to [`LogThread::say`](crate::LogThread::say).
    pub payload: Bytes,
}

/// Why a payload was not sent. Nothing has happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It is empty, or longer than [`PAYLOAD_BYTES_MAX`].
    #[error("a payload of {0} bytes is empty or too long")]
    Length(usize),
    /// More than [`UNACKNOWLEDGED_BYTES_MAX`] would wait.
    #[error("too much waits for node {0}")]
    Full(u64),
    /// A later start of the node is known, or it is this node itself.
    #[error("there is no link to start {} of node {}", .0.start, .0.node)]
    Ended(Peer),
}

/// A numbered frame; without a payload it is only an acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) from_start: u64,
    pub(crate) to_start: u64,
    /// 0 without a payload.
    pub(crate) sequence: u64,
    /// Everything up to this number has been taken from the other direction.
    pub(crate) taken: u64,
    pub(crate) payload: Bytes,
}

impl Numbered {
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        for field in [self.from_start, self.to_start, self.sequence, self.taken] {
            into.extend_from_slice(&field.to_le_bytes());
        }
        into.extend_from_slice(&self.payload);
    }

    pub(crate) fn read(body: &Bytes) -> Option<Self> {
        let mut fields = Fields(body);
        let (from_start, to_start) = (fields.u64()?, fields.u64()?);
        let (sequence, taken) = (fields.u64()?, fields.u64()?);
        let payload = body.slice_ref(fields.rest());
        let possible = (sequence == 0) == payload.is_empty() && payload.len() <= PAYLOAD_BYTES_MAX;
        possible.then_some(Self {
            from_start,
            to_start,
            sequence,
            taken,
            payload,
        })
    }
}

/// All links of this start, by node: at most one per node, to its latest start.
#[derive(Debug)]
pub struct Links {
    own: Peer,
    links: BTreeMap<u64, Link>,
    /// By node, the last start that was left out. There is no link to it or to an earlier one.
    ended: BTreeMap<u64, u64>,
    received: Vec<Received>,
    /// Takes frames in any order, for a specimen.
    careless: bool,
}

#[derive(Debug, Default)]
struct Link {
    /// The other node's start.
    start: u64,
    /// What is not acknowledged, in order.
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
    /// The number of the first of them.
    first: u64,
    /// How many of them are on their way.
    sent: usize,
    sent_bytes: usize,
    silent: u32,
    /// The last number that was taken from the other side.
    taken: u64,
    /// Whether the other side must be told that something was taken.
    owes: bool,
    /// How many bytes it has not been told of.
    untold_bytes: usize,
    /// Whether that has waited long enough.
    tells: bool,
}

impl Link {
    fn to(start: u64) -> Self {
        Self {
            start,
            first: 1,
            ..Self::default()
        }
    }

    /// The other side has been told of all that was taken.
    fn told(&mut self) {
        (self.owes, self.tells, self.untold_bytes) = (false, false, 0);
    }

    fn acknowledged(&mut self, taken: u64) {
        while self.first <= taken {
            let Some(payload) = self.waiting.pop_front() else {
                return;
            };
            self.first += 1;
            self.waiting_bytes -= payload.len();
            if self.sent > 0 {
                self.sent -= 1;
                self.sent_bytes -= payload.len();
            }
            self.silent = 0;
        }
    }
}

impl Links {
    pub(crate) fn new(own: Peer, careless: bool) -> Self {
        Self {
            own,
            links: BTreeMap::new(),
            ended: BTreeMap::new(),
            received: Vec::new(),
            careless,
        }
    }

    /// The link to a start, unless it has ended. Begins one if necessary.
    fn link(&mut self, peer: Peer) -> Option<&mut Link> {
        let ended = self.ended.get(&peer.node);
        if peer.node == self.own.node || ended.is_some_and(|ended| *ended >= peer.start) {
            return None;
        }
        let link = self.links.entry(peer.node).or_default();
        if link.start < peer.start {
            *link = Link::to(peer.start);
        }
        (link.start == peer.start).then_some(link)
    }

    /// Sends a payload to a start of another node. It arrives once and in order with all that is sent there, unless either
    /// start ends.
    pub fn send(&mut self, to: Peer, payload: impl Into<Bytes>) -> Result<(), SendError> {
        let payload = payload.into();
        let length = payload.len();
        if !(1..=PAYLOAD_BYTES_MAX).contains(&length) {
            return Err(SendError::Length(length));
        }
        let link = self.link(to).ok_or(SendError::Ended(to))?;
        if link.waiting_bytes + length > UNACKNOWLEDGED_BYTES_MAX {
            return Err(SendError::Full(to.node));
        }
        link.waiting_bytes += length;
        link.waiting.push_back(payload);
        Ok(())
    }

    /// Takes a frame from this node.
    pub fn step(&mut self, from: u64, frame: &Bytes) -> Result<(), FrameError> {
        match wire::read(frame, from, self.own.node)? {
            Said::Numbered(frame) => {
                self.take(from, frame);
                Ok(())
            }
            _ => Err(FrameError::Impossible("it is the log's, not the links'")),
        }
    }

    fn take(&mut self, from: u64, frame: Numbered) {
        let from = Peer {
            node: from,
            start: frame.from_start,
        };
        let careless = self.careless;
        if frame.to_start != self.own.start {
            return;
        }
        let Some(link) = self.link(from) else { return };
        link.acknowledged(frame.taken);
        if frame.sequence == 0 {
            return;
        }
        // A frame that was taken before is acknowledged again, because the first acknowledgement may have been lost.
        link.owes = true;
        if frame.sequence == link.taken + 1 || careless {
            link.taken = frame.sequence;
            let payload = frame.payload;
            link.untold_bytes += payload.len();
            self.received.push(Received { from, payload });
        }
    }

    /// What other starts have sent, in their order.
    pub fn take_received(&mut self) -> Vec<Received> {
        std::mem::take(&mut self.received)
    }

    /// The frames to be sent now.
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        let own = self.own.node;
        let frames = self.outgoing().into_iter();
        let frames = frames.filter_map(|(to, frame)| {
            let frame = wire::write(&Said::Numbered(frame), own, to)?;
            Some(Outgoing { to, frame })
        });
        frames.collect()
    }

    /// The frames, each with its receiver.
    fn outgoing(&mut self) -> Vec<(u64, Numbered)> {
        let mut frames = Vec::new();
        for (node, link) in &mut self.links {
            let frame = |link: &Link, sequence, payload| Numbered {
                from_start: self.own.start,
                to_start: link.start,
                sequence,
                taken: link.taken,
                payload,
            };
            while link.sent_bytes < UNDER_WAY_BYTES_MAX {
                let Some(payload) = link.waiting.get(link.sent).cloned() else {
                    break;
                };
                let sequence = link.first + link.sent as u64;
                link.sent += 1;
                link.sent_bytes += payload.len();
                link.told();
                frames.push((*node, frame(link, sequence, payload)));
            }
            if link.owes && (link.tells || link.untold_bytes >= UNTOLD_BYTES_MAX) {
                link.told();
                frames.push((*node, frame(link, 0, Bytes::new())));
            }
        }
        frames
    }

    /// Advances time: call it every [`TICK_MS`](crate::TICK_MS) milliseconds.
    pub fn tick(&mut self) {
        for link in self.links.values_mut() {
            link.tells = link.owes;
            link.silent += u32::from(link.sent > 0);
            if link.silent >= REPEAT_TICKS {
                (link.sent, link.sent_bytes, link.silent) = (0, 0, 0);
            }
        }
    }

    /// These starts were left out: ends the links to them, and to earlier starts of their nodes, for good, with what waits on
    /// them.
    pub fn end(&mut self, peers: &[Peer]) {
        for Peer { node, start } in peers {
            let ended = self.ended.entry(*node).or_default();
            *ended = (*ended).max(*start);
            if self
                .links
                .get(node)
                .is_some_and(|link| link.start <= *ended)
            {
                self.links.remove(node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256StarStar;
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};

    const HERE: Peer = Peer { node: 1, start: 4 };
    const THERE: Peer = Peer { node: 2, start: 9 };

    /// Frames are lost, repeated and overtake each other, until everything has arrived.
    fn arrive(careless: bool) -> Vec<u64> {
        let mut rng = Xoshiro256StarStar::seed_from_u64(7);
        let mut here = Links::new(HERE, false);
        let mut there = Links::new(THERE, careless);
        let mut way: Vec<(u64, Numbered)> = Vec::new();
        let (mut arrived, mut sent) = (Vec::new(), 0u64);
        for _ in 0..2_000 {
            if sent < 200 {
                sent += 1;
                here.send(THERE, sent.to_le_bytes().to_vec()).unwrap();
            }
            here.tick();
            there.tick();
            for frame in here.outgoing().into_iter().chain(there.outgoing()) {
                (0..rng.next_u64() % 3).for_each(|_| way.push(frame.clone()));
            }
            while !way.is_empty() && rng.next_u64() % 256 > 0 {
                let at = rng.next_u64() as usize % way.len();
                match way.swap_remove(at) {
                    (1, frame) => here.take(2, frame),
                    (_, frame) => there.take(1, frame),
                }
            }
            for received in there.take_received() {
                assert_eq!(received.from, HERE);
                arrived.push(u64::from_le_bytes(received.payload[..].try_into().unwrap()));
            }
        }
        assert!(careless || here.links[&2].waiting.is_empty());
        arrived
    }

    #[test]
    fn what_is_sent_arrives_once_and_in_order() {
        assert_eq!(arrive(false), (1..=200).collect::<Vec<_>>());
        assert_ne!(arrive(true), (1..=200).collect::<Vec<_>>());
    }

    #[test]
    fn a_link_ends_with_either_start() {
        let (mut here, mut there) = (Links::new(HERE, false), Links::new(THERE, false));
        here.send(THERE, &b"one"[..]).unwrap();
        let frames = here.outgoing();
        let mut restarted = Links::new(Peer { start: 10, ..THERE }, false);
        let mut later = Links::new(Peer { start: 5, ..HERE }, false);
        for (_, frame) in &frames {
            restarted.take(1, frame.clone());
            there.take(1, frame.clone());
        }
        assert_eq!(restarted.take_received(), [], "it is for an earlier start");
        assert_eq!(there.take_received().len(), 1);
        later.send(THERE, &b"anew"[..]).unwrap();
        for (_, frame) in later.outgoing().into_iter().chain(frames) {
            there.take(1, frame);
        }
        let received = there.take_received();
        assert_eq!(received.len(), 1, "the earlier start has ended");
        assert_eq!(received[0].from.start, 5);
        let ended = Err(SendError::Ended(HERE));
        assert_eq!(there.send(HERE, &b"too late"[..]), ended);
        there.end(&[Peer { start: 5, ..HERE }]);
        assert!(there.links.is_empty());
        later.send(THERE, &b"late"[..]).unwrap();
        for (_, frame) in later.outgoing() {
            there.take(1, frame);
        }
        assert_eq!(there.take_received(), [], "it was left out");
        there
            .send(Peer { start: 6, ..HERE }, &b"welcome back"[..])
            .unwrap();
    }

    #[test]
    fn limits_are_refused_with_their_names() {
        let mut here = Links::new(HERE, false);
        assert_eq!(here.send(THERE, &b""[..]), Err(SendError::Length(0)));
        let long = PAYLOAD_BYTES_MAX + 1;
        assert_eq!(
            here.send(THERE, vec![1; long]),
            Err(SendError::Length(long))
        );
        assert_eq!(
            here.send(HERE, &b"to myself"[..]),
            Err(SendError::Ended(HERE))
        );
        let payload = vec![1; PAYLOAD_BYTES_MAX];
        let taken = (0..).find(|_| here.send(THERE, payload.clone()).is_err());
        assert_eq!(taken, Some(UNACKNOWLEDGED_BYTES_MAX / PAYLOAD_BYTES_MAX));
        assert_eq!(here.send(THERE, &b"x"[..]), Err(SendError::Full(2)));
    }
}
