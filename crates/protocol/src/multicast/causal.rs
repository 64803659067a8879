//! OC-multicast: what happened before is delivered before, by vectors that count multicasts.
//!
//! Source: coordination and agreement §4.7. A node delivers its own message when it sends it and ignores its own copy: the
//! printed guard would hold it for ever. With several groups there is a vector for each, all of them travel with every
//! message, and a node remembers those of the groups that it is not in; so the order holds over all groups. With one
//! group that is the spec's vector.
//!
//! Over basic multicast a crash can cut a member off: who waits for a message that never comes holds back all that
//! follows from it. Over reliable multicast nobody waits in vain.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::fifo::{carried, carrying};
use super::layer::{Carry, Config, Content, Delivered, Flaw, Layer, Wire, over};
use super::{Cast, Group, Multicast, Promises};
use crate::{
    Algorithm, Channels, Claim, Cost, Faults, Machine, NodeId, Profile, Setup, SetupError, Telling,
    Timer,
};

pub(crate) const ALGORITHM: Algorithm<Multicast> = Algorithm {
    profile: Profile {
        name: "causal-multicast",
        title: "Causal multicast, by vectors",
        source: "coordination and agreement §4.7",
        channels: Channels::AnyOrder,
        tolerates: |setup| carried(setup, Faults::NONE),
        claims: &[Claim::Safety, Claim::DeadlockFreedom],
        costs: &[Cost::messages(
            "|g|−1 over basic, |g|(|g|−1) over reliable",
            carrying,
        )],
        telling: Telling {
            nodes: 3,
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
    let promises = |below| Promises {
        fifo: true,
        causal: true,
        ..below
    };
    over!(setup, Causal, promises, flaw)
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Causal<C: Content, K: Carry> {
    id: NodeId,
    layer: K::Layer<Stamped<C>>,
    /// V: how many multicasts of each node have been delivered, by group; in groups of others, how many happened before.
    v: Vectors,
    held: Vec<Delivered<Stamped<C>>>,
}

/// By group and sender.
type Vectors = Vec<Vec<u64>>;

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Stamped<C> {
    v: Vectors,
    content: C,
}

impl<C: fmt::Debug> fmt::Debug for Stamped<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.content)?;
        self.v.iter().try_for_each(|v| write!(f, " {v:?}"))
    }
}

type Below<C, K> = <<K as Carry>::Layer<Stamped<C>> as Layer<Stamped<C>>>::Message;

impl<C: Content, K: Carry> Layer<C> for Causal<C, K> {
    type Message = Below<C, K>;

    fn new(id: NodeId, config: &Config) -> Self {
        Causal {
            id,
            layer: Layer::new(id, config),
            v: vec![vec![0; config.groups.nodes()]; config.groups.count()],
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
        self.v[group.index()][self.id.index()] += 1;
        let stamped = Stamped {
            v: self.v.clone(),
            content: content.clone(),
        };
        let mut below = Wire::new();
        self.layer.multicast(group, stamped, config, &mut below);
        self.lift(below, config, out);
        if config.flaw != Some(Flaw::OwnCopyHeld) {
            out.deliver(self.id, group, content);
        }
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
        K::Layer::content(message).map(|stamped| &stamped.content)
    }
}

impl<C: Content, K: Carry> Causal<C, K> {
    fn lift(
        &mut self,
        below: Wire<Below<C, K>, Stamped<C>>,
        config: &Config,
        out: &mut Wire<Below<C, K>, C>,
    ) {
        let (groups, nodes) = (config.groups.count(), config.groups.nodes());
        out.lift(
            below,
            |message| message,
            |delivered, out| {
                let v = &delivered.content.v;
                let well_formed = v.len() == groups && v.iter().all(|v| v.len() == nodes);
                let own_copy =
                    delivered.sender == self.id && config.flaw != Some(Flaw::OwnCopyHeld);
                if well_formed && !own_copy {
                    self.held.push(delivered);
                    self.deliver(config, out);
                }
            },
        );
    }

    fn deliver(&mut self, config: &Config, out: &mut Wire<Below<C, K>, C>) {
        while let Some(place) = self.held.iter().position(|held| self.is_next(held, config)) {
            let held = self.held.remove(place);
            // In its own groups only the sender's place changes.
            for (mine, theirs) in self.v.iter_mut().zip(&held.content.v) {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    *mine = (*mine).max(*theirs);
                }
            }
            out.deliver(held.sender, held.group, held.content.content);
        }
        // A copy of what has been delivered will never be next.
        let v = &self.v;
        self.held.retain(|held| {
            let (group, sender) = (held.group.index(), held.sender.index());
            held.sender == self.id || held.content.v[group][sender] > v[group][sender]
        });
    }

    /// `V_j[j] = V_i[j] + 1`, and `V_j[k] ≤ V_i[k]` for all others, in every group that this node is in.
    fn is_next(&self, held: &Delivered<Stamped<C>>, config: &Config) -> bool {
        config.groups.of(self.id).all(|group| {
            let mine = self.v[group.index()].iter();
            let mut both = mine.zip(&held.content.v[group.index()]).enumerate();
            both.all(|(node, (mine, theirs))| {
                match (group, node) == (held.group, held.sender.index()) {
                    true => *theirs == mine + 1,
                    false => theirs <= mine,
                }
            })
        })
    }
}
