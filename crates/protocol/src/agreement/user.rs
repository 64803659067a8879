//! The words of agreement, its user, and what is promised of what users are told.
//!
//! Source: coordination and agreement §5.1. A user proposes a value and is told what was decided; every user
//! is told, whether it proposed or not. It keeps all that it proposed and was told, and the promises are judged over
//! these histories.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::promises::{Decisions, Promises, Validity, disagreement, unproposed};
use crate::{Counted, Next, NodeId, Phase, Problem};

/// The problem of agreement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Agreement;

/// What is proposed and decided: an order, a vote, a command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Value(pub u32);

impl Value {
    /// What nobody proposed: the order that is read into silence (§5.2.1), the command that fills a gap (§5.5.1).
    pub const DEFAULT: Value = Value(0);

    /// No user proposes so large a value.
    const REMOVES: u32 = 1 << 31;

    /// A change that the algorithm proposes to itself: this node is an acceptor no longer (§5.5.2).
    pub(super) fn without(node: NodeId) -> Value {
        Value(Self::REMOVES | node.0)
    }

    /// Who is an acceptor no longer.
    pub(super) fn removed(self) -> Option<NodeId> {
        (self.0 & Self::REMOVES != 0).then_some(NodeId(self.0 & !Self::REMOVES))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.removed() {
            Some(node) => write!(f, "without p{node}"),
            None => write!(f, "v{}", self.0),
        }
    }
}

/// In the sequence of decisions of a run, the number of one; what is proposed for a log has the number that its
/// user gave it.
pub type Instance = u32;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    Propose { instance: Instance, value: Value },
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ask::Propose { instance, value } = self;
        write!(f, "Propose({instance}, {value:?})")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tell {
    Decided { instance: Instance, value: Value },
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tell::Decided { instance, value } = self;
        write!(f, "Decided({instance}, {value:?})")
    }
}

impl Problem for Agreement {
    const NAME: &'static str = "agreement";
    type Ask = Ask;
    type Tell = Tell;
    type User = User;
    type Monitor = ();

    const COUNTED: Counted = Counted::DECISIONS;

    fn violation(users: &[User]) -> Option<String> {
        unproposed(users).or_else(|| disagreement(users))
    }

    /// Termination: what one correct user was told, every correct user is told in the end. A crash may take votes with it
    /// that some have and others wait for; then only who asks is promised an answer.
    fn unserved(users: &[User]) -> Option<String> {
        if users.iter().any(|user| user.crashed) {
            return None;
        }
        let correct = || users.iter().filter(|user| user.is_correct());
        for told in correct() {
            for other in correct() {
                let missing = told.decided.iter().find(|(instance, value)| {
                    !other.knows(*instance, *value, told.promises.decisions)
                });
                if let Some((instance, value)) = missing {
                    return Some(format!(
                        "p{} was told that instance {instance} decided {value:?}, and p{} never is",
                        told.id, other.id
                    ));
                }
            }
        }
        None
    }
}

/// A user of agreement: it proposes, waits, and is told what was decided.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct User {
    pub(super) id: u32,
    users: u32,
    pub(super) promises: Promises,
    /// What it waits for.
    pending: Option<(Instance, Value)>,
    pub(super) proposed: Vec<(Instance, Value)>,
    /// By instance.
    pub(super) decided: Vec<(Instance, Value)>,
    /// Whether its node has ever crashed.
    pub(super) crashed: bool,
    /// Whether its node lies.
    pub(super) lies: bool,
    /// Whether a timer of its node has ever fired, where a promise depends on that.
    pub(super) timed_out: bool,
}

impl User {
    /// The user `id` of so many, of an algorithm that promises this.
    pub fn new(id: crate::UserId, users: usize, promises: Promises) -> User {
        User {
            id: id.0,
            users: users as u32,
            promises,
            ..User::default()
        }
    }

    /// Whether it is a correct process to the end.
    pub(super) fn is_correct(&self) -> bool {
        !self.crashed && !self.lies
    }

    /// Whether a safety promise binds what it was told.
    pub(super) fn is_bound(&self) -> bool {
        !self.lies && (!self.crashed || self.promises.uniform)
    }

    pub(super) fn decision(&self, instance: Instance) -> Option<Value> {
        let place = self.decided.binary_search_by_key(&instance, |(i, _)| *i);
        place.ok().map(|place| self.decided[place].1)
    }

    fn knows(&self, instance: Instance, value: Value, decisions: Decisions) -> bool {
        match decisions {
            Decisions::Commands => self.decided.iter().any(|(_, known)| *known == value),
            Decisions::Single | Decisions::Log => self.decision(instance).is_some(),
        }
    }

    /// The instance that it would propose for now.
    fn instance(&self) -> Instance {
        match (self.promises.decisions, self.promises.validity) {
            // Everybody commands instances of its own.
            (Decisions::Single, Validity::Commander) => {
                self.proposed.len() as u32 * self.users + self.id
            }
            // The first of which it does not know the end.
            (Decisions::Single, _) => {
                let known = self.decided.iter().zip(0..);
                known.take_while(|((i, _), place)| i == place).count() as u32
            }
            (Decisions::Log | Decisions::Commands, _) => self.proposed.len() as u32,
        }
    }
}

/// Who commands an instance, where there are commanders.
pub fn commander(instance: Instance, users: usize) -> u32 {
    instance % users as u32
}

impl crate::User<Agreement> for User {
    fn next(&self) -> Next<Ask> {
        self.choose(0)
    }

    fn choices(&self) -> u32 {
        self.promises.choices
    }

    fn choose(&self, choice: u32) -> Next<Ask> {
        if self.pending.is_some() || self.id >= self.promises.proposers {
            return Next::Nothing;
        }
        let instance = self.instance();
        if instance >= self.promises.instances {
            return Next::Nothing;
        }
        let value = self.promises.value(self.id, self.users, instance, choice);
        Next::May(Ask::Propose { instance, value })
    }

    /// A proposer's first ballot of an instance is in round 0.
    fn asks_from_zero(&self) -> bool {
        self.id < self.promises.proposers
    }

    fn asked(&mut self, ask: Ask) {
        let Ask::Propose { instance, value } = ask;
        self.pending = Some((instance, value));
        if !self.proposed.contains(&(instance, value)) {
            self.proposed.push((instance, value));
        }
    }

    fn told(&mut self, tell: Tell) -> Result<(), String> {
        let Tell::Decided { instance, value } = tell;
        match self.decision(instance) {
            // Whoever came back from a crash may learn again what it knew.
            Some(known) if known == value => return Ok(()),
            Some(known) => {
                return Err(format!(
                    "told that instance {instance} decided {value:?} after {known:?}"
                ));
            }
            None => {}
        }
        let place = self.decided.partition_point(|(i, _)| *i < instance);
        if self.promises.decisions != Decisions::Single && place as u32 != instance {
            return Err(format!(
                "told of place {instance} of a log, and of place {place} never"
            ));
        }
        self.decided.insert(place, (instance, value));
        let served = match self.promises.decisions {
            Decisions::Single => self.pending.is_some_and(|(i, _)| i == instance),
            Decisions::Log | Decisions::Commands => self.pending.is_some_and(|(_, v)| v == value),
        };
        if served {
            self.pending = None;
        }
        Ok(())
    }

    fn phase(&self) -> Phase {
        match self.pending {
            Some(_) => Phase::Waiting,
            None => Phase::Idle,
        }
    }

    fn rename(&mut self, new: crate::UserId) {
        self.id = new.0;
    }

    fn deceived(&mut self) {
        self.lies = true;
    }

    fn timed_out(&mut self) {
        self.timed_out = self.promises.validity == Validity::Unanimous;
    }

    /// What it was told stays said.
    fn crashed(&self, _first: &Self) -> Self {
        User {
            pending: None,
            crashed: true,
            ..self.clone()
        }
    }
}
