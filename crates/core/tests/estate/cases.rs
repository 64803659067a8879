//! Cases that random runs meet too rarely, played move by move.

use std::collections::VecDeque;

use testigo_core::estate::{Broken, Estate, Frame, Out, Peer, Tell};
use testigo_core::{
    Answer, Change, Claim, ClaimEnd, Command, Fence, Index, Limits, Lock, NodeId, Origin,
    Replicated, Resumed, SessionId, Settled, Shard, Span, Stamp, Start,
};

const GATE: &str = "deploy";
const SESSION: u64 = 7;

/// Three nodes that follow one log at once; frames wait until they are delivered.
struct Stage {
    replicated: Replicated,
    estates: Vec<Estate>,
    sequences: [u64; 3],
    frames: VecDeque<(Peer, Peer, Frame)>,
    tells: Vec<Tell>,
}

fn peer(at: usize) -> Peer {
    (NodeId(at as u64 + 1), Start(1))
}

impl Stage {
    fn new(broken: Option<Broken>) -> Stage {
        let replicated = Replicated::new(Limits::default());
        let estates = (0..3).map(|at| {
            let mut estate = Estate::new(0, peer(at), 3_000, Limits::default(), 1, &replicated);
            estate.broken = broken;
            estate
        });
        let mut stage = Stage {
            estates: estates.collect(),
            replicated,
            sequences: [0; 3],
            frames: VecDeque::new(),
            tells: Vec::new(),
        };
        let members = (0..3).map(peer).collect();
        let (before, generation) = (Index(0), 0);
        stage.log(
            0,
            Change::View {
                before,
                members,
                generation,
            },
        );
        for at in 0..3 {
            let index = stage.replicated.index();
            let lease = stage.estates[at].lease();
            let ask = lease.due(2_000).expect("none was sent yet");
            lease.answer(ask, index);
            lease.applied(index, true);
        }
        stage
    }

    /// Everybody applies a change that a node has submitted.
    fn log(&mut self, by: usize, change: Change) {
        self.sequences[by] += 1;
        let (node, start) = peer(by);
        let origin = Origin {
            node,
            start,
            sequence: self.sequences[by],
        };
        let stamp = Stamp {
            at: 0,
            origin: Some(origin),
            term: 0,
        };
        let applied = self
            .replicated
            .apply(stamp, &change)
            .expect("it rests on what is so");
        for at in 0..3 {
            let mut out = Out::default();
            self.estates[at].follow(2_000, &self.replicated, &applied, &mut out);
            self.collect(at, out);
        }
    }

    fn collect(&mut self, at: usize, out: Out) {
        self.tells.extend(out.tells);
        for (to, frame) in self.estates[at].take_frames() {
            self.frames.push_back((peer(at), to, frame));
        }
    }

    fn ask(&mut self, at: usize, session: SessionId, command: &Command<'_>) -> Answer {
        let mut out = Out::default();
        let answer = self.estates[at].ask(2_000, &self.replicated, session, command, &mut out);
        self.collect(at, out);
        answer.expect("the node acts")
    }

    fn deliver(&mut self, (from, to, frame): (Peer, Peer, Frame)) {
        let at = to.0.0 as usize - 1;
        let mut out = Out::default();
        self.estates[at].receive(2_000, &self.replicated, from, frame, &mut out);
        self.collect(at, out);
    }

    fn deliver_all(&mut self) {
        while let Some(frame) = self.frames.pop_front() {
            self.deliver(frame);
        }
    }
}

/// Whether a gate is still held by a session that moved, after a release that its old home had sent before.
fn held_after_an_old_release(broken: Option<Broken>) -> bool {
    let session = SessionId::opened(SESSION);
    let mut stage = Stage::new(broken);
    // The first node owns the gate, the second is the session's home.
    let number = stage.replicated.ownership().number(Shard::of(GATE));
    let (taker, start) = peer(0);
    let owner = stage
        .replicated
        .ownership()
        .title(Shard::of(GATE))
        .expect("a view gave it");
    if owner.owner != taker {
        let shards = vec![Span::of(Shard::of(GATE), number)];
        let by = owner.owner.0 as usize - 1;
        stage.log(
            by,
            Change::Titles {
                shards,
                taker,
                start,
            },
        );
        stage.deliver_all();
    }
    stage.log(
        1,
        Change::OpenSession {
            session,
            ttl_ms: 10_000,
            label: None,
            user: None,
        },
    );
    let home = stage.replicated.index();
    let gate = GATE;
    let lock = Command::Lock(Lock {
        gate,
        ..Lock::default()
    });
    stage.ask(1, session, &lock);
    stage.deliver_all();
    let fence = stage.tells.iter().find_map(|tell| match tell {
        Tell::Answered {
            answer: Ok(Answer::Settled(Settled::Entered(grant))),
            ..
        } => Some(grant.fence),
        _ => None,
    });
    let fence: Fence = fence.expect("nobody else wants it");
    // The release is on its way when the client goes to the third node, which is told that it holds the gate.
    stage.ask(1, session, &Command::Unlock { gate, fence: None });
    let release = stage.frames.pop_front().expect("the owner is asked");
    let claims = [Claim {
        gate,
        fence,
        ask: Default::default(),
        proven: true,
    }];
    let mut out = Out::default();
    stage.estates[2].resume(2_000, &stage.replicated, session, &claims, &mut out);
    stage.collect(2, out);
    stage.log(2, Change::MoveSession { session, home });
    stage.deliver_all();
    let resumed = stage.tells.iter().any(|tell| {
        let Tell::Answered {
            answer: Ok(Answer::Resumed(Resumed { claims, .. })),
            ..
        } = tell
        else {
            return false;
        };
        claims[..] == [ClaimEnd::Held]
    });
    assert!(resumed, "{:?}", stage.tells);
    stage.deliver(release);
    stage.estates[0].local().fence_check(GATE, fence)
}

#[test]
fn a_release_of_before_a_move_releases_nothing() {
    assert!(held_after_an_old_release(None));
    assert!(
        !held_after_an_old_release(Some(Broken::OldHome)),
        "the case is not met"
    );
}
