//! Total order by a sequencer: a message goes to its group, node 0 says in which order messages are delivered.
//!
//! Source: the total order of coordination and agreement §4.5; the method is Coulouris et al., chapter 15, as that spec's
//! references name it. Node 0 orders the messages of all groups, also of those that it is not in, and multicasts its word in FIFO
//! order; so there is one order over all groups. Everything stops with node 0.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::basic::fellows;
use super::fifo::OverFifo;
use super::isis::in_total_order;
use super::layer::{Carry, Config, Content, Delivered, Layer, Wire, stand};
use super::{Cast, Group, Multicast, Over, OverBasic, OverNack, OverReliable};
use crate::{
    Algorithm, Channels, Claim, Cost, Message, NodeId, Profile, Range, SetupError, Telling, Timer,
};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "sequencer",
        title: "Total order by a sequencer",
        source: "coordination and agreement §4.5; Coulouris et al., chapter 15",
        channels: Channels::AnyOrder,
        claims: &[Claim::Safety, Claim::DeadlockFreedom],
        costs: &[Cost::messages(
            "2(|g|−1) over basic, and 2 more for a group without the sequencer",
            |setup| {
                let sends = match setup.over {
                    Over::Basic | Over::Nack => 2 * fellows(setup),
                    Over::Reliable => 2 * fellows(setup) * (fellows(setup) + 1),
                };
                match (setup.over, setup.groups.unwrap_or(1)) {
                    (Over::Nack, _) => Range::new(sends, f64::INFINITY),
                    (Over::Basic, 1) => Range::exactly(sends),
                    (Over::Basic, _) => Range::new(sends, sends + 2),
                    (Over::Reliable, 1) => Range::exactly(sends),
                    (Over::Reliable, _) => Range::new(sends, sends + 2 + fellows(setup)),
                }
            },
        )],
        telling: Telling {
            nodes: 2,
            entries: 1,
        },
        ..Profile::PLAIN
    },
    machine: |setup| match setup.over {
        Over::Basic => stand::<Sequencer<Cast, OverFifo<OverBasic>>>(
            setup,
            in_total_order(OverBasic::PROMISES),
            None,
        ),
        Over::Reliable => stand::<Sequencer<Cast, OverFifo<OverReliable>>>(
            setup,
            in_total_order(OverReliable::PROMISES),
            None,
        ),
        // Members answer each other only, so node 0 would never know what those of a group that it is not in have.
        Over::Nack if setup.groups.is_some_and(|groups| groups > 1) => Err(SetupError(
            "over nack it can have 1 group: the sequencer must be a member of every group".into(),
        )),
        Over::Nack => stand::<Sequencer<Cast, OverFifo<OverNack>>>(
            setup,
            in_total_order(OverNack::PROMISES),
            None,
        ),
    },
};

const SEQUENCER: NodeId = NodeId(0);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Sequencer<C: Content, K: Carry> {
    id: NodeId,
    layer: K::Layer<Ordered<C>>,
    /// How many messages it has multicast.
    number: u64,
    /// What has arrived and is not delivered, by sender and number.
    arrived: BTreeMap<(NodeId, u64), (Group, C)>,
    /// What is to be delivered next.
    order: VecDeque<(NodeId, u64)>,
}

/// What the layer below carries.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Ordered<C> {
    Message { number: u64, content: C },
    Next { sender: NodeId, number: u64 },
}

impl<C: fmt::Debug> fmt::Debug for Ordered<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ordered::Message { content, .. } => content.fmt(f),
            Ordered::Next { sender, number } => write!(f, "p{sender}#{number}"),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Sequencing<M> {
    Message(M),
    /// To a sequencer outside of the group: the message with this number wants its place.
    Ask(Group, u64),
    Order(M),
}

impl<M: Message> Message for Sequencing<M> {}

type Below<C, K> = <<K as Carry>::Layer<Ordered<C>> as Layer<Ordered<C>>>::Message;

impl<C: Content, K: Carry> Layer<C> for Sequencer<C, K> {
    type Message = Sequencing<Below<C, K>>;

    fn new(id: NodeId, config: &Config) -> Self {
        Sequencer {
            id,
            layer: Layer::new(id, config),
            number: 0,
            arrived: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }

    fn multicast(
        &mut self,
        group: Group,
        content: C,
        config: &Config,
        out: &mut Wire<Self::Message, C>,
    ) {
        self.number += 1;
        let number = self.number;
        let mut below = Wire::new();
        let message = Ordered::Message { number, content };
        self.layer.multicast(group, message, config, &mut below);
        self.lift(below, config, out);
        if !config.groups.has(group, SEQUENCER) {
            out.send(SEQUENCER, Sequencing::Ask(group, number));
        }
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
            Sequencing::Message(message) | Sequencing::Order(message) => {
                self.layer.receive(from, message, config, &mut below);
            }
            Sequencing::Ask(group, number)
                if self.id == SEQUENCER && config.groups.has(group, from) =>
            {
                let next = Ordered::Next {
                    sender: from,
                    number,
                };
                self.layer.multicast(group, next, config, &mut below);
            }
            Sequencing::Ask(..) => {}
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
            Sequencing::Message(message) => match K::Layer::content(message)? {
                Ordered::Message { content, .. } => Some(content),
                Ordered::Next { .. } => None,
            },
            Sequencing::Ask(..) | Sequencing::Order(_) => None,
        }
    }
}

type OnWire<C, K> = Wire<Sequencing<Below<C, K>>, C>;

impl<C: Content, K: Carry> Sequencer<C, K> {
    fn lift(
        &mut self,
        below: Wire<Below<C, K>, Ordered<C>>,
        config: &Config,
        out: &mut OnWire<C, K>,
    ) {
        let wrap = |message| match K::Layer::content(&message) {
            Some(Ordered::Next { .. }) => Sequencing::Order(message),
            _ => Sequencing::Message(message),
        };
        out.lift(below, wrap, |delivered, out| {
            self.take(delivered, config, out);
        });
    }

    fn take(&mut self, delivered: Delivered<Ordered<C>>, config: &Config, out: &mut OnWire<C, K>) {
        let Delivered { sender, group, .. } = delivered;
        match delivered.content {
            Ordered::Message { number, content } => {
                self.arrived.insert((sender, number), (group, content));
                if self.id == SEQUENCER {
                    let mut below = Wire::new();
                    let next = Ordered::Next { sender, number };
                    self.layer.multicast(group, next, config, &mut below);
                    self.lift(below, config, out);
                }
            }
            Ordered::Next {
                sender: first,
                number,
            } if sender == SEQUENCER => {
                self.order.push_back((first, number));
            }
            Ordered::Next { .. } => {}
        }
        while let Some(next) = self.order.front()
            && let Some((group, content)) = self.arrived.remove(next)
        {
            let sender = next.0;
            self.order.pop_front();
            out.deliver(sender, group, content);
        }
    }
}
