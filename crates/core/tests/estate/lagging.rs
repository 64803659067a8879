//! Three nodes of which each follows the log on its own, as far as a test lets it, so that a node may hear of what its own
//! log has not said yet, or of what it has said since. What they send waits until it is delivered, in order on every link.

use std::collections::{BTreeMap, VecDeque};

use testigo_core::estate::{Broken, Estate, Frame, Out, Tell};
use testigo_core::{
    Answer, Change, Claim, ClaimEnd, Command, Fence, Index, Limits, Origin, Replicated, Resumed,
    SessionId, Settled, Shard, Span, Stamp,
};

use crate::trio::{client, lock, peer};

const GATE: &str = "deploy";
/// When everything happens: the leases last.
const NOW: u64 = 2_000;

fn session() -> SessionId {
    SessionId::opened(7)
}

/// A node, and how far it has followed the log.
struct Node {
    estate: Estate,
    replicated: Replicated,
    applied: usize,
}

struct Lagging {
    nodes: Vec<Node>,
    log: Vec<(Stamp, Change)>,
    sequences: [u64; 3],
    frames: BTreeMap<(usize, usize), VecDeque<Frame>>,
    tells: Vec<(usize, Tell)>,
}

impl Lagging {
    /// The first so many nodes are members, and the first one owns the gate.
    fn new(members: usize, broken: Option<Broken>) -> Lagging {
        let nodes = (0..3).map(|at| {
            let replicated = Replicated::new(Limits::default());
            let mut estate = Estate::new(0, peer(at), 3_000, Limits::default(), 1, &replicated);
            estate.broken = broken;
            Node {
                estate,
                replicated,
                applied: 0,
            }
        });
        let mut stage = Lagging {
            nodes: nodes.collect(),
            log: Vec::new(),
            sequences: [0; 3],
            frames: BTreeMap::new(),
            tells: Vec::new(),
        };
        stage.let_in(members);
        stage.settle();
        for node in &mut stage.nodes[..members] {
            let lease = node.estate.lease();
            let ask = lease.due(NOW).expect("none was sent yet");
            node.estate.leased(ask, &node.replicated);
        }
        let owner = stage.owner();
        if owner != 0 {
            stage.give(0);
            stage.settle();
        }
        stage
    }

    /// The log gets a change of a node. Nobody applies it yet.
    fn submit(&mut self, by: usize, change: Change) {
        self.sequences[by] += 1;
        let (node, start) = peer(by);
        let origin = Some(Origin {
            node,
            start,
            sequence: self.sequences[by],
        });
        let stamp = Stamp {
            origin,
            ..Stamp::default()
        };
        self.log.push((stamp, change));
    }

    /// A view with the first so many nodes.
    fn let_in(&mut self, members: usize) {
        let view = Change::View {
            before: self.nodes[0].replicated.view().index,
            members: (0..members).map(peer).collect(),
            generation: 0,
        };
        self.submit(0, view);
    }

    fn owner(&self) -> usize {
        let ownership = self.nodes[0].replicated.ownership();
        let title = ownership.title(Shard::of(GATE)).expect("a view gave it");
        title.owner.0 as usize - 1
    }

    /// The gate's owner gives it to another node.
    fn give(&mut self, to: usize) {
        let shard = Shard::of(GATE);
        let number = self.nodes[0].replicated.ownership().number(shard);
        let (taker, start) = peer(to);
        let titles = Change::Titles {
            shards: vec![Span::of(shard, number)],
            taker,
            start,
        };
        self.submit(self.owner(), titles);
    }

    /// A node applies what the log has for it.
    fn follow(&mut self, at: usize) {
        while let Some((stamp, change)) = self.log.get(self.nodes[at].applied) {
            let node = &mut self.nodes[at];
            node.applied += 1;
            let applied = node.replicated.apply(*stamp, change);
            let applied = applied.expect("it rests on what is so");
            let mut out = Out::default();
            node.estate
                .follow(NOW, &node.replicated, &applied, &mut out);
            self.collect(at, out);
        }
    }

    fn collect(&mut self, at: usize, out: Out) {
        self.tells
            .extend(out.tells.into_iter().map(|tell| (at, tell)));
        for (to, frame) in self.nodes[at].estate.take_frames() {
            let link = (at, to.0.0 as usize - 1);
            self.frames.entry(link).or_default().push_back(frame);
        }
    }

    /// Everything that one node has sent to another arrives.
    fn deliver(&mut self, from: usize, to: usize) {
        for frame in self.frames.remove(&(from, to)).unwrap_or_default() {
            let Node {
                estate, replicated, ..
            } = &mut self.nodes[to];
            let mut out = Out::default();
            estate.receive(NOW, replicated, peer(from), frame, &mut out);
            self.collect(to, out);
        }
    }

    /// Everybody follows the log to its end, and everything arrives.
    fn settle(&mut self) {
        (0..3).for_each(|at| self.follow(at));
        while let Some(&(from, to)) = self.frames.keys().next() {
            self.deliver(from, to);
        }
    }

    fn ask(&mut self, at: usize, session: SessionId, command: &Command<'_>) -> Answer {
        let Node {
            estate, replicated, ..
        } = &mut self.nodes[at];
        let mut out = Out::default();
        let answer = estate.ask(NOW, replicated, session, command, &mut out);
        self.collect(at, out);
        answer.expect("the node acts")
    }

    /// A session is opened at a node, enters the gate, and everybody knows.
    fn open_and_enter(&mut self, at: usize) -> Fence {
        let open = Change::OpenSession {
            session: session(),
            ttl_ms: 10_000,
            label: None,
            user: None,
        };
        self.submit(at, open);
        self.settle();
        let answer = self.ask(at, session(), &lock(GATE));
        self.settle();
        let told = self.tells.iter().find_map(|(_, tell)| match tell {
            Tell::Answered { answer, .. } => answer.clone().ok(),
            _ => None,
        });
        match told.unwrap_or(answer) {
            Answer::Settled(Settled::Entered(grant)) => grant.fence,
            other => panic!("nobody else wants it: {other:?}"),
        }
    }

    fn home(&self) -> Index {
        let record = self.nodes[0].replicated.session(session());
        record.expect("it is open").home.index
    }

    /// Whether somebody who asks a node for the gate now gets in, once everybody has heard everything.
    fn lets_in(&mut self, at: usize) -> bool {
        self.settle();
        let asker = client(at, 1);
        self.ask(at, asker, &Command::Connect);
        let answer = self.ask(at, asker, &lock(GATE));
        self.settle();
        let entered = |answer: &Answer| matches!(answer, Answer::Settled(Settled::Entered(_)));
        let told = self.tells.iter().any(|(_, tell)| match tell {
            Tell::Answered {
                session, answer, ..
            } => *session == asker && answer.as_ref().is_ok_and(entered),
            _ => false,
        });
        told || entered(&answer)
    }

    /// What a session that was taken up again was told of its claims, if everybody has spoken.
    fn resumed(&self) -> Option<&[ClaimEnd]> {
        self.tells.iter().find_map(|(_, tell)| match tell {
            Tell::Answered {
                answer: Ok(Answer::Resumed(Resumed { claims, .. })),
                ..
            } => Some(&claims[..]),
            _ => None,
        })
    }

    /// Whether one node's answer to another about a session is on its way.
    fn answers(&self, from: usize, to: usize) -> bool {
        let frames = self.frames.get(&(from, to));
        let has = |frame: &Frame| matches!(frame, Frame::Has { .. });
        frames.is_some_and(|frames| frames.iter().any(has))
    }
}

/// Whether a gate is free when the home of a session that was inside has reported to a new owner before it heard of the
/// session's end, and the new owner hears that report after it.
fn is_free_after_an_old_report(broken: Option<Broken>) -> bool {
    let mut stage = Lagging::new(3, broken);
    stage.open_and_enter(1);
    let home = stage.home();
    stage.give(2);
    stage.follow(1);
    stage.submit(
        1,
        Change::CloseSession {
            session: session(),
            home,
        },
    );
    stage.follow(2);
    stage.deliver(1, 2);
    stage.lets_in(0)
}

/// Case P.
#[test]
fn a_report_of_a_session_that_has_ended_since_puts_nobody_inside() {
    assert!(is_free_after_an_old_report(None));
    assert!(
        !is_free_after_an_old_report(Some(Broken::ReportOfDead)),
        "the case is not met"
    );
}

/// A session whose home and whose gate's owner was the first node is taken up again at the second. It has asked the others
/// and the third has answered, when the gate is given to the third.
fn resumed_while_its_gate_moves(broken: Option<Broken>) -> Lagging {
    let mut stage = Lagging::new(3, broken);
    let fence = stage.open_and_enter(0);
    let claims = [Claim {
        gate: GATE,
        fence,
        ask: Default::default(),
        proven: true,
        ..Claim::default()
    }];
    let Node {
        estate, replicated, ..
    } = &mut stage.nodes[1];
    let mut out = Out::default();
    estate.resume(NOW, replicated, session(), &claims, None, &mut out);
    let moved = out.changes.pop().expect("the session is to move");
    stage.submit(1, moved);
    (0..3).for_each(|at| stage.follow(at));
    stage.deliver(1, 0);
    stage.deliver(1, 2);
    assert!(stage.answers(0, 1) && stage.answers(2, 1));
    stage.give(2);
    stage
}

/// What a session is told of its hold if the gate's new owner hears the second question before it has its title.
fn told_by_an_owner_without_title(broken: Option<Broken>) -> Vec<ClaimEnd> {
    let mut stage = resumed_while_its_gate_moves(broken);
    stage.deliver(2, 1);
    // What the first node says now is of a gate that is not its own any more.
    stage.follow(1);
    stage.deliver(0, 1);
    stage.deliver(1, 2);
    if broken.is_none() {
        assert!(!stage.answers(2, 1), "it does not know of the gate yet");
        stage.follow(2);
        assert!(!stage.answers(2, 1), "the first node has not reported yet");
    }
    stage.deliver(2, 1);
    stage.settle();
    stage.resumed().expect("everybody has spoken").to_vec()
}

/// Case O.
#[test]
fn a_claim_is_not_heard_before_the_report_that_it_follows() {
    assert_eq!(told_by_an_owner_without_title(None), [ClaimEnd::Held]);
    let broken = told_by_an_owner_without_title(Some(Broken::Overtaking));
    assert_eq!(broken, [ClaimEnd::Lost], "the case is not met");
    // Nobody was asked twice before it had answered.
    let other = told_by_an_owner_without_title(Some(Broken::EarlierAnswer));
    assert_eq!(other, [ClaimEnd::Held]);
}

/// What a session is told of its hold if the new owner's first answer arrives after it was asked again.
fn told_by_an_earlier_answer(broken: Option<Broken>) -> Vec<ClaimEnd> {
    let mut stage = resumed_while_its_gate_moves(broken);
    stage.follow(1);
    stage.deliver(0, 1);
    stage.deliver(2, 1);
    stage.settle();
    stage.resumed().expect("everybody has spoken").to_vec()
}

/// Case O.
#[test]
fn an_answer_is_not_taken_for_that_to_a_later_question() {
    assert_eq!(told_by_an_earlier_answer(None), [ClaimEnd::Held]);
    let broken = told_by_an_earlier_answer(Some(Broken::EarlierAnswer));
    assert_eq!(broken, [ClaimEnd::Lost], "the case is not met");
    // The second question is heard when the title is applied.
    let other = told_by_an_earlier_answer(Some(Broken::Overtaking));
    assert_eq!(other, [ClaimEnd::Held]);
}

/// Whether a gate opens if its new owner hears the report of a newcomer before the view that lets it in.
fn opens_after_an_early_report(broken: Option<Broken>) -> bool {
    let mut stage = Lagging::new(2, broken);
    stage.let_in(3);
    stage.give(1);
    stage.follow(2);
    stage.deliver(2, 1);
    stage.lets_in(1)
}

/// Case G.
#[test]
fn what_a_newcomer_says_before_its_view_has_come_is_kept() {
    assert!(opens_after_an_early_report(None));
    assert!(
        !opens_after_an_early_report(Some(Broken::Stranger)),
        "the case is not met"
    );
}
