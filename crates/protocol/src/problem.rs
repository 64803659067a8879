//! What a problem is: its words, its users, and what must never be true of them.

use std::fmt::Debug;
use std::hash::Hash;

/// A problem that algorithms solve: what users may ask, what they are told, and the property.
///
/// The property is a predicate over the users, because a user sees all that a problem promises:
/// a state is wrong when what its users have been told cannot all be right.
pub trait Problem: Copy + Eq + Hash + Debug + Send + Sync + 'static {
    const NAME: &'static str;
    /// What a user asks of its node.
    type Ask: Copy + Eq + Hash + Debug + Send + Sync;
    /// What a node tells its user.
    type Tell: Copy + Eq + Hash + Debug + Send + Sync;
    type User: User<Self>;

    /// What is wrong in this state, in words.
    fn violation(users: &[Self::User]) -> Option<String>;
}

/// A user as a small automaton. The laboratory drives it under any arrivals; the checker lets it
/// ask whenever it may.
pub trait User<P: Problem>: Clone + Eq + Hash + Debug + Default + Send + Sync {
    /// What it does next by itself.
    fn next(&self) -> Next<P::Ask>;
    fn asked(&mut self, ask: P::Ask);
    /// What it was told; an error when no well-formed node would have said so.
    fn told(&mut self, tell: P::Tell) -> Result<(), String>;
    fn phase(&self) -> Phase;
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
