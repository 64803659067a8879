//! Three engines on real directories: one founds the group, two join it, one by its log and one by a snapshot in pieces; the
//! leader is lost, the others go on, and it comes back. The frames go by hand; time is a count.

use std::collections::VecDeque;
use std::path::Path;

use bytes::Bytes;
use tempfile::TempDir;
use testigo_engine::{Engine, MemberChange, Opening, Outgoing, Setup};

struct Member {
    dir: TempDir,
    engine: Option<Engine>,
    /// All entries, or the image that stands for the first of them.
    applied: Vec<Vec<u8>>,
}

struct Group {
    members: Vec<Member>,
    way: VecDeque<(u64, u64, Bytes)>,
}

fn open(dir: &Path, node: u64) -> Engine {
    let setup = Setup {
        node,
        joins: node > 1,
        seed: node,
        ..Setup::default()
    };
    let found = Engine::examine_as(dir, Opening::Ordinary, setup).unwrap();
    found.take_over().unwrap().engine
}

impl Group {
    fn new(count: u64) -> Self {
        let member = |node| {
            let dir = tempfile::tempdir().unwrap();
            Member {
                engine: Some(open(dir.path(), node)),
                dir,
                applied: Vec::new(),
            }
        };
        Self {
            members: (1..=count).map(member).collect(),
            way: VecDeque::new(),
        }
    }

    fn engine(&mut self, node: u64) -> &mut Engine {
        let member = &mut self.members[node as usize - 1];
        member.engine.as_mut().expect("it runs")
    }

    /// Everybody has a turn, and what is said arrives.
    fn turn(&mut self) {
        for (member, node) in self.members.iter_mut().zip(1..) {
            let Some(engine) = &mut member.engine else {
                continue;
            };
            engine.tick();
            engine.begin();
            let mut outgoing = engine.take_outgoing();
            let committed = engine.flush().unwrap();
            outgoing.extend(engine.take_outgoing());
            if let Some(snapshot) = engine.take_restored() {
                let parts = snapshot.image.split(|byte| *byte == b',');
                member.applied = parts.map(<[u8]>::to_vec).collect();
            }
            let data = committed.iter().map(|entry| entry.data.to_vec());
            member.applied.extend(data);
            let way = outgoing.into_iter();
            self.way
                .extend(way.map(|Outgoing { to, frame }| (node, to, frame)));
        }
        for (from, to, frame) in std::mem::take(&mut self.way) {
            if let Some(engine) = &mut self.members[to as usize - 1].engine {
                engine.step(from, &frame).unwrap();
            }
        }
    }

    fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let turns = (0..400).find(|_| {
            self.turn();
            done(self)
        });
        assert!(turns.is_some(), "{what}");
    }

    fn leader(&self) -> Option<u64> {
        let engines = self
            .members
            .iter()
            .filter_map(|member| member.engine.as_ref());
        let leader = engines.filter(|engine| engine.leads()).map(Engine::node);
        leader.last()
    }

    /// Makes a node a voter, as an operator would.
    fn let_in(&mut self, node: u64) {
        for change in [MemberChange::AddLearner(node), MemberChange::Promote(node)] {
            let turns = (0..200).find(|_| {
                self.turn();
                self.engine(1).change_members(change).is_ok()
            });
            assert!(turns.is_some(), "{change:?}");
        }
        self.until("it is a voter", |group| {
            let engine = group.members[node as usize - 1].engine.as_ref();
            engine.is_some_and(|engine| engine.members().voters.contains(&node))
        });
    }

    fn submit(&mut self, node: u64, texts: &[&str]) {
        for text in texts {
            self.engine(node).propose(text.as_bytes()).unwrap();
        }
    }

    fn until_all_have(&mut self, texts: &[&str]) {
        let texts: Vec<_> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        self.until("all have everything", |group| {
            let mut running = group
                .members
                .iter()
                .filter(|member| member.engine.is_some());
            running.all(|member| member.applied == texts)
        });
    }
}

#[test]
fn three_directories_are_one_log() {
    let mut group = Group::new(3);
    group.submit(1, &["one", "two"]);
    group.turn();
    group.let_in(2);
    group.submit(2, &["three"]);
    group.until("the second's is applied", |group| {
        group.members[0].applied.len() == 3
    });
    // What the third lacks is only in a snapshot from now on.
    let image = group.members[0].applied.join(&b","[..]);
    let engine = group.engine(1);
    engine.snapshot(engine.delivered(), &image).unwrap();
    group.let_in(3);
    group.submit(3, &["four"]);
    group.until_all_have(&["one", "two", "three", "four"]);

    // The leader is lost with something that nobody else has heard of.
    assert_eq!(group.leader(), Some(1));
    group.submit(1, &["never heard of"]);
    group.members[0].engine = None;
    group.submit(3, &["five"]);
    group.until("another leads", |group| group.leader().is_some());
    group.submit(2, &["six"]);
    group.until("both are applied", |group| {
        group.members[2].applied.len() == 6
    });
    let mut all = group.members[2].applied.clone();
    all.sort();
    assert_eq!(all[0], b"five", "in whichever order: {all:?}");

    // It comes back, to what its directory has, and catches up.
    let again = open(group.members[0].dir.path(), 1);
    assert_eq!(again.members().voters, [1, 2, 3]);
    group.members[0].engine = Some(again);
    let done = |group: &Group| {
        let engine = group.members[0].engine.as_ref();
        engine.map(Engine::delivered) == group.members[2].engine.as_ref().map(Engine::delivered)
    };
    group.until("the first has caught up", done);
    group.submit(1, &["seven"]);
    group.until("its new start is heard", |group| {
        group.members[2]
            .applied
            .last()
            .is_some_and(|last| last == b"seven")
    });
    assert_eq!(group.members[1].applied, group.members[2].applied);
}
