//! Everything that gets a number in the states of the checker, and what is known of it.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use testigo_protocol::{Explorer, Machine, Next, Phase, Problem, User, UserId};

use super::grants::Grants;
use super::state::{Draft, ILL_FORMED};

/// Everything that gets a number.
pub(crate) struct Tables<Q: Problem> {
    pub(super) explorer: Box<dyn Explorer<Q>>,
    pub(super) users: IndexSet<Q::User, FxBuildHasher>,
    pub(super) grants: Grants<Q>,
    violations: FxHashMap<Box<[u32]>, Option<String>>,
    violations_at_rest: FxHashMap<Box<[u32]>, Option<String>>,
    unserved: FxHashMap<Box<[u32]>, Option<String>>,
    /// Used again for every state: only the finished one is allocated.
    pub(super) draft: Draft,
}

impl<Q: Problem> Tables<Q> {
    pub(super) fn new(machine: &dyn Machine<Q>) -> Tables<Q> {
        Tables {
            explorer: machine.explorer(),
            users: IndexSet::default(),
            grants: Grants::default(),
            violations: FxHashMap::default(),
            violations_at_rest: FxHashMap::default(),
            unserved: FxHashMap::default(),
            draft: Draft::default(),
        }
    }

    pub(super) fn user(&mut self, user: Q::User) -> u32 {
        self.users.insert_full(user).0 as u32
    }

    /// The user as it is at another node.
    pub(super) fn user_renamed(&mut self, user: u32, new: UserId) -> u32 {
        if user == ILL_FORMED {
            return user;
        }
        let mut renamed = self.users[user as usize].clone();
        renamed.rename(new);
        self.user(renamed)
    }

    pub(super) fn next(&self, user: u32) -> Next<Q::Ask> {
        self.users
            .get_index(user as usize)
            .map_or(Next::Nothing, User::next)
    }

    pub(super) fn choices(&self, user: u32) -> u32 {
        self.users.get_index(user as usize).map_or(0, User::choices)
    }

    pub(super) fn phase(&self, user: u32) -> Phase {
        self.users
            .get_index(user as usize)
            .map_or(Phase::Idle, User::phase)
    }

    pub(super) fn violation(&mut self, users: &[u32], at_rest: bool) -> Option<String> {
        let judged = match at_rest {
            true => &mut self.violations_at_rest,
            false => &mut self.violations,
        };
        if let Some(known) = judged.get(users) {
            return known.clone();
        }
        let found = match users.iter().position(|&user| user == ILL_FORMED) {
            Some(node) => Some(format!("p{node} was told what it had not asked for")),
            None => {
                let all: Vec<Q::User> = users
                    .iter()
                    .map(|&u| self.users[u as usize].clone())
                    .collect();
                let at_rest = || Q::violation_at_rest(&all).filter(|_| at_rest);
                Q::violation(&all).or_else(at_rest)
            }
        };
        judged.insert(users.into(), found.clone());
        found
    }

    /// What is missing for these users, if nothing more will happen.
    pub(super) fn unserved(&mut self, users: &[u32]) -> Option<String> {
        if let Some(known) = self.unserved.get(users) {
            return known.clone();
        }
        let all: Option<Vec<Q::User>> = users
            .iter()
            .map(|&user| self.users.get_index(user as usize).cloned())
            .collect();
        let found = all.and_then(|all| Q::unserved(&all));
        self.unserved.insert(users.into(), found.clone());
        found
    }
}
