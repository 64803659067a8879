//! Multi-Paxos: a log of decisions, and phase 1 once for all of them while the leader stays.
//!
//! Source: coordination and agreement §5.5.1 (Lamport, 1998). One PREPARE covers every slot from the first that the
//! leader does not know; promises return what was accepted there. The leader proposes that again, fills gaps with no-ops, and
//! then needs one round trip for each command. Other nodes send it their commands. Whoever waits too long for
//! its command makes itself the leader; a refused leader is one no more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ballot::{Ballot, Nodes, Votes, majority};
use super::paxos::{PAXOS, back_off, nodes};
use super::promises::{Decisions, Promises};
use super::user::{Agreement, Ask, Tell, User, Value};
use crate::{
    Algorithm, Experiment, Figure, Input, Machine, Message, NodeId, Output, Profile, Protocol,
    Range, Setup, SetupError, Shape, Timer, erase_for,
};

#[cfg(test)]
mod tests;

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "multi-paxos",
        title: "Multi-Paxos, 1998",
        source: "coordination and agreement §5.5.1; Lamport, 1998",
        figures: &[Figure {
            what: "messages of a decision that a stable leader proposes",
            formula: "(N-1) + N(N-1)",
            range: |setup| Range::exactly((setup.users * setup.users - 1) as f64),
            sizes: &[3, 4, 7],
            chosen: &[],
            experiment: Experiment::LoneEntryLeast,
        }],
        ..PAXOS
    },
    machine: |setup| machine(setup, None),
};

pub(super) fn machine(
    setup: &Setup,
    flaw: Option<Flaw>,
) -> Result<Box<dyn Machine<Agreement>>, SetupError> {
    let users = nodes(setup)?;
    let promises = Promises {
        decisions: Decisions::Log,
        proposers: setup.proposers.map_or(u32::MAX, |count| count as u32),
        ..Promises::CONSENSUS
    };
    let config = Config {
        nodes: users,
        delay_bound: setup.delay_bound,
        flaw,
    };
    Ok(erase_for::<MultiPaxos>(
        Shape::users(users),
        |user| User::new(user, users, promises),
        config,
    ))
}

#[derive(Debug)]
pub(super) struct Config {
    nodes: usize,
    delay_bound: u64,
    flaw: Option<Flaw>,
}

/// What is wrong with a specimen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// A new leader does not propose again what its promises report.
    ForgetsReports,
}

/// A place of the log.
type Slot = u32;

type Accepted = BTreeMap<Slot, (Ballot, Value)>;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct MultiPaxos {
    id: NodeId,
    /// Stable storage, with `accepted` and `round`.
    promised: Option<Ballot>,
    accepted: Accepted,
    /// The highest round that it has used or heard of.
    round: Option<u64>,
    role: Role,
    /// The command of its own user.
    pending: Option<Value>,
    tries: u64,
    /// Commands of others that came before it could propose them.
    queue: Vec<Value>,
    votes: BTreeMap<Slot, Votes>,
    chosen: BTreeMap<Slot, Value>,
    /// The first slot of which its user has not been told.
    applied: Slot,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Role {
    Follower,
    Preparing {
        ballot: Ballot,
        promises: Nodes,
        reported: Accepted,
    },
    Leading {
        ballot: Ballot,
        /// What it has proposed.
        proposed: BTreeMap<Slot, Value>,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Talk {
    /// A command, to the leader.
    Request(Value),
    /// For all slots from this one on.
    Prepare(Ballot, Slot),
    Promise(Ballot, Vec<(Slot, Ballot, Value)>),
    Accept(Ballot, Slot, Value),
    Accepted(Ballot, Slot, Value),
    /// The ballot is refused because of a promise to the other.
    Nack(Ballot, Ballot),
}

impl Message for Talk {}

impl Protocol for MultiPaxos {
    type Problem = Agreement;
    type Message = Talk;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        MultiPaxos {
            id,
            promised: None,
            accepted: BTreeMap::new(),
            round: None,
            role: Role::Follower,
            pending: None,
            tries: 0,
            queue: Vec::new(),
            votes: BTreeMap::new(),
            chosen: BTreeMap::new(),
            applied: 0,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Propose { value, .. }) => {
                self.pending = Some(value);
                self.tries = 0;
                self.wait(value, config, out);
                match self.leader() {
                    Some(leader) if leader != self.id => out.send(leader, Talk::Request(value)),
                    _ => self.command(value, config, out),
                }
            }
            Input::Timer(Timer(command)) => {
                let waits = self.pending.filter(|value| u64::from(value.0) == command);
                if let Some(value) = waits {
                    self.tries += 1;
                    self.prepare(config, out);
                    self.wait(value, config, out);
                }
            }
            Input::Message { from, message } => self.hear(from, message, config, out),
            Input::Start => {}
        }
    }

    fn restart(&self, id: NodeId, config: &Config) -> Self {
        MultiPaxos {
            promised: self.promised,
            accepted: self.accepted.clone(),
            // A number is never used twice.
            round: self.round,
            ..MultiPaxos::new(id, config)
        }
    }
}

impl MultiPaxos {
    /// Who leads, as far as this node knows: whom it promised last.
    fn leader(&self) -> Option<NodeId> {
        self.promised.map(|ballot| ballot.by)
    }

    fn wait(&self, value: Value, config: &Config, out: &mut Output<Self>) {
        let span = back_off(self.tries, config.delay_bound);
        out.after(span, Timer(u64::from(value.0)));
    }

    /// Proposes a command, or makes itself the leader in order to.
    fn command(&mut self, value: Value, config: &Config, out: &mut Output<Self>) {
        match self.role {
            Role::Follower => {
                self.queue.push(value);
                self.prepare(config, out);
            }
            Role::Preparing { .. } => self.queue.push(value),
            Role::Leading { .. } => self.propose(value, config, out),
        }
    }

    /// 1a, for every slot that this node does not know.
    fn prepare(&mut self, config: &Config, out: &mut Output<Self>) {
        let round = self.round.map_or(0, |round| round + 1);
        self.round = Some(round);
        let ballot = Ballot { round, by: self.id };
        self.role = Role::Preparing {
            ballot,
            promises: Nodes::default(),
            reported: BTreeMap::new(),
        };
        let prepare = Talk::Prepare(ballot, self.applied);
        out.send_all(NodeId::all(config.nodes), &prepare);
    }

    /// 2a, in the next free slot, unless the command has one already.
    fn propose(&mut self, value: Value, config: &Config, out: &mut Output<Self>) {
        let Role::Leading { ballot, proposed } = &mut self.role else {
            return;
        };
        let known = |log: &BTreeMap<Slot, Value>| log.values().rev().any(|other| *other == value);
        if known(proposed) || known(&self.chosen) {
            return;
        }
        let last = |log: &BTreeMap<Slot, Value>| log.last_key_value().map(|(slot, _)| *slot);
        let slot = last(proposed)
            .max(last(&self.chosen))
            .map_or(0, |last| last + 1);
        proposed.insert(slot, value);
        let accept = Talk::Accept(*ballot, slot, value);
        out.send_all(NodeId::all(config.nodes), &accept);
    }

    fn hear(&mut self, from: NodeId, message: Talk, config: &Config, out: &mut Output<Self>) {
        match message {
            Talk::Request(value) => match self.role {
                // Whoever sent it finds another leader when its time is over.
                Role::Follower => {}
                _ => self.command(value, config, out),
            },
            Talk::Prepare(ballot, first) => match self.promised {
                Some(promised) if promised >= ballot => {
                    out.send(from, Talk::Nack(ballot, promised));
                }
                _ => {
                    self.promise(ballot);
                    let accepted = self.accepted.range(first..);
                    let accepted = accepted.map(|(slot, (n, value))| (*slot, *n, *value));
                    out.send(from, Talk::Promise(ballot, accepted.collect()));
                }
            },
            Talk::Promise(ballot, accepted) => {
                self.promised_by(from, ballot, accepted, config, out);
            }
            Talk::Accept(ballot, slot, value) => match self.promised {
                Some(promised) if promised > ballot => out.send(from, Talk::Nack(ballot, promised)),
                _ => {
                    self.promise(ballot);
                    self.accepted.insert(slot, (ballot, value));
                    let accepted = Talk::Accepted(ballot, slot, value);
                    out.send_all(NodeId::all(config.nodes), &accepted);
                }
            },
            Talk::Accepted(ballot, slot, value) => {
                self.learn(from, ballot, slot, value, config, out);
            }
            Talk::Nack(refused, promised) => {
                self.round = self.round.max(Some(promised.round));
                let (Role::Preparing { ballot, .. } | Role::Leading { ballot, .. }) = self.role
                else {
                    return;
                };
                if ballot == refused {
                    self.resign();
                    // The new leader proposes it, if it leads already.
                    if let Some(value) = self.pending {
                        out.send(promised.by, Talk::Request(value));
                    }
                }
            }
        }
    }

    /// A higher ballot ends the reign of a lower one at this node, too.
    fn promise(&mut self, ballot: Ballot) {
        self.promised = Some(ballot);
        self.round = self.round.max(Some(ballot.round));
        let (Role::Preparing { ballot: own, .. } | Role::Leading { ballot: own, .. }) = self.role
        else {
            return;
        };
        if own < ballot {
            self.resign();
        }
    }

    fn resign(&mut self) {
        self.role = Role::Follower;
        self.queue.clear();
    }

    fn promised_by(
        &mut self,
        from: NodeId,
        n: Ballot,
        accepted: Vec<(Slot, Ballot, Value)>,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let Role::Preparing {
            ballot,
            promises,
            reported,
        } = &mut self.role
        else {
            return;
        };
        if *ballot != n {
            return;
        }
        promises.insert(from);
        for (slot, number, value) in accepted {
            let known = reported.entry(slot).or_insert((number, value));
            *known = (*known).max((number, value));
        }
        if promises.len() == majority(config.nodes) {
            let (ballot, reported) = (*ballot, std::mem::take(reported));
            self.lead(ballot, &reported, config, out);
        }
    }

    /// Proposes again what may have been chosen, with no-ops in between, then what waits.
    fn lead(
        &mut self,
        ballot: Ballot,
        reported: &Accepted,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let mut proposed = BTreeMap::new();
        let last = reported.last_key_value().map(|(slot, _)| *slot);
        for slot in (self.applied..).take_while(|slot| last.is_some_and(|last| *slot <= last)) {
            let known = self.chosen.get(&slot).copied();
            let may_be_chosen = match config.flaw {
                Some(Flaw::ForgetsReports) => None,
                None => reported.get(&slot).map(|(_, value)| *value),
            };
            if known.is_none() {
                let value = may_be_chosen.unwrap_or(Value::DEFAULT);
                proposed.insert(slot, value);
                out.send_all(
                    NodeId::all(config.nodes),
                    &Talk::Accept(ballot, slot, value),
                );
            }
        }
        self.role = Role::Leading { ballot, proposed };
        for value in std::mem::take(&mut self.queue)
            .into_iter()
            .chain(self.pending)
        {
            self.propose(value, config, out);
        }
    }

    fn learn(
        &mut self,
        from: NodeId,
        ballot: Ballot,
        slot: Slot,
        value: Value,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        if self.chosen.contains_key(&slot) {
            return;
        }
        let votes = self.votes.entry(slot).or_default();
        if votes.count(from, ballot, value) < majority(config.nodes) {
            return;
        }
        self.votes.remove(&slot);
        self.chosen.insert(slot, value);
        // In order, without gaps.
        while let Some(&value) = self.chosen.get(&self.applied) {
            let instance = self.applied;
            self.applied += 1;
            if self.pending == Some(value) {
                self.pending = None;
            }
            out.tell(Tell::Decided { instance, value });
        }
    }
}
