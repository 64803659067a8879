//! OF-multicast: what one sender multicasts is delivered in its order; what comes early is held back.
//!
//! Source: coordination and agreement §4.6, numbers from 1. With several groups a message names how many its sender has sent
//! to each group, so the order holds over all groups: a member waits for what its sender sent before to any group that
//! the member is in. With one group that is the spec's number.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::basic::{fellows, others};
use super::layer::{Carry, Config, Content, Delivered, Flaw, Layer, Wire, over};
use super::{Cast, Group, Multicast, Over, Promises};
use crate::{
    Algorithm, Channels, Claim, Cost, Faults, Machine, NodeId, Profile, Range, Setup, SetupError,
    Telling, Timer,
};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "fifo-multicast",
        title: "FIFO multicast",
        source: "coordination and agreement §4.6",
        channels: Channels::AnyOrder,
        survives_crashes: true,
        tolerates: |setup| carried(setup, Faults::crashes(others(setup))),
        claims: &[Claim::Safety, Claim::DeadlockFreedom],
        costs: &[Cost::messages(
            "|g|−1 over basic, |g|(|g|−1) over reliable",
            carrying,
        )],
        telling: Telling {
            nodes: 2,
            entries: 2,
        },
        ..Profile::PLAIN
    },
    machine: |setup| machine(setup, None),
};

pub(super) fn machine(
    setup: &Setup,
    flaw: Option<Flaw>,
) -> Result<Box<dyn Machine<Multicast>>, SetupError> {
    let promises = |below| Promises {
        fifo: true,
        ..below
    };
    over!(setup, Fifo, promises, flaw)
}

/// What one multicast costs by the layer below. Empty messages come with no bound.
pub(super) fn carrying(setup: &Setup) -> Range {
    let fellows = fellows(setup);
    match setup.over {
        Over::Basic => Range::exactly(fellows),
        Over::Reliable => Range::exactly(fellows * (fellows + 1)),
        Over::Nack => Range::new(fellows, f64::INFINITY),
    }
}

/// What is stood, where these faults are stood over basic multicast. With several groups, a sender that crashes can take
/// along a message that a member of two groups must deliver before the next one, which others deliver at once.
pub(super) fn carried(setup: &Setup, over_basic: Faults) -> Faults {
    let below = match setup.over {
        Over::Basic => return over_basic,
        Over::Reliable => Faults::crashes(others(setup)),
        Over::Nack => (super::nack::ALGORITHM.profile.tolerates)(setup),
    };
    match setup.groups {
        None | Some(1) => below,
        Some(_) => Faults {
            crashes: 0,
            ..below
        },
    }
}

/// FIFO order over something.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct OverFifo<K>(K);

impl<K: Carry> Carry for OverFifo<K> {
    type Layer<C: Content> = Fifo<C, K>;
    const PROMISES: Promises = Promises {
        fifo: true,
        ..K::PROMISES
    };
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Fifo<C: Content, K: Carry> {
    id: NodeId,
    layer: K::Layer<Numbered<C>>,
    /// S: how many it has sent, by group.
    sent: Vec<u64>,
    /// R: how many have been delivered, by sender and group.
    delivered: Vec<Vec<u64>>,
    held: Vec<Delivered<Numbered<C>>>,
}

/// A message with S: how many its sender has sent to each group, itself counted.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Numbered<C> {
    sent: Vec<u64>,
    content: C,
}

impl<C: fmt::Debug> fmt::Debug for Numbered<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.content, self.sent)
    }
}

type Below<C, K> = <<K as Carry>::Layer<Numbered<C>> as Layer<Numbered<C>>>::Message;

impl<C: Content, K: Carry> Layer<C> for Fifo<C, K> {
    type Message = Below<C, K>;

    fn new(id: NodeId, config: &Config) -> Self {
        let groups = config.groups.count();
        Fifo {
            id,
            layer: Layer::new(id, config),
            sent: vec![0; groups],
            delivered: vec![vec![0; groups]; config.groups.nodes()],
            held: Vec::new(),
        }
    }

    fn multicast(
        &mut self,
        group: Group,
        content: C,
        config: &Config,
        out: &mut Wire<Below<C, K>, C>,
    ) {
        self.sent[group.index()] += 1;
        let numbered = Numbered {
            sent: self.sent.clone(),
            content,
        };
        let mut below = Wire::new();
        self.layer.multicast(group, numbered, config, &mut below);
        self.lift(below, config, out);
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Below<C, K>,
        config: &Config,
        out: &mut Wire<Below<C, K>, C>,
    ) {
        let mut below = Wire::new();
        self.layer.receive(from, message, config, &mut below);
        self.lift(below, config, out);
    }

    fn fire(&mut self, timer: Timer, config: &Config, out: &mut Wire<Below<C, K>, C>) {
        let mut below = Wire::new();
        self.layer.fire(timer, config, &mut below);
        self.lift(below, config, out);
    }

    fn content(message: &Below<C, K>) -> Option<&C> {
        K::Layer::content(message).map(|numbered| &numbered.content)
    }
}

impl<C: Content, K: Carry> Fifo<C, K> {
    fn lift(
        &mut self,
        below: Wire<Below<C, K>, Numbered<C>>,
        config: &Config,
        out: &mut Wire<Below<C, K>, C>,
    ) {
        out.lift(
            below,
            |message| message,
            |delivered, out| {
                if delivered.content.sent.len() == config.groups.count() {
                    self.held.push(delivered);
                    self.deliver(config, out);
                }
            },
        );
    }

    fn deliver(&mut self, config: &Config, out: &mut Wire<Below<C, K>, C>) {
        while let Some(place) = self
            .held
            .iter()
            .position(|held| self.turn(held, config) != Turn::Early)
        {
            let held = self.held.remove(place);
            if self.turn(&held, config) == Turn::Next {
                let number = held.content.sent[held.group.index()];
                self.delivered[held.sender.index()][held.group.index()] = number;
                out.deliver(held.sender, held.group, held.content.content);
            }
        }
    }

    fn turn(&self, held: &Delivered<Numbered<C>>, config: &Config) -> Turn {
        let (group, sent) = (held.group.index(), &held.content.sent);
        let delivered = &self.delivered[held.sender.index()];
        if sent[group] <= delivered[group] {
            return Turn::Old;
        }
        let mine = config.groups.of(self.id).map(Group::index);
        let due = |other: usize| sent[other] - u64::from(other == group);
        let mut all = mine.map(|other| due(other) <= delivered[other]);
        match all.all(|there| there) || config.flaw == Some(Flaw::NoHoldBack) {
            true => Turn::Next,
            false => Turn::Early,
        }
    }
}

#[derive(PartialEq, Eq)]
enum Turn {
    Old,
    Next,
    Early,
}
