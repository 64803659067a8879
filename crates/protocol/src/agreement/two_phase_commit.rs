//! Two-phase commit: a coordinator asks everybody, and commits only what all agree to.
//!
//! Source: coordination and agreement §5.8. Node 0 coordinates and has a vote of its own; the others are the n
//! participants. A user's proposal is its vote, 1 for yes and 2 for no, and the decision is 1 for commit and 2 for abort.
//! Decided here: a decision is sent again until it is acknowledged; who comes back from a crash goes on from its log,
//! and a coordinator that finds none aborts; a participant that is never asked votes no of its own accord. A participant
//! that is ready may not decide alone, so it waits for a coordinator that has crashed: it blocks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::instances::Instances;
use super::promises::{Promises, Validity};
use super::user::{Agreement, Ask, Tell, User, Value};
use crate::{
    Algorithm, Channels, Cost, Input, Machine, Message, NodeId, Output, Profile, Protocol, Range,
    Setup, SetupError, Shape, Telling, Timer, erase_for,
};

#[cfg(test)]
mod tests;

pub(crate) const ALGORITHM: Algorithm<Agreement> = Algorithm {
    profile: TWO_PHASE_COMMIT,
    machine: |setup| machine(setup, false),
};

pub(super) const TWO_PHASE_COMMIT: Profile = Profile {
    name: "two-phase-commit",
    title: "Two-phase commit",
    source: "coordination and agreement §5.8",
    channels: Channels::AnyOrder,
    keeps_storage: true,
    costs: &[Cost::messages(
        "4n for the 1 to N votes of a transaction",
        |setup| {
            let n = setup.users as f64 - 1.0;
            Range::new(4.0 * n / (n + 1.0), 4.0 * n)
        },
    )],
    telling: Telling {
        nodes: 2,
        entries: 1,
    },
    ..Profile::PLAIN
};

/// A coordinator that counts votes, or a specimen's that aborts whatever they are.
pub(super) fn machine(
    setup: &Setup,
    never_commits: bool,
) -> Result<Box<dyn Machine<Agreement>>, SetupError> {
    let nodes = setup.at_least(2)?;
    let promises = Promises {
        validity: Validity::Unanimous,
        choices: 2,
        ..Promises::CONSENSUS
    };
    Ok(erase_for::<Instances<TwoPhaseCommit>>(
        Shape::users(nodes),
        |user| User::new(user, nodes, promises),
        Config {
            nodes,
            delay_bound: setup.delay_bound.max(1),
            never_commits,
        },
    ))
}

const COMMIT: Value = Value(1);
const ABORT: Value = Value(2);
const COORDINATOR: NodeId = NodeId(0);

#[derive(Clone, Copy, Debug)]
struct Config {
    nodes: usize,
    delay_bound: u64,
    never_commits: bool,
}

impl Config {
    /// How long a coordinator waits for votes and for acknowledgements, in delay bounds.
    const PATIENCE: u64 = 8;

    fn participants(&self) -> impl Iterator<Item = NodeId> + Clone + use<> {
        COORDINATOR.others(self.nodes)
    }

    /// So many times as long.
    fn set_timer(&self, timer: Timer, times: u64, out: &mut Output<TwoPhaseCommit>) {
        let span = times * Self::PATIENCE * self.delay_bound;
        out.after(span..span + 1, timer);
    }
}

/// The coordinator waits for votes, a participant to be asked.
const UNDECIDED: Timer = Timer(0);
/// The coordinator waits for acknowledgements.
const UNACKNOWLEDGED: Timer = Timer(1);

/// One node in one transaction.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct TwoPhaseCommit {
    id: NodeId,
    state: State,
    /// What its user voted.
    vote: Option<Value>,
    /// At a participant: whether the coordinator has asked.
    asked: bool,
    /// At the coordinator: who has voted yes, and who knows the decision. At a participant: the coordinator, once it
    /// has announced a decision.
    heard: BTreeSet<NodeId>,
}

/// What is logged before anything is sent; INIT and WAIT are not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    Init,
    /// The coordinator has asked.
    Wait,
    /// A participant has voted yes.
    Ready,
    Decided(Value),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Phase {
    Prepare,
    Yes,
    No,
    Commit,
    Abort,
    Ack,
}

impl Message for Phase {}

impl Protocol for TwoPhaseCommit {
    type Problem = Agreement;
    type Message = Phase;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        TwoPhaseCommit {
            id,
            state: State::Init,
            vote: None,
            asked: false,
            heard: BTreeSet::new(),
        }
    }

    /// The participants.
    fn equal_nodes(config: &Config) -> std::ops::Range<u32> {
        1..config.nodes as u32
    }

    fn rename(&mut self, new: &dyn Fn(NodeId) -> NodeId) {
        self.id = new(self.id);
        self.heard = self.heard.iter().map(|node| new(*node)).collect();
    }

    fn restart(&self, id: NodeId, config: &Config) -> Self {
        let state = match self.state {
            // It has asked and logged nothing: nobody can have been told to commit.
            State::Wait => State::Decided(ABORT),
            state => state,
        };
        TwoPhaseCommit {
            state,
            ..TwoPhaseCommit::new(id, config)
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Start => self.go_on(config, out),
            Input::Ask(Ask::Propose { value, .. }) => {
                self.vote = Some(value);
                match self.state {
                    State::Init if self.id == COORDINATOR => {
                        self.state = State::Wait;
                        out.send_all(config.participants(), &Phase::Prepare);
                        config.set_timer(UNDECIDED, 1, out);
                    }
                    State::Init if self.asked => self.answer(out),
                    // Longer than a coordinator waits for answers: what has begun is not given up.
                    State::Init => config.set_timer(UNDECIDED, 2, out),
                    State::Wait | State::Ready | State::Decided(_) => {}
                }
            }
            Input::Timer(UNDECIDED) => match self.state {
                State::Wait => self.decide(ABORT, config, out),
                State::Init if self.id != COORDINATOR => {
                    self.vote = Some(ABORT);
                    self.answer(out);
                    config.set_timer(UNDECIDED, 2, out);
                }
                State::Decided(_) => self.insist(config, out),
                _ => {}
            },
            Input::Timer(_) => {
                if let State::Decided(value) = self.state {
                    self.announce(value, config, out);
                }
            }
            Input::Message { from, message } => match self.id {
                COORDINATOR => self.coordinate(from, &message, config, out),
                _ => self.participate(&message, out),
            },
        }
    }
}

impl TwoPhaseCommit {
    /// After a crash.
    fn go_on(&mut self, config: &Config, out: &mut Output<Self>) {
        match self.state {
            State::Decided(value) if self.id == COORDINATOR => {
                tell(value, out);
                self.announce(value, config, out);
            }
            State::Decided(value) => {
                tell(value, out);
                self.insist(config, out);
            }
            // Its vote may be lost, or the decision.
            State::Ready => out.send(COORDINATOR, Phase::Yes),
            State::Init | State::Wait => {}
        }
    }

    /// A participant that has aborted alone says so until the coordinator answers: nobody else would learn of it.
    fn insist(&mut self, config: &Config, out: &mut Output<Self>) {
        let aborted = self.id != COORDINATOR && self.state == State::Decided(ABORT);
        if aborted && !self.heard.contains(&COORDINATOR) {
            out.send(COORDINATOR, Phase::No);
            config.set_timer(UNDECIDED, 2, out);
        }
    }

    fn coordinate(
        &mut self,
        from: NodeId,
        message: &Phase,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        match (message, self.state) {
            (Phase::Yes, State::Wait) => {
                self.heard.insert(from);
                if self.heard.len() == config.nodes - 1 {
                    let own = self.vote.filter(|_| !config.never_commits);
                    let own = own.unwrap_or(ABORT);
                    self.decide(own, config, out);
                }
            }
            (Phase::No, State::Init | State::Wait) => self.decide(ABORT, config, out),
            (Phase::Ack, State::Decided(_)) => {
                self.heard.insert(from);
            }
            // It has forgotten that it knew.
            (Phase::No, State::Decided(value)) if self.heard.contains(&from) => {
                out.send(from, announcement(value));
            }
            _ => {}
        }
    }

    fn decide(&mut self, value: Value, config: &Config, out: &mut Output<Self>) {
        self.state = State::Decided(value);
        self.heard.clear();
        tell(value, out);
        self.announce(value, config, out);
    }

    /// Tells whoever has not acknowledged it.
    fn announce(&self, value: Value, config: &Config, out: &mut Output<Self>) {
        let mut unaware = config
            .participants()
            .filter(|participant| !self.heard.contains(participant))
            .peekable();
        if unaware.peek().is_some() {
            config.set_timer(UNACKNOWLEDGED, 1, out);
        }
        out.send_all(unaware, &announcement(value));
    }

    fn participate(&mut self, message: &Phase, out: &mut Output<Self>) {
        match (message, self.state) {
            (Phase::Prepare, State::Init) => {
                self.asked = true;
                if self.vote.is_some() {
                    self.answer(out);
                }
            }
            (Phase::Prepare, State::Decided(ABORT)) => out.send(COORDINATOR, Phase::No),
            (Phase::Commit | Phase::Abort, state) => {
                let value = match message {
                    Phase::Commit => COMMIT,
                    _ => ABORT,
                };
                self.heard.insert(COORDINATOR);
                if !matches!(state, State::Decided(_)) {
                    self.state = State::Decided(value);
                    tell(value, out);
                }
                out.send(COORDINATOR, Phase::Ack);
            }
            _ => {}
        }
    }

    /// A yes gives the decision away; a no is one.
    fn answer(&mut self, out: &mut Output<Self>) {
        let vote = self.vote.unwrap_or(ABORT);
        if vote == COMMIT {
            self.state = State::Ready;
            out.send(COORDINATOR, Phase::Yes);
        } else {
            self.state = State::Decided(ABORT);
            tell(ABORT, out);
            out.send(COORDINATOR, Phase::No);
        }
    }
}

fn announcement(value: Value) -> Phase {
    match value {
        COMMIT => Phase::Commit,
        _ => Phase::Abort,
    }
}

fn tell(value: Value, out: &mut Output<TwoPhaseCommit>) {
    out.tell(Tell::Decided { instance: 0, value });
}
