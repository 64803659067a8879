//! Several nodes over one log, in any order of entries, letters, sends, moves and crashes.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::ownership::{NodeId, Origin, Start};
use crate::replicated::{Outcome, Stamp};

const GROUP: &str = "talk";
const SESSIONS: u64 = 4;

fn group() -> Name {
    Name::new(GROUP).unwrap()
}

/// Random numbers from a seed: SplitMix64.
struct Lots(u64);

impl Lots {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }
}

struct Node {
    peer: Peer,
    replicated: Replicated,
    /// How many entries of the log are applied.
    applied: usize,
    chapters: Chapters,
    /// The last number that it has told.
    told: Option<u64>,
    /// What its sends said, by their sequence, until they are answered.
    asked: BTreeMap<u64, String>,
}

struct World {
    lots: Lots,
    log: Vec<(Stamp, Change)>,
    /// The state at the log's end.
    end: Replicated,
    nodes: Vec<Node>,
    links: BTreeMap<(Peer, Peer), VecDeque<ChapterLetter>>,
    starts: BTreeMap<NodeId, u64>,
    sequences: BTreeMap<Peer, u64>,
    sent: u64,
    /// What everybody was told, by number.
    messages: BTreeMap<u64, GroupMessage>,
    answered: u64,
    broken: bool,
}

impl World {
    fn new(seed: u64, size: u64, using: GroupUsing, broken: bool) -> World {
        let mut world = World {
            lots: Lots(seed),
            log: Vec::new(),
            end: Replicated::new(Limits::default()),
            nodes: Vec::new(),
            links: BTreeMap::new(),
            starts: BTreeMap::new(),
            sequences: BTreeMap::new(),
            sent: 0,
            messages: BTreeMap::new(),
            answered: 0,
            broken,
        };
        for node in 1..=size {
            world.start(NodeId(node));
        }
        world.view();
        for number in 0..SESSIONS {
            let session = SessionId::opened(number + 1);
            let peer = world.nodes[number as usize % world.nodes.len()].peer;
            let open = Change::OpenSession {
                session,
                ttl_ms: 10_000,
                label: None,
                user: None,
            };
            world.propose(peer, open).unwrap();
            let home = world.end.session(session).unwrap().home.index;
            let join = Change::JoinGroup {
                group: group(),
                session,
                home,
                order: None,
                using: Some(using),
                after: None,
            };
            world.propose(peer, join).unwrap();
        }
        world
    }

    /// Appends an entry to the log, which may refuse it.
    fn propose(&mut self, peer: Peer, change: Change) -> Result<Outcome, Refusal> {
        let sequence = self.sequences.entry(peer).or_default();
        *sequence += 1;
        let origin = Some(Origin {
            node: peer.0,
            start: peer.1,
            sequence: *sequence,
        });
        let stamp = Stamp {
            origin,
            ..Stamp::default()
        };
        self.log.push((stamp, change.clone()));
        let applied = self.end.apply(stamp, &change);
        applied.map(|applied| applied.into_outcome())
    }

    fn start(&mut self, node: NodeId) {
        let start = self.starts.entry(node).or_default();
        *start += 1;
        let peer = (node, Start(*start));
        self.nodes.push(Node {
            peer,
            replicated: Replicated::new(Limits::default()),
            applied: 0,
            chapters: Chapters::new(peer),
            told: None,
            asked: BTreeMap::new(),
        });
        self.nodes.sort_by_key(|node| node.peer);
    }

    /// Proposes a view of all running nodes.
    fn view(&mut self) {
        let members: Vec<Peer> = self.nodes.iter().map(|node| node.peer).collect();
        let Some(first) = members.first().copied() else {
            return;
        };
        let view = Change::View {
            before: self.end.view().index,
            members,
            generation: 0,
        };
        self.propose(first, view).expect("a next view");
    }

    fn crash(&mut self, at: usize) {
        let peer = self.nodes.remove(at).peer;
        self.links
            .retain(|(from, to), _| ![from, to].contains(&&peer));
    }

    fn apply(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let (stamp, change) = &self.log[node.applied];
        node.applied += 1;
        let _ = node.replicated.apply(*stamp, change);
        node.chapters.follow(&node.replicated);
        if self.broken {
            node.chapters.break_on_purpose();
        }
        self.pass_on(at);
    }

    fn deliver(&mut self, link: (Peer, Peer)) {
        let letters = self.links.get_mut(&link).unwrap();
        let letter = letters.pop_front().unwrap();
        if letters.is_empty() {
            self.links.remove(&link);
        }
        let at = self.nodes.iter().position(|node| node.peer == link.1);
        if let Some(at) = at {
            self.nodes[at].chapters.receive(link.0, letter);
            self.pass_on(at);
        }
    }

    /// A session sends from its home, as far as its home knows.
    fn send(&mut self) {
        let session = SessionId::opened(self.lots.below(SESSIONS as usize) as u64 + 1);
        let node = self.nodes.iter().position(|node| {
            let home = node.replicated.session(session).map(|record| record.home);
            let here = home.is_some_and(|home| (home.node, home.start) == node.peer);
            here && matches!(
                node.chapters.joining(GROUP, None),
                Some(Joining::Now { .. })
            )
        });
        let Some(at) = node else {
            return;
        };
        self.sent += 1;
        let body = self.sent.to_string();
        let node = &mut self.nodes[at];
        if let Ok(sequence) = node
            .chapters
            .send(&group(), session, Body::from(body.as_bytes()))
        {
            node.asked.insert(sequence, body);
        }
        self.pass_on(at);
    }

    /// A session moves to another node.
    fn move_session(&mut self) {
        let session = SessionId::opened(self.lots.below(SESSIONS as usize) as u64 + 1);
        let at = self.lots.below(self.nodes.len());
        let peer = self.nodes[at].peer;
        let home = self.end.session(session).unwrap().home;
        if (home.node, home.start) != peer {
            let home = home.index;
            let _ = self.propose(peer, Change::MoveSession { session, home });
        }
    }

    fn pass_on(&mut self, at: usize) {
        while self.nodes[at].chapters.has_out() {
            let node = &mut self.nodes[at];
            let out = node.chapters.take_out();
            for (to, letter) in out.letters {
                let link = self.links.entry((node.peer, to)).or_default();
                link.push_back(letter);
            }
            for (_, message) in out.told {
                let number = message.number;
                assert!(
                    node.told.is_none_or(|told| told + 1 == number),
                    "{:?} tells {number} behind {:?}",
                    node.peer,
                    node.told
                );
                node.told = Some(number);
                let known = self.messages.entry(number);
                let known = known.or_insert_with(|| message.clone());
                assert_eq!(*known, message, "one number, one message");
            }
            for (sequence, sent) in out.sent {
                let Some(body) = node.asked.remove(&sequence) else {
                    continue;
                };
                if let Ok(number) = sent {
                    self.answered += 1;
                    assert_eq!(&self.messages[&number].body[..], body.as_bytes());
                }
            }
            let peer = node.peer;
            for change in out.changes {
                let _ = self.propose(peer, change);
            }
        }
    }

    /// Makes one thing happen.
    fn step(&mut self, faults: bool) {
        let lot = self.lots.below(1_000);
        match lot {
            0..=2 if faults && !self.nodes.is_empty() => {
                let at = self.lots.below(self.nodes.len());
                self.crash(at);
                if self.lots.below(2) == 0 {
                    self.view();
                }
            }
            3..=5 if faults => {
                // Sometimes all running nodes are lost, and others come.
                if self.lots.below(8) == 0 {
                    while !self.nodes.is_empty() {
                        self.crash(0);
                    }
                }
                let missing: Vec<NodeId> = self.starts.keys().copied().collect();
                let runs = |id: &NodeId| self.nodes.iter().any(|node| node.peer.0 == *id);
                let missing: Vec<NodeId> = missing.into_iter().filter(|id| !runs(id)).collect();
                for node in missing {
                    self.start(node);
                }
                self.view();
            }
            6..=11 if !self.nodes.is_empty() => self.move_session(),
            12..=150 => self.send(),
            _ => drop(self.go_on()),
        }
    }

    /// Delivers an entry or a letter; false if none is left.
    fn go_on(&mut self) -> bool {
        let behind = self.nodes.iter().enumerate();
        let behind = behind.filter(|(_, node)| node.applied < self.log.len());
        let behind: Vec<usize> = behind.map(|(at, _)| at).collect();
        let links: Vec<(Peer, Peer)> = self.links.keys().copied().collect();
        let all = behind.len() + links.len();
        if all == 0 {
            return false;
        }
        match self.lots.below(all) {
            lot if lot < behind.len() => self.apply(behind[lot]),
            lot => self.deliver(links[lot - behind.len()]),
        }
        true
    }

    /// Nothing fails any more: in the end everybody was told the same, and every send was answered.
    fn settle(&mut self) {
        let missing: Vec<NodeId> = self.starts.keys().copied().collect();
        for node in missing {
            if !self.nodes.iter().any(|other| other.peer.0 == node) {
                self.start(node);
            }
        }
        self.view();
        while self.go_on() {}
        let told = self
            .nodes
            .iter()
            .map(|node| node.chapters.told(GROUP).unwrap().0);
        let told: Vec<u64> = told.collect();
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
        for node in &self.nodes {
            assert!(
                node.asked.is_empty(),
                "{:?} waits: {:?}",
                node.peer,
                node.asked
            );
        }
        // The messages of one session have rising numbers, and no two messages share one.
        let mut last: BTreeMap<SessionId, u64> = BTreeMap::new();
        for message in self.messages.values() {
            let count: u64 = std::str::from_utf8(&message.body).unwrap().parse().unwrap();
            let before = last.insert(message.from, count);
            assert!(before < Some(count), "{count} behind {before:?}");
        }
    }

    fn run(&mut self, steps: usize, faults: bool) {
        for _ in 0..steps {
            self.step(faults);
        }
        self.settle();
    }
}

fn rounds(default: u64) -> std::ops::Range<u64> {
    let read = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = read("TESTIGO_SEED").unwrap_or(1);
    first..first + read("TESTIGO_ROUNDS").unwrap_or(default)
}

/// Odd and even seeds use different algorithms.
fn using(seed: u64) -> GroupUsing {
    match seed % 2 {
        0 => GroupUsing::Isis,
        _ => GroupUsing::Sequencer,
    }
}

#[test]
fn without_faults_every_send_is_told_everywhere() {
    for seed in rounds(50) {
        let mut world = World::new(seed, 1 + seed % 5, using(seed), false);
        world.run(400, false);
        let (sent, messages) = (world.sent, world.messages.len() as u64);
        // A message of a session that moves may be lost.
        assert!(messages > 0 && messages <= sent, "{messages} of {sent}");
        assert!(world.answered <= messages);
    }
}

#[test]
fn an_order_by_an_algorithm_is_one_whatever_fails() {
    let (mut messages, mut starts) = (0, 0);
    for seed in rounds(400) {
        let mut world = World::new(seed, 2 + seed % 4, using(seed), false);
        world.run(1_500, true);
        messages += world.messages.len();
        starts += world.starts.values().sum::<u64>();
    }
    // A world in which nothing is told would prove nothing.
    let seeds = rounds(400).count();
    assert!(
        messages > 10 * seeds && starts > 4 * seeds as u64,
        "{messages} messages, {starts} starts"
    );
}

/// A node that tells what not everybody has may be the only one that ever knows it.
#[test]
fn telling_at_once_is_noticed() {
    let broken = rounds(200).any(|seed| {
        let run = move || {
            let mut world = World::new(seed, 3, using(seed), true);
            world.run(600, true);
        };
        std::panic::catch_unwind(run).is_err()
    });
    assert!(broken);
}

#[test]
fn numbers_go_on_behind_all_that_were_allowed_when_everybody_is_lost() {
    let mut world = World::new(7, 2, GroupUsing::Isis, false);
    while world.go_on() {}
    for _ in 0..10 {
        world.send();
    }
    while world.go_on() {}
    let before = *world.messages.keys().last().unwrap();
    while !world.nodes.is_empty() {
        world.crash(0);
    }
    world.settle();
    for session in 1..=SESSIONS {
        let session = SessionId::opened(session);
        let home = world.end.session(session).unwrap().home.index;
        let peer = world.nodes[0].peer;
        let moved = world.propose(peer, Change::MoveSession { session, home });
        moved.unwrap();
    }
    while world.go_on() {}
    world.send();
    while world.go_on() {}
    let after = *world.messages.keys().last().unwrap();
    assert!(after > before + 1_000, "{before} {after}");
    let joining = |after| world.nodes[0].chapters.joining(GROUP, Some(after));
    let Some(Joining::Now { last, kept, missed }) = joining(before) else {
        panic!("it runs");
    };
    assert_eq!((last, kept.len() as u64 + missed), (after, after - before));
    assert_eq!(joining(after + 1), Some(Joining::Never(after)));
}
