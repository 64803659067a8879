//! What houses of a cluster say to each other, on the links between their starts. A letter is postcard after a byte with the
//! version that wrote it; one that is too long for a link's payload travels in parts.

use serde::{Deserialize, Serialize};
use testigo_core::Newcomer;
use testigo_core::Shard;
use testigo_core::chapter::ChapterLetter;
use testigo_core::estate::Frame;
use testigo_engine::PAYLOAD_BYTES_MAX;

use super::visits::{Call, Replied};

/// One letter.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Letter {
    /// From one estate to another.
    Estate(Frame),
    /// The sender stops: it has handed over what it owned, and everything that it had to report is on this link before this
    /// letter. Answer with [`Letter::Heard`].
    Leaving,
    /// Everything on this link up to [`Letter::Leaving`] was received.
    Heard,
    /// To the leader: the sender no longer acts, so nobody need wait for its lease.
    GivesBack,
    /// The receiver is to carry out a command of one of the sender's clients.
    Call(Box<Call>),
    /// The outcome of a call.
    Reply {
        /// The call.
        call: u64,
        /// Its outcome.
        replied: Replied,
    },
    /// Nobody waits for a call any more. It is answered nevertheless.
    CallOff {
        /// The call.
        call: u64,
    },
    /// The sender needs shards of the receiver for a unit of work.
    Want {
        /// The shards.
        shards: Vec<Shard>,
    },
    /// Clients of the sender listen to channels, or none does any more.
    Listens {
        /// Whether any do.
        listens: bool,
    },
    /// Something has happened at a gate of the sender.
    Publish {
        /// The gate or election.
        gate: String,
        /// The message on its channel.
        message: Vec<u8>,
    },
    /// To the leader: a node wants to become a member.
    Join(Newcomer),
    /// From one chapter of a group to another.
    Chapter(Box<ChapterLetter>),
}

/// The version of the encoding.
const VERSION: u8 = 1;
/// Set in a part that is not the last.
const PART: u8 = 0x80;

/// The payloads of a letter.
pub(crate) fn payloads(letter: &Letter) -> Vec<Vec<u8>> {
    let bytes = postcard::to_stdvec(letter).expect("letters can be written");
    let parts = bytes.chunks(PAYLOAD_BYTES_MAX - 1);
    let last = parts.len() - 1;
    let parts = parts.enumerate().map(|(at, part)| {
        let head = if at == last { VERSION } else { VERSION | PART };
        [&[head], part].concat()
    });
    parts.collect()
}

/// The parts so far of a letter whose last part has not come.
#[derive(Debug, Default)]
pub(crate) struct Parts(Vec<u8>);

impl Parts {
    /// Adds a payload; returns the letter if this was its last. The error says what is wrong with it.
    pub(crate) fn take(&mut self, payload: &[u8]) -> Result<Option<Letter>, String> {
        let Some((head, part)) = payload.split_first() else {
            return Err("it is empty".into());
        };
        if head & !PART != VERSION {
            let head = head & !PART;
            return Err(format!(
                "it is of version {head}; this node reads {VERSION}"
            ));
        }
        if head & PART != 0 {
            self.0.extend_from_slice(part);
            return Ok(None);
        }
        let read = match self.0.is_empty() {
            true => postcard::from_bytes(part),
            false => {
                self.0.extend_from_slice(part);
                postcard::from_bytes(&std::mem::take(&mut self.0))
            }
        };
        read.map(Some).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testigo_core::{Fence, Index, Mode, Name, SessionId, estate::Held};

    fn report(holds: usize) -> Letter {
        let held = Held {
            session: SessionId::opened(7),
            home: Index(1),
            gate: Name::new("a-gate").unwrap(),
            mode: Mode::Exclusive,
            fence: Fence(1 << 40),
            left_ms: None,
            proven: true,
            reserved: false,
            held_ms: 0,
            reason: None,
        };
        Letter::Estate(Frame::Report {
            entry: Index(9),
            holds: vec![held; holds],
            takes: Vec::new(),
        })
    }

    #[test]
    fn long_letters_travel_in_parts_and_arrive_whole() {
        for (letter, parts) in [(report(1), 1), (report(200_000), 5), (Letter::GivesBack, 1)] {
            let payloads = payloads(&letter);
            assert_eq!(payloads.len(), parts);
            let mut arrived = Parts::default();
            let mut read = None;
            for payload in &payloads {
                assert!(payload.len() <= PAYLOAD_BYTES_MAX && read.is_none());
                read = arrived.take(payload).unwrap();
            }
            assert_eq!(read, Some(letter));
            assert!(arrived.0.is_empty());
        }
    }

    #[test]
    fn what_is_no_letter_is_refused() {
        for wrong in [&[][..], &[2, 0], &[VERSION, 200], &[VERSION]] {
            assert!(Parts::default().take(wrong).is_err(), "{wrong:?}");
        }
    }
}
