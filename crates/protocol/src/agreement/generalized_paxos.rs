//! Generalized Paxos: agreement on a history of commands, of which only those that conflict are ordered.
//!
//! Source: coordination and agreement §5.5.4 (Lamport, 2005). Acceptors hold histories and append commands as they come;
//! what the histories of a quorum have in common is learned. Commands that commute never wait for each other. Two that conflict
//! and reach acceptors in different orders need another ballot, whose proposer orders them. Here every ballot is fast: after
//! its 2a, acceptors append to it. Phase 1 of ballot 0 is done in advance, as in Fast Paxos.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ballot::Ballot;
use super::fast_paxos::Quorums;
use super::history::{COMMANDS, Conflict, History, conflict};
use super::paxos::{PAXOS, back_off};
use super::promises::{Decisions, Promises};
use super::user::{Agreement, Ask, Tell, User, Value};
use crate::{
    Algorithm, Experiment, Faults, Figure, Input, Machine, Message, NodeId, Output, Profile,
    Protocol, Range, Setup, SetupError, Shape, Timer, erase_for,
};

#[cfg(test)]
mod tests;

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "generalized-paxos",
        title: "Generalized Paxos, 2005",
        source: "coordination and agreement §5.5.4; Lamport, 2005",
        tolerates: |setup| {
            // Of a fast quorum: every ballot is fast.
            let crashes = Quorums::of(setup.users).fast_faults as u32;
            Faults {
                crashes,
                restarts: crashes,
                ..Faults::NONE
            }
        },
        figures: &[Figure {
            what: "messages of a command that nobody disturbs",
            formula: "N² - 1",
            range: |setup| Range::exactly((setup.users * setup.users - 1) as f64),
            sizes: &[3, 4, 7],
            chosen: &[],
            experiment: Experiment::LoneEntryMost,
        }],
        ..PAXOS
    },
    machine: |setup| machine(setup, conflict),
};

/// A learner looks at every quorum, and these are many.
const NODES_MAX: usize = 10;

/// Acceptors and learners that take these commands for conflicting.
pub(super) fn machine(
    setup: &Setup,
    conflict: Conflict,
) -> Result<Box<dyn Machine<Agreement>>, SetupError> {
    let users = setup.at_least(1)?;
    if users > NODES_MAX {
        return Err(SetupError(format!(
            "{users} nodes are too many: at most {NODES_MAX}, because a learner looks at every quorum"
        )));
    }
    let promises = Promises {
        decisions: Decisions::Commands,
        proposers: setup.proposers.map_or(u32::MAX, |count| count as u32),
        choices: COMMANDS,
        ..Promises::CONSENSUS
    };
    let config = Config {
        nodes: users,
        quorums: Quorums::of(users),
        delay_bound: setup.delay_bound,
        conflict,
    };
    Ok(erase_for::<GeneralizedPaxos>(
        Shape::users(users),
        |user| User::new(user, users, promises),
        config,
    ))
}

#[derive(Debug)]
pub(super) struct Config {
    nodes: usize,
    quorums: Quorums,
    delay_bound: u64,
    conflict: Conflict,
}

impl Config {
    fn fast_quorum(&self) -> usize {
        self.nodes - self.quorums.fast_faults
    }

    fn classic_quorum(&self) -> usize {
        self.nodes - self.quorums.classic_faults
    }
}

/// The ballot that is under way from the beginning.
const FIRST: Ballot = Ballot {
    round: 0,
    by: NodeId(0),
};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct GeneralizedPaxos {
    id: NodeId,
    acceptor: Acceptor,
    /// The highest round that it has used or heard of. Stable, too.
    round: u64,
    /// Commands that it has heard of.
    proposed: Vec<Value>,
    proposer: Proposer,
    pending: Option<Value>,
    tries: u64,
    /// The longest history of each acceptor, by ballot.
    votes: BTreeMap<Ballot, BTreeMap<NodeId, History>>,
    /// Stable: what was learned only grows.
    learned: History,
}

/// Stable storage.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Acceptor {
    /// mbal, bal and val.
    promised: Ballot,
    ballot: Ballot,
    history: History,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Proposer {
    Idle,
    Preparing {
        ballot: Ballot,
        promises: BTreeMap<NodeId, (Ballot, History)>,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Talk {
    /// A command, to everybody.
    Propose(Value),
    /// 1a
    Prepare(Ballot),
    /// 1b
    Promise(Ballot, Ballot, History),
    /// 2a
    Accept(Ballot, History),
    /// 2b
    Accepted(Ballot, History),
    /// The ballot is refused because of a promise to the other.
    Nack(Ballot, Ballot),
}

impl Message for Talk {}

impl Protocol for GeneralizedPaxos {
    type Problem = Agreement;
    type Message = Talk;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        GeneralizedPaxos {
            id,
            acceptor: Acceptor {
                promised: FIRST,
                ballot: FIRST,
                history: History::default(),
            },
            round: FIRST.round,
            proposed: Vec::new(),
            proposer: Proposer::Idle,
            pending: None,
            tries: 0,
            votes: BTreeMap::new(),
            learned: History::default(),
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Propose { value, .. }) => {
                (self.pending, self.tries) = (Some(value), 0);
                self.wait(value, config, out);
                out.send_all(NodeId::all(config.nodes), &Talk::Propose(value));
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
        GeneralizedPaxos {
            acceptor: self.acceptor.clone(),
            round: self.round,
            learned: self.learned.clone(),
            ..GeneralizedPaxos::new(id, config)
        }
    }
}

impl GeneralizedPaxos {
    fn wait(&self, value: Value, config: &Config, out: &mut Output<Self>) {
        let span = back_off(self.tries, config.delay_bound);
        out.after(span, Timer(u64::from(value.0)));
    }

    fn prepare(&mut self, config: &Config, out: &mut Output<Self>) {
        self.round += 1;
        let ballot = Ballot {
            round: self.round,
            by: self.id,
        };
        self.proposer = Proposer::Preparing {
            ballot,
            promises: BTreeMap::new(),
        };
        out.send_all(NodeId::all(config.nodes), &Talk::Prepare(ballot));
    }

    fn hear(&mut self, from: NodeId, message: Talk, config: &Config, out: &mut Output<Self>) {
        let acceptor = &mut self.acceptor;
        match message {
            // 2b, fast
            Talk::Propose(value) => {
                self.proposed.push(value);
                let open = acceptor.ballot == acceptor.promised;
                if open && !acceptor.history.contains(value) {
                    acceptor.history.append(value);
                    self.vote(config, out);
                }
            }
            Talk::Prepare(ballot) => match acceptor.promised {
                promised if promised >= ballot => out.send(from, Talk::Nack(ballot, promised)),
                _ => {
                    acceptor.promised = ballot;
                    let (at, history) = (acceptor.ballot, acceptor.history.clone());
                    out.send(from, Talk::Promise(ballot, at, history));
                }
            },
            Talk::Promise(ballot, at, history) => {
                self.promised(from, ballot, (at, history), config, out);
            }
            // 2b, classic. A ballot has one 2a, so no history of the same ballot is ever replaced.
            Talk::Accept(ballot, _) if acceptor.promised > ballot => {
                out.send(from, Talk::Nack(ballot, acceptor.promised));
            }
            Talk::Accept(ballot, history) => {
                if acceptor.ballot < ballot {
                    (acceptor.promised, acceptor.ballot) = (ballot, ballot);
                    acceptor.history = history;
                    // What came while the ballot was not open.
                    self.proposed
                        .iter()
                        .for_each(|value| acceptor.history.append(*value));
                    self.vote(config, out);
                }
            }
            Talk::Accepted(ballot, history) => self.learn(from, ballot, history, config, out),
            Talk::Nack(refused, promised) => {
                self.round = self.round.max(promised.round);
                // Its time comes again while its command is not learned.
                if matches!(self.proposer, Proposer::Preparing { ballot, .. } if ballot == refused)
                {
                    self.proposer = Proposer::Idle;
                }
            }
        }
    }

    fn vote(&self, config: &Config, out: &mut Output<Self>) {
        let Acceptor {
            ballot, history, ..
        } = &self.acceptor;
        let accepted = Talk::Accepted(*ballot, history.clone());
        out.send_all(NodeId::all(config.nodes), &accepted);
    }

    /// 2Start: a history that has all that may have been learned, and then all that was proposed.
    fn promised(
        &mut self,
        from: NodeId,
        n: Ballot,
        promise: (Ballot, History),
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let Proposer::Preparing { ballot, promises } = &mut self.proposer else {
            return;
        };
        if *ballot != n {
            return;
        }
        promises.insert(from, promise);
        if promises.len() < config.classic_quorum() {
            return;
        }
        let mut history = proved_safe(promises, config);
        for value in self.proposed.iter().chain(&self.pending) {
            history.append(*value);
        }
        let ballot = *ballot;
        self.proposer = Proposer::Idle;
        out.send_all(NodeId::all(config.nodes), &Talk::Accept(ballot, history));
    }

    /// Joins what the histories of every quorum that the sender is in have in common.
    fn learn(
        &mut self,
        from: NodeId,
        ballot: Ballot,
        history: History,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let votes = self.votes.entry(ballot).or_default();
        // A history of one ballot only grows; an older one may come late.
        if votes
            .get(&from)
            .is_some_and(|known| known.0.len() >= history.0.len())
        {
            return;
        }
        votes.insert(from, history);
        let others = votes.iter().filter(|(node, _)| **node != from);
        let others: Vec<&History> = others.map(|(_, history)| history).collect();
        let mut joined = self.learned.clone();
        for quorum in subsets(others.len(), config.fast_quorum() - 1) {
            let rest = quorum.into_iter().map(|at| others[at]);
            joined.join(&common(&votes[&from], rest, config.conflict));
        }
        for place in self.learned.0.len()..joined.0.len() {
            let (instance, value) = (place as u32, joined.0[place]);
            if self.pending == Some(value) {
                self.pending = None;
            }
            out.tell(Tell::Decided { instance, value });
        }
        self.learned = joined;
    }
}

/// ProvedSafe(Q, m): with k the largest ballot in Q, the join of what each Q ∩ R at k has in common, over the fast
/// quorums R. R may have everybody outside of Q, so Q ∩ R has all but E of Q.
fn proved_safe(promises: &BTreeMap<NodeId, (Ballot, History)>, config: &Config) -> History {
    let k = promises.values().map(|(ballot, _)| *ballot).max();
    let at_k = promises.values().filter(|(ballot, _)| Some(*ballot) == k);
    let at_k: Vec<&History> = at_k.map(|(_, history)| history).collect();
    let needed = promises.len() - config.quorums.fast_faults;
    let mut safe: Option<History> = None;
    for quorum in subsets(at_k.len(), needed) {
        let mut members = quorum.into_iter().map(|at| at_k[at]);
        if let Some(first) = members.next() {
            let common = common(first, members, config.conflict);
            safe.get_or_insert_default().join(&common);
        }
    }
    safe.unwrap_or_else(|| {
        at_k.first()
            .map_or_else(History::default, |&any| any.clone())
    })
}

fn common<'a>(
    first: &History,
    rest: impl Iterator<Item = &'a History>,
    conflict: Conflict,
) -> History {
    rest.fold(first.clone(), |common, other| {
        common.common(other, conflict)
    })
}

/// All ways to take `size` of so many.
fn subsets(of: usize, size: usize) -> Vec<Vec<usize>> {
    let taken = |subset: u32| (0..of).filter(|at| subset & 1 << at != 0).collect();
    let subsets = (0u32..1 << of).filter(|subset| subset.count_ones() as usize == size);
    subsets.map(taken).collect()
}
