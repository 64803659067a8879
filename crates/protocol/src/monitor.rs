//! The monitor of a problem: what must be remembered of a run in order to say that a grant is wrong.

use std::fmt::Debug;
use std::hash::Hash;

use crate::{NodeId, Problem, UserId};

/// Judges every grant by what the node that makes it can know, through the algorithm's own messages.
///
/// `known` says of a user whether that node can know of its request. Each method returns the promise
/// that the grant breaks, in words.
pub trait Monitor<Q: Problem>: Clone + Eq + Hash + Debug + Send + Sync {
    /// Before anything has happened.
    fn new(users: &[Q::User]) -> Self;

    /// A user has entered.
    fn entered(
        &mut self,
        users: &[Q::User],
        entered: UserId,
        admission: Admission,
        known: &dyn Fn(UserId) -> bool,
    ) -> Option<String>;

    /// A node has sent a grant.
    fn sent(
        &mut self,
        users: &[Q::User],
        from: NodeId,
        grant: Grant,
        known: &dyn Fn(UserId) -> bool,
    ) -> Option<String>;

    /// A grant has arrived.
    fn received(&mut self, users: &[Q::User], at: NodeId, grant: Grant) -> Option<String>;
}

/// How a user came to enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Its node decided so.
    Decided,
    /// Its node let it in along with another, by the same decision.
    Together,
    /// Another node decided so, and sent a [`Grant::Entry`].
    Granted,
}

/// What a message hands over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Grant {
    /// The receiver lets in those who wait there for this kind of entry: the sender has decided it.
    Entry(u32),
    /// The receiver decides from now on.
    Token,
}

/// Nothing is promised of grants.
impl<Q: Problem> Monitor<Q> for () {
    fn new(_: &[Q::User]) -> Self {}

    fn entered(
        &mut self,
        _: &[Q::User],
        _: UserId,
        _: Admission,
        _: &dyn Fn(UserId) -> bool,
    ) -> Option<String> {
        None
    }

    fn sent(
        &mut self,
        _: &[Q::User],
        _: NodeId,
        _: Grant,
        _: &dyn Fn(UserId) -> bool,
    ) -> Option<String> {
        None
    }

    fn received(&mut self, _: &[Q::User], _: NodeId, _: Grant) -> Option<String> {
        None
    }
}
