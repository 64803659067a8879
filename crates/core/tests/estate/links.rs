//! Links as the engine gives them: frames from one start of a node to one of another arrive once and in order, or not at all. They are numbered; the
//! receiver takes only the next one, and the sender repeats it until it is acknowledged. A link ends, with its frames, when
//! either start leaves the view: whatever was under way then concerns nobody any more.

use std::collections::{BTreeMap, VecDeque};

use testigo_core::SessionId;
use testigo_core::estate::{Frame, Peer};

use crate::visits::{Call, Reply};

/// One thing on a link.
#[derive(Clone, Debug)]
pub(crate) enum Letter {
    Estate(Frame),
    Call(Call),
    Reply(u64, SessionId, Reply),
    CallOff(u64),
}

/// What is sent to another start at once.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Who sends it.
    pub(crate) from: Peer,
    /// Whom it is for. Another start of the same node must not take it.
    pub(crate) to: Peer,
    /// How many frames of the other direction the sender has taken.
    pub(crate) taken: u64,
    /// The number of the first frame.
    pub(crate) first: u64,
    /// The frames.
    pub(crate) frames: Vec<Letter>,
}

/// All links of a start.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    own: Peer,
    links: BTreeMap<Peer, Link>,
}

#[derive(Clone, Debug, Default)]
struct Link {
    /// The number of the first frame that is not acknowledged.
    first: u64,
    unacknowledged: VecDeque<Letter>,
    /// How many of those were sent since the last repetition.
    sent: usize,
    /// When something was last sent.
    sent_at: u64,
    /// How many frames were taken from the other end.
    taken: u64,
    /// Whether the other end is to be told so.
    owes: bool,
}

impl Links {
    /// After so long without an acknowledgement everything is sent again.
    pub(crate) const REPEAT_MS: u64 = 200;
    /// Frames in one packet.
    pub(crate) const PACKET_FRAMES: usize = 256;

    /// Links to nobody yet.
    pub(crate) fn new(own: Peer) -> Links {
        Links {
            own,
            links: BTreeMap::new(),
        }
    }

    /// Keeps the links to these starts, and no others.
    pub(crate) fn follow(&mut self, members: impl IntoIterator<Item = Peer>) {
        let mut before = std::mem::take(&mut self.links);
        let members: Vec<Peer> = members.into_iter().collect();
        if !members.contains(&self.own) {
            return;
        }
        for peer in members.into_iter().filter(|peer| *peer != self.own) {
            self.links
                .insert(peer, before.remove(&peer).unwrap_or_default());
        }
    }

    /// Puts a frame on the link; without one it concerns nobody.
    pub(crate) fn send(&mut self, to: Peer, frame: Letter) {
        if let Some(link) = self.links.get_mut(&to) {
            link.unacknowledged.push_back(frame);
        }
    }

    /// What is to be sent now.
    pub(crate) fn packets(&mut self, now: u64) -> Vec<Packet> {
        let mut packets = Vec::new();
        for (peer, link) in &mut self.links {
            if link.sent > 0 && now >= link.sent_at + Links::REPEAT_MS {
                link.sent = 0;
            }
            let rest = link.unacknowledged.len() - link.sent;
            if rest == 0 && !link.owes {
                continue;
            }
            let frames = link.unacknowledged.iter().skip(link.sent);
            let frames: Vec<Letter> = frames.take(Links::PACKET_FRAMES).cloned().collect();
            packets.push(Packet {
                from: self.own,
                to: *peer,
                taken: link.taken,
                first: link.first + link.sent as u64,
                frames: frames.clone(),
            });
            link.sent += frames.len();
            link.sent_at = now;
            link.owes = false;
        }
        packets
    }

    /// Takes a packet: the frames that are next, in order. Those of before are repetitions; those behind a gap will come
    /// again.
    pub(crate) fn take(&mut self, packet: Packet) -> Vec<Letter> {
        let own = self.own;
        let link = self.links.get_mut(&packet.from);
        let Some(link) = link.filter(|_| packet.to == own) else {
            return Vec::new();
        };
        let acknowledged = packet.taken.saturating_sub(link.first);
        let acknowledged = (acknowledged as usize).min(link.unacknowledged.len());
        link.unacknowledged.drain(..acknowledged);
        link.first += acknowledged as u64;
        link.sent = link.sent.saturating_sub(acknowledged);
        if packet.frames.is_empty() || packet.first > link.taken {
            return Vec::new();
        }
        link.owes = true;
        let known = (link.taken - packet.first) as usize;
        let frames: Vec<Letter> = packet.frames.into_iter().skip(known).collect();
        link.taken += frames.len() as u64;
        frames
    }
}
