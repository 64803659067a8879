//! Frames that are complete but nonsense: whatever another member sends, an engine refuses it or goes on. It never panics.

use bytes::Bytes;
use raft::eraftpb::{Entry, EntryType, Message, MessageType};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::engine::Engine;
use crate::links::Numbered;
use crate::members::{MemberChange, Members};
use crate::origin::Origins;
use crate::pieces::{Piece, Wanted};
use crate::setup::Setup;
use crate::simulated::Disk;
use crate::store::{Base, SnapshotMark};
use crate::wire::{self, Said};

struct Liar(Xoshiro256StarStar);

impl Liar {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    /// Mostly near the truth, now and then far off.
    fn near(&mut self, around: u64) -> u64 {
        match self.below(20) {
            0 => self.0.next_u64(),
            1 => 0,
            _ => (around + self.below(7)).saturating_sub(3),
        }
    }

    fn entry(&mut self, index: u64, term: u64) -> Entry {
        let mut context = Vec::new();
        let members = Members {
            voters: (1..=1 + self.below(4)).collect(),
            ..Members::default()
        };
        members.write(&mut context);
        let is_change = self.below(6) == 0;
        Entry {
            index,
            term,
            entry_type: match is_change {
                true => EntryType::EntryConfChange,
                false => EntryType::EntryNormal,
            },
            context: if is_change {
                context.into()
            } else {
                Bytes::new()
            },
            data: match self.below(3) {
                0 => Bytes::new(),
                1 => Bytes::from_static(b"\x01\0\0\0x"),
                _ => Bytes::from_static(b"no bundle"),
            },
            ..Entry::default()
        }
    }

    fn message(&mut self, engine: &Engine) -> Message {
        const KINDS: [MessageType; 11] = [
            MessageType::MsgAppend,
            MessageType::MsgAppendResponse,
            MessageType::MsgRequestVote,
            MessageType::MsgRequestVoteResponse,
            MessageType::MsgRequestPreVote,
            MessageType::MsgRequestPreVoteResponse,
            MessageType::MsgHeartbeat,
            MessageType::MsgHeartbeatResponse,
            MessageType::MsgReadIndex,
            MessageType::MsgReadIndexResp,
            MessageType::MsgTimeoutNow,
        ];
        let log = &engine.node.raft.raft_log;
        let (last, committed) = (log.last_index(), log.committed);
        let kind = KINDS[self.below(11) as usize];
        let mut message = Message {
            msg_type: kind,
            term: self.near(engine.term()),
            log_term: self.near(engine.term()),
            index: self.near(last),
            commit: self.near(committed),
            commit_term: self.near(engine.term()),
            reject: self.below(2) == 0,
            reject_hint: self.near(last),
            ..Message::default()
        };
        if self.below(4) == 0 {
            message.index = self.near(committed);
        }
        if self.below(3) > 0 {
            message.log_term = log.term(message.index).unwrap_or_default();
        }
        let count = match kind {
            MessageType::MsgAppend => self.below(4),
            MessageType::MsgReadIndex | MessageType::MsgReadIndexResp => 1,
            _ => 0,
        };
        let mut entries = Vec::new();
        for nth in 0..count {
            let index = message.index.wrapping_add(nth + 1);
            entries.push(self.entry(index, message.term));
        }
        if kind == MessageType::MsgReadIndex {
            message.term = 0;
        }
        message.entries = entries.into();
        message
    }

    fn said(&mut self, engine: &Engine) -> Said {
        let mark = SnapshotMark {
            index: self.near(engine.delivered()),
            term: self.near(engine.term()),
        };
        match self.below(12) {
            0 => Said::Submission(Bytes::from_static(b"\x01\0\0\0x")),
            1 => Said::Wanted(Wanted {
                mark,
                offset: self.below(9),
            }),
            2 => Said::Numbered(Numbered {
                from_start: self.near(1),
                to_start: self.near(1),
                sequence: self.near(1),
                taken: self.near(1),
                payload: Bytes::from_static(b"x"),
            }),
            3 => {
                let image: &'static [u8] = &[7; 8];
                Said::Piece(Piece {
                    term: self.near(engine.term()),
                    base: Base {
                        mark,
                        members: Members {
                            voters: (1..=1 + self.below(4)).collect(),
                            at: self.near(engine.delivered()),
                            ..Members::default()
                        },
                        origins: Origins::default(),
                    },
                    bytes: 8,
                    sum: xxhash_rust::xxh3::xxh3_64(image),
                    offset: 0,
                    data: Bytes::from_static(image),
                })
            }
            _ => Said::Message(self.message(engine)),
        }
    }
}

/// Runs one engine among liars, until it stops.
fn withstands(seed: u64) {
    let mut liar = Liar(Xoshiro256StarStar::seed_from_u64(seed));
    let mut engine = Disk::default().open(Setup::default()).unwrap().engine;
    for step in 0..60 {
        engine.propose(b"something true").ok();
        if step < 4 && seed.is_multiple_of(2) {
            let change = [
                MemberChange::AddLearner(2),
                MemberChange::AddLearner(3),
                MemberChange::Promote(2),
                MemberChange::Promote(3),
            ];
            engine.change_members(change[step]).ok();
        }
        for _ in 0..liar.below(4) {
            let from = 2 + liar.below(3);
            let said = liar.said(&engine);
            if let Some(frame) = wire::write(&said, from, 1) {
                let _ = engine.step(from, &frame);
            }
        }
        if liar.below(3) == 0 {
            engine.tick();
        }
        if engine.flush().is_err() {
            return;
        }
        if liar.below(8) == 0 {
            let _ = engine.snapshot(engine.delivered(), b"so far");
        }
    }
}

#[test]
fn no_lie_ends_an_engine() {
    let rounds = std::env::var("TESTIGO_ROUNDS").ok();
    let rounds = rounds.and_then(|rounds| rounds.parse().ok());
    for seed in 0..rounds.unwrap_or(3_000) {
        let withstood = std::panic::catch_unwind(|| withstands(seed));
        assert!(withstood.is_ok(), "seed {seed}");
    }
}
