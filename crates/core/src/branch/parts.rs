//! The members of an instance that one node hosts: its own, and at the shard's owner also those that belong to no node.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};
use testigo_protocol::{
    Algorithm, Effects, Machine, Measure, Member, NodeId, Packet, PacketError, Problem,
    RecordAllowance, RecordHead, Recording, Setup,
};

use super::Doings;
use crate::gate::{Travels, Using};

/// What an instance is: the same at all of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The algorithm and the burst.
    pub travels: Travels,
    /// How often writers may overtake a reader, where the algorithm counts that.
    pub overtakes: u32,
    /// How many nodes there are.
    pub nodes: usize,
}

impl Plan {
    /// The setup with which the laboratory would run it.
    pub fn setup(&self) -> Setup {
        let mut setup = Setup::new(self.nodes);
        if self.travels.using == Using::BoxOffice {
            setup.overtakes = Some(self.overtakes);
            setup.burst = Some(self.travels.burst);
        }
        setup
    }

    /// The message cost that the algorithm's paper publishes: the formula, and its range in this setup.
    pub fn published(&self) -> Option<(&'static str, (f64, f64))> {
        let name = self.travels.using.name();
        let setup = self.setup();
        let mutex = testigo_protocol::mutex::ALGORITHMS.iter();
        let mutex = mutex.map(|algorithm| &algorithm.profile);
        let readers = testigo_protocol::readers::ALGORITHMS.iter();
        let readers = readers.map(|algorithm| &algorithm.profile);
        let profile = mutex.chain(readers).find(|profile| profile.name == name)?;
        let mut costs = profile.costs.iter();
        let cost = costs.find(|cost| cost.measure == Measure::Messages)?;
        let range = (cost.range)(&setup);
        Some((cost.formula, (range.min, range.max)))
    }
}

/// A packet from one member to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parcel {
    /// The member that sends it.
    pub from: u32,
    /// The member that it is for.
    pub to: u32,
    /// The packet.
    pub packet: Vec<u8>,
}

/// What one node has counted since an instance began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Messages that this node has sent to others.
    pub messages: u64,
    /// How often a message let this node in.
    pub hand_overs: u64,
}

impl Counts {
    /// The sum of both.
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            messages: self.messages + other.messages,
            hand_overs: self.hand_overs + other.hand_overs,
        }
    }
}

/// What a member has told, and whether a message caused it.
pub(super) struct Told<T> {
    pub(super) tell: T,
}

pub(super) struct Parts<Q: Problem> {
    nodes: u32,
    own: u32,
    /// The node that hosts the members that belong to no node.
    owner: u32,
    hosted: Vec<Box<dyn Member<Q>>>,
    effects: Effects<Q, Packet>,
    pub(super) counts: Counts,
    /// The names of the members that belong to no node.
    extra: Vec<String>,
    pub(super) recorder: Recorder,
}

/// What is recorded of an instance here, by its caller's clock.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) now: u64,
    pub(super) recording: Option<Recording>,
}

/// The run that a recording belongs to.
pub(crate) struct RunName<'a> {
    /// The gate.
    pub(crate) gate: &'a str,
    /// The shard, and the number under which its owner became its owner.
    pub(crate) instance: (u64, u64),
    /// The names of the nodes, by their numbers in the instance.
    pub(crate) nodes: Vec<String>,
}

impl<Q: Problem> Parts<Q> {
    pub(super) fn new(
        algorithms: &[&Algorithm<Q>],
        plan: &Plan,
        own: u32,
        owner: u32,
    ) -> Option<Parts<Q>> {
        let name = plan.travels.using.name();
        let mut algorithms = algorithms.iter();
        let algorithm = algorithms.find(|algorithm| algorithm.profile.name == name)?;
        let setup = plan.setup();
        let machine: Box<dyn Machine<Q>> = (algorithm.machine)(&setup).ok()?;
        let nodes = plan.nodes as u32;
        let extra = nodes..machine.shape().nodes() as u32;
        let extra = extra.filter(|_| own == owner);
        let tag = algorithm.tag(&setup);
        let hosted = std::iter::once(own).chain(extra);
        let names = machine.shape().extra.clone();
        let hosted: Result<_, _> = hosted.map(|id| machine.member(NodeId(id), tag)).collect();
        Some(Parts {
            nodes,
            own,
            owner,
            hosted: hosted.ok()?,
            effects: Effects::default(),
            counts: Counts::default(),
            extra: names,
            recorder: Recorder::default(),
        })
    }

    /// Records every step from now on; call it before the first.
    pub(super) fn record(&mut self, plan: &Plan, run: RunName<'_>, allowance: &RecordAllowance) {
        let members = run.nodes.into_iter().chain(self.extra.iter().cloned());
        let (algorithm, setup) = (plan.travels.using.name(), plan.setup());
        let head = RecordHead::new(run.gate, algorithm, &setup, run.instance, members.collect());
        let recording = Recording::new(head, self.recorder.now, allowance);
        self.recorder.recording = Some(recording);
    }

    fn host_of(&self, member: u32) -> u32 {
        match member < self.nodes {
            true => member,
            false => self.owner,
        }
    }

    fn at(&self, member: u32) -> Option<usize> {
        let mut hosted = self.hosted.iter();
        hosted.position(|hosted| hosted.id().0 == member)
    }

    pub(super) fn start(&mut self, doings: &mut Doings) -> Vec<Told<Q::Tell>> {
        let mut told = Vec::new();
        for at in 0..self.hosted.len() {
            self.hosted[at].start(&mut self.effects);
            let id = self.hosted[at].id();
            if let Recorder {
                now,
                recording: Some(recording),
            } = &mut self.recorder
            {
                recording.started(*now, id, &self.effects);
            }
            self.settle(at, doings, &mut told);
        }
        told
    }

    pub(super) fn ask(&mut self, ask: Q::Ask, doings: &mut Doings) -> Vec<Told<Q::Tell>> {
        let mut told = Vec::new();
        self.hosted[0].ask(ask, &mut self.effects);
        let id = self.hosted[0].id();
        if let Recorder {
            now,
            recording: Some(recording),
        } = &mut self.recorder
        {
            recording.asked(*now, id, ask, &self.effects);
        }
        self.settle(0, doings, &mut told);
        told
    }

    pub(super) fn receive(
        &mut self,
        parcel: &Parcel,
        doings: &mut Doings,
    ) -> Result<Vec<Told<Q::Tell>>, PacketError> {
        let mut told = Vec::new();
        let from = NodeId(parcel.from);
        let Some(at) = self.at(parcel.to) else {
            let members = self.nodes as usize;
            return Err(PacketError::Stranger { from, members });
        };
        self.take(at, from, &parcel.packet)?;
        self.settle(at, doings, &mut told);
        Ok(told)
    }

    fn take(&mut self, at: usize, from: NodeId, packet: &[u8]) -> Result<(), PacketError> {
        self.hosted[at].receive(from, packet, &mut self.effects)?;
        let id = self.hosted[at].id();
        if let Recorder {
            now,
            recording: Some(recording),
        } = &mut self.recorder
        {
            recording.received(*now, id, from, packet, &self.effects);
        }
        Ok(())
    }

    /// Sends what a step has sent. Packets for another member of this node are delivered at once.
    fn settle(&mut self, at: usize, doings: &mut Doings, told: &mut Vec<Told<Q::Tell>>) {
        let mut own = VecDeque::new();
        self.take_effects(at, doings, told, &mut own);
        while let Some((from, to, packet)) = own.pop_front() {
            let at = self.at(to).expect("it is hosted here");
            let taken = self.take(at, NodeId(from), &packet);
            taken.expect("what this node has made itself can be read");
            self.take_effects(at, doings, told, &mut own);
        }
    }

    fn take_effects(
        &mut self,
        at: usize,
        doings: &mut Doings,
        told: &mut Vec<Told<Q::Tell>>,
        own: &mut VecDeque<(u32, u32, Packet)>,
    ) {
        let from = self.hosted[at].id().0;
        debug_assert!(
            self.effects.timers.is_empty(),
            "no algorithm here has timers"
        );
        if at == 0 {
            told.extend(self.effects.tells.drain(..).map(|tell| Told { tell }));
        }
        for (NodeId(to), packet) in std::mem::take(&mut self.effects.sends) {
            if self.host_of(to) == self.own {
                own.push_back((from, to, packet));
                continue;
            }
            self.counts.messages += 1;
            doings.parcels.push(Parcel { from, to, packet });
        }
    }

    /// The node that hosts a member.
    pub(super) fn node_of(&self, member: u32) -> u32 {
        self.host_of(member)
    }

    /// How many other nodes there are.
    pub(super) fn others(&self) -> u64 {
        u64::from(self.nodes) - 1
    }
}

impl<Q: Problem> fmt::Debug for Parts<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("own", &self.own)
            .field("nodes", &self.nodes)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
