//! What the log says about pools: their definitions, who owns which slot, what was asked for, and the slots of sessions that
//! have moved away from the node where they took them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use testigo_protocol::NodeId as SharerId;
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{
    Change as Turn, Delivery, Group, Letter, Owned, Sharer, SlotTable, SlotsMessage, SlotsPlan,
    SlotsState,
};

use super::{NamedSlot, PoolDefinition, SlotClaim, find_slots};
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::name::Name;
use crate::ownership::{Index, NodeId, Start, View};
use crate::replicated::{Change, Outcome};
use crate::session::SessionId;

/// Most pools.
pub const POOLS_MAX: usize = 1_000;
/// Most slots of all pools together: each takes memory at every node.
pub const POOL_SLOTS_MAX: u64 = 1 << 24;
/// Most nodes that share a pool.
pub const POOL_NODES_MAX: usize = NodeSet::NODES_MAX;

/// All pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pools {
    pools: BTreeMap<Name, PoolRecord>,
    /// New pools number their slots above this, so that their fences are above those of a deleted pool of the same name.
    number: u32,
}

/// One pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolRecord {
    /// What it is.
    pub definition: PoolDefinition,
    /// The entry that created it.
    pub created: Index,
    /// The nodes that share it, by their places among its members.
    nodes: Vec<Option<(NodeId, Start)>>,
    minutes: Minutes,
    /// The number that its slots began with: fences of a deleted pool of the same name are below it.
    pub(super) first: u32,
    /// The sessions that claim each slot. At most one is right, and only the slot's owner knows which.
    pub(super) claims: BTreeMap<u32, BTreeMap<SessionId, Fence>>,
}

/// Follows what is delivered to the members of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Minutes(Sharer);

impl Serialize for Minutes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0.state(), self.0.group()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Minutes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Minutes, D::Error> {
        let (state, group): (SlotsState, Group) = Deserialize::deserialize(deserializer)?;
        let plan = SlotsPlan::logged(state.table.slots(), 0);
        Ok(Minutes(Sharer::onlooker(state, group, &plan)))
    }
}

/// What was delivered to which pool's members.
pub(crate) type Delivered = Vec<(Name, Delivery)>;

impl PoolRecord {
    /// Who owns what, and who is present.
    pub fn state(&self) -> &SlotsState {
        self.minutes.0.state()
    }

    /// The present view of its members.
    pub fn group(&self) -> Group {
        self.minutes.0.group()
    }

    /// A node's place among the members.
    pub fn place(&self, node: NodeId) -> Option<SharerId> {
        let is_it = |known: &Option<(NodeId, Start)>| known.is_some_and(|(known, _)| known == node);
        let at = self.nodes.iter().position(is_it)?;
        Some(SharerId(at as u32))
    }

    /// Whether this start of a node shares it.
    pub(super) fn has(&self, (node, start): (NodeId, Start)) -> bool {
        self.nodes.contains(&Some((node, start)))
    }

    /// The node at a place.
    pub fn node(&self, place: SharerId) -> Option<NodeId> {
        let known = self.nodes.get(place.index())?;
        known.map(|(node, _)| node)
    }

    /// The nodes that share it, with their places.
    pub fn nodes(&self) -> impl Iterator<Item = (SharerId, NodeId)> {
        let nodes = (0..).map(SharerId).zip(&self.nodes);
        nodes.filter_map(|(place, known)| Some((place, known.as_ref()?.0)))
    }

    /// The owner of a slot.
    pub fn owner(&self, slot: u32) -> Option<NodeId> {
        self.node(self.state().table.owner(slot)?)
    }

    /// Whether a node's slots are out of reach with it.
    pub fn is_absent(&self, node: NodeId) -> bool {
        let place = self.place(node);
        place.is_some_and(|place| self.state().absent.contains(place.index()))
    }

    fn deliver(&mut self, delivery: &Delivery) {
        let mut out = Vec::new();
        self.minutes
            .0
            .deliver(delivery, &self.definition.plan(), &mut out);
        debug_assert!(out.is_empty(), "an onlooker says nothing");
    }

    fn turn(&mut self, name: &Name, index: Index, turn: Turn, delivered: &mut Delivered) {
        let members = self.group().members;
        let members = match turn {
            Turn::Joined(place) | Turn::Returned(place) => members.with(place.index()),
            Turn::Departed(place) => members.without(place.index()),
            _ => members,
        };
        self.turn_to(name, index, members, turn, delivered);
    }

    fn turn_to(
        &mut self,
        name: &Name,
        index: Index,
        members: NodeSet,
        change: Turn,
        delivered: &mut Delivered,
    ) {
        // One entry may bring several views; a letter sent in one must not count in the next.
        let view = (self.group().view + 1).max(first_view(index));
        let group = Group { view, members };
        let delivery = Delivery::View { group, change };
        self.deliver(&delivery);
        delivered.push((name.clone(), delivery));
    }

    /// Gives a node that has no place the first free one.
    fn seat(&mut self, node: NodeId, start: Start) -> Option<SharerId> {
        let at = match self.nodes.iter().position(Option::is_none) {
            Some(at) => at,
            None if self.nodes.len() < POOL_NODES_MAX => {
                self.nodes.push(None);
                self.nodes.len() - 1
            }
            None => return None,
        };
        self.nodes[at] = Some((node, start));
        Some(SharerId(at as u32))
    }

    fn follow(&mut self, name: &Name, index: Index, view: &View, delivered: &mut Delivered) {
        let start_of = |node: NodeId| {
            let mut members = view.members.iter();
            let member = members.find(|member| member.node == node)?;
            Some(member.start)
        };
        let present: NodeSet = self
            .nodes()
            .filter(|(_, node)| start_of(*node).is_some())
            .map(|(place, _)| place.index())
            .collect();
        let members = self.group().members;
        if !members.is_within(present) {
            let here = members.intersection(present);
            self.turn_to(name, index, here, Turn::Parted, delivered);
        }
        for at in 0..self.nodes.len() {
            let Some((node, before)) = self.nodes[at] else {
                continue;
            };
            let Some(start) = start_of(node) else {
                continue;
            };
            let place = SharerId(at as u32);
            if !members.contains(at) {
                self.turn(name, index, Turn::Returned(place), delivered);
            }
            if start != before {
                self.nodes[at] = Some((node, start));
                self.turn(name, index, Turn::Restarted(place), delivered);
            }
        }
        for member in &view.members {
            if self.place(member.node).is_none()
                && let Some(place) = self.seat(member.node, member.start)
            {
                self.turn(name, index, Turn::Joined(place), delivered);
            }
        }
    }
}

impl Pools {
    /// A pool.
    pub fn get(&self, name: &str) -> Option<&PoolRecord> {
        self.pools.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Name, &PoolRecord)> {
        self.pools.iter()
    }

    /// The first pool after this name.
    pub fn after(&self, name: Bound<&Name>) -> Option<(&Name, &PoolRecord)> {
        self.pools.range::<Name, _>((name, Bound::Unbounded)).next()
    }

    /// Refuses to create or delete a pool where that is impossible.
    pub(crate) fn check(&self, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::CreatePool { pool, definition } => self.check_create(pool, definition),
            Change::DeletePool { pool } if self.get(pool).is_none() => Err(no_pool(pool)),
            _ => Ok(()),
        }
    }

    /// Carries out a checked change of pools, except for what only a member may say.
    pub(crate) fn apply(
        &mut self,
        (index, view): (Index, &View),
        from: NodeId,
        change: &Change,
        delivered: &mut Delivered,
    ) -> Result<Outcome, Refusal> {
        Ok(match change {
            Change::CreatePool { pool, definition } => {
                match self.create(index, view, pool, definition) {
                    true => Outcome::PoolCreated { pool: pool.clone() },
                    false => Outcome::Unchanged,
                }
            }
            Change::PoolLetter {
                pool,
                created,
                letter,
            } => {
                let from = self.check_letter(pool, *created, from, letter)?;
                self.letter(pool, from, letter, delivered);
                Outcome::PoolHeard
            }
            Change::GiveSlots {
                session,
                pool,
                slots,
                lost,
            } => {
                if let Some(record) = self.pools.get_mut(pool) {
                    for (slot, fence) in slots {
                        record.give(*session, *slot, *fence);
                    }
                }
                Outcome::SlotsGiven {
                    session: *session,
                    pool: pool.clone(),
                    slots: slots.clone(),
                    lost: *lost,
                }
            }
            _ => Outcome::Unchanged,
        })
    }

    fn check_create(&self, name: &Name, definition: &PoolDefinition) -> Result<(), Refusal> {
        match self.pools.get(name) {
            Some(pool) if pool.definition == *definition => return Ok(()),
            Some(_) => {
                let why = format!("pool {name} exists with another definition; delete it first");
                return Err(Refusal::new(Word::Busy, why));
            }
            None => {}
        }
        definition.check()?;
        let pools = self.pools.values().map(|pool| &pool.definition);
        check_room(pools, definition)
    }

    /// False if it was there already.
    fn create(
        &mut self,
        index: Index,
        view: &View,
        name: &Name,
        definition: &PoolDefinition,
    ) -> bool {
        if self.pools.contains_key(name) {
            return false;
        }
        let members = view.members.iter().take(POOL_NODES_MAX);
        let nodes: Vec<Option<(NodeId, Start)>> = members
            .map(|member| Some((member.node, member.start)))
            .collect();
        let (slots, count) = (definition.slots.count(), nodes.len() as u64);
        // Each member begins with a run of slots; their lengths differ by at most one.
        let first = |slot: u32| Owned {
            owner: Some(SharerId(
                (u64::from(slot) * count / u64::from(slots)) as u32,
            )),
            number: self.number + 1,
        };
        let members = NodeSet::first(nodes.len());
        let state = SlotsState {
            table: SlotTable::from_lines((0..slots).map(first).collect()),
            component: members,
            initialised: members,
            absent: NodeSet::EMPTY,
            primary: Some(SharerId(0)),
            pending: Vec::new(),
            cycles: Vec::new(),
            standing: Vec::new(),
            labelled: Vec::new(),
            provisioned: NodeSet::first(POOL_NODES_MAX),
            disputed: Vec::new(),
        };
        let group = Group {
            view: first_view(index),
            members,
        };
        let record = PoolRecord {
            definition: definition.clone(),
            created: index,
            nodes,
            minutes: Minutes(Sharer::onlooker(state, group, &definition.plan())),
            first: self.number + 1,
            claims: BTreeMap::new(),
        };
        self.pools.insert(name.clone(), record);
        true
    }

    pub(super) fn delete(&mut self, name: &str) -> Result<PoolDefinition, Refusal> {
        let pool = self.pools.remove(name).ok_or_else(|| no_pool(name))?;
        let numbers = pool.state().table.lines().map(|(_, owned)| owned.number);
        self.number = numbers.fold(self.number, u32::max);
        Ok(pool.definition)
    }

    /// Refuses to let the nodes vote on a pool's deletion while a node with slots is out: they may be in use there.
    pub(crate) fn check_close(&self, name: &str, view: &View) -> Result<(), Refusal> {
        let pool = self.pools.get(name).ok_or_else(|| no_pool(name))?;
        let table = &pool.state().table;
        let mut nodes = pool.nodes();
        let out =
            nodes.find(|(place, node)| !view.has_node(*node) && table.of(*place).next().is_some());
        match out {
            None => Ok(()),
            Some((_, node)) => {
                let why = format!(
                    "pool {name} has slots out of reach with node {node}, where they may be in use"
                );
                Err(Refusal::new(Word::Busy, why))
            }
        }
    }

    /// The nodes of the view that share a pool.
    pub(super) fn present(&self, name: &str, view: &View) -> BTreeSet<NodeId> {
        let nodes = self.get(name).into_iter().flat_map(PoolRecord::nodes);
        let nodes = nodes.map(|(_, node)| node);
        nodes.filter(|node| view.has_node(*node)).collect()
    }

    fn check_letter(
        &self,
        name: &str,
        created: Index,
        from: NodeId,
        letter: &Letter,
    ) -> Result<SharerId, Refusal> {
        let stale = |why: &str| Refusal::new(Word::Stale, format!("pool {name} {why}"));
        let pool = self.pools.get(name).ok_or_else(|| no_pool(name))?;
        if pool.created != created {
            return Err(stale("has been replaced by a new one"));
        }
        let place = pool.place(from);
        let place = place.ok_or_else(|| stale("is not shared by the sender"))?;
        let sound = match &letter.message {
            SlotsMessage::Request { .. } | SlotsMessage::Withdraw | SlotsMessage::Pass { .. } => {
                true
            }
            SlotsMessage::Wish { label, .. } => {
                (*label as usize) < pool.definition.slots.labels().len()
            }
            SlotsMessage::Donate { slots, .. } => {
                let table = &pool.state().table;
                slots.iter().all(|&slot| table.get(slot).is_some())
            }
            _ => false,
        };
        match sound {
            true => Ok(place),
            false => Err(stale("does not accept such a message")),
        }
    }

    /// Delivers a member's message that was checked.
    fn letter(&mut self, name: &Name, from: SharerId, letter: &Letter, delivered: &mut Delivered) {
        if let Some(pool) = self.pools.get_mut(name) {
            let letter = letter.clone();
            let number = |pool: &PoolRecord, slot: u32| pool.state().table.get(slot);
            let donated: Vec<(u32, Option<Owned>)> = match &letter.message {
                SlotsMessage::Donate { slots, .. } => {
                    let slots = slots.iter();
                    slots.map(|slot| (*slot, number(pool, *slot))).collect()
                }
                _ => Vec::new(),
            };
            let delivery = Delivery::Letter { from, letter };
            pool.deliver(&delivery);
            delivered.push((name.clone(), delivery));
            for (slot, before) in donated {
                // Its owner, who donated it, knew that nobody had it.
                if number(pool, slot) != before {
                    pool.claims.remove(&slot);
                }
            }
        }
    }

    /// The members have changed.
    pub(crate) fn follow(
        &mut self,
        index: Index,
        view: &View,
        raise: Option<u32>,
        delivered: &mut Delivered,
    ) {
        for (name, pool) in &mut self.pools {
            pool.follow(name, index, view, delivered);
        }
        if let Some(number) = raise {
            self.number = self.number.max(number);
            for (name, pool) in &mut self.pools {
                let turn = Turn::Raised(number);
                pool.turn(name, index, turn, delivered);
            }
        }
    }

    /// A node was removed for good: its slots go to the others. Sessions keep the slots that they claim.
    pub(crate) fn remove(&mut self, index: Index, node: NodeId, delivered: &mut Delivered) {
        for (name, pool) in &mut self.pools {
            if let Some(place) = pool.place(node) {
                pool.turn(name, index, Turn::Departed(place), delivered);
                pool.nodes[place.index()] = None;
            }
        }
    }

    /// A session claims slots, or a node does for a session that has left it. Impossible claims are ignored.
    pub(crate) fn claim(&mut self, session: SessionId, claims: &[SlotClaim], by: Option<NodeId>) {
        for (name, slot, fence) in claims {
            if let Some(pool) = self.pools.get_mut(name) {
                let owner = by.is_some() && pool.owner(*slot) == by;
                pool.claim(session, (*slot, *fence), owner);
            }
        }
    }

    /// The numbers of these slots, without those that do not exist.
    pub fn find(&self, slots: &[NamedSlot]) -> Vec<SlotClaim> {
        let numbers = find_slots(slots, |pool| Some(&self.get(pool)?.definition.slots));
        let found = slots.iter().zip(numbers);
        let found =
            found.filter_map(|((pool, _, fence), slot)| Some((pool.clone(), slot?, *fence)));
        found.collect()
    }

    /// A session has these slots and no others: its other claims end. Returns those that exist.
    pub(crate) fn claim_only(&mut self, session: SessionId, slots: &[NamedSlot]) -> Vec<SlotClaim> {
        let named = self.find(slots);
        self.end_session(session);
        self.claim(session, &named, None);
        named
    }

    pub(crate) fn end_session(&mut self, session: SessionId) {
        for pool in self.pools.values_mut() {
            pool.claims.retain(|_, claims| {
                claims.remove(&session);
                !claims.is_empty()
            });
        }
    }
}

/// The first view that an entry of the log brings.
fn first_view(index: Index) -> u64 {
    index.0 << VIEWS_BITS
}

/// Room for the views of one entry, which brings at most three for each node.
const VIEWS_BITS: u32 = 10;

/// Whether there is room for one more pool beside these.
pub(super) fn check_room<'a>(
    pools: impl ExactSizeIterator<Item = &'a PoolDefinition>,
    new: &PoolDefinition,
) -> Result<(), Refusal> {
    let limit = |why: String| Err(Refusal::new(Word::Limit, why));
    let count = pools.len();
    if count >= POOLS_MAX {
        return limit(format!(
            "there are {count} pools already, and the limit pools is {POOLS_MAX}"
        ));
    }
    let slots: u64 = pools.map(|pool| u64::from(pool.slots.count())).sum();
    let more = u64::from(new.slots.count());
    match slots + more > POOL_SLOTS_MAX {
        true => limit(format!(
            "the existing pools have {slots} slots, and the limit pool_slots is {POOL_SLOTS_MAX}: {more} more are too many"
        )),
        false => Ok(()),
    }
}

/// The refusal of a pool that is not there.
pub fn no_pool(name: &str) -> Refusal {
    Refusal::new(
        Word::NoPool,
        format!("there is no pool {name}; POOL CREATE makes one, POOL LIST shows them"),
    )
}
