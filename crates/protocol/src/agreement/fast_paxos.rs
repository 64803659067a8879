//! Fast Paxos: in the first round clients send straight to the acceptors, which saves the way through a leader.
//!
//! Source: coordination and agreement §5.5.3 (Lamport, 2006). Phase 1 of round 0 is done in advance (§8, decision 19): every
//! acceptor begins with the leader's ANY and votes for the first value that reaches it. If the votes collide, the leader
//! starts a classic round; whoever waits too long does so, too. Quorums are N-F in classic rounds and N-E in the
//! fast one, with N > 2F and N > 2E+F.

use serde::{Deserialize, Serialize};

use super::ballot::{Ballot, Votes};
use super::instances::Instances;
use super::paxos::{PAXOS, back_off, nodes};
use super::promises::Promises;
use super::user::{Agreement, Ask, Tell, User, Value};
use crate::{
    Algorithm, Experiment, Faults, Figure, Input, Machine, Message, NodeId, Output, Profile,
    Protocol, Range, Setup, SetupError, Shape, Timer, erase_for,
};

#[cfg(test)]
mod tests;

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "fast-paxos",
        title: "Fast Paxos, 2006",
        source: "coordination and agreement §5.5.3; Lamport, 2006",
        tolerates: |setup| {
            let crashes = Quorums::of(setup.users).classic_faults as u32;
            Faults {
                crashes,
                restarts: crashes,
                ..Faults::NONE
            }
        },
        figures: &[Figure {
            what: "messages of a decision that nobody disturbs",
            formula: "N² - 1",
            range: |setup| Range::exactly((setup.users * setup.users - 1) as f64),
            sizes: &[3, 4, 7],
            chosen: &[],
            experiment: Experiment::LoneEntryMost,
        }],
        ..PAXOS
    },
    machine: |setup| machine(setup, Quorums::of(setup.users), u32::MAX),
};

pub(super) fn machine(
    setup: &Setup,
    quorums: Quorums,
    instances: u32,
) -> Result<Box<dyn Machine<Agreement>>, SetupError> {
    let users = nodes(setup)?;
    let promises = Promises {
        proposers: setup.proposers.map_or(u32::MAX, |count| count as u32),
        instances,
        ..Promises::CONSENSUS
    };
    let config = Config {
        nodes: users,
        quorums,
        delay_bound: setup.delay_bound,
    };
    Ok(erase_for::<Instances<FastPaxos>>(
        Shape::users(users),
        |user| User::new(user, users, promises),
        config,
    ))
}

/// E and F: how many faults leave a quorum in a fast and in a classic round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Quorums {
    pub(super) fast_faults: usize,
    pub(super) classic_faults: usize,
}

impl Quorums {
    /// E = ⌊(N-1)/3⌋ (§5.5), and the largest F beside it.
    pub(super) fn of(nodes: usize) -> Quorums {
        let others = nodes.saturating_sub(1);
        let fast_faults = others / 3;
        Quorums {
            fast_faults,
            classic_faults: (others / 2).min(others - 2 * fast_faults),
        }
    }
}

#[derive(Debug)]
pub(super) struct Config {
    nodes: usize,
    quorums: Quorums,
    delay_bound: u64,
}

impl Config {
    fn fast_quorum(&self) -> usize {
        self.nodes - self.quorums.fast_faults
    }

    fn classic_quorum(&self) -> usize {
        self.nodes - self.quorums.classic_faults
    }
}

/// Coordinates the fast round.
const LEADER: NodeId = NodeId(0);

/// The fast round; every other is classic.
const FAST: Ballot = Ballot {
    round: 0,
    by: LEADER,
};

/// A node in one instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct FastPaxos {
    id: NodeId,
    acceptor: Acceptor,
    /// The highest round that it has used or heard of.
    round: u64,
    proposer: Proposer,
    votes: Votes,
    decided: bool,
}

/// Stable storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Acceptor {
    promised: Ballot,
    accepted: Option<(Ballot, Value)>,
}

type Promised = (NodeId, Option<(Ballot, Value)>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Proposer {
    Idle,
    /// Its value is with the acceptors of the fast round, or its ballot was refused: it waits for its time.
    Waiting {
        own: Value,
    },
    Preparing {
        own: Value,
        ballot: Ballot,
        promises: Vec<Promised>,
    },
    Proposing {
        own: Value,
        ballot: Ballot,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Talk {
    /// A client's value, to the acceptors of the fast round.
    Propose(Value),
    Prepare(Ballot),
    Promise(Ballot, Option<(Ballot, Value)>),
    Accept(Ballot, Value),
    Accepted(Ballot, Value),
    /// The ballot is refused because of a promise to the other.
    Nack(Ballot, Ballot),
}

impl Message for Talk {}

impl Protocol for FastPaxos {
    type Problem = Agreement;
    type Message = Talk;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        FastPaxos {
            id,
            acceptor: Acceptor {
                promised: FAST,
                accepted: None,
            },
            round: FAST.round,
            proposer: Proposer::Idle,
            votes: Votes::default(),
            decided: false,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Propose { value, .. }) => {
                out.after(back_off(0, config.delay_bound), Timer(self.round));
                // A leader that is recovering from a collision has not heard of it.
                if !matches!(
                    self.proposer,
                    Proposer::Preparing { .. } | Proposer::Proposing { .. }
                ) {
                    self.proposer = Proposer::Waiting { own: value };
                }
                out.send_all(NodeId::all(config.nodes), &Talk::Propose(value));
            }
            Input::Timer(Timer(round)) => self.time_out(round, config, out),
            Input::Message { from, message } => self.hear(from, message, config, out),
            Input::Start => {}
        }
    }

    fn restart(&self, id: NodeId, config: &Config) -> Self {
        FastPaxos {
            acceptor: self.acceptor,
            // A number is never used twice.
            round: self.round,
            ..FastPaxos::new(id, config)
        }
    }
}

impl FastPaxos {
    /// A classic round, with a number larger than any known.
    fn prepare(&mut self, own: Value, config: &Config, out: &mut Output<Self>) {
        self.round += 1;
        let ballot = Ballot {
            round: self.round,
            by: self.id,
        };
        self.proposer = Proposer::Preparing {
            own,
            ballot,
            promises: Vec::new(),
        };
        out.send_all(NodeId::all(config.nodes), &Talk::Prepare(ballot));
        out.after(back_off(self.round, config.delay_bound), Timer(self.round));
    }

    /// The time of a round is over: whatever became of it, the next one is tried.
    fn time_out(&mut self, round: u64, config: &Config, out: &mut Output<Self>) {
        let own = match self.proposer {
            Proposer::Preparing { own, ballot, .. } | Proposer::Proposing { own, ballot }
                if ballot.round == round =>
            {
                own
            }
            Proposer::Waiting { own } => own,
            _ => return,
        };
        self.prepare(own, config, out);
    }

    fn hear(&mut self, from: NodeId, message: Talk, config: &Config, out: &mut Output<Self>) {
        match message {
            // 2b of the fast round: the first value that comes.
            Talk::Propose(value) => {
                if self.acceptor.promised == FAST && self.acceptor.accepted.is_none() {
                    self.accept(FAST, value, config, out);
                }
            }
            Talk::Prepare(ballot) => match self.acceptor.promised {
                promised if promised >= ballot => out.send(from, Talk::Nack(ballot, promised)),
                _ => {
                    self.acceptor.promised = ballot;
                    out.send(from, Talk::Promise(ballot, self.acceptor.accepted));
                }
            },
            Talk::Promise(ballot, accepted) => self.promised(from, ballot, accepted, config, out),
            Talk::Accept(ballot, value) => match self.acceptor.promised {
                promised if promised > ballot => out.send(from, Talk::Nack(ballot, promised)),
                _ => self.accept(ballot, value, config, out),
            },
            Talk::Accepted(ballot, value) => self.learn(from, ballot, value, config, out),
            Talk::Nack(refused, promised) => {
                let (Proposer::Preparing { own, ballot, .. } | Proposer::Proposing { own, ballot }) =
                    self.proposer
                else {
                    return;
                };
                if ballot == refused {
                    self.round = self.round.max(promised.round);
                    self.proposer = Proposer::Waiting { own };
                }
            }
        }
    }

    fn accept(&mut self, ballot: Ballot, value: Value, config: &Config, out: &mut Output<Self>) {
        self.acceptor = Acceptor {
            promised: ballot,
            accepted: Some((ballot, value)),
        };
        out.send_all(NodeId::all(config.nodes), &Talk::Accepted(ballot, value));
    }

    fn learn(
        &mut self,
        from: NodeId,
        ballot: Ballot,
        value: Value,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        if self.decided {
            return;
        }
        let quorum = match ballot {
            FAST => config.fast_quorum(),
            _ => config.classic_quorum(),
        };
        if self.votes.count(from, ballot, value) == quorum {
            self.decided = true;
            self.votes.clear();
            self.proposer = Proposer::Idle;
            return out.tell(Tell::Decided { instance: 0, value });
        }
        // A collision: no value can reach a fast quorum any more.
        let counts: Vec<usize> = self.votes.counts(FAST).collect();
        let (cast, most) = (counts.iter().sum::<usize>(), counts.iter().max().copied());
        let open = config.nodes - cast;
        let collided = ballot == FAST && most.unwrap_or(0) + open < config.fast_quorum();
        if collided && self.id == LEADER && self.round == FAST.round {
            let own = match self.proposer {
                Proposer::Waiting { own } => own,
                _ => value,
            };
            self.prepare(own, config, out);
        }
    }

    fn promised(
        &mut self,
        from: NodeId,
        n: Ballot,
        accepted: Option<(Ballot, Value)>,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let Proposer::Preparing {
            own,
            ballot,
            promises,
        } = &mut self.proposer
        else {
            return;
        };
        let known = promises.iter().any(|(acceptor, _)| *acceptor == from);
        if *ballot != n || known {
            return;
        }
        let place = promises.partition_point(|(acceptor, _)| *acceptor < from);
        promises.insert(place, (from, accepted));
        if promises.len() < config.classic_quorum() {
            return;
        }
        let value = forced(promises, config).unwrap_or(*own);
        let (own, ballot) = (*own, *ballot);
        self.proposer = Proposer::Proposing { own, ballot };
        out.send_all(NodeId::all(config.nodes), &Talk::Accept(ballot, value));
    }
}

/// The value that may have been chosen, by what a classic quorum Q reports: with k the largest accepted number, the one
/// value accepted at k, else one that all of Q ∩ R accepted at k for some fast quorum R. With quorums that are large enough there is
/// at most one.
fn forced(promises: &[Promised], config: &Config) -> Option<Value> {
    let reported = || promises.iter().filter_map(|(_, accepted)| *accepted);
    let k = reported().map(|(number, _)| number).max()?;
    let mut at_k: Vec<Value> = reported()
        .filter(|(n, _)| *n == k)
        .map(|(_, v)| v)
        .collect();
    at_k.sort_unstable();
    let votes = |value: Value| at_k.iter().filter(|other| **other == value).count();
    let mut values = at_k.clone();
    values.dedup();
    if let [only] = values[..] {
        return Some(only);
    }
    // R may have everybody outside Q, so it needs all but E of Q.
    let needed = promises.len() - config.quorums.fast_faults;
    values.into_iter().find(|value| votes(*value) >= needed)
}
