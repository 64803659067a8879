//! The words of multicast, its user, and its promises.
//!
//! Source: coordination and agreement §4.1, §4.3 and §4.5. A user keeps the history of what it multicast and what was
//! delivered to it; the promises are judged over these histories ([`super::history`]).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::history;
use super::{Group, Groups};
use crate::{Counted, Next, NodeId, Phase, Problem, UserId};

/// The problem of multicast: what is sent to a group is delivered to its members.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Multicast;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ask {
    Multicast(Group),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tell {
    Delivered(Cast),
}

/// One multicast, by its identity (§4.3): who sent it, to which group, and its number among all of its sender's, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cast {
    pub sender: NodeId,
    pub number: u32,
    pub group: Group,
}

impl fmt::Display for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}.{}", self.sender, self.number)?;
        match self.group {
            Group(0) => Ok(()),
            Group(group) => write!(f, "@{group}"),
        }
    }
}

impl fmt::Debug for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an algorithm claims of its deliveries. The first and the orders are judged in every state, the others when
/// nothing more will happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Promises {
    /// A member delivers a multicast at most once, and only one that was sent to its group.
    pub integrity: bool,
    /// Every correct member delivers what a correct process multicasts.
    pub validity: bool,
    /// What one correct member delivers, every correct member delivers.
    pub agreement: bool,
    /// What any member delivers, even one that crashes afterwards, every correct member delivers.
    pub uniform: bool,
    /// The multicasts of one sender are delivered in its order, over all groups.
    pub fifo: bool,
    /// Multicasts are delivered in happened-before order, over all groups.
    pub causal: bool,
    /// There is one order of all multicasts, over all groups, and every member delivers by it and leaves out none.
    pub total: bool,
}

impl Problem for Multicast {
    const NAME: &'static str = "multicast";
    type Ask = Ask;
    type Tell = Tell;
    type User = User;
    type Monitor = ();
    const COUNTED: Counted = Counted::MULTICASTS;

    fn violation(users: &[User]) -> Option<String> {
        history::violation(users)
    }

    fn unserved(users: &[User]) -> Option<String> {
        history::missing(users)
    }

    fn may_violate_at_rest(_: &crate::Tally) -> bool {
        false
    }

    fn kind_name(kind: u32) -> String {
        format!("group {kind}")
    }
}

/// A user: it multicasts to a group of its own, and waits until that is delivered to itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct User {
    pub(super) id: NodeId,
    pub(super) groups: Groups,
    pub(super) promises: Promises,
    pub(super) history: Vec<Event>,
    /// How many multicasts it has asked for.
    pub(super) sent: u32,
    /// The group of the latest.
    group: Group,
    waits: bool,
    pub(super) crashed: bool,
}

/// What a user did or was told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Event {
    Sent(Cast),
    Delivered(Cast),
}

impl Default for User {
    fn default() -> User {
        User::new(UserId(0), Groups::default(), Promises::default())
    }
}

impl User {
    pub(super) fn new(user: UserId, groups: Groups, promises: Promises) -> User {
        User {
            id: NodeId(user.0),
            groups,
            promises,
            history: Vec::new(),
            sent: 0,
            group: Group::default(),
            waits: false,
            crashed: false,
        }
    }

    pub(super) fn delivered(&self) -> impl Iterator<Item = Cast> + '_ {
        self.history.iter().filter_map(|event| match event {
            Event::Delivered(cast) => Some(*cast),
            Event::Sent(_) => None,
        })
    }

    pub(super) fn casts(&self) -> impl Iterator<Item = Cast> + '_ {
        self.history.iter().filter_map(|event| match event {
            Event::Sent(cast) => Some(*cast),
            Event::Delivered(_) => None,
        })
    }
}

impl crate::User<Multicast> for User {
    fn next(&self) -> Next<Ask> {
        self.choose(0)
    }

    fn choices(&self) -> u32 {
        self.groups.of(self.id).count() as u32
    }

    fn choose(&self, choice: u32) -> Next<Ask> {
        let mut mine = self.groups.of(self.id);
        match mine.nth(choice as usize) {
            Some(group) if !self.waits && !self.crashed => Next::May(Ask::Multicast(group)),
            _ => Next::Nothing,
        }
    }

    fn asked(&mut self, Ask::Multicast(group): Ask) {
        self.sent += 1;
        self.group = group;
        self.waits = true;
        self.history.push(Event::Sent(Cast {
            sender: self.id,
            number: self.sent,
            group,
        }));
    }

    fn told(&mut self, Tell::Delivered(cast): Tell) -> Result<(), String> {
        // Processes fail by stopping (§4.1): whatever a node says after it came back, nothing is promised of it.
        if self.crashed {
            return Ok(());
        }
        self.history.push(Event::Delivered(cast));
        self.waits &= (cast.sender, cast.number) != (self.id, self.sent);
        Ok(())
    }

    fn phase(&self) -> Phase {
        match self.waits {
            true => Phase::Waiting,
            false => Phase::Idle,
        }
    }

    fn kind(&self) -> u32 {
        self.group.0
    }

    fn crashed(&self, _: &User) -> User {
        User {
            waits: false,
            crashed: true,
            ..self.clone()
        }
    }
}
