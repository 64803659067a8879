//! Deletes a gate whose ownership an algorithm moves. Its owner must know that nobody is inside or waits on any node. First
//! it asks the other nodes, so that the deletion of a gate in use is refused and nothing changes. If nobody uses the gate,
//! the owner calls it in by another number, under which all nodes report; only then is it sure.

use std::collections::BTreeMap;

use super::frame::BranchWord;
use super::{Estate, Out, Peer};
use crate::error::{Refusal, Word};
use crate::name::Name;
use crate::ownership::{Number, Shard};
use crate::replicated::Replicated;

/// How long a deletion is remembered if it is not asked for again, in milliseconds. Until then no instance begins of a gate
/// that was called in.
const RECALL_MS: u64 = 2_000;

/// Part of the refusal of a change to a gate that must first be called in from the other nodes.
pub const RECALLED: &str = "is called in from the other nodes";

/// The gates of this node that are being deleted.
#[derive(Debug, Default)]
pub(super) struct Recalls {
    /// Gates whose owner has asked the other nodes.
    polls: BTreeMap<Name, Poll>,
    /// Gates that are called in, and until when no instance of them begins.
    called: BTreeMap<Name, u64>,
}

#[derive(Debug)]
struct Poll {
    /// The instance.
    since: Number,
    until: u64,
    /// Nodes that have not answered.
    left: Vec<Peer>,
    /// A node where somebody is inside or waits.
    used: Option<Peer>,
}

impl Recalls {
    /// Whether a gate is called in.
    pub(super) fn has(&self, gate: &Name) -> bool {
        self.called.contains_key(gate)
    }

    /// The deletion is on its way through the log, or was given up.
    pub(super) fn over(&mut self, gate: &Name) {
        self.polls.remove(gate);
        self.called.remove(gate);
    }

    /// A node has said whether the gate is used there.
    pub(super) fn heard(&mut self, gate: &Name, from: Peer, used: bool) {
        if let Some(poll) = self.polls.get_mut(gate) {
            poll.left.retain(|peer| *peer != from);
            poll.used = poll.used.or(used.then_some(from));
        }
    }
}

impl Estate {
    /// Goes on with the deletion of a gate that nobody uses here: asks the other nodes, or calls the gate in if none of them
    /// uses it. Returns the refusal that the change gets meanwhile.
    pub(super) fn recall(&mut self, replicated: &Replicated, gate: &Name) -> Refusal {
        let called_in = Refusal::new(
            Word::Unavailable,
            format!("gate {gate} {RECALLED}; try again in a moment"),
        );
        let Some(since) = self
            .instance(gate)
            .filter(|_| !self.spread.recalls.has(gate))
        else {
            return called_in;
        };
        let polls = &mut self.spread.recalls.polls;
        match polls.get(gate).filter(|poll| poll.since == since) {
            Some(Poll { used: Some(at), .. }) => {
                let refusal = format!(
                    "gate {gate} has somebody inside or waiting at node {}; it can be deleted when it is idle",
                    at.0
                );
                polls.remove(gate);
                return Refusal::new(Word::Busy, refusal);
            }
            Some(poll) if poll.left.is_empty() => {
                polls.remove(gate);
                let until = self.now + RECALL_MS;
                self.spread.recalls.called.insert(gate.clone(), until);
                self.renew(replicated, Shard::of(gate));
            }
            Some(_) => {}
            None => {
                let others = self.members.iter().filter(|peer| **peer != self.own);
                let left: Vec<Peer> = others.copied().collect();
                for peer in left.clone() {
                    self.send_branch(replicated, peer, gate, BranchWord::AskUse);
                }
                let poll = Poll {
                    since,
                    until: self.now + RECALL_MS,
                    left,
                    used: None,
                };
                self.spread.recalls.polls.insert(gate.clone(), poll);
            }
        }
        called_in
    }

    /// Whether anybody is inside a gate or waits for it in the books here.
    pub(super) fn is_used_here(&self, gate: &Name) -> bool {
        let census = self.local.census(gate).unwrap_or_default();
        let waiting = census.waiting.iter().any(|waiting| *waiting > 0);
        census.inside > 0 || waiting || !self.table.parked_at(gate).is_empty()
    }

    /// Forgets deletions that nobody asks for any more, and begins the instances of the gates that were called in for them.
    pub(super) fn end_recalls(&mut self, replicated: &Replicated, out: &mut Out) {
        let now = self.now;
        let Recalls { polls, called } = &mut self.spread.recalls;
        polls.retain(|_, poll| poll.until > now);
        let over = called.iter().filter(|(_, until)| **until <= now);
        let over: Vec<Name> = over.map(|(gate, _)| gate.clone()).collect();
        for gate in over {
            self.spread.recalls.over(&gate);
            self.begin_instance(replicated, &gate, out);
        }
    }

    pub(super) fn next_recall(&self) -> Option<u64> {
        let Recalls { polls, called } = &self.spread.recalls;
        let due = !self.spread.proposals.is_empty();
        let polls = polls.values().map(|poll| poll.until);
        let times = polls.chain(called.values().copied());
        times.chain(due.then_some(self.now)).min()
    }
}
