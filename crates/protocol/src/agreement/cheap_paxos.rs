//! Cheap Paxos: f + 1 main acceptors do the work, and f auxiliary ones are asked only while a main one is silent.
//!
//! Source: coordination and agreement §5.5.2 (Lamport and Massa, 2004). It is Multi-Paxos with another set of acceptors for
//! each slot. The leader asks the main acceptors, and all of them are a quorum. If one does not answer in time, it completes the
//! pending slots with the auxiliary ones, and proposes to go on without the silent one. Such a change takes effect α slots after the slot
//! that it is chosen in, so that the acceptors of a slot are known before anything is proposed for it; the leader fills the slots
//! up to there with no-ops, and the auxiliary ones are idle again.
//!
//! Decided here: k main acceptors have k - 1 auxiliary ones, so that k of them are a majority. The last main acceptor is never
//! removed, and one that was removed stays out. What is chosen is on stable storage, and promises report it: the acceptors of
//! old slots may be gone. The first f + 1 nodes are main acceptors, the next f auxiliary; all nodes propose and learn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ballot::{Ballot, Nodes, Votes};
use super::paxos::{PAXOS, back_off, nodes};
use super::promises::{Decisions, Promises};
use super::user::{Agreement, Ask, Tell, User, Value};
use crate::{
    Algorithm, Experiment, Faults, Figure, Input, Machine, Message, NodeId, Output, Profile,
    Protocol, Range, Setup, SetupError, Shape, Timer, erase_for,
};

mod leader;
#[cfg(test)]
mod tests;

use leader::Reign;

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: CHEAP_PAXOS,
    machine: |setup| machine(setup, None),
};

pub(super) const CHEAP_PAXOS: Profile = Profile {
    name: "cheap-paxos",
    title: "Cheap Paxos, 2004",
    source: "coordination and agreement §5.5.2; Lamport and Massa, 2004",
    tolerates: |setup| Faults {
        crashes: faulty(setup) as u32,
        restarts: faulty(setup) as u32,
        ..Faults::NONE
    },
    figures: &[Figure {
        what: "messages of a decision that a main acceptor proposes as the stable leader",
        formula: "f + (f+1)(N-1)",
        range: |setup| {
            let f = faulty(setup);
            Range::exactly((f + (f + 1) * (setup.users - 1)) as f64)
        },
        sizes: &[3, 4, 7],
        chosen: &[],
        experiment: Experiment::LoneEntryLeast,
    }],
    telling_proposers: Some(1),
    telling_timeouts: Some(2),
    ..PAXOS
};

/// f: as chosen, or as many as the nodes stand.
fn faulty(setup: &Setup) -> usize {
    setup.faulty.unwrap_or(setup.users.saturating_sub(1) / 2)
}

pub(super) fn machine(
    setup: &Setup,
    flaw: Option<Flaw>,
) -> Result<Box<dyn Machine<Agreement>>, SetupError> {
    let users = nodes(setup)?;
    let f = faulty(setup);
    if 2 * f + 1 > users {
        return Err(SetupError(format!(
            "{users} nodes are too few for {f} crashes: it takes f + 1 main and f auxiliary acceptors; use --faulty from 0 to {}",
            (users - 1) / 2
        )));
    }
    let promises = Promises {
        decisions: Decisions::Log,
        proposers: setup.proposers.map_or(u32::MAX, |count| count as u32),
        ..Promises::CONSENSUS
    };
    let config = Config {
        nodes: users,
        f,
        delay_bound: setup.delay_bound,
        flaw,
    };
    Ok(erase_for::<CheapPaxos>(
        Shape::users(users),
        |user| User::new(user, users, promises),
        config,
    ))
}

#[derive(Debug)]
pub(super) struct Config {
    nodes: usize,
    f: usize,
    delay_bound: u64,
    flaw: Option<Flaw>,
}

impl Config {
    /// The main acceptors of the first slots.
    fn main(&self) -> Nodes {
        NodeId::all(self.f + 1).collect()
    }
}

/// What is wrong with a specimen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// A leader goes on without the acceptors that it suspects, and asks nobody.
    LowersAlone,
    /// A change counts from the next slot on. The search for its refutation is too large: a unit test plays the moves.
    #[cfg_attr(not(test), expect(dead_code, reason = "only a test plays it"))]
    AtOnce,
}

/// A place of the log.
type Slot = u32;

/// α: the acceptors of a slot hang on what is chosen so many slots before it, and so many slots may be under way.
const ALPHA: Slot = 3;

type Accepted = BTreeMap<Slot, (Ballot, Value)>;

/// The acceptors of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Acceptors {
    main: Nodes,
    auxiliary: Nodes,
}

impl Acceptors {
    /// A majority of all, which all main ones are.
    fn quorum(self) -> usize {
        self.main.len()
    }

    fn all(self) -> Nodes {
        self.main.and(self.auxiliary)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct CheapPaxos {
    id: NodeId,
    /// Stable storage, with `accepted`, `round`, `chosen` and `applied`.
    promised: Option<Ballot>,
    accepted: Accepted,
    /// The highest round that it has used or heard of.
    round: Option<u64>,
    /// The highest ballot that it has heard of: its owner leads.
    highest: Option<Ballot>,
    chosen: BTreeMap<Slot, Value>,
    /// The first slot that is not chosen, as far as this node knows; its user was told of all before.
    applied: Slot,
    votes: BTreeMap<Slot, Votes>,
    /// Where it leads, or tries to.
    reign: Option<Reign>,
    /// How often it has looked around.
    looks: u64,
    /// The command of its own user.
    pending: Option<Value>,
    tries: u64,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Talk {
    /// A command, to the leader.
    Request(Value),
    /// For all slots from this one on.
    Prepare(Ballot, Slot),
    /// What is chosen from there on, and what is accepted.
    Promise(Ballot, Vec<(Slot, Value)>, Vec<(Slot, Ballot, Value)>),
    Accept(Ballot, Slot, Value),
    Accepted(Ballot, Slot, Value),
    /// The ballot is refused because of a promise to the other.
    Nack(Ballot, Ballot),
}

impl Message for Talk {}

/// The time of a command is over: even numbers.
fn command_timer(value: Value) -> Timer {
    Timer(2 * u64::from(value.0))
}

/// A leader looks for acceptors that have not answered: odd numbers.
fn look_timer(look: u64) -> Timer {
    Timer(2 * look + 1)
}

impl Protocol for CheapPaxos {
    type Problem = Agreement;
    type Message = Talk;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        CheapPaxos {
            id,
            promised: None,
            accepted: BTreeMap::new(),
            round: None,
            highest: None,
            chosen: BTreeMap::new(),
            applied: 0,
            votes: BTreeMap::new(),
            reign: None,
            looks: 0,
            pending: None,
            tries: 0,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Propose { value, .. }) => {
                self.pending = Some(value);
                self.tries = 0;
                self.wait(value, config, out);
                match self.highest.map(|ballot| ballot.by) {
                    Some(leader) if leader != self.id => out.send(leader, Talk::Request(value)),
                    _ => self.command(value, config, out),
                }
            }
            Input::Timer(Timer(number)) if number % 2 == 1 => {
                self.look_around(number / 2, config, out);
            }
            Input::Timer(timer) => {
                let waits = self.pending.filter(|value| command_timer(*value) == timer);
                if let Some(value) = waits {
                    self.tries += 1;
                    self.begin_reign(config, out);
                    self.wait(value, config, out);
                }
            }
            Input::Message { from, message } => self.hear(from, message, config, out),
            Input::Start => {}
        }
    }

    fn restart(&self, id: NodeId, config: &Config) -> Self {
        CheapPaxos {
            promised: self.promised,
            accepted: self.accepted.clone(),
            // A number is never used twice.
            round: self.round,
            chosen: self.chosen.clone(),
            applied: self.applied,
            ..CheapPaxos::new(id, config)
        }
    }
}

impl CheapPaxos {
    fn wait(&self, value: Value, config: &Config, out: &mut Output<Self>) {
        // Twice as long as elsewhere: a leader that finds an acceptor silent needs another round trip.
        let span = back_off(self.tries, 2 * config.delay_bound.max(1));
        out.after(span, command_timer(value));
    }

    /// §5.5.2: what slots up to s have chosen decides the acceptors of slot s + α, and nothing else does.
    fn acceptors(&self, slot: Slot, config: &Config) -> Acceptors {
        debug_assert!(slot < self.applied + ALPHA, "not known yet");
        let mut main = config.main();
        let before = match config.flaw {
            Some(Flaw::AtOnce) => slot,
            _ => (slot + 1).saturating_sub(ALPHA),
        };
        let removed = self.chosen.range(..before);
        for node in removed.filter_map(|(_, value)| value.removed()) {
            if main.len() > 1 {
                main.remove(node);
            }
        }
        if let (Some(Flaw::LowersAlone), Some(reign)) = (config.flaw, &self.reign) {
            main = main.without(reign.suspects);
        }
        let auxiliary =
            (config.f + 1..config.f + main.len().max(1)).map(|node| NodeId(node as u32));
        Acceptors {
            main,
            auxiliary: auxiliary.collect(),
        }
    }

    fn hear(&mut self, from: NodeId, message: Talk, config: &Config, out: &mut Output<Self>) {
        match message {
            Talk::Request(value) => {
                // Whoever sent it finds another leader when its time is over.
                if self.reign.is_some() {
                    self.command(value, config, out);
                }
            }
            Talk::Prepare(ballot, first) => match self.promised {
                Some(promised) if promised >= ballot => {
                    out.send(from, Talk::Nack(ballot, promised));
                }
                _ => {
                    self.promise(ballot);
                    let chosen = self.chosen.range(first..);
                    let chosen = chosen.map(|(slot, value)| (*slot, *value)).collect();
                    let accepted = self.accepted.range(first..);
                    let accepted = accepted.map(|(slot, (n, value))| (*slot, *n, *value));
                    out.send(from, Talk::Promise(ballot, chosen, accepted.collect()));
                }
            },
            Talk::Promise(ballot, chosen, accepted) => {
                for (slot, value) in chosen {
                    self.choose(slot, value, out);
                }
                self.count_votes(config, out);
                self.promised_by(from, ballot, &accepted);
                self.advance(config, out);
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
                self.highest = self.highest.max(Some(ballot));
                if !self.chosen.contains_key(&slot) {
                    let votes = self.votes.entry(slot).or_default();
                    votes.count(from, ballot, value);
                    self.count_votes(config, out);
                    self.advance(config, out);
                }
            }
            Talk::Nack(refused, promised) => {
                self.round = self.round.max(Some(promised.round));
                self.highest = self.highest.max(Some(promised));
                if self
                    .reign
                    .as_ref()
                    .is_some_and(|reign| reign.ballot == refused)
                {
                    self.reign = None;
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
        self.highest = self.highest.max(Some(ballot));
        if self
            .reign
            .as_ref()
            .is_some_and(|reign| reign.ballot < ballot)
        {
            self.reign = None;
        }
    }

    /// Looks for quorums in the slots whose acceptors are known; with every one that is chosen there are more of these.
    fn count_votes(&mut self, config: &Config, out: &mut Output<Self>) {
        let mut slot = self.applied;
        while slot < self.applied + ALPHA {
            let acceptors = self.acceptors(slot, config);
            let votes = self.votes.get(&slot);
            let value = votes.and_then(|votes| votes.winner(acceptors.all(), acceptors.quorum()));
            match value {
                Some(value) if !self.chosen.contains_key(&slot) => {
                    self.choose(slot, value, out);
                    // What the flaw makes of acceptors hangs on any slot before.
                    slot = self.applied;
                }
                _ => slot += 1,
            }
        }
    }

    /// Tells in order, without gaps.
    fn choose(&mut self, slot: Slot, value: Value, out: &mut Output<Self>) {
        self.votes.remove(&slot);
        self.chosen.entry(slot).or_insert(value);
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
