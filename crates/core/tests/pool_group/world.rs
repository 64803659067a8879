//! Processes that share a pool over a simulated group communication system.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use testigo_core::pool::{
    Desk, GroupEvent, Kept, Many, PoolAnswer, PoolDefinition, PoolGroup, PoolTake, Process,
    SlotNames, SlotTaken,
};
use testigo_core::{
    Change, Fence, Limits, Name, NodeId, Refusal, Replicated, SessionId, Start, Ticket,
};

use crate::labelled::{has_label, labelled};

pub(crate) const NODES: u32 = 3;
pub(crate) const SLOTS: u32 = 12;
pub(crate) const POOL: &str = "ports";

#[derive(Clone)]
struct Item {
    place: u64,
    /// Which node's process sent it, if it is a message.
    from: Option<u32>,
    event: GroupEvent,
}

pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) group: PoolGroup,
    pub(crate) desk: Desk,
    pub(crate) session: SessionId,
    pub(crate) held: BTreeSet<String>,
    /// Takes that wait, with their labels.
    pub(crate) waits: BTreeMap<Ticket, Option<&'static str>>,
    pub(crate) answers: Vec<(u64, Result<(), Refusal>)>,
}

/// A node: its disk, its process, and what was ordered for it.
pub(crate) struct Station {
    kept: Kept,
    pub(crate) running: Option<Running>,
    /// Whether the group communication system runs here.
    pub(crate) daemon: bool,
    queue: VecDeque<Item>,
    heard: u64,
}

pub(crate) struct World {
    pub(crate) stations: BTreeMap<u32, Station>,
    components: Vec<BTreeSet<u32>>,
    ordered: u64,
    pids: u32,
    pub(crate) fences: BTreeMap<String, Fence>,
    pub(crate) takes: u64,
    pub(crate) donations: u64,
    /// Whether the slots of pools have labels.
    pub(crate) labels: bool,
    pub(crate) now: u64,
    /// Takes with a label that have waited and got slots.
    pub(crate) labelled_waits: u64,
    /// How often the members changed while a take with a label waited at one of them: parts, and meetings.
    pub(crate) crossed: [u64; 2],
    /// Daemons that are killed say of processes that live on that they have left.
    pub(crate) lies: bool,
}

impl World {
    pub(crate) fn new() -> World {
        let station = |node| {
            let station = Station {
                kept: Kept::default(),
                running: None,
                daemon: true,
                queue: VecDeque::new(),
                heard: 0,
            };
            (node, station)
        };
        World {
            stations: (1..=NODES).map(station).collect(),
            components: vec![(1..=NODES).collect()],
            ordered: 0,
            pids: 0,
            fences: BTreeMap::new(),
            takes: 0,
            donations: 0,
            labels: false,
            now: 0,
            labelled_waits: 0,
            crossed: [0; 2],
            lies: false,
        }
    }

    pub(crate) fn started() -> World {
        let mut world = World::new();
        for node in 1..=NODES {
            world.start(node);
        }
        world.calm();
        world
    }

    pub(crate) fn with_pool(free_low: u32) -> World {
        World::with(free_low, false)
    }

    /// With a pool whose slots have labels, or not.
    pub(crate) fn with(free_low: u32, labels: bool) -> World {
        let mut world = World::started();
        world.labels = labels;
        world
            .create(1, POOL, SLOTS, free_low)
            .expect("all are here");
        world.calm();
        world
    }

    pub(crate) fn running(&mut self, node: u32) -> &mut Running {
        let station = self.stations.get_mut(&node).expect("a node");
        station.running.as_mut().expect("its process runs")
    }

    pub(crate) fn component(&self, node: u32) -> BTreeSet<u32> {
        let mut all = self.components.iter();
        all.find(|component| component.contains(&node))
            .expect("one")
            .clone()
    }

    pub(crate) fn is_joined(&self, node: u32) -> bool {
        let station = &self.stations[&node];
        station.running.is_some() && station.daemon
    }

    pub(crate) fn members(&self, component: &BTreeSet<u32>) -> Vec<Process> {
        let joined = component.iter().filter(|node| self.is_joined(**node));
        joined
            .map(|node| self.stations[node].running.as_ref().unwrap().process)
            .collect()
    }

    pub(crate) fn order(
        &mut self,
        component: &BTreeSet<u32>,
        from: Option<u32>,
        event: &GroupEvent,
    ) {
        self.ordered += 1;
        for node in component {
            if self.is_joined(*node) {
                let item = Item {
                    place: self.ordered,
                    from,
                    event: event.clone(),
                };
                self.stations.get_mut(node).unwrap().queue.push_back(item);
            }
        }
    }

    pub(crate) fn new_members(&mut self, component: &BTreeSet<u32>, left: Vec<Process>) {
        let members = self.members(component);
        self.order(component, None, &GroupEvent::Members { members, left });
    }

    /// Does what a process wants done: first its disk.
    pub(crate) fn pass_on(&mut self, node: u32) {
        let component = self.component(node);
        loop {
            let daemon = self.stations[&node].daemon;
            let running = self.running(node);
            let out = running.desk.take_out();
            for change in out.changes {
                if let Change::PoolLetter {
                    pool,
                    created,
                    letter,
                } = change
                {
                    running.group.send(pool, created.0, letter);
                }
            }
            let mut served = Vec::new();
            for (ticket, taken) in out.answers {
                let label = running.waits.remove(&ticket).expect("it waited");
                served.push((label, taken));
            }
            let out = running.group.take_out();
            running.answers.extend(out.answers);
            let kept = running.group.kept().clone();
            if out.keep {
                self.stations.get_mut(&node).unwrap().kept = kept;
            }
            for (label, taken) in served {
                self.labelled_waits += u64::from(label.is_some() && !taken.is_empty());
                self.took(node, label, &taken);
            }
            if out.messages.is_empty() {
                break;
            }
            let from = self.running(node).process;
            for bytes in out.messages.into_iter().filter(|_| daemon) {
                self.order(&component, Some(node), &GroupEvent::Message { from, bytes });
            }
        }
        self.check();
    }

    pub(crate) fn deliver(&mut self, node: u32) -> bool {
        let station = self.stations.get_mut(&node).unwrap();
        let Some(item) = station.queue.pop_front() else {
            return false;
        };
        station.heard = item.place;
        let now = self.now;
        let running = station.running.as_mut().expect("only who runs has a queue");
        running.group.hear(now, item.event, &mut running.desk);
        self.pass_on(node);
        true
    }

    pub(crate) fn calm(&mut self) {
        for _ in 0..100_000 {
            let mut quiet = true;
            for node in 1..=NODES {
                quiet &= !self.deliver(node);
            }
            if quiet {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    pub(crate) fn start(&mut self, node: u32) {
        self.pids += 1;
        let process = Process {
            node,
            pid: self.pids,
        };
        let replicated = Replicated::new(Limits::default());
        let own = NodeId(node.into());
        let mut desk = Desk::new(0, (own, Start(1)), &replicated);
        let kept = self.stations[&node].kept.clone();
        let group = PoolGroup::new(process, (1..=NODES).collect(), kept, &mut desk);
        let session = SessionId::of_connection(own, Start(1), self.pids.into());
        let station = self.stations.get_mut(&node).unwrap();
        station.running = Some(Running {
            process,
            group,
            desk,
            session,
            held: BTreeSet::new(),
            waits: BTreeMap::new(),
            answers: Vec::new(),
        });
        station.heard = self.ordered;
        if station.daemon {
            self.new_members(&self.component(node), Vec::new());
        }
    }

    /// A process ends by itself or is killed.
    pub(crate) fn end(&mut self, node: u32, leaves: bool) {
        let station = self.stations.get_mut(&node).unwrap();
        let ended = station.running.take().expect("it ran");
        station.queue.clear();
        if self.stations[&node].daemon {
            let left = leaves.then_some(ended.process);
            self.new_members(&self.component(node), left.into_iter().collect());
        }
    }

    /// The group communication system of a node is killed, or comes back.
    pub(crate) fn kill_daemon(&mut self, node: u32, lost: u64) {
        let component = self.component(node);
        let others: BTreeSet<u32> = component.iter().copied().filter(|n| *n != node).collect();
        let station = self.stations.get_mut(&node).unwrap();
        station.daemon = false;
        station.queue.clear();
        if let Some(running) = &mut station.running {
            running
                .group
                .hear(self.now, GroupEvent::Lost, &mut running.desk);
            self.pass_on(node);
        }
        let lives = self.stations[&node].running.as_ref();
        let said = lives.filter(|_| self.lies).map(|running| running.process);
        self.lose(&others, lost);
        self.new_members(&others, said.into_iter().collect());
    }

    pub(crate) fn start_daemon(&mut self, node: u32) {
        let station = self.stations.get_mut(&node).unwrap();
        station.daemon = true;
        station.heard = self.ordered;
        if station.running.is_some() {
            self.new_members(&self.component(node), Vec::new());
        }
    }

    /// How many takes with labels wait in a component.
    fn waits_with_labels(&self, component: &BTreeSet<u32>) -> u64 {
        let running = component
            .iter()
            .filter_map(|node| self.stations[node].running.as_ref());
        let waits = running.flat_map(|running| running.waits.values());
        waits.filter(|label| label.is_some()).count() as u64
    }

    pub(crate) fn cut(&mut self, away: &BTreeSet<u32>, lost: [u64; 2]) {
        let component = self.component(*away.first().expect("somebody"));
        self.crossed[0] += self.waits_with_labels(&component);
        self.components.retain(|kept| *kept != component);
        let rest: BTreeSet<u32> = component.difference(away).copied().collect();
        for (side, lost) in [away.clone(), rest].into_iter().zip(lost) {
            self.components.push(side.clone());
            self.lose(&side, lost);
            self.new_members(&side, Vec::new());
        }
    }

    pub(crate) fn merge(&mut self, one: u32, other: u32) {
        let (one, other) = (self.component(one), self.component(other));
        self.components
            .retain(|kept| *kept != one && *kept != other);
        let both: BTreeSet<u32> = one.union(&other).copied().collect();
        self.components.push(both.clone());
        self.crossed[1] += self.waits_with_labels(&both);
        self.new_members(&both, Vec::new());
    }

    /// A side may have missed the last messages of the others, unless one of its own has taken in what came later.
    pub(crate) fn lose(&mut self, side: &BTreeSet<u32>, lost: u64) {
        let mut sure = 0;
        let mut foreign = BTreeSet::new();
        for node in side {
            let station = &self.stations[node];
            sure = sure.max(station.heard);
            for item in &station.queue {
                match item.from {
                    None => sure = sure.max(item.place),
                    Some(from) if !side.contains(&from) => {
                        foreign.insert(item.place);
                    }
                    Some(_) => {}
                }
            }
        }
        let lost: BTreeSet<u64> = foreign
            .into_iter()
            .rev()
            .take_while(|place| *place > sure)
            .take(lost as usize)
            .collect();
        for node in side {
            let station = self.stations.get_mut(node).unwrap();
            station.queue.retain(|item| !lost.contains(&item.place));
        }
    }

    pub(crate) fn create(
        &mut self,
        node: u32,
        pool: &str,
        slots: u32,
        free_low: u32,
    ) -> Result<(), Refusal> {
        let definition = PoolDefinition {
            slots: match self.labels {
                true => labelled(slots),
                false => SlotNames::Numbered(slots),
            },
            free_low,
        };
        let pool = Name::new(pool).unwrap();
        self.running(node).group.create(&pool, &definition)?;
        self.pass_on(node);
        Ok(())
    }

    pub(crate) fn take(&mut self, node: u32, many: Many) -> bool {
        self.take_with(node, many, None, None)
    }

    /// Takes slots with a label, or any; whether it has got some at once.
    pub(crate) fn take_with(
        &mut self,
        node: u32,
        many: Many,
        label: Option<&'static str>,
        wait_ms: Option<u64>,
    ) -> bool {
        let now = self.now;
        let running = self.running(node);
        let take = PoolTake {
            pool: POOL,
            many,
            label,
            wait_ms,
        };
        let answer = running
            .desk
            .take(now, running.group.shelves(), running.session, take);
        let taken = match answer {
            Ok(PoolAnswer::Taken(taken)) => taken,
            Ok(PoolAnswer::Waiting(ticket)) => {
                running.waits.insert(ticket, label);
                Vec::new()
            }
            Err(_) => return false,
        };
        self.took(node, label, &taken);
        self.pass_on(node);
        !taken.is_empty()
    }

    fn took(&mut self, node: u32, label: Option<&str>, taken: &[SlotTaken]) {
        for taken in taken {
            let before = self.fences.insert(taken.slot.clone(), taken.fence);
            assert!(before < Some(taken.fence), "{taken:?} after {before:?}");
            assert!(taken.fence.0 < 1 << 53);
            let slot = taken.slot.parse().expect("a number");
            assert!(
                label.is_none_or(|label| has_label(slot, label)),
                "{taken:?} is not {label:?}"
            );
            let new = self.running(node).held.insert(taken.slot.clone());
            assert!(new, "it had {taken:?}");
        }
        self.takes += taken.len() as u64;
    }

    /// Time goes on at a node: its waits end.
    pub(crate) fn pass_time(&mut self, node: u32) {
        self.now += 1;
        let now = self.now;
        let running = self.running(node);
        running.desk.expire(now, running.group.shelves());
        self.pass_on(node);
    }

    pub(crate) fn give(&mut self, node: u32) {
        self.give_nth(node, 0);
    }

    pub(crate) fn give_nth(&mut self, node: u32, nth: usize) {
        let now = self.now;
        let running = self.running(node);
        let Some(slot) = running.held.iter().nth(nth).cloned() else {
            return;
        };
        running.held.remove(&slot);
        let shelves = running.group.shelves();
        let given = running
            .desk
            .give(now, shelves, running.session, POOL, &[&slot]);
        assert_eq!(given, Ok(None), "it had it");
        self.pass_on(node);
    }

    /// Everybody gives everything back: then all waits are served.
    pub(crate) fn serve_all(&mut self) {
        while let Some(node) = (1..=NODES).find(|node| {
            let running = self.stations[node].running.as_ref().expect("all run");
            !running.held.is_empty()
        }) {
            self.give(node);
            self.calm();
        }
        for node in 1..=NODES {
            let waits = &self.running(node).waits;
            assert!(waits.is_empty(), "{waits:?} wait for ever at node {node}");
        }
    }

    /// Nobody has what somebody else has.
    pub(crate) fn check(&mut self) {
        let (mut held, mut usable) = (BTreeSet::new(), BTreeSet::new());
        let mut owned = 0;
        for station in self.stations.values() {
            let Some(running) = &station.running else {
                continue;
            };
            for slot in &running.held {
                assert!(held.insert(slot.clone()), "slot {slot} is in use twice");
            }
            // What is kept for a label is as good as free: nobody else may have it.
            for slot in running.desk.usable(POOL) {
                assert!(usable.insert(slot), "slot {slot} can be used twice");
            }
            if let Ok(view) = running.desk.view(running.group.shelves(), POOL, 0) {
                owned += view.owned;
                assert_eq!(view.used as usize, running.held.len());
            }
        }
        assert!(owned <= SLOTS, "{owned} slots are owned");
    }

    /// Everybody is there, in one view, and each slot has one owner.
    pub(crate) fn check_whole(&mut self) {
        let (mut owned, mut given) = (0, 0);
        let mut tables = Vec::new();
        for station in self.stations.values() {
            let running = station.running.as_ref().expect("all run");
            assert!(running.group.is_settled());
            let view = running.desk.view(running.group.shelves(), POOL, 0).unwrap();
            owned += view.owned;
            given += view.given;
            let state = running.group.state(POOL, &running.desk).expect("it began");
            assert_eq!(state.disputed, []);
            tables.push(state.table.clone());
        }
        self.donations += given;
        assert_eq!(owned, SLOTS, "each slot has one owner");
        assert!(tables.windows(2).all(|pair| pair[0] == pair[1]));
    }

    pub(crate) fn heal(&mut self) {
        for node in 1..=NODES {
            if !self.stations[&node].daemon {
                self.start_daemon(node);
            }
            if self.stations[&node].running.is_none() {
                self.start(node);
            }
            if !self.component(1).contains(&node) {
                self.merge(1, node);
            }
        }
        self.calm();
    }

    pub(crate) fn owned(&mut self) -> Vec<u32> {
        let own = |node| {
            let running = self.running(node);
            let view = running.desk.view(running.group.shelves(), POOL, 0);
            view.unwrap().owned
        };
        (1..=NODES).map(own).collect()
    }
}
