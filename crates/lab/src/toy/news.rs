//! A toy problem whose users are served without being inside: a node tells all others its news, once each. Every
//! flaw makes it break a promise under one kind of fault.

use serde::{Deserialize, Serialize};
use testigo_protocol::{
    Channels, Claim, Counted, Faults, Input, Machine, Message, Next, NodeId, Output, Phase,
    Problem, Profile, Protocol, Setup, Shape, Telling, Timer, User, UserId, erase_for,
};

use crate::run::run;
use crate::world::World;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct News;

/// A user asks its node to spread its news, which is the number of the node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Spread;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Heard(NodeId);

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Reader {
    me: u32,
    waits: bool,
    spread: bool,
    crashed: bool,
    heard: Vec<NodeId>,
}

impl Problem for News {
    const NAME: &'static str = "news";
    const COUNTED: Counted = Counted::MULTICASTS;
    type Ask = Spread;
    type Tell = Heard;
    type User = Reader;
    type Monitor = ();

    fn violation(users: &[Reader]) -> Option<String> {
        let twice = |reader: &&Reader| {
            (1..reader.heard.len()).any(|at| reader.heard[..at].contains(&reader.heard[at]))
        };
        let reader = users.iter().find(twice)?;
        Some(format!("p{} heard something twice", reader.me))
    }

    fn unserved(users: &[Reader]) -> Option<String> {
        let correct = || users.iter().filter(|reader| !reader.crashed);
        let news = || correct().filter(|reader| reader.spread);
        let misses = |reader: &&Reader| news().any(|of| !reader.heard.contains(&NodeId(of.me)));
        let reader = correct().find(misses)?;
        Some(format!("p{} never hears what is new", reader.me))
    }
}

impl User<News> for Reader {
    /// It has one piece of news, which it tells once.
    fn next(&self) -> Next<Spread> {
        match self.spread || self.crashed {
            true => Next::Nothing,
            false => Next::May(Spread),
        }
    }

    fn asked(&mut self, _: Spread) {
        (self.waits, self.spread) = (true, true);
    }

    fn told(&mut self, Heard(of): Heard) -> Result<(), String> {
        self.heard.push(of);
        self.waits &= of.0 != self.me;
        Ok(())
    }

    fn phase(&self) -> Phase {
        match self.waits {
            true => Phase::Waiting,
            false => Phase::Idle,
        }
    }

    fn crashed(&self, _: &Reader) -> Reader {
        Reader {
            waits: false,
            crashed: true,
            ..self.clone()
        }
    }
}

/// What a node does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    None,
    /// It tells its news once, even if nobody acknowledges it.
    NoRetry,
    /// It believes that every message is new.
    NoMemory,
    /// It forgets in a crash what it has heard.
    Forgets,
    /// It is done when everybody has acknowledged, and not before.
    WaitsForAll,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Node {
    id: NodeId,
    /// What it has heard: kept on stable storage.
    seen: Vec<bool>,
    unacknowledged: Vec<NodeId>,
    tries_left: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Talk {
    Piece,
    Acknowledged,
}

impl Message for Talk {}

struct Config {
    nodes: usize,
    delay_bound: u64,
    flaw: Flaw,
}

const RETRY: Timer = Timer(1);
const TRIES: u8 = 3;

impl Protocol for Node {
    type Problem = News;
    type Message = Talk;
    type Config = Config;

    fn new(id: NodeId, config: &Config) -> Self {
        Node {
            id,
            seen: vec![false; config.nodes],
            unacknowledged: Vec::new(),
            tries_left: 0,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Start => {}
            Input::Ask(Spread) => {
                self.unacknowledged = NodeId::all(config.nodes)
                    .filter(|n| *n != self.id)
                    .collect();
                self.tries_left = TRIES;
                self.spread(config, out);
                if config.flaw != Flaw::WaitsForAll {
                    self.hear(self.id, config, out);
                }
            }
            Input::Timer(_) => self.spread(config, out),
            Input::Message { from, message } => match message {
                Talk::Piece => {
                    out.send(from, Talk::Acknowledged);
                    self.hear(from, config, out);
                }
                Talk::Acknowledged => {
                    self.unacknowledged.retain(|node| *node != from);
                    if config.flaw == Flaw::WaitsForAll && self.unacknowledged.is_empty() {
                        self.hear(self.id, config, out);
                    }
                }
            },
        }
    }

    fn restart(&self, id: NodeId, config: &Config) -> Self {
        let mut again = Node::new(id, config);
        if config.flaw != Flaw::Forgets {
            again.seen.clone_from(&self.seen);
        }
        again
    }
}

impl Node {
    fn spread(&mut self, config: &Config, out: &mut Output<Self>) {
        if self.unacknowledged.is_empty() || self.tries_left == 0 {
            return;
        }
        self.tries_left -= 1;
        out.send_all(self.unacknowledged.iter().copied(), &Talk::Piece);
        if config.flaw != Flaw::NoRetry {
            let span = 3 * config.delay_bound.max(1);
            out.after(span..span + 1, RETRY);
        }
    }

    fn hear(&mut self, of: NodeId, config: &Config, out: &mut Output<Self>) {
        if !self.seen[of.index()] || config.flaw == Flaw::NoMemory {
            self.seen[of.index()] = true;
            out.tell(Heard(of));
        }
    }
}

pub(super) static PROFILE: Profile = Profile {
    name: "news",
    title: "News",
    source: "none",
    channels: Channels::AnyOrder,
    survives_crashes: true,
    keeps_storage: true,
    tolerates: |_| Faults::NONE,
    claims: &[Claim::Safety, Claim::DeadlockFreedom],
    telling: Telling {
        nodes: 2,
        entries: 1,
    },
    ..Profile::PLAIN
};

pub(super) fn machine(nodes: usize, delay_bound: u64, flaw: Flaw) -> Box<dyn Machine<News>> {
    let reader = |user: UserId| Reader {
        me: user.0,
        ..Reader::default()
    };
    let config = Config {
        nodes,
        delay_bound,
        flaw,
    };
    erase_for::<Node>(Shape::users(nodes), reader, config)
}

fn report(flaw: Flaw, world: &World) -> crate::run::Report {
    let machine = machine(3, world.delay_bound().0, flaw);
    let run = run(&PROFILE, &*machine, &Setup::new(3), world, false, |_| {});
    run.expect("a valid world").report
}

#[test]
fn users_are_served_without_being_inside() {
    let world = World {
        entries: 3,
        ..World::default()
    };
    let report = report(Flaw::WaitsForAll, &world);
    assert!(report.is_good(), "{:?}", report.violations);
    assert_eq!((report.entries, report.messages), (3, 12));
    assert_eq!((report.waiting_time, report.entry_delay), (Some(2.0), None));
    let null = (
        report.response_time,
        report.overtakes_max,
        report.inside_max,
    );
    assert_eq!(null, (None, None, None));
    assert_eq!(report.counted.of(report.entries), "3 multicasts");
}

#[test]
fn who_is_alone_shows_the_delay() {
    let world = World {
        entries: 1,
        ..World::default()
    };
    let report = report(Flaw::WaitsForAll, &world);
    assert_eq!(report.entry_delay, Some(2.0));
}

#[test]
fn a_run_goes_on_until_nothing_is_missing() {
    let world = World {
        entries: 3,
        faults: vec!["omit-channel:0>1:0.5".parse().expect("valid")],
        seed: 2,
        ..World::default()
    };
    let good = report(Flaw::None, &world);
    assert!(good.is_good(), "{:?}", good.violations);
    let missing = report(Flaw::NoRetry, &world);
    assert!(missing.safe && !missing.live);
    let what = &missing.violations[0];
    assert!(what.contains("p1 never hears what is new"), "{what}");
}

#[test]
fn requests_that_nobody_can_make_do_not_keep_a_run_from_ending() {
    let world = World {
        entries: 100,
        ..World::default()
    };
    let report = report(Flaw::None, &world);
    assert!(report.is_good(), "{:?}", report.violations);
    assert_eq!(report.entries, 3, "everybody has one piece of news");
}

#[test]
fn a_user_of_a_crashed_node_is_no_correct_one() {
    let world = World {
        entries: 3,
        faults: vec!["halt:1@0.5".parse().expect("valid")],
        ..World::default()
    };
    let report = report(Flaw::None, &world);
    assert!(report.is_good(), "{:?}", report.violations);
}
