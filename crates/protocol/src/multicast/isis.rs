//! ISIS, Birman and Joseph 1987: every member proposes a number, the sender agrees on the largest, and messages are delivered
//! in the order of the agreed numbers.
//!
//! Source: coordination and agreement §4.8. Equal numbers are told apart by sender and sequence; the printed algorithm says
//! nothing of them. A node has one pair of counters and one queue for all its groups, so the numbers give one order
//! over all groups, with no circle. A crash stops everybody behind the message that it leaves without a number; no
//! two deliveries ever differ in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::basic::fellows;
use super::layer::{Carry, Config, Content, Delivered, Flaw, Layer, Wire, over};
use super::{Cast, Group, Multicast, Over, Promises};
use crate::{
    Algorithm, Channels, Claim, Cost, Machine, Message, NodeId, Profile, Range, Setup, SetupError,
    Telling, Timer,
};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "isis",
        title: "ISIS: total order by agreement, Birman and Joseph 1987",
        source: "coordination and agreement §4.8",
        channels: Channels::AnyOrder,
        claims: &[Claim::Safety, Claim::DeadlockFreedom],
        costs: &[
            Cost::messages("3(|g|−1) over basic", |setup| {
                carrying(setup, |fellows, carried| fellows + 2 * carried)
            }),
            Cost::entry_delay("2", |setup| {
                Range::exactly(if fellows(setup) > 0 { 2 } else { 0 })
            }),
        ],
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        ..Profile::PLAIN
    },
    machine: |setup| machine(setup, None),
};

pub(super) fn machine(
    setup: &Setup,
    flaw: Option<Flaw>,
) -> Result<Box<dyn Machine<Multicast>>, SetupError> {
    over!(setup, Isis, in_total_order, flaw)
}

pub(super) fn in_total_order(below: Promises) -> Promises {
    Promises {
        total: true,
        ..below
    }
}

/// What a multicast costs, by the other members and by what the layer below sends for one of its own.
pub(super) fn carrying(setup: &Setup, cost: fn(u32, u32) -> u32) -> Range {
    let fellows = fellows(setup);
    match setup.over {
        Over::Basic => Range::exactly(cost(fellows, fellows)),
        Over::Reliable => Range::exactly(cost(fellows, fellows * (fellows + 1))),
        Over::Nack => Range::new(cost(fellows, fellows), f64::INFINITY),
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Isis<C: Content, K: Carry> {
    id: NodeId,
    layer: K::Layer<Agreed<C>>,
    /// How many messages it has multicast.
    sequence: u64,
    /// A: the largest agreed number.
    agreed: u64,
    /// P: the largest number that it has proposed.
    proposed: u64,
    /// What has arrived and is not delivered, in the order of arrival.
    queue: Vec<Queued<C>>,
    /// Its own messages that still lack proposals, by sequence.
    polls: BTreeMap<u64, Poll>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Queued<C> {
    /// Proposed here, then agreed.
    number: u64,
    is_final: bool,
    sender: NodeId,
    sequence: u64,
    group: Group,
    content: C,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Poll {
    group: Group,
    proposers: BTreeSet<NodeId>,
    largest: u64,
}

/// What the layer below carries.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Agreed<C> {
    Message { sequence: u64, content: C },
    Number { sequence: u64, agreed: u64 },
}

impl<C: fmt::Debug> fmt::Debug for Agreed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Agreed::Message { content, .. } => content.fmt(f),
            Agreed::Number { sequence, agreed } => write!(f, "#{sequence}={agreed}"),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Polling<M> {
    Message(M),
    /// To the sender of the message with this sequence: a number for it.
    Propose(u64, u64),
    Agree(M),
}

impl<M: Message> Message for Polling<M> {}

type Below<C, K> = <<K as Carry>::Layer<Agreed<C>> as Layer<Agreed<C>>>::Message;

impl<C: Content, K: Carry> Layer<C> for Isis<C, K> {
    type Message = Polling<Below<C, K>>;

    fn new(id: NodeId, config: &Config) -> Self {
        Isis {
            id,
            layer: Layer::new(id, config),
            sequence: 0,
            agreed: 0,
            proposed: 0,
            queue: Vec::new(),
            polls: BTreeMap::new(),
        }
    }

    fn multicast(
        &mut self,
        group: Group,
        content: C,
        config: &Config,
        out: &mut Wire<Self::Message, C>,
    ) {
        self.sequence += 1;
        let poll = Poll {
            group,
            proposers: BTreeSet::new(),
            largest: 0,
        };
        self.polls.insert(self.sequence, poll);
        let message = Agreed::Message {
            sequence: self.sequence,
            content,
        };
        let mut below = Wire::new();
        self.layer.multicast(group, message, config, &mut below);
        self.lift(below, config, out);
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        config: &Config,
        out: &mut Wire<Self::Message, C>,
    ) {
        let mut below = Wire::new();
        match message {
            Polling::Message(message) | Polling::Agree(message) => {
                self.layer.receive(from, message, config, &mut below);
            }
            Polling::Propose(sequence, number) => self.count(from, sequence, number, config, out),
        }
        self.lift(below, config, out);
    }

    fn fire(&mut self, timer: Timer, config: &Config, out: &mut Wire<Self::Message, C>) {
        let mut below = Wire::new();
        self.layer.fire(timer, config, &mut below);
        self.lift(below, config, out);
    }

    fn content(message: &Self::Message) -> Option<&C> {
        match message {
            Polling::Message(message) => match K::Layer::content(message)? {
                Agreed::Message { content, .. } => Some(content),
                Agreed::Number { .. } => None,
            },
            Polling::Propose(..) | Polling::Agree(_) => None,
        }
    }
}

type OnWire<C, K> = Wire<Polling<Below<C, K>>, C>;

impl<C: Content, K: Carry> Isis<C, K> {
    fn lift(
        &mut self,
        below: Wire<Below<C, K>, Agreed<C>>,
        config: &Config,
        out: &mut OnWire<C, K>,
    ) {
        let wrap = |message| match K::Layer::content(&message) {
            Some(Agreed::Number { .. }) => Polling::Agree(message),
            _ => Polling::Message(message),
        };
        out.lift(below, wrap, |delivered, out| {
            self.take(delivered, config, out);
        });
    }

    fn take(&mut self, delivered: Delivered<Agreed<C>>, config: &Config, out: &mut OnWire<C, K>) {
        let Delivered { sender, group, .. } = delivered;
        match delivered.content {
            Agreed::Message { sequence, content } => {
                self.proposed = self.agreed.max(self.proposed) + 1;
                let number = self.proposed;
                self.queue.push(Queued {
                    number,
                    is_final: false,
                    sender,
                    sequence,
                    group,
                    content,
                });
                match sender == self.id {
                    true => self.count(sender, sequence, number, config, out),
                    false => out.send(sender, Polling::Propose(sequence, number)),
                }
            }
            Agreed::Number { sequence, agreed } => {
                let names = |queued: &&mut Queued<C>| {
                    (queued.sender, queued.sequence) == (sender, sequence)
                };
                if let Some(queued) = self.queue.iter_mut().find(names) {
                    self.agreed = self.agreed.max(agreed);
                    queued.number = agreed;
                    queued.is_final = true;
                }
                self.deliver(config, out);
            }
        }
    }

    /// A proposal for a message of its own.
    fn count(
        &mut self,
        from: NodeId,
        sequence: u64,
        number: u64,
        config: &Config,
        out: &mut OnWire<C, K>,
    ) {
        let Some(poll) = self.polls.get_mut(&sequence) else {
            return;
        };
        poll.proposers.insert(from);
        poll.largest = poll.largest.max(number);
        if !config
            .groups
            .members(poll.group)
            .all(|member| poll.proposers.contains(&member))
        {
            return;
        }
        let (group, agreed) = (poll.group, poll.largest);
        self.polls.remove(&sequence);
        let mut below = Wire::new();
        let number = Agreed::Number { sequence, agreed };
        self.layer.multicast(group, number, config, &mut below);
        self.lift(below, config, out);
    }

    /// Delivers from the head, as long as its number is final.
    fn deliver(&mut self, config: &Config, out: &mut OnWire<C, K>) {
        let by_arrival = config.flaw == Some(Flaw::TiesByArrival);
        let key = |(place, queued): &(usize, &Queued<C>)| match by_arrival {
            true => (queued.number, NodeId(0), *place as u64),
            false => (queued.number, queued.sender, queued.sequence),
        };
        let head = |queue: &[Queued<C>]| {
            let (place, queued) = queue.iter().enumerate().min_by_key(key)?;
            queued.is_final.then_some(place)
        };
        while let Some(place) = head(&self.queue) {
            let queued = self.queue.remove(place);
            out.deliver(queued.sender, queued.group, queued.content);
        }
    }
}
