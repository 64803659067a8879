//! Houses of a cluster on one thread. The test drives their logs by hand, carries their frames by hand, and sets the time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tempfile::TempDir;
use testigo_core::{Address, Admission, Newcomer, NodeId, Shard, Start};
use testigo_engine::{ByHand, Delivery, Engine, Hearer, LogThread, Sends, TICK_MS};

use super::*;
use crate::commands::Serves;
use crate::config::Config;
use crate::open::{self, Joining, TakeOverError};
use crate::peers::ClusterConfig;
use crate::wire::{Frame, Framer, Progress};

type Frames = Arc<Mutex<VecDeque<(u64, u64, Bytes)>>>;

struct Carrier {
    from: u64,
    frames: Frames,
}

impl Sends for Carrier {
    fn send(&mut self, to: u64, frame: Bytes) {
        let mut frames = self.frames.lock().unwrap();
        frames.push_back((self.from, to, frame));
    }
}

struct Node {
    house: House,
    hand: ByHand,
    hearer: Hearer,
    deliveries: Arc<Mutex<Vec<Delivery>>>,
}

pub(super) struct World {
    now: Arc<AtomicU64>,
    nodes: BTreeMap<u64, Node>,
    dirs: BTreeMap<u64, TempDir>,
    frames: Frames,
    /// Nothing gets to these nodes or from them.
    pub(super) cut: BTreeSet<u64>,
    /// Nodes that may have to start anew.
    pub(super) anew: BTreeSet<u64>,
    /// A node that does nothing any more after this many steps: frames heard, deliveries taken, ticks.
    pub(super) stops: Option<(u64, usize)>,
}

impl World {
    pub(super) fn new() -> World {
        World {
            now: Arc::new(AtomicU64::new(1_000)),
            nodes: BTreeMap::new(),
            dirs: BTreeMap::new(),
            frames: Frames::default(),
            cut: BTreeSet::new(),
            anew: BTreeSet::new(),
            stops: None,
        }
    }

    /// Whether a node still works; if it does, this is one step of it.
    fn works(stops: &mut Option<(u64, usize)>, id: u64) -> bool {
        if let Some((stopped, left)) = stops
            && *stopped == id
        {
            let works = *left > 0;
            *left -= usize::from(works);
            return works;
        }
        true
    }

    /// A cluster of `count` nodes, all of them members.
    pub(super) fn of(count: u64) -> World {
        let mut world = World::new();
        for id in 1..=count {
            world.start(id);
            if id > 1 {
                world.join(id);
            }
        }
        world.until(10_000, |world| {
            let ids: Vec<u64> = world.nodes.keys().copied().collect();
            ids.into_iter().all(|id| world.house(id).acts())
        });
        world
    }

    pub(super) fn start(&mut self, id: u64) {
        let opened = |config: &Config, clock, _: &mut BTreeMap<u64, Node>| {
            let (house, engine) = open::open(config, clock)?;
            Ok((house, engine, None))
        };
        self.start_with(id, opened).unwrap();
    }

    /// Starts a node that joins, or goes on joining; it asks node 1.
    pub(super) fn start_joining(&mut self, id: u64) -> Result<Option<Newcomer>, TakeOverError> {
        let opened = |config: &Config, clock, nodes: &mut BTreeMap<u64, Node>| {
            let founder = &mut nodes.get_mut(&1).unwrap().house;
            open::open_asking(config, clock, None, |_, newcomer| {
                Ok(founder.answer_newcomer(newcomer.clone()))
            })
        };
        let joining = self.start_with(id, opened)?;
        Ok(joining.map(|joining| joining.newcomer))
    }

    fn start_with(
        &mut self,
        id: u64,
        opened: impl FnOnce(
            &Config,
            Clock,
            &mut BTreeMap<u64, Node>,
        ) -> Result<(House, Engine, Option<Joining>), TakeOverError>,
    ) -> Result<Option<Joining>, TakeOverError> {
        let dir = self
            .dirs
            .entry(id)
            .or_insert_with(|| tempfile::tempdir().unwrap());
        let mut config = Config::embedded(dir.path());
        let mut cluster = ClusterConfig::new(id, format!("127.0.0.1:{}", 7000 + id));
        cluster.join = (id > 1).then(|| "127.0.0.1:7001".into());
        config.cluster = Some(cluster);
        let clock = Clock::Hand(Arc::clone(&self.now));
        let (mut house, engine, joining) = opened(&config, clock, &mut self.nodes)?;
        let deliveries: Arc<Mutex<Vec<Delivery>>> = Arc::default();
        let own = Arc::clone(&deliveries);
        let carrier = Carrier {
            from: id,
            frames: Arc::clone(&self.frames),
        };
        let deliver = move |delivery| own.lock().unwrap().push(delivery);
        let (log, hand) = LogThread::by_hand(engine, Box::new(carrier), deliver);
        let hearer = log.hearer();
        house.move_in(log);
        let node = Node {
            house,
            hand,
            hearer,
            deliveries,
        };
        self.nodes.insert(id, node);
        Ok(joining)
    }

    /// Its directory is lost.
    pub(super) fn forget(&mut self, id: u64) {
        self.dirs.remove(&id);
    }

    /// Like `kill -9`.
    pub(super) fn kill(&mut self, id: u64) {
        let node = self.nodes.remove(&id).unwrap();
        // The lock on the log's directory goes with its engine.
        drop(node);
        self.frames.lock().unwrap().clear();
    }

    /// Kills it, and waits until its next start acts.
    pub(super) fn start_again(&mut self, id: u64) {
        self.kill(id);
        self.start(id);
        self.until(10_000, |world| world.house(id).acts());
    }

    pub(super) fn join(&mut self, id: u64) {
        let newcomer = Newcomer {
            node: NodeId(id),
            start: self.house(id).start(),
            token: id,
            address: Address {
                peer: format!("127.0.0.1:{}", 7000 + id),
                client: None,
            },
        };
        self.until(20_000, |world| {
            let admitted = world.house(1).wants_to_join(newcomer.clone());
            world.house(id).check_joined().is_ok() && admitted == Ok(Admission::Known)
        });
    }

    pub(super) fn house(&mut self, id: u64) -> &mut House {
        &mut self.nodes.get_mut(&id).unwrap().house
    }

    /// Lets every node do what there is to do, until nothing is left.
    pub(super) fn settle(&mut self) {
        for _ in 0..2_000 {
            let mut busy = false;
            for (id, node) in &mut self.nodes {
                if self.stops == Some((*id, 0)) {
                    continue;
                }
                node.house.begin_turn();
                let deliveries = std::mem::take(&mut *node.deliveries.lock().unwrap());
                if !deliveries.is_empty() && !World::works(&mut self.stops, *id) {
                    continue;
                }
                busy |= !deliveries.is_empty();
                for delivery in deliveries {
                    node.house.deliver(delivery);
                }
                node.house.pass_on();
                while node.house.has_long_work() {
                    node.house.make_slice();
                    busy = true;
                }
                node.house.submissions.begin_flush();
                node.hand.turn();
                let anew = node.house.must_start_anew();
                assert!(
                    anew.is_none() || self.anew.contains(id),
                    "node {id}: {anew:?}"
                );
            }
            let frames = std::mem::take(&mut *self.frames.lock().unwrap());
            busy |= !frames.is_empty();
            for (from, to, frame) in frames {
                if let Some(node) = self.nodes.get(&to)
                    && !self.cut.contains(&from)
                    && !self.cut.contains(&to)
                    && World::works(&mut self.stops, to)
                {
                    node.hearer.hear(from, frame);
                    node.hand.turn();
                }
            }
            if !busy {
                return;
            }
        }
        panic!("the houses do not come to rest");
    }

    pub(super) fn pass(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(TICK_MS) {
            self.now.fetch_add(TICK_MS, Ordering::Relaxed);
            for (id, node) in &mut self.nodes {
                if !World::works(&mut self.stops, *id) {
                    continue;
                }
                node.hand.tick();
                node.hand.turn();
                node.house.begin_turn();
                let now = node.house.now();
                node.house.judge_silence(now);
            }
            self.settle();
        }
    }

    /// Lets time pass until `holds`.
    pub(super) fn until(&mut self, ms: u64, mut holds: impl FnMut(&mut World) -> bool) {
        for _ in 0..ms.div_ceil(TICK_MS) {
            if holds(self) {
                return;
            }
            self.pass(TICK_MS);
        }
        panic!("it does not come to that within {ms} ms");
    }

    pub(super) fn client(&mut self, id: u64) -> ClientId {
        let house = self.house(id);
        house.welcome(Outlet::Socket(0), "test".into())
    }

    pub(super) fn say(&mut self, id: u64, client: ClientId, command: &str) -> String {
        self.begin(id, client, command);
        self.settle();
        self.hear(id, client)
    }

    /// Gives a command, which may still be under way afterwards.
    pub(super) fn begin(&mut self, id: u64, client: ClientId, command: &str) {
        let mut framer = Framer::default();
        let line = format!("{command}\r\n");
        let limits = WireLimits::default().of_users();
        match framer.read(line.as_bytes(), &limits, &mut Progress::default()) {
            Frame::Command(line, _) => drop(self.house(id).serve(client, line)),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn hear(&mut self, id: u64, client: ClientId) -> String {
        let house = self.house(id);
        let heard = house.connections.take_written(client);
        String::from_utf8_lossy(&heard).trim_end().into()
    }

    /// A gate that this node owns.
    pub(super) fn gate_of(&mut self, id: u64) -> String {
        let gate = format!("gate-{id}");
        self.hand_over(Shard::of(&gate), id);
        gate
    }

    /// The owner of a shard hands it over.
    pub(super) fn hand_over(&mut self, shard: Shard, id: u64) {
        let start = self.house(id).start();
        let ownership = self.house(id).replicated().ownership();
        let owner = ownership.title(shard).unwrap().owner.0;
        let house = self.house(owner);
        let estate = house.services.estate().unwrap();
        let change = estate.hand_over(house.replicated(), &[shard], (NodeId(id), start));
        if let Some(change) = change {
            house.submit(change, Answers::Nobody).unwrap();
        }
        self.settle();
        let ownership = self.house(id).replicated().ownership();
        assert_eq!(ownership.title(shard).unwrap().owner, NodeId(id));
    }
}

pub(super) fn number(reply: &str) -> u64 {
    let digits = reply.strip_prefix(':').unwrap_or_else(|| panic!("{reply}"));
    digits.trim().parse().unwrap()
}

#[test]
fn a_founder_acts_and_newcomers_become_members() {
    let mut world = World::new();
    world.start(1);
    world.until(1_000, |world| world.house(1).acts());
    let client = world.client(1);
    assert_eq!(world.say(1, client, "PING"), "+PONG");
    number(&world.say(1, client, "LOCK a"));
    world.start(2);
    let other = world.client(2);
    let early = world.say(2, other, "PING");
    assert!(early.starts_with("-UNAVAILABLE "), "{early}");
    world.join(2);
    assert_eq!(world.say(2, other, "PING"), "+PONG");
    let refused = world.say(2, other, "LOCK a WAIT 0");
    assert_eq!(refused, "$-1", "node 1's client holds it");
}

#[test]
fn a_gate_is_one_gate_at_all_nodes() {
    let mut world = World::of(3);
    let gate = world.gate_of(2);
    let [one, two, three] = [1, 2, 3].map(|id| world.client(id));
    let first = number(&world.say(1, one, &format!("LOCK {gate}")));
    assert_eq!(world.say(2, two, &format!("LOCK {gate}")), "");
    assert_eq!(world.say(3, three, &format!("LOCK {gate} WAIT 0")), "$-1");
    assert_eq!(world.say(1, one, &format!("UNLOCK {gate}")), "+OK");
    let second = number(&world.hear(2, two));
    assert!(second > first);
    assert_eq!(world.say(3, three, &format!("LOCK {gate} WAIT 60000")), "");
    world.house(2).farewell(two);
    world.settle();
    assert!(number(&world.hear(3, three)) > second);
    // Its wait ends here, and not at the owner.
    assert_eq!(world.say(1, one, &format!("LOCK {gate} WAIT 500")), "");
    world.pass(600);
    assert_eq!(world.hear(1, one), "$-1");
    assert_eq!(world.say(3, three, &format!("UNLOCK {gate}")), "+OK");
    let stale = world.say(3, three, &format!("UNLOCK {gate}"));
    assert!(stale.starts_with("-NOTHELD "), "{stale}");
}

#[test]
fn a_session_goes_on_at_another_node_when_its_home_is_lost() {
    let mut world = World::of(3);
    let (here, there) = (world.gate_of(1), world.gate_of(2));
    let one = world.client(1);
    let session = number(&world.say(1, one, "SESSION OPEN TTL 8000"));
    let mut claims = String::new();
    for gate in [&here, &there] {
        let told = world.say(1, one, &format!("LOCK {gate} RECEIPT"));
        let fence = told.lines().nth(1).unwrap();
        claims += &format!(" {gate} {}", number(fence));
    }
    world.kill(1);
    let three = world.client(3);
    let waiter = world.client(2);
    world.until(10_000, |world| {
        !world.house(3).replicated().view().has(NodeId(1), Start(1))
    });
    for gate in [&here, &there] {
        let locked = world.say(2, waiter, &format!("LOCK {gate} WAIT 0"));
        assert!(!locked.starts_with(':'), "{locked}");
    }
    world.pass(1_500);
    world.hear(2, waiter);
    let resume = format!("SESSION RESUME {session} HOLDING 2{claims}");
    let mut told = world.say(3, three, &resume);
    if told.is_empty() {
        world.pass(1_000);
        told = world.hear(3, three);
    }
    assert_eq!(told.matches("HELD").count(), 2, "{told}");
    for gate in [&here, &there] {
        assert_eq!(world.say(3, three, &format!("UNLOCK {gate}")), "+OK");
    }
}

#[test]
fn a_node_that_is_cut_off_stops_and_its_gates_are_granted_elsewhere() {
    let mut world = World::of(3);
    let gate = world.gate_of(3);
    let holder = world.client(3);
    let first = number(&world.say(3, holder, &format!("LOCK {gate}")));
    let opened = world.client(3);
    world.say(3, opened, "HELLO 3");
    world.say(3, opened, "SESSION OPEN TTL 5000");
    world.cut.insert(3);
    world.until(4_000, |world| !world.house(3).acts());
    let told = world.hear(3, opened);
    assert!(told.contains("suspect"), "{told}");
    let refused = world.say(3, opened, "PING");
    assert!(refused.starts_with("-UNAVAILABLE "), "{refused}");
    assert!(
        world.house(3).connections[holder].leaving,
        "its hold is lost"
    );
    let other = world.client(1);
    let mut granted = world.say(1, other, &format!("LOCK {gate} WAIT 60000"));
    world.until(12_000, |world| {
        granted += &world.hear(1, other);
        granted.starts_with(':')
    });
    assert!(number(&granted) > first);
}

#[test]
fn whoever_stops_cleanly_is_waited_for_by_nobody() {
    let mut world = World::of(3);
    let gate = world.gate_of(1);
    let one = world.client(1);
    let session = number(&world.say(1, one, "SESSION OPEN TTL 30000"));
    let fence = number(&world.say(1, one, &format!("LOCK {gate}")));
    world.house(1).begin_stop();
    let begun = world.now.load(Ordering::Relaxed);
    world.until(2_000, |world| !world.house(1).is_leaving());
    let took = world.now.load(Ordering::Relaxed) - begun;
    assert!(took < 1_000, "{took} ms");
    assert!(!world.house(2).replicated().view().has(NodeId(1), Start(1)));
    world.kill(1);
    let two = world.client(2);
    let resume = format!("SESSION RESUME {session} HOLDING 1 {gate} {fence}");
    let told = world.say(2, two, &resume);
    assert!(told.contains("HELD"), "{told}");
    // It comes back although nobody waits for it.
    world.start(1);
    world.until(1_500, |world| world.house(1).acts());
}

#[test]
fn what_was_to_be_told_under_a_lease_that_has_run_out_is_not_told() {
    let mut world = World::of(3);
    let gate = world.gate_of(1);
    let client = world.client(1);
    world.house(1).begin_turn();
    let serve = |world: &mut World, command: &str| {
        let mut framer = Framer::default();
        let line = format!("{command}\r\n");
        let limits = WireLimits::default().of_users();
        match framer.read(line.as_bytes(), &limits, &mut Progress::default()) {
            Frame::Command(line, _) => drop(world.house(1).serve(client, line)),
            other => panic!("{other:?}"),
        }
    };
    serve(&mut world, &format!("LOCK {gate}"));
    let house = world.house(1);
    assert!(!house.connections[client].outbox.is_empty());
    house.look_before_telling();
    assert!(!house.connections[client].outbox.is_empty(), "it lasts");
    // The process was stopped between the grant and its answer.
    world.now.fetch_add(5_000, Ordering::Relaxed);
    let house = world.house(1);
    house.look_before_telling();
    assert!(house.connections[client].overrun);
    assert_eq!(world.hear(1, client), "");
    assert!(!world.house(1).acts());
}

#[test]
fn a_removed_node_leaves_by_itself() {
    let mut world = World::of(3);
    let client = world.client(1);
    let house = world.house(1);
    house.remove_member(client, NodeId(3)).unwrap();
    world.until(3_000, |world| {
        let house = world.house(3);
        house.is_stopping() && !house.is_leaving()
    });
    world.nodes.remove(&3);
    assert_eq!(world.hear(1, client), "+OK");
    world.until(2_000, |world| {
        let voters = &world.house(1).member().unwrap().standing().members.voters;
        *voters == [1, 2]
    });
    assert!(world.house(2).acts());
}

#[test]
fn a_node_that_was_cut_off_for_long_must_start_anew() {
    let mut world = World::of(3);
    world.cut.insert(2);
    world.until(10_000, |world| {
        !world.house(1).replicated().view().has(NodeId(2), Start(1))
    });
    world.cut.clear();
    world.anew.insert(2);
    world.until(5_000, |world| world.house(2).must_start_anew().is_some());
    world.start_again(2);
    assert_eq!(world.house(2).start(), Start(2));
}

#[test]
fn a_directory_that_was_alone_founds_a_cluster_and_keeps_what_it_had() {
    let mut world = World::new();
    let dir = tempfile::tempdir().unwrap();
    let (house, engine) = open::open(&Config::embedded(dir.path()), Clock::start()).unwrap();
    let number = house.replicated().ownership().highest();
    drop(house);
    engine.close(None).unwrap();
    world.dirs.insert(1, dir);
    world.start(1);
    world.until(1_000, |world| world.house(1).acts());
    let ownership = world.house(1).replicated().ownership();
    assert!(ownership.highest() > number, "fences only rise");
    assert_eq!(world.house(1).start(), Start(2));
    assert!(world.house(1).replicated().cluster().id().is_some());
    // There is no way back.
    let dir = world.dirs.remove(&1).unwrap();
    world.nodes.clear();
    let alone = open::open_or_join(&Config::embedded(dir.path()), Clock::start(), None);
    let refused = alone.map(drop).unwrap_err().to_string();
    assert!(refused.contains("--peer"), "{refused}");
}

#[test]
fn a_gate_that_travels_is_shown_whole_at_every_node() {
    let mut world = World::of(3);
    let clients: Vec<ClientId> = (1..=3).map(|id| world.client(id)).collect();
    let create = "GATE CREATE hall SHARED USING box-office BURST 2";
    assert_eq!(world.say(1, clients[0], create), "+OK");
    let mut fences = Vec::new();
    for id in 2..=3 {
        let mut reply = world.say(id, clients[id as usize - 1], "LOCK hall SHARED");
        for _ in 0..10 {
            if reply.is_empty() {
                world.pass(10);
                reply = world.hear(id, clients[id as usize - 1]);
            }
        }
        fences.push(number(&reply));
    }
    for id in 1..=3 {
        let asker = world.client(id);
        let mut ask = |command: &str| {
            let mut reply = world.say(id, asker, command);
            for _ in 0..10 {
                if reply.is_empty() {
                    world.pass(10);
                    reply = world.hear(id, asker);
                }
            }
            reply
        };
        let shown = ask("GATE SHOW hall");
        for fence in &fences {
            assert!(shown.contains(&format!(":{fence}")), "{id}: {shown}");
            assert_eq!(ask(&format!("FENCE CHECK hall {fence}")), ":1", "at {id}");
        }
        assert_eq!(shown.matches("hand_overs").count(), 3, "{id}: {shown}");
        assert!(shown.contains("box-office"), "{shown}");
        assert_eq!(ask("FENCE CHECK hall 1"), ":0");
    }
}
