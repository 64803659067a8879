//! The monitor of a problem, in the states of the checker: what it remembers has a number, and so has a
//! promise that was broken.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use testigo_protocol::{Admission, Grant, Monitor, NodeId, Problem, UserId};

use super::knowledge::Knowledge;
use super::state::{Draft, View};

/// Marks the number of a broken promise.
const BROKEN: u32 = 1 << 31;

pub(crate) struct Grants<Q: Problem> {
    monitors: IndexSet<Q::Monitor, FxBuildHasher>,
    broken: IndexSet<String, FxBuildHasher>,
}

impl<Q: Problem> Default for Grants<Q> {
    fn default() -> Self {
        Grants {
            monitors: IndexSet::default(),
            broken: IndexSet::default(),
        }
    }
}

type Users<Q> = IndexSet<<Q as Problem>::User, FxBuildHasher>;

impl<Q: Problem> Grants<Q> {
    /// The number of a monitor that has seen nothing.
    pub(crate) fn first(&mut self, users: &[Q::User]) -> u32 {
        self.monitors.insert_full(Q::Monitor::new(users)).0 as u32
    }

    pub(crate) fn entered(
        &mut self,
        draft: &mut Draft,
        users: &Users<Q>,
        node: NodeId,
        entered: UserId,
        admission: Admission,
    ) {
        let known = Knowledge::of(draft.known[node.index()]);
        self.judge(draft, users, |monitor, users| {
            monitor.entered(users, entered, admission, &known)
        });
    }

    pub(crate) fn sent(&mut self, draft: &mut Draft, users: &Users<Q>, from: NodeId, grant: Grant) {
        let known = Knowledge::of(draft.known[from.index()]);
        self.judge(draft, users, |monitor, users| {
            monitor.sent(users, from, grant, &known)
        });
    }

    pub(crate) fn received(
        &mut self,
        draft: &mut Draft,
        users: &Users<Q>,
        at: NodeId,
        grant: Grant,
    ) {
        self.judge(draft, users, |monitor, users| {
            monitor.received(users, at, grant)
        });
    }

    fn judge(
        &mut self,
        draft: &mut Draft,
        users: &Users<Q>,
        see: impl FnOnce(&mut Q::Monitor, &[Q::User]) -> Option<String>,
    ) {
        let [number] = draft.monitor[..] else { return };
        let all = draft.users.iter();
        let all: Option<Vec<Q::User>> = all
            .map(|&user| users.get_index(user as usize).cloned())
            .collect();
        let (Some(all), Some(monitor)) = (all, self.monitors.get_index(number as usize)) else {
            return;
        };
        let mut monitor = monitor.clone();
        draft.monitor[0] = match see(&mut monitor, &all) {
            Some(broken) => BROKEN | self.broken.insert_full(broken).0 as u32,
            None => self.monitors.insert_full(monitor).0 as u32,
        };
    }

    /// The promise that was broken, if one was.
    pub(crate) fn broken(&self, view: &View<'_>) -> Option<String> {
        let number = *view.monitor.first()?;
        let broken = self.broken.get_index((number & !BROKEN) as usize);
        broken.filter(|_| number & BROKEN != 0).cloned()
    }
}
