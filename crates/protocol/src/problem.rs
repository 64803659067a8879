//! What a problem is: its words, its users, and what must never be true of them.

use std::fmt::Debug;
use std::hash::Hash;

use std::sync::Arc;

use crate::rooms::{Plan, Rooms};
use crate::{Machine, Monitor, Protocol, Shape, Tally, UserId};

/// A problem that algorithms solve: what users may ask, what they are told, and the property.
///
/// The property is a predicate over the users, because a user sees all that a problem promises:
/// a state is wrong when what its users have been told cannot all be right.
pub trait Problem: Copy + Eq + Hash + Debug + Send + Sync + 'static {
    const NAME: &'static str;
    /// What a user asks of its node.
    type Ask: Copy + Eq + Hash + Debug + Send + Sync;
    /// What a node tells its user. Where several users share a node, the first in its line that
    /// [`hears`](User::hears) the word takes it: a node counts who waits, its gate keeps the line.
    type Tell: Copy + Eq + Hash + Debug + Send + Sync;
    type User: User<Self>;
    /// What is remembered of a run in order to judge its grants; `()` where nothing is promised of them.
    type Monitor: Monitor<Self>;

    /// What a run counts.
    const COUNTED: Counted = Counted::ENTRIES;

    /// What is wrong in this state, in words. Being told more makes no wrong state right.
    fn violation(users: &[Self::User]) -> Option<String>;

    /// What was promised for the end and is missing, where nothing more will happen: a correct process that
    /// never decided or never heard who was elected. Users that wait are found without it.
    fn unserved(_users: &[Self::User]) -> Option<String> {
        None
    }

    /// Whether users counted so can be in a violation; if not, nobody looks at them one by one.
    fn may_violate(_tally: &Tally) -> bool {
        true
    }

    /// Whether users counted so can be in a violation at rest.
    fn may_violate_at_rest(_tally: &Tally) -> bool {
        true
    }

    /// What is wrong in this state if no message is under way: somebody waits for others to leave
    /// who was promised to be let in beside them.
    fn violation_at_rest(_users: &[Self::User]) -> Option<String> {
        None
    }

    /// If the entry of `entered`, at a node that can know of the request of `waiting`, passes it: how
    /// many may pass one request. None where such an entry does not count, or nothing is promised.
    fn bypass_max(_users: &[Self::User], _entered: UserId, _waiting: UserId) -> Option<u32> {
        None
    }

    /// The name of a kind of request; see [`User::kind`].
    fn kind_name(kind: u32) -> String {
        kind.to_string()
    }

    /// Rooms over an algorithm of this problem: the mutex has them.
    fn rooms<P: Protocol<Problem = Self>>(
        _shape: &Shape,
        _config: &Arc<P::Config>,
        _plan: Plan,
    ) -> Option<Box<dyn Machine<Rooms>>> {
        None
    }
}

/// A user as a small automaton. The laboratory drives it under any arrivals; the checker lets it
/// ask whenever it may, whatever it may.
pub trait User<P: Problem>: Clone + Eq + Hash + Debug + Default + Send + Sync {
    /// What it does next by itself; the first choice, where it has several.
    fn next(&self) -> Next<P::Ask>;
    fn asked(&mut self, ask: P::Ask);
    /// What it was told; an error when no well-formed node would have said so.
    fn told(&mut self, tell: P::Tell) -> Result<(), String>;
    fn phase(&self) -> Phase;

    /// Among how many asks it may choose now; most users have no choice.
    fn choices(&self) -> u32 {
        1
    }

    /// What it does next by this choice, from 0.
    fn choose(&self, _choice: u32) -> Next<P::Ask> {
        self.next()
    }

    /// The choice that a lot between 0 and 1 falls on, when a simulation draws one.
    fn draw(&self, lot: f64) -> u32 {
        ((lot * f64::from(self.choices())) as u32).min(self.choices() - 1)
    }

    /// Whether a word of its node is for such a user, where several share the node.
    fn hears(&self, _tell: &P::Tell) -> bool {
        true
    }

    /// Gives it the number of another user, where it knows its own: their equal nodes change places.
    fn rename(&mut self, _new: UserId) {}

    /// Whether it remembers a logical time that it was told: then the checker moves none, as
    /// [`clocks`](Protocol::clocks) else allows.
    fn knows_a_time(&self) -> bool {
        false
    }

    /// Whether what it may ask for has a logical time of its own, which begins at zero whatever the times of others are: as long as
    /// it may ask, the checker moves none.
    fn asks_from_zero(&self) -> bool {
        false
    }

    /// What kind of request it has, by number: a class, a room. Waiting is measured by kind.
    fn kind(&self) -> u32 {
        0
    }

    /// What is left of it when its node crashes: `first`, the user before its first request, unless what it
    /// was told must stay true of the others.
    fn crashed(&self, first: &Self) -> Self {
        first.clone()
    }

    /// Its node is back.
    fn restarted(&mut self) {}

    /// Its node has told its first lie: nothing is promised any more of what this user is told.
    fn deceived(&mut self) {}

    /// A timer of its node has fired.
    fn timed_out(&mut self) {}

    /// Whether its entry opened a round, where its node says so; else whoever finds nobody inside does.
    fn opens_round(&self) -> Option<bool> {
        None
    }
}

/// What a user does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next<A> {
    /// It waits to be told something.
    Nothing,
    /// It asks this whenever it likes, or never.
    May(A),
    /// It asks this sooner or later: a user inside leaves.
    Must(A),
}

/// Where a user stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// It wants nothing.
    Idle,
    /// It has asked and waits.
    Waiting,
    /// It has what it asked for.
    Inside,
}

/// The word for what users get, one and many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    pub one: &'static str,
    pub many: &'static str,
}

impl Counted {
    /// Whether who got it is inside for a while, and leaves.
    pub fn has_inside(self) -> bool {
        self == Counted::ENTRIES
    }

    /// So many, in words.
    pub fn of(self, count: u64) -> String {
        let noun = if count == 1 { self.one } else { self.many };
        format!("{count} {noun}")
    }

    pub const ENTRIES: Counted = Counted {
        one: "entry",
        many: "entries",
    };
    pub const ELECTIONS: Counted = Counted {
        one: "election",
        many: "elections",
    };
    pub const MULTICASTS: Counted = Counted {
        one: "multicast",
        many: "multicasts",
    };
    pub const DECISIONS: Counted = Counted {
        one: "decision",
        many: "decisions",
    };
}
