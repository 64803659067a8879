//! Pools in a process group of a group communication system with extended virtual synchrony, such as Corosync's: every
//! part of a partition goes on taking and donating, and parts merge.
//!
//! The system says who is there, and delivers messages in one order to all who stay together. A process that is reported gone
//! need not have ended: a Corosync daemon that is stopped reports the end of processes that live on, and a killed one leaves its
//! processes running. So only a process that leaves by its own word gives up its slots. All others are out of reach with what
//! they own until a process on their node says what it has ([`Hello`]).
//!
//! Nothing moves between a change of the membership and the moment when all members have said hello to it. Then the view begins,
//! at the same point of the order for all. Its number is above those of all views that its members have been in, so a letter of
//! another view does not count.

mod begin;
mod kept;
mod message;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use testigo_protocol::NodeId as SharerId;
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{
    Change as Turn, Delivery, Group, Letter, Sharer, SlotsMessage, SlotsState,
};

use super::PoolDefinition;
use super::desk::Desk;
use super::records::{check_room, no_pool};
use super::shelf::{Shelf, Shelves};
use crate::error::{Refusal, Word};
use crate::name::Name;
use crate::ownership::NodeId;
use kept::GroupShelves;
pub use kept::{Kept, KeptPool};
use message::{GroupMessage, Hello, is_sound};

/// Most slots of a pool of a group: its whole table is one message.
pub const GROUP_SLOTS_MAX: u32 = 1 << 16;
/// Most bytes of all pool definitions of a group: they are in every hello.
pub const GROUP_DEFINITIONS_MAX: usize = 256 << 10;

/// A process of the group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Process {
    /// The node that it runs on.
    pub node: u32,
    /// Its process number there.
    pub pid: u32,
}

/// What the group communication system says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupEvent {
    /// Who is there now, and who has left by its own word since the last time.
    Members {
        /// All present members.
        members: Vec<Process>,
        /// Those that have left. They no longer use any slot.
        left: Vec<Process>,
    },
    /// A message.
    Message {
        /// Who sent it.
        from: Process,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// The system itself is out of reach, and so is whatever it had not delivered.
    Lost,
}

/// What a process of a group wants done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupOut {
    /// Whether what it keeps must be on disk before anything else is done.
    pub keep: bool,
    /// Messages for all members, in this order.
    pub messages: Vec<Vec<u8>>,
    /// How creations and deletions ended, by their tokens.
    pub answers: Vec<(u64, Result<(), Refusal>)>,
    /// What an operator should know.
    pub warnings: Vec<String>,
}

/// One process of a group that shares pools.
#[derive(Debug)]
pub struct PoolGroup {
    own: Process,
    /// The nodes of all members, in order.
    nodes: Vec<u32>,
    shelves: GroupShelves,
    /// Who is there, in order.
    members: Vec<Process>,
    /// Their hellos since this membership began or the last pool was created.
    hellos: BTreeMap<Process, Hello>,
    /// Whether its own hello has not been delivered to itself yet. There is one at a time: if a second one were under way when the
    /// first begins a view, it could be delivered in a later round and say what is no longer true.
    hello_under_way: bool,
    /// The last view that it was in, or 0.
    settled: u64,
    views: u64,
    next_token: u64,
    /// This process's creations and deletions under way; true once only the next view is awaited.
    asked: BTreeMap<u64, bool>,
    out: GroupOut,
}

impl PoolGroup {
    /// A process that has joined no group yet.
    pub fn new(own: Process, mut nodes: Vec<u32>, kept: Kept, desk: &mut Desk) -> PoolGroup {
        nodes.sort_unstable();
        nodes.dedup();
        let view = None;
        let group = PoolGroup {
            own,
            nodes,
            shelves: GroupShelves { kept, view },
            members: Vec::new(),
            hellos: BTreeMap::new(),
            hello_under_way: false,
            settled: 0,
            views: 0,
            next_token: 0,
            asked: BTreeMap::new(),
            out: GroupOut::default(),
        };
        for (name, pool) in &group.shelves.kept.pools {
            group.open(name, pool, desk);
        }
        group
    }

    /// What must be on disk.
    pub fn kept(&self) -> &Kept {
        &self.shelves.kept
    }

    /// What a desk reads.
    pub fn shelves(&self) -> &dyn Shelves {
        &self.shelves
    }

    /// What has become due since the last call.
    pub fn take_out(&mut self) -> GroupOut {
        std::mem::take(&mut self.out)
    }

    /// The node that it runs on.
    pub fn own_node(&self) -> NodeId {
        NodeId(self.own.node.into())
    }

    /// The node of a member of its pools.
    pub fn node(&self, member: SharerId) -> Option<NodeId> {
        let node = self.nodes.get(member.index())?;
        Some(NodeId(u64::from(*node)))
    }

    /// The nodes that are not there, or have not said hello.
    pub fn missing(&self) -> Vec<u32> {
        let here = |node: &u32| {
            let mut members = self.members.iter();
            members.any(|member| {
                member.node == *node
                    && (self.shelves.view.is_some() || self.hellos.contains_key(member))
            })
        };
        let nodes = self.nodes.iter().copied();
        nodes.filter(|node| !here(node)).collect()
    }

    /// Whether all present members are in one view.
    pub fn is_settled(&self) -> bool {
        self.shelves.view.is_some()
    }

    /// Takes in an event of the group communication system.
    pub fn hear(&mut self, now: u64, event: GroupEvent, desk: &mut Desk) {
        match event {
            GroupEvent::Members { members, left } => self.change(now, members, &left, desk),
            GroupEvent::Message { from, bytes } => match GroupMessage::read(&bytes) {
                Some(message) => self.hear_message(now, from, message, desk),
                None => {
                    let Process { node, pid } = from;
                    self.out.warnings.push(format!(
                        "process {pid} on node {node} sent a message that this version does not understand"
                    ));
                }
            },
            GroupEvent::Lost => {
                self.shelves.view = None;
                for sharer in desk.sharers_mut() {
                    // A donation may have been delivered to others and not to this process.
                    sharer.disown_sent();
                }
                let alone = self.places([self.own].iter());
                self.turn(now, alone, Turn::Parted, desk);
                self.members.clear();
                self.hellos.clear();
                self.hello_under_way = false;
                self.leave_open("Corosync is out of reach");
            }
        }
    }

    /// Multicasts what a member of a pool says.
    pub fn send(&mut self, pool: Name, created: u64, letter: Letter) {
        let letter = GroupMessage::Letter {
            pool,
            created,
            letter,
        };
        self.out.messages.push(letter.write());
    }

    /// Creates a pool. Returns a token for the answer, or `None` if the pool is there already.
    pub fn create(
        &mut self,
        pool: &Name,
        definition: &PoolDefinition,
    ) -> Result<Option<u64>, Refusal> {
        let kept = &self.shelves.kept;
        match kept.pools.get(pool) {
            Some(known) if known.definition == *definition => return Ok(None),
            Some(_) => return Err(other_definition(pool)),
            None => {}
        }
        definition.check()?;
        let limit = |why: String| Err(Refusal::new(Word::Limit, why));
        let slots = definition.slots.count();
        if slots > GROUP_SLOTS_MAX {
            let most = GROUP_SLOTS_MAX;
            return limit(format!(
                "{slots} slots: a pool on Corosync has at most {most}"
            ));
        }
        check_room(kept.pools.values().map(|pool| &pool.definition), definition)?;
        let length = |value: &dyn Fn() -> Option<usize>| value().unwrap_or(usize::MAX);
        let bytes = length(&|| Some(postcard::to_allocvec(&kept.pools).ok()?.len()))
            .saturating_add(length(&|| {
                Some(postcard::to_allocvec(definition).ok()?.len())
            }));
        if bytes > GROUP_DEFINITIONS_MAX {
            let most = GROUP_DEFINITIONS_MAX;
            return limit(format!(
                "the definitions of all pools on Corosync have at most {most} bytes, and these would have {bytes}"
            ));
        }
        let (pool, definition) = (pool.clone(), definition.clone());
        let ask = |view, token| GroupMessage::Create {
            view,
            token,
            pool,
            definition,
        };
        self.ask_all(ask).map(Some)
    }

    /// Deletes a pool. Returns a token for the answer.
    pub fn delete(&mut self, pool: &Name) -> Result<u64, Refusal> {
        if !self.shelves.kept.pools.contains_key(pool) {
            return Err(no_pool(pool));
        }
        let pool = pool.clone();
        self.ask_all(|view, token| GroupMessage::Delete { view, token, pool })
    }

    /// Multicasts a request that needs all members.
    fn ask_all(&mut self, message: impl FnOnce(u64, u64) -> GroupMessage) -> Result<u64, Refusal> {
        let unavailable = |why: String| Refusal::new(Word::Unavailable, why);
        let missing = self.missing();
        if !missing.is_empty() {
            let missing = listed(&missing);
            return Err(unavailable(format!(
                "pools on Corosync are created and deleted by all members together, and {missing} out of reach"
            )));
        }
        let Some(view) = self.shelves.view else {
            let why = "the members of the group are changing; try again";
            return Err(unavailable(why.into()));
        };
        self.next_token += 1;
        let token = self.next_token;
        self.asked.insert(token, false);
        self.out.messages.push(message(view, token).write());
        Ok(token)
    }

    /// The membership has changed.
    fn change(&mut self, now: u64, mut members: Vec<Process>, left: &[Process], desk: &mut Desk) {
        members.sort_unstable();
        let was = std::mem::take(&mut self.members);
        let stay: Vec<Process> = was
            .iter()
            .filter(|member| members.contains(member))
            .copied()
            .collect();
        self.shelves.view = None;
        let mut here = was.clone();
        for gone in left.iter().filter(|gone| was.contains(gone)) {
            here.retain(|member| member != gone);
            if let Some(place) = self.place(*gone) {
                let set = self.places(here.iter());
                self.turn(now, set, Turn::Departed(place), desk);
            }
        }
        if stay.len() < here.len() {
            let set = self.places(stay.iter());
            self.turn(now, set, Turn::Parted, desk);
        }
        self.members = members;
        self.leave_open("the members of the group have changed");
        self.begin_round(desk);
    }

    /// What was asked in an earlier view may have been heard by members that are now out of reach.
    fn leave_open(&mut self, why: &str) {
        let asked = std::mem::take(&mut self.asked);
        for (token, done) in asked {
            if done {
                self.asked.insert(token, true);
                continue;
            }
            let why = format!("{why}; POOL LIST shows whether it was done");
            let unknown = Refusal::new(Word::Unknown, why);
            self.out.answers.push((token, Err(unknown)));
        }
    }

    fn hear_message(&mut self, now: u64, from: Process, message: GroupMessage, desk: &mut Desk) {
        let current = self.shelves.view;
        match message {
            GroupMessage::Hello(hello) => self.hear_hello(now, from, *hello, desk),
            GroupMessage::Letter {
                pool,
                created,
                letter,
            } if Some(letter.view) == current => {
                self.hear_letter(now, from, (&pool, created), letter, desk);
            }
            GroupMessage::Create {
                view,
                token,
                pool,
                definition,
            } if Some(view) == current => {
                let created = self.created(&pool, definition, desk);
                let new = matches!(created, Ok(true));
                self.answer(from, token, created.map(drop), new);
                if new {
                    // It begins with the next view, above all numbers that were ever used.
                    self.begin_round(desk);
                }
            }
            GroupMessage::Delete { view, token, pool } if Some(view) == current => {
                let known = self.shelves.kept.pools.remove(&pool);
                if let Some(known) = &known {
                    self.shelves.kept.generation += 1;
                    self.out.keep = true;
                    desk.close(&pool, Some(&known.definition.slots));
                }
                let deleted = known.map(drop).ok_or_else(|| no_pool(&pool));
                self.answer(from, token, deleted, false);
            }
            _ => {}
        }
    }

    /// Answers one of this process's own requests; later, if the next view completes it.
    fn answer(&mut self, from: Process, token: u64, done: Result<(), Refusal>, later: bool) {
        if from != self.own {
            return;
        }
        match (self.asked.get_mut(&token), later) {
            (Some(asked), true) => *asked = true,
            _ => {
                self.asked.remove(&token);
                self.out.answers.push((token, done));
            }
        }
    }

    /// Records a pool. Returns whether it is new.
    fn created(
        &mut self,
        pool: &Name,
        definition: PoolDefinition,
        desk: &mut Desk,
    ) -> Result<bool, Refusal> {
        let kept = &mut self.shelves.kept;
        match kept.pools.get(pool) {
            Some(known) if known.definition == definition => return Ok(false),
            Some(_) => return Err(other_definition(pool)),
            None => {}
        }
        kept.generation += 1;
        let created = kept.generation;
        let new = KeptPool {
            created,
            definition,
        };
        kept.pools.insert(pool.clone(), new.clone());
        self.out.keep = true;
        self.open(pool, &new, desk);
        Ok(true)
    }

    fn hear_letter(
        &mut self,
        now: u64,
        from: Process,
        (name, created): (&Name, u64),
        letter: Letter,
        desk: &mut Desk,
    ) {
        let (Some(from), Some(shelf)) = (self.place(from), self.shelves.shelf(name)) else {
            return;
        };
        let slots = shelf.definition.slots.count();
        if shelf.created.0 != created || !is_sound(&letter.message, slots, self.nodes.len()) {
            return;
        }
        let donated = match &letter.message {
            SlotsMessage::Donate { slots, .. } => slots.to_vec(),
            _ => Vec::new(),
        };
        let delivery = Delivery::Letter { from, letter };
        desk.deliver(now, shelf, name, &delivery);
        // Each donation raises numbers by one, so the ceiling stays far enough above them.
        let table = desk.sharer(name).map(Sharer::table);
        let numbers = donated.iter().filter_map(|slot| table?.get(*slot));
        let highest = numbers.map(|owned| owned.number).max().unwrap_or(0);
        self.out.keep |= self.shelves.kept.raise(highest);
    }

    fn place(&self, process: Process) -> Option<SharerId> {
        let at = self.nodes.binary_search(&process.node).ok()?;
        Some(SharerId(at as u32))
    }

    fn places<'a>(&self, processes: impl Iterator<Item = &'a Process>) -> NodeSet {
        let places = processes.filter_map(|process| self.place(*process));
        places.map(|place| place.index()).collect()
    }

    /// A change between two views, in which no letter can be sent.
    fn turn(&mut self, now: u64, members: NodeSet, change: Turn, desk: &mut Desk) {
        let group = Group { view: 0, members };
        let delivery = Delivery::View { group, change };
        for name in self.shelves.kept.pools.keys() {
            if let Some(shelf) = self.shelves.shelf(name) {
                let shelf = Shelf {
                    view: None,
                    ..shelf
                };
                desk.deliver(now, shelf, name, &delivery);
            }
        }
    }

    fn open(&self, name: &Name, pool: &KeptPool, desk: &mut Desk) {
        let plan = pool.definition.group_plan(self.nodes.len());
        let sharer = self.place(self.own).map(|place| Sharer::new(place, &plan));
        desk.set_up(name, pool.created, plan, sharer);
    }

    /// Who owns what of a pool, as this process records it; `None` before the pool has begun.
    pub fn state<'a>(&self, name: &str, desk: &'a Desk) -> Option<&'a SlotsState> {
        let sharer = desk.sharer(name)?;
        sharer.is_initialised().then(|| sharer.state())
    }
}

fn other_definition(pool: &Name) -> Refusal {
    let why = format!("pool {pool} exists with another definition; delete it first");
    Refusal::new(Word::Busy, why)
}

/// `node 2 is`, `nodes 2, 3 are`.
pub(super) fn listed(nodes: &[u32]) -> String {
    let words: Vec<String> = nodes.iter().map(u32::to_string).collect();
    match nodes {
        [_] => format!("node {} is", words[0]),
        _ => format!("nodes {} are", words.join(", ")),
    }
}
