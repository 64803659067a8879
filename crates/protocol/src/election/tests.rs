//! Elections by hand: messages arrive in the order of sending, and timers fire when nothing is under way, the one
//! with the shortest span first.

use std::collections::VecDeque;

use super::{Ask, Election, Tell};
use crate::{Cluster, Effects, Machine, NodeId, Slot, Timer};

pub(super) struct Play {
    cluster: Box<dyn Cluster<Election>>,
    effects: Effects<Election>,
    under_way: VecDeque<(NodeId, NodeId, Slot)>,
    /// When each fires.
    timers: Vec<(u64, NodeId, Timer)>,
    now: u64,
    down: Vec<bool>,
    elected: Vec<Option<NodeId>>,
}

impl Play {
    pub(super) fn new(machine: &dyn Machine<Election>, down: &[u32]) -> Play {
        let nodes = machine.shape().nodes();
        let mut play = Play {
            cluster: machine.cluster(),
            effects: Effects::default(),
            under_way: VecDeque::new(),
            timers: Vec::new(),
            now: 0,
            down: (0..nodes as u32).map(|node| down.contains(&node)).collect(),
            elected: vec![None; nodes],
        };
        for node in NodeId::all(nodes) {
            play.cluster.start(node, &mut play.effects);
            play.absorb(node);
        }
        play
    }

    pub(super) fn ask(&mut self, node: u32, ask: Ask) {
        self.cluster.ask(NodeId(node), ask, &mut self.effects);
        self.absorb(NodeId(node));
    }

    pub(super) fn crash(&mut self, node: u32) {
        self.down[node as usize] = true;
        self.timers.retain(|(_, other, _)| other.0 != node);
    }

    pub(super) fn deliver_all(&mut self) {
        while let Some((from, to, slot)) = self.under_way.pop_front() {
            if self.down[to.index()] {
                self.cluster.forget(slot);
                continue;
            }
            self.cluster.deliver(from, to, slot, &mut self.effects);
            self.absorb(to);
        }
    }

    /// Plays on until nothing more happens.
    pub(super) fn finish(&mut self) {
        self.deliver_all();
        while let Some(next) = self.timers.iter().min().copied() {
            self.timers.retain(|timer| *timer != next);
            let (at, node, timer) = next;
            self.now = at;
            self.cluster.fire(node, timer, &mut self.effects);
            self.absorb(node);
            self.deliver_all();
        }
    }

    fn absorb(&mut self, node: NodeId) {
        let sends = self.effects.sends.drain(..);
        self.under_way
            .extend(sends.map(|(to, slot)| (node, to, slot)));
        for (span, timer) in self.effects.timers.drain(..) {
            self.timers.push((self.now + span.start, node, timer));
        }
        for tell in self.effects.tells.drain(..) {
            self.elected[node.index()] = match tell {
                Tell::Participates => None,
                Tell::Elected(elected) => Some(elected),
            };
        }
    }

    /// Who is elected, as each node was last told.
    pub(super) fn elected(&self) -> &[Option<NodeId>] {
        &self.elected
    }

    /// How many messages of a kind were sent.
    pub(super) fn sent(&self, kind: &str) -> u64 {
        let kinds = self.cluster.traffic().kinds;
        kinds
            .iter()
            .find(|(label, _)| label == kind)
            .map_or(0, |(_, count)| *count)
    }
}
