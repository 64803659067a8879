//! How a view begins: everybody says hello, and the last hello that is delivered begins it for all.

use testigo_protocol::NodeId as SharerId;
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{
    Change as Turn, Delivery, Group, Owned, Sharer, SlotTable, SlotsState,
};

use super::message::{GroupMessage, Hello};
use super::{Kept, PoolGroup, Process, listed};
use crate::name::Name;
use crate::pool::desk::Desk;
use crate::pool::shelf::Shelves;

/// A view's number ends with the lowest place of its members, in this many bits.
const PLACE_BITS: u32 = 8;

impl PoolGroup {
    /// Says hello to this membership.
    pub(super) fn begin_round(&mut self, desk: &Desk) {
        self.shelves.view = None;
        self.hellos.clear();
        if !self.hello_under_way {
            self.say_hello(desk);
        }
    }

    fn say_hello(&mut self, desk: &Desk) {
        self.hello_under_way = true;
        let begun = |sharer: &Sharer| sharer.is_initialised();
        let pools = self.shelves.kept.pools.iter();
        let begun = pools.filter(|(name, _)| desk.sharer(name).is_some_and(begun));
        let hello = Hello {
            members: self.members.clone(),
            nodes: self.nodes.clone(),
            settled: self.settled,
            views: self.views,
            kept: self.shelves.kept.clone(),
            begun: begun.map(|(_, pool)| pool.created).collect(),
        };
        let hello = GroupMessage::Hello(Box::new(hello));
        self.out.messages.push(hello.write());
    }

    /// A hello counts for the membership that it names. It still counts after two changes that undid each other: nothing that it
    /// says can have changed since, because its sender has been in no view.
    pub(super) fn hear_hello(&mut self, now: u64, from: Process, hello: Hello, desk: &mut Desk) {
        if from == self.own {
            self.hello_under_way = false;
        }
        let known = self.is_settled() || self.hellos.contains_key(&from);
        if known || !self.members.contains(&from) {
            return;
        }
        if hello.members != self.members {
            if from == self.own {
                self.say_hello(desk);
            }
            return;
        }
        let Process { node, .. } = from;
        if hello.nodes != self.nodes {
            self.out.warnings.push(format!(
                "node {node} was started with other members than this node ({:?}, not {:?}): no slot moves until they agree",
                hello.nodes, self.nodes
            ));
            return;
        }
        self.hellos.insert(from, hello);
        let mut nodes: Vec<u32> = self.members.iter().map(|member| member.node).collect();
        nodes.dedup();
        let strangers = nodes.iter().filter(|node| !self.nodes.contains(node));
        let strangers: Vec<u32> = strangers.copied().collect();
        if !strangers.is_empty() {
            let strangers = listed(&strangers);
            let why = format!("{strangers} in the group but not among its members: no slot moves");
            self.out.warnings.push(why);
        } else if nodes.len() < self.members.len() {
            let why = "two processes on one node are in the group: no slot moves until one ends";
            self.out.warnings.push(why.into());
        } else if self.hellos.len() == self.members.len() {
            self.settle(now, desk);
        }
    }

    /// All members have said hello: the view begins.
    fn settle(&mut self, now: u64, desk: &mut Desk) {
        let hellos = std::mem::take(&mut self.hellos);
        let members = self.places(self.members.iter());
        let lowest = members.iter().next().unwrap_or(0) as u64;
        // The number is above all earlier views of the members, and unique, so no letter of another view is taken for one of
        // this view. Two parts may count alike; their lowest members distinguish them.
        let views = hellos.values().map(|hello| hello.views).max().unwrap_or(0) + 1;
        let view = views << PLACE_BITS | lowest;
        let newest = hellos.values().max_by_key(|hello| hello.kept.generation);
        let newest = newest.map(|hello| hello.kept.clone()).unwrap_or_default();
        let floor = Kept::floor(hellos.values().map(|hello| hello.kept.ceiling));
        self.adopt(newest, desk);
        // Nothing of this view is used before its numbers are on disk.
        self.shelves.kept.raise(floor);
        self.out.keep = true;
        // Members that come from another view may not have heard the same.
        let with_us = |(_, hello): &(&Process, &Hello)| hello.settled == self.settled;
        let together = hellos.iter().filter(with_us).map(|(process, _)| process);
        let together = self.places(together);
        self.turn(now, together, Turn::Parted, desk);
        (self.views, self.settled) = (views, view);
        self.shelves.view = Some(view);
        let group = Group { view, members };
        let everybody = members.len() == self.nodes.len();
        let names: Vec<Name> = self.shelves.kept.pools.keys().cloned().collect();
        for name in names {
            let created = self.shelves.kept.pools[&name].created;
            let begun = hellos.values().any(|hello| hello.begun.contains(&created));
            match everybody && !begun {
                true => self.begin(now, &name, group, floor, desk),
                false => self.go_on(now, &name, group, floor, desk),
            }
        }
        let (done, asked) = std::mem::take(&mut self.asked)
            .into_iter()
            .partition(|(_, done)| *done);
        self.asked = asked;
        let done: std::collections::BTreeMap<u64, bool> = done;
        let answers = done.into_keys().map(|token| (token, Ok(())));
        self.out.answers.extend(answers);
    }

    /// Takes over the newest definitions.
    fn adopt(&mut self, newest: Kept, desk: &mut Desk) {
        let known = std::mem::take(&mut self.shelves.kept);
        for (name, pool) in &known.pools {
            let same = |new: &&super::KeptPool| new.created == pool.created;
            if newest.pools.get(name).filter(same).is_none() {
                desk.close(name, None);
            }
        }
        for (name, pool) in &newest.pools {
            let same = |old: &&super::KeptPool| old.created == pool.created;
            if known.pools.get(name).filter(same).is_none() {
                self.open(name, pool, desk);
            }
        }
        self.shelves.kept = Kept {
            ceiling: known.ceiling,
            ..newest
        };
    }

    /// Everybody is here and nobody owns anything: each member gets a run of slots; their lengths differ by at most one.
    fn begin(&mut self, now: u64, name: &Name, group: Group, floor: u32, desk: &mut Desk) {
        let (Some(shelf), Some(place)) = (self.shelves.shelf(name), self.place(self.own)) else {
            return;
        };
        let (slots, count) = (shelf.definition.slots.count(), self.nodes.len());
        let first = |slot: u32| Owned {
            owner: Some(SharerId(
                (u64::from(slot) * count as u64 / u64::from(slots)) as u32,
            )),
            number: floor,
        };
        let state = SlotsState {
            table: SlotTable::from_lines((0..slots).map(first).collect()),
            component: group.members,
            initialised: group.members,
            absent: NodeSet::EMPTY,
            primary: Some(SharerId(0)),
            pending: Vec::new(),
            cycles: Vec::new(),
            standing: Vec::new(),
            labelled: Vec::new(),
            provisioned: NodeSet::first(count),
            disputed: Vec::new(),
        };
        let plan = shelf.definition.group_plan(count);
        let mut sharer = Sharer::at(place, state, group, &plan);
        sharer.set_floor(floor);
        desk.replace_sharer(now, shelf, name, sharer);
    }

    fn go_on(&mut self, now: u64, name: &Name, group: Group, floor: u32, desk: &mut Desk) {
        let Some(shelf) = self.shelves.shelf(name) else {
            return;
        };
        if let Some(sharer) = desk.sharer_mut(name) {
            sharer.set_floor(floor);
        }
        let change = Turn::Merged;
        desk.deliver(now, shelf, name, &Delivery::View { group, change });
    }
}
