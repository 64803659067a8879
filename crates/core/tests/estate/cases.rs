//! Cases that random runs meet too rarely, played move by move.

use std::collections::VecDeque;

use testigo_core::estate::{Broken, Estate, Frame, Out, Peer, Tell};
use testigo_core::{
    Answer, Change, Claim, ClaimEnd, Command, Fence, Index, Limits, Lock, LockAll, NodeId, Origin,
    Replicated, Resumed, SessionId, Settled, Shard, Span, Stamp, Start, WaitEnd, Word,
};

pub(crate) const GATE: &str = "deploy";
pub(crate) const SESSION: u64 = 7;

/// Three nodes that follow one log at once; frames wait until they are delivered.
pub(crate) struct Stage {
    pub(crate) replicated: Replicated,
    pub(crate) estates: Vec<Estate>,
    sequences: [u64; 3],
    pub(crate) frames: VecDeque<(Peer, Peer, Frame)>,
    pub(crate) tells: Vec<Tell>,
    pub(crate) now: u64,
}

pub(crate) fn peer(at: usize) -> Peer {
    (NodeId(at as u64 + 1), Start(1))
}

impl Stage {
    pub(crate) fn new(broken: Option<Broken>) -> Stage {
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
            now: 2_000,
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
    pub(crate) fn log(&mut self, by: usize, change: Change) {
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
            self.estates[at].follow(self.now, &self.replicated, &applied, &mut out);
            self.collect(at, out);
        }
    }

    fn collect(&mut self, at: usize, out: Out) {
        self.tells.extend(out.tells);
        for (to, frame) in self.estates[at].take_frames() {
            self.frames.push_back((peer(at), to, frame));
        }
    }

    pub(crate) fn ask(&mut self, at: usize, session: SessionId, command: &Command<'_>) -> Answer {
        let mut out = Out::default();
        let answer = self.estates[at].ask(self.now, &self.replicated, session, command, &mut out);
        self.collect(at, out);
        answer.expect("the node acts")
    }

    /// Makes a node the owner of a gate.
    pub(crate) fn give(&mut self, gate: &str, to: usize) {
        let (shard, (taker, start)) = (Shard::of(gate), peer(to));
        let ownership = self.replicated.ownership();
        let (number, title) = (ownership.number(shard), ownership.title(shard));
        let owner = title.expect("a view gave it").owner;
        if owner != taker {
            let shards = vec![Span::of(shard, number)];
            let titles = Change::Titles {
                shards,
                taker,
                start,
            };
            self.log(owner.0 as usize - 1, titles);
            self.deliver_all();
        }
    }

    /// Opens a session at a node, and gives the index of its home.
    pub(crate) fn open(&mut self, at: usize, session: SessionId) -> Index {
        let open = Change::OpenSession {
            session,
            ttl_ms: 10_000,
            label: None,
            user: None,
        };
        self.log(at, open);
        self.replicated.index()
    }

    /// A session enters a gate that nobody else wants and another node owns.
    pub(crate) fn lock(&mut self, at: usize, session: SessionId, gate: &str) -> Fence {
        let lock = Command::Lock(Lock {
            gate,
            ..Lock::default()
        });
        self.ask(at, session, &lock);
        self.deliver_all();
        let fence = self.tells.iter().find_map(|tell| match tell {
            Tell::Answered {
                answer: Ok(Answer::Settled(Settled::Entered(grant))),
                ..
            } => Some(grant.fence),
            _ => None,
        });
        fence.expect("nobody else wants it")
    }

    /// The view without the first node.
    pub(crate) fn leave_out_the_first(&mut self) {
        let view = self.replicated.view();
        let left_out = Change::View {
            before: view.index,
            members: [peer(1), peer(2)].to_vec(),
            generation: view.generation,
        };
        self.log(1, left_out);
    }

    /// Takes a session up again at a node, and gives what became of the claims once everybody has spoken.
    fn resume(&mut self, at: usize, session: SessionId, claims: &[Claim<'_>]) -> Vec<ClaimEnd> {
        let resumed = self.try_resume(at, session, claims);
        resumed.expect("everybody has spoken")
    }

    pub(crate) fn try_resume(
        &mut self,
        at: usize,
        session: SessionId,
        claims: &[Claim<'_>],
    ) -> Option<Vec<ClaimEnd>> {
        let home = self.replicated.session(session).expect("it is open").home;
        let mut out = Out::default();
        self.estates[at].resume(self.now, &self.replicated, session, claims, None, &mut out);
        self.collect(at, out);
        let home = home.index;
        self.log(at, Change::MoveSession { session, home });
        self.deliver_all();
        self.tells.iter().find_map(|tell| match tell {
            Tell::Answered {
                answer: Ok(Answer::Resumed(Resumed { claims, .. })),
                ..
            } => Some(claims.clone()),
            _ => None,
        })
    }

    pub(crate) fn deliver(&mut self, (from, to, frame): (Peer, Peer, Frame)) {
        let at = to.0.0 as usize - 1;
        let mut out = Out::default();
        self.estates[at].receive(self.now, &self.replicated, from, frame, &mut out);
        self.collect(at, out);
    }

    pub(crate) fn deliver_all(&mut self) {
        while let Some(frame) = self.frames.pop_front() {
            self.deliver(frame);
        }
    }
}

/// How a client is refused whose session the log does not move to a node, which has heard of that, or asked too late.
fn refused_resume(closed: bool, late: bool) -> Word {
    let session = SessionId::opened(SESSION);
    let mut stage = Stage::new(None);
    let home = stage.open(1, session);
    let mut out = Out::default();
    let estate = &mut stage.estates[2];
    estate.resume(2_000, &stage.replicated, session, &[], None, &mut out);
    // An earlier try of its client, at the first node, is carried out before; or it has ended.
    stage.log(
        0,
        match closed {
            true => Change::CloseSession { session, home },
            false => Change::MoveSession { session, home },
        },
    );
    if late {
        stage.tells.clear();
        let moved = Change::MoveSession { session, home };
        let refusal = stage.replicated.check(&moved).expect_err("it has moved");
        assert_eq!(refusal.word, Word::Stale);
        let estate = &mut stage.estates[2];
        estate.resume(2_000, &stage.replicated, session, &[], None, &mut out);
        estate.not_moved(&stage.replicated, (session, None), refusal, &mut out);
    }
    stage.tells.extend(out.tells);
    let refused = stage.tells.iter().rev().find_map(|tell| match tell {
        Tell::Answered {
            answer: Err(refusal),
            ..
        } => Some(refusal.word),
        _ => None,
    });
    refused.expect("it is answered")
}

#[test]
fn a_session_that_the_log_does_not_move_is_not_over() {
    assert_eq!(refused_resume(false, false), Word::Unavailable);
    assert_eq!(refused_resume(false, true), Word::Unavailable);
    assert_eq!(refused_resume(true, false), Word::Stale);
}

/// Whether a gate is still held by a session that moved, after a release that its old home had sent before.
fn held_after_an_old_release(broken: Option<Broken>) -> bool {
    let session = SessionId::opened(SESSION);
    let mut stage = Stage::new(broken);
    // The first node owns the gate, the second is the session's home.
    stage.give(GATE, 0);
    stage.open(1, session);
    let gate = GATE;
    let fence = stage.lock(1, session, gate);
    // The release is on its way when the client goes to the third node, which is told that it holds the gate.
    stage.ask(1, session, &Command::Unlock { gate, fence: None });
    let release = stage.frames.pop_front().expect("the owner is asked");
    let claims = [Claim {
        gate,
        fence,
        ask: Default::default(),
        proven: true,
        ..Claim::default()
    }];
    assert_eq!(stage.resume(2, session, &claims), [ClaimEnd::Held]);
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

/// What a session is told of its claims, and whether it is still inside, when it moves after it was told that its set is
/// whole, and before the owners have heard of that.
fn claims_of_a_set(broken: Option<Broken>) -> (Vec<ClaimEnd>, bool) {
    let session = SessionId::opened(SESSION);
    let mut stage = Stage::new(broken);
    let gates = ["beta", "alpha"];
    for (at, gate) in gates.iter().enumerate() {
        stage.give(gate, at * 2);
    }
    stage.open(1, session);
    let set = Command::LockAll(LockAll {
        gates: gates.map(|gate| (gate, Default::default())).to_vec().into(),
        ..LockAll::default()
    });
    stage.ask(1, session, &set);
    let mut kept = Vec::new();
    while let Some(frame) = stage.frames.pop_front() {
        match frame.2 {
            Frame::Kept { .. } => kept.push(frame),
            _ => stage.deliver(frame),
        }
    }
    assert_eq!(
        kept.len(),
        2,
        "both owners are to hear that the set is whole"
    );
    let fences = stage.tells.iter().find_map(|tell| match tell {
        Tell::Answered {
            answer: Ok(Answer::Settled(Settled::EnteredAll(grants))),
            ..
        } => Some(grants.iter().map(|grant| grant.fence).collect::<Vec<_>>()),
        _ => None,
    });
    let fences = fences.expect("nobody else wants them");
    let claims: Vec<Claim<'_>> = gates
        .iter()
        .zip(&fences)
        .map(|(gate, fence)| Claim {
            gate,
            fence: *fence,
            ask: Default::default(),
            proven: true,
            ..Claim::default()
        })
        .collect();
    let ends = stage.resume(0, session, &claims);
    let inside = (0..2).all(|at| {
        let owner = stage.estates[at * 2].local();
        owner.fence_check(gates[at], fences[at])
    });
    (ends, inside)
}

#[test]
fn a_set_that_its_client_was_told_of_survives_a_move() {
    let held = vec![ClaimEnd::Held; 2];
    assert_eq!(claims_of_a_set(None), (held.clone(), true));
    let broken = claims_of_a_set(Some(Broken::ReservedFreed));
    assert_ne!(broken, (held, true), "the case is not met");
}

/// A set that waits is reserved where it got in, in the order of the names, and is given back when it is called off.
#[test]
fn half_a_set_is_shown_as_reserved_and_given_back() {
    let mut stage = Stage::new(None);
    let (one, other) = (SessionId::opened(SESSION), SessionId::opened(SESSION + 1));
    stage.give("alpha", 0);
    stage.give("beta", 2);
    stage.open(1, one);
    stage.open(2, other);
    let lock = Command::Lock(Lock {
        gate: "beta",
        ..Lock::default()
    });
    stage.ask(2, other, &lock);
    let set = Command::LockAll(LockAll {
        gates: vec![("beta", Default::default()), ("alpha", Default::default())].into(),
        id: Some("mine"),
        ..LockAll::default()
    });
    let Answer::Waiting(ticket) = stage.ask(1, one, &set) else {
        panic!("beta is held");
    };
    stage.deliver_all();
    let shown = stage.estates[0].local().gate("alpha").unwrap();
    assert!(shown.holders.len() == 1 && shown.holders[0].reserved);
    assert_eq!(stage.estates[2].local().gate("beta").unwrap().waiting, 1);
    // The same ID is the same wait, and no second one.
    assert_eq!(stage.ask(1, one, &set), Answer::Waiting(ticket));
    stage.ask(1, one, &Command::Cancel { ticket });
    stage.deliver_all();
    assert!(
        stage.estates[0].local().gate("alpha").is_err(),
        "it is idle"
    );
    assert_eq!(stage.estates[2].local().gate("beta").unwrap().waiting, 0);
    let ended = Answer::Settled(Settled::Ended(WaitEnd::Cancelled));
    assert_eq!(stage.ask(1, one, &set), ended);
}

/// An ID gives the same answer, also where another node owns the gate.
#[test]
fn an_id_is_answered_once() {
    let mut stage = Stage::new(None);
    let session = SessionId::opened(SESSION);
    stage.give(GATE, 0);
    stage.open(1, session);
    let lock = Command::Lock(Lock {
        gate: GATE,
        id: Some("mine"),
        ..Lock::default()
    });
    let waiting = stage.ask(1, session, &lock);
    assert_eq!(stage.ask(1, session, &lock), waiting);
    stage.deliver_all();
    let granted = stage.ask(1, session, &lock);
    assert!(matches!(granted, Answer::Settled(Settled::Entered(_))));
    assert_eq!(stage.ask(1, session, &lock), granted);
}

/// Whoever is blocked in a call is not silent, whoever owns the gate; once its connection is gone it is.
#[test]
fn a_blocked_wait_elsewhere_is_a_sign_of_life() {
    let mut stage = Stage::new(None);
    let (one, other) = (SessionId::opened(SESSION), SessionId::opened(SESSION + 1));
    stage.give(GATE, 0);
    stage.open(0, other);
    stage.open(1, one);
    let lock = Command::Lock(Lock {
        gate: GATE,
        ..Lock::default()
    });
    stage.ask(0, other, &lock);
    stage.ask(1, one, &lock);
    stage.deliver_all();
    let silent = |stage: &mut Stage, now: u64| {
        let index = stage.replicated.index();
        let ask = stage.estates[1].lease().due(now).expect("it is time");
        stage.estates[1].lease().answer(ask, index);
        stage.estates[1].lease().applied(index, true);
        let mut out = Out::default();
        stage.estates[1].tick(now, &stage.replicated, &mut out);
        !out.changes.is_empty()
    };
    assert!(!silent(&mut stage, 20_000));
    let mut out = Out::default();
    let gone = stage.estates[1].ask(
        20_000,
        &stage.replicated,
        one,
        &Command::Disconnect,
        &mut out,
    );
    assert!(gone.is_ok());
    assert!(!silent(&mut stage, 29_000));
    assert!(silent(&mut stage, 31_000));
}
