//! Paxos for one decision: proposers ask a majority for its promise, then for its vote.
//!
//! Source: coordination and agreement §5.4 (Lamport, 1998). Every node is a proposer, an acceptor and a learner. A promise
//! carries the number of what was accepted, not only the value (ambiguity A), and what was accepted, not
//! answered (ambiguity B). Refusals are said (NACK), so that a proposer knows how high to go; it waits for a random
//! time before it tries again, which is what makes runs live.

use serde::{Deserialize, Serialize};

use super::ballot::{Ballot, Nodes, Votes, majority};
use super::instances::Instances;
use super::promises::Promises;
use super::user::{Agreement, Ask, Tell, User, Value};
use crate::{
    Algorithm, Channels, Claim, Experiment, Faults, Figure, Input, Machine, Message, NodeId,
    Output, Profile, Protocol, Range, Setup, SetupError, Shape, Telling, Timer, UnderWay,
    erase_for,
};

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: Profile {
        name: "paxos",
        title: "Paxos, one decision at a time, 1998",
        source: "coordination and agreement §5.4; Lamport, 1998",
        figures: &[Figure {
            what: "messages of a decision that nobody disturbs",
            formula: "3(N-1) + N(N-1)",
            range: |setup| {
                let others = (setup.users - 1) as f64;
                Range::exactly(3.0 * others + others * (others + 1.0))
            },
            sizes: &[3, 4, 7],
            chosen: &[],
            experiment: Experiment::LoneEntryMost,
        }],
        ..PAXOS
    },
    machine: |setup| machine(setup, Config::new(setup)?),
};

/// What holds for the whole family.
pub(super) const PAXOS: Profile = Profile {
    channels: Channels::AnyOrder,
    survives_crashes: true,
    keeps_storage: true,
    tolerates: |setup| Faults {
        crashes: (setup.users.saturating_sub(1) / 2) as u32,
        restarts: (setup.users.saturating_sub(1) / 2) as u32,
        ..Faults::NONE
    },
    claims: &[Claim::Safety, Claim::DeadlockFreedom],
    telling: Telling {
        nodes: 3,
        entries: 1,
    },
    telling_proposers: Some(2),
    ..Profile::PLAIN
};

pub(super) fn machine(
    setup: &Setup,
    config: Config,
) -> Result<Box<dyn Machine<Agreement>>, SetupError> {
    let users = setup.users;
    let promises = Promises {
        proposers: config.proposers,
        instances: config.instances,
        ..Promises::CONSENSUS
    };
    Ok(erase_for::<Instances<Paxos>>(
        Shape::users(users),
        |user| User::new(user, users, promises),
        config,
    ))
}

/// As many nodes as the family takes.
pub(super) fn nodes(setup: &Setup) -> Result<usize, SetupError> {
    let nodes = setup.at_least(1)?;
    if nodes > Nodes::MAX {
        return Err(SetupError(format!(
            "{nodes} nodes are too many: at most {}",
            Nodes::MAX
        )));
    }
    Ok(nodes)
}

#[derive(Debug)]
pub(super) struct Config {
    pub(super) nodes: usize,
    /// The nodes that are acceptors: from this one on. All of them, but for a specimen.
    pub(super) first_acceptor: u32,
    pub(super) delay_bound: u64,
    /// How many decisions a user takes part in.
    pub(super) instances: u32,
    /// The nodes whose users propose: those before this one.
    pub(super) proposers: u32,
    pub(super) flaw: Option<Flaw>,
}

impl Config {
    pub(super) fn new(setup: &Setup) -> Result<Config, SetupError> {
        Ok(Config {
            nodes: nodes(setup)?,
            first_acceptor: 0,
            delay_bound: setup.delay_bound,
            instances: u32::MAX,
            proposers: setup.proposers.map_or(u32::MAX, |count| count as u32),
            flaw: None,
        })
    }

    fn acceptors(&self) -> impl Iterator<Item = NodeId> + use<> {
        (self.first_acceptor..self.nodes as u32).map(NodeId)
    }

    fn quorum(&self) -> usize {
        majority(self.nodes - self.first_acceptor as usize)
    }
}

/// What is wrong with a specimen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// Of the values that were accepted, a proposer takes that of the first acceptor.
    AnyAccepted,
    /// Nothing is kept over a crash.
    Forgetful,
    /// A refused proposer tries again at once.
    NoBackOff,
}

/// The time of a ballot is over.
const TRY_AGAIN: Timer = Timer(0);

/// A node in one instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Paxos {
    id: NodeId,
    acceptor: Acceptor,
    /// The highest round that it has used or heard of.
    round: Option<u64>,
    proposer: Proposer,
    votes: Votes,
    decided: bool,
}

/// Stable storage, all of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Acceptor {
    promised: Option<Ballot>,
    /// accN and accV.
    accepted: Option<(Ballot, Value)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
enum Proposer {
    #[default]
    Idle,
    /// Phase 1: with what each acceptor had accepted, by acceptor.
    Preparing {
        own: Value,
        ballot: Ballot,
        promises: Vec<(NodeId, Option<(Ballot, Value)>)>,
    },
    /// Phase 2.
    Proposing { own: Value, ballot: Ballot },
    /// Refused; it tries again when its time has come.
    Refused { own: Value },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Talk {
    Prepare(Ballot),
    Promise(Ballot, Option<(Ballot, Value)>),
    Accept(Ballot, Value),
    Accepted(Ballot, Value),
    /// The ballot is refused because of a promise to the other.
    Nack(Ballot, Ballot),
}

impl Message for Talk {
    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        match self {
            Talk::Prepare(ballot) | Talk::Accept(ballot, _) | Talk::Accepted(ballot, _) => {
                visit(&mut ballot.round);
            }
            Talk::Promise(ballot, accepted) => {
                visit(&mut ballot.round);
                accepted.iter_mut().for_each(|(n, _)| visit(&mut n.round));
            }
            Talk::Nack(ballot, promised) => {
                visit(&mut ballot.round);
                visit(&mut promised.round);
            }
        }
    }
}

impl Protocol for Paxos {
    type Problem = Agreement;
    type Message = Talk;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        Paxos {
            id,
            acceptor: Acceptor::default(),
            round: None,
            proposer: Proposer::Idle,
            votes: Votes::default(),
            decided: false,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Propose { value, .. }) => self.prepare(value, config, out),
            Input::Timer(_) => self.try_again(config, out),
            Input::Message { from, message } => self.hear(from, message, config, out),
            Input::Start => {}
        }
    }

    fn restart(&self, id: NodeId, config: &Config) -> Self {
        if config.flaw == Some(Flaw::Forgetful) {
            return Paxos::new(id, config);
        }
        Paxos {
            acceptor: self.acceptor,
            // A number is never used twice, and its user knows what was decided.
            round: self.round,
            decided: self.decided,
            ..Paxos::new(id, config)
        }
    }

    const HAS_CANONICAL: bool = true;
    const SEARCHES_CANONICAL: bool = true;

    fn canonical(nodes: &mut [Self], messages: &mut Vec<UnderWay<Talk>>, config: &Config) {
        equal::canonical(nodes, messages, config);
    }

    /// Those who never propose; the specimen asks who is first.
    fn equal_nodes(config: &Config) -> std::ops::Range<u32> {
        let nodes = config.nodes as u32;
        match config.flaw {
            Some(Flaw::AnyAccepted) => 0..0,
            _ => config.proposers.max(config.first_acceptor).min(nodes)..nodes,
        }
    }

    /// A ballot is a proposer's, which keeps its name.
    fn rename(&mut self, new: &dyn Fn(NodeId) -> NodeId) {
        self.id = new(self.id);
        if let Proposer::Preparing { promises, .. } = &mut self.proposer {
            promises.iter_mut().for_each(|(node, _)| *node = new(*node));
            promises.sort_by_key(|(node, _)| *node);
        }
        self.votes.rename(new);
    }

    /// Who never proposes only counts votes, in any order. A proposer that learns of the decision gives up.
    fn is_quiet(&self, _: NodeId, message: &Talk, config: &Config) -> bool {
        matches!(message, Talk::Accepted(..)) && self.id.0 >= config.proposers
    }

    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        self.round.iter_mut().for_each(&mut *visit);
        let Acceptor { promised, accepted } = &mut self.acceptor;
        promised.iter_mut().for_each(|n| visit(&mut n.round));
        accepted.iter_mut().for_each(|(n, _)| visit(&mut n.round));
        match &mut self.proposer {
            Proposer::Preparing {
                ballot, promises, ..
            } => {
                visit(&mut ballot.round);
                let accepted = promises.iter_mut().filter_map(|(_, a)| a.as_mut());
                accepted.for_each(|(n, _)| visit(&mut n.round));
            }
            Proposer::Proposing { ballot, .. } => visit(&mut ballot.round),
            Proposer::Idle | Proposer::Refused { .. } => {}
        }
        self.votes.clocks(visit);
    }
}

impl Paxos {
    /// 1a, with a number larger than any known.
    fn prepare(&mut self, own: Value, config: &Config, out: &mut Output<Self>) {
        let round = self.round.map_or(0, |round| round + 1);
        self.round = Some(round);
        let ballot = Ballot { round, by: self.id };
        self.proposer = Proposer::Preparing {
            own,
            ballot,
            promises: Vec::new(),
        };
        out.send_all(config.acceptors(), &Talk::Prepare(ballot));
        if config.flaw != Some(Flaw::NoBackOff) {
            out.after(back_off(round, config.delay_bound), TRY_AGAIN);
        }
    }

    /// The time of a ballot is over: whatever became of it, the next one is tried. A ballot sets the only timer.
    fn try_again(&mut self, config: &Config, out: &mut Output<Self>) {
        if let Proposer::Preparing { own, .. }
        | Proposer::Proposing { own, .. }
        | Proposer::Refused { own } = self.proposer
        {
            self.prepare(own, config, out);
        }
    }

    /// Whether its ballot is this one.
    fn is_at(&self, n: Ballot) -> bool {
        matches!(
            self.proposer,
            Proposer::Preparing { ballot, .. } | Proposer::Proposing { ballot, .. } if ballot == n
        )
    }

    fn hear(&mut self, from: NodeId, message: Talk, config: &Config, out: &mut Output<Self>) {
        match message {
            // 1b
            Talk::Prepare(ballot) => match self.acceptor.promised {
                Some(promised) if promised >= ballot => {
                    out.send(from, Talk::Nack(ballot, promised));
                }
                _ => {
                    self.acceptor.promised = Some(ballot);
                    out.send(from, Talk::Promise(ballot, self.acceptor.accepted));
                }
            },
            Talk::Promise(ballot, accepted) => self.promised(from, ballot, accepted, config, out),
            // 2b
            Talk::Accept(ballot, value) => match self.acceptor.promised {
                Some(promised) if promised > ballot => out.send(from, Talk::Nack(ballot, promised)),
                _ => {
                    self.acceptor.promised = Some(ballot);
                    self.acceptor.accepted = Some((ballot, value));
                    let learners = NodeId::all(config.nodes);
                    out.send_all(learners, &Talk::Accepted(ballot, value));
                }
            },
            Talk::Accepted(ballot, value) => {
                if !self.decided && self.votes.count(from, ballot, value) == config.quorum() {
                    self.decided = true;
                    self.votes.clear();
                    self.proposer = Proposer::Idle;
                    out.tell(Tell::Decided { instance: 0, value });
                }
            }
            Talk::Nack(refused, promised) => self.refused(refused, promised, config, out),
        }
    }

    /// 2a: with promises from a quorum, the value of the largest accepted number, else one's own.
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
        if promises.len() < config.quorum() {
            return;
        }
        let mut reported = promises.iter().filter_map(|(_, accepted)| *accepted);
        let forced = match config.flaw {
            Some(Flaw::AnyAccepted) => reported.next(),
            _ => reported.max_by_key(|(number, _)| *number),
        };
        let (own, ballot) = (*own, *ballot);
        let value = forced.map_or(own, |(_, value)| value);
        self.proposer = Proposer::Proposing { own, ballot };
        out.send_all(config.acceptors(), &Talk::Accept(ballot, value));
    }

    fn refused(
        &mut self,
        refused: Ballot,
        promised: Ballot,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let (Proposer::Preparing { own, ballot, .. } | Proposer::Proposing { own, ballot }) =
            self.proposer
        else {
            return;
        };
        if ballot != refused {
            return;
        }
        self.round = self.round.max(Some(promised.round));
        match config.flaw {
            Some(Flaw::NoBackOff) => self.prepare(own, config, out),
            _ => self.proposer = Proposer::Refused { own },
        }
    }
}

/// How long a ballot may take before the next: four message delays, and a random time that doubles with the rounds.
pub(super) fn back_off(round: u64, delay_bound: u64) -> std::ops::Range<u64> {
    let bound = delay_bound.max(1);
    let least = 4 * bound + 1;
    least..least + (bound << (round + 1).min(BACK_OFF_DOUBLINGS_MAX))
}

const BACK_OFF_DOUBLINGS_MAX: u64 = 6;

mod equal;

#[cfg(test)]
mod tests;
