//! A group of members over a simulated group communication system with extended virtual synchrony.
//!
//! Whatever is multicast is ordered at once; members take it in at their own pace, so that every lag and
//! every crossing of messages is a schedule. Components order separately. When members part, each side keeps
//! what any of its own members has already taken in and whatever they have sent, and loses a tail of the rest:
//! the sides may have heard different things. A new view comes after all that.
//!
//! In the words of extended virtual synchrony: a side of a partition is a *transitional set*. Its members move together from one
//! view to the next, and deliver the same messages before that next view; members of different transitional sets need not. A
//! view that loses members and gains others at once is two views here, first that of the transitional set and then the new one,
//! with nothing delivered between them: from {1,2} and {3,4} to {1,3} and {2,4} are two partitions and two merges. The test
//! `slots_transitional.rs` does that, and compares what members of each transitional set deliver.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use testigo_protocol::NodeId;
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{Change, Delivery, Group, Letter, Sharer, SlotsPlan};

/// A group with all its members.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SlotsWorld {
    pub(super) stations: Vec<Station>,
    /// Which machines reach each other; every machine is in exactly one set.
    pub(super) components: Vec<NodeSet>,
    views: u64,
    /// How many items were ordered; renumbered by [`SlotsWorld::renumber`].
    ordered: u64,
    /// How many letters were multicast.
    pub(super) multicasts: u64,
}

/// A machine: its member, if it runs, and what was ordered for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Station {
    pub(super) sharer: Option<Arc<Sharer>>,
    queue: VecDeque<Item>,
    /// The place of the last item that it took in.
    heard: u64,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Item {
    place: u64,
    delivery: Arc<Delivery>,
}

/// What may happen to a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SlotsFault {
    /// A process starts; the founder may own all slots.
    Join { member: NodeId, founder: bool },
    /// A process ends and its machine goes on.
    Depart { member: NodeId },
    /// A machine stops: the others cannot tell it from one that is out of reach, and lose this many of the last
    /// messages that they may lose.
    Crash { member: NodeId, lost: u32 },
    /// The machines of this set lose contact with the rest of their component. Each side loses this many of the
    /// last messages that it may lose.
    Part { away: NodeSet, lost: [u32; 2] },
    /// The components of two machines become one.
    Merge { one: NodeId, other: NodeId },
}

impl SlotsWorld {
    /// Machines that all reach each other, with no process on any.
    pub fn new(plan: &SlotsPlan) -> SlotsWorld {
        let station = Station {
            sharer: None,
            queue: VecDeque::new(),
            heard: 0,
        };
        SlotsWorld {
            stations: vec![station; plan.members],
            components: vec![NodeSet::first(plan.members)],
            views: 0,
            ordered: 0,
            multicasts: 0,
        }
    }

    /// A group in which all members have joined and have been given their first slots.
    pub fn started(plan: &SlotsPlan) -> SlotsWorld {
        SlotsWorld::started_with(plan, plan.members)
    }

    /// A group in which only the first `running` members have joined.
    pub fn started_with(plan: &SlotsPlan, running: usize) -> SlotsWorld {
        let mut world = SlotsWorld::new(plan);
        for member in NodeId::all(running) {
            let founder = member.0 == 0;
            world.strike(&SlotsFault::Join { member, founder }, plan);
            world.calm(plan, 100_000);
        }
        world
    }

    pub fn sharer(&self, member: NodeId) -> Option<&Sharer> {
        self.stations[member.index()].sharer.as_deref()
    }

    pub fn sharers(&self) -> impl Iterator<Item = &Sharer> {
        self.stations
            .iter()
            .filter_map(|station| station.sharer.as_deref())
    }

    /// The machines that this one reaches.
    pub fn component_of(&self, member: NodeId) -> NodeSet {
        let mut components = self.components.iter();
        let found = components.find(|component| component.contains(member.index()));
        *found.expect("every machine is in a component")
    }

    pub(super) fn running(&self) -> NodeSet {
        let up = |member: &usize| self.stations[*member].sharer.is_some();
        (0..self.stations.len()).filter(up).collect()
    }

    /// The item that this member would take in next.
    pub fn next(&self, member: NodeId) -> Option<&Delivery> {
        let station = &self.stations[member.index()];
        station.queue.front().map(|item| &*item.delivery)
    }

    /// Everything ordered for this member that it has not taken in.
    pub fn queue(&self, member: NodeId) -> impl Iterator<Item = &Delivery> {
        let station = &self.stations[member.index()];
        station.queue.iter().map(|item| &*item.delivery)
    }

    /// How many letters were multicast.
    pub fn multicasts(&self) -> u64 {
        self.multicasts
    }

    pub fn is_quiet(&self) -> bool {
        self.stations.iter().all(|station| station.queue.is_empty())
    }

    /// Delivers the next item to a member, if there is one; returns what the member then multicasts.
    pub fn deliver(&mut self, member: NodeId, plan: &SlotsPlan) -> Vec<Letter> {
        let station = &mut self.stations[member.index()];
        let Some(item) = station.queue.pop_front() else {
            return Vec::new();
        };
        station.heard = item.place;
        let act = |sharer: &mut Sharer, out: &mut Vec<Letter>| {
            sharer.deliver(&item.delivery, plan, out);
            out.clone()
        };
        self.act(member, act).unwrap_or_default()
    }

    pub fn take(&mut self, member: NodeId, plan: &SlotsPlan) -> Option<u32> {
        self.act(member, |sharer, out| sharer.take(plan, out))?
    }

    pub fn give(&mut self, member: NodeId, slot: u32, plan: &SlotsPlan) -> bool {
        self.act(member, |sharer, out| sharer.give(slot, plan, out))
            .unwrap_or_default()
    }

    pub fn want(&mut self, member: NodeId, wanted: u32, plan: &SlotsPlan) {
        self.act(member, |sharer, out| sharer.want(wanted, plan, out));
    }

    pub fn retire(&mut self, by: NodeId, member: NodeId) {
        self.act(by, |sharer, out| sharer.retire(member, out));
    }

    /// Lets all members take in everything, in turns; false if that does not end.
    pub fn calm(&mut self, plan: &SlotsPlan, steps: u32) -> bool {
        for _ in 0..steps {
            if self.is_quiet() {
                return true;
            }
            for member in NodeId::all(self.stations.len()) {
                self.deliver(member, plan);
            }
        }
        self.is_quiet()
    }

    fn act<T>(
        &mut self,
        member: NodeId,
        act: impl FnOnce(&mut Sharer, &mut Vec<Letter>) -> T,
    ) -> Option<T> {
        let mut out = Vec::new();
        let sharer = self.stations[member.index()].sharer.as_mut()?;
        let answer = act(Arc::make_mut(sharer), &mut out);
        for letter in out {
            self.multicasts += 1;
            let from = member;
            self.order(self.component_of(member), Delivery::Letter { from, letter });
        }
        Some(answer)
    }

    /// Appends an item to the queues of a component's running members.
    fn order(&mut self, component: NodeSet, delivery: Delivery) {
        self.ordered += 1;
        let item = Item {
            place: self.ordered,
            delivery: Arc::new(delivery),
        };
        for member in component.intersection(self.running()).iter() {
            self.stations[member].queue.push_back(item.clone());
        }
    }

    fn new_view(&mut self, component: NodeSet, change: Change) {
        self.views += 1;
        let group = Group {
            view: self.views,
            members: component.intersection(self.running()),
        };
        self.order(component, Delivery::View { group, change });
    }

    /// Whether a fault is possible now.
    pub fn may(&self, fault: &SlotsFault) -> bool {
        let up = |member: NodeId| self.running().contains(member.index());
        match fault {
            SlotsFault::Join { member, .. } => !up(*member),
            SlotsFault::Depart { member } | SlotsFault::Crash { member, .. } => up(*member),
            SlotsFault::Part { away, .. } => {
                let Some(first) = away.iter().next() else {
                    return false;
                };
                let component = self.component_of(NodeId(first as u32));
                away.is_within(component) && *away != component
            }
            SlotsFault::Merge { one, other } => {
                self.component_of(*one) != self.component_of(*other)
            }
        }
    }

    pub fn strike(&mut self, fault: &SlotsFault, plan: &SlotsPlan) {
        debug_assert!(self.may(fault), "{fault:?}");
        match *fault {
            SlotsFault::Join { member, founder } => {
                let station = &mut self.stations[member.index()];
                station.sharer = Some(Arc::new(match founder {
                    true => Sharer::founder(member, plan),
                    false => Sharer::new(member, plan),
                }));
                station.heard = self.ordered;
                self.new_view(self.component_of(member), Change::Joined(member));
            }
            SlotsFault::Depart { member } => {
                self.stop(member);
                self.new_view(self.component_of(member), Change::Departed(member));
            }
            SlotsFault::Crash { member, lost } => {
                self.stop(member);
                let away = NodeSet::single(member.index());
                let component = self.component_of(member);
                if component != away {
                    self.part(component, away, [0, lost]);
                }
            }
            SlotsFault::Part { away, lost } => {
                let first = away.iter().next().expect("somebody is parted");
                self.part(self.component_of(NodeId(first as u32)), away, lost);
            }
            SlotsFault::Merge { one, other } => {
                let (one, other) = (self.component_of(one), self.component_of(other));
                self.components.retain(|&kept| kept != one && kept != other);
                let both = one.union(other);
                self.components.push(both);
                // Nobody notices machines on which nothing runs.
                let running = self.running();
                if one.meets(running) && other.meets(running) {
                    self.new_view(both, Change::Merged);
                }
            }
        }
    }

    fn stop(&mut self, member: NodeId) {
        let station = &mut self.stations[member.index()];
        station.sharer = None;
        station.queue.clear();
    }

    fn part(&mut self, component: NodeSet, away: NodeSet, lost: [u32; 2]) {
        self.components.retain(|&kept| kept != component);
        for (side, lost) in [away, component.minus(away)].into_iter().zip(lost) {
            self.components.push(side);
            self.lose(side, lost);
            if side.meets(self.running()) {
                self.new_view(side, Change::Parted);
            }
        }
    }

    /// Removes from a side's queues the last items that it may have missed: none that one of its own has
    /// taken in or sent, and none before a view of the whole side.
    fn lose(&mut self, side: NodeSet, lost: u32) {
        let stations = || side.iter().map(|member| &self.stations[member]);
        let mut sure = stations().map(|station| station.heard).max().unwrap_or(0);
        let mut foreign: Vec<u64> = Vec::new();
        for item in stations().flat_map(|station| &station.queue) {
            let own = |member: &NodeId| side.contains(member.index());
            match &*item.delivery {
                Delivery::Letter { from, .. } if own(from) => {}
                Delivery::View { change, .. } => match change {
                    Change::Joined(member) if own(member) => sure = sure.max(item.place),
                    Change::Parted | Change::Merged => sure = sure.max(item.place),
                    _ => foreign.push(item.place),
                },
                Delivery::Letter { .. } => foreign.push(item.place),
            }
        }
        foreign.retain(|&place| place > sure);
        foreign.sort_unstable();
        foreign.dedup();
        let lost = foreign.split_off(foreign.len().saturating_sub(lost as usize));
        for member in side.iter() {
            let queue = &mut self.stations[member].queue;
            queue.retain(|item| lost.binary_search(&item.place).is_err());
        }
    }

    /// Stores equal members of many worlds once.
    pub(super) fn share_sharers(&mut self, known: &mut HashSet<Arc<Sharer>>) {
        for sharer in self
            .stations
            .iter_mut()
            .flat_map(|station| &mut station.sharer)
        {
            match known.get(sharer) {
                Some(same) => *sharer = Arc::clone(same),
                None => {
                    known.insert(Arc::clone(sharer));
                }
            }
        }
    }

    /// Renumbers what is still to be taken in from the start, so that equal situations are equal.
    pub fn renumber(&mut self) {
        let queues = self.stations.iter().flat_map(|station| &station.queue);
        let mut places: Vec<u64> = queues
            .map(|item| item.place)
            .chain(self.stations.iter().map(|station| station.heard))
            .collect();
        places.sort_unstable();
        places.dedup();
        let renumbered = |place: u64| places.binary_search(&place).unwrap_or_default() as u64;
        for station in &mut self.stations {
            station.heard = renumbered(station.heard);
            for item in &mut station.queue {
                item.place = renumbered(item.place);
            }
        }
        self.ordered = places.len() as u64;
        self.multicasts = 0;
    }
}
