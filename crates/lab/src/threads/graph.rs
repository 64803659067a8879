//! The graph of all states, and in it fair cycles on which somebody waits for ever.
//!
//! Fairness is weak: a thread that can take a step takes one in the end, and a user that is inside leaves. Every
//! thread outside its remainder can always take a step, if only another turn of a wait, so a deadlock is a
//! fair cycle too: somebody waits, and nobody is inside.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::VecDeque;
use testigo_memory::{Local, Region};

use super::model::{ThreadModel, ThreadState, ThreadStep};
use crate::check::components;

/// The explored graph.
pub(crate) struct ThreadGraph {
    pub(crate) states: IndexSet<ThreadState, FxBuildHasher>,
    /// The state from which each was first reached, and by which step; none for a first state.
    parents: Vec<Option<(u32, ThreadStep)>>,
    /// Steps of state `s`: `steps[first[s]..first[s + 1]]`.
    first: Vec<u32>,
    steps: Vec<(ThreadStep, u32)>,
}

/// A schedule from a first state, and a fair cycle behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadLasso {
    pub(crate) begins: ThreadState,
    pub(crate) stem: Vec<ThreadStep>,
    pub(crate) cycle: Vec<ThreadStep>,
}

/// What a graph shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ThreadLiveness {
    Holds,
    /// Somebody waits and nobody ever gets in.
    Stuck(ThreadLasso),
    /// One process can wait for ever, though others get in; or its exit never ends.
    Starves(usize, ThreadLasso),
}

/// Whether an actor is none of the processes that have stopped, a bit each.
fn goes_on(model: &ThreadModel, stopped: u64, actor: usize) -> bool {
    actor >= model.processes || stopped >> actor & 1 == 0
}

impl ThreadGraph {
    /// Explores everything; none where there are more states than that.
    pub(crate) fn explore(model: &ThreadModel, states_max: usize) -> Option<ThreadGraph> {
        let mut graph = ThreadGraph {
            states: IndexSet::default(),
            parents: Vec::new(),
            first: vec![0],
            steps: Vec::new(),
        };
        for state in model.firsts() {
            if graph.states.insert(state) {
                graph.parents.push(None);
            }
        }
        let (mut at, mut steps) = (0, Vec::new());
        while at < graph.states.len() {
            let state = graph.states[at].clone();
            steps.clear();
            model.steps(&state, |step, _| steps.push(step));
            for &step in &steps {
                let (next, new) = graph.states.insert_full(model.take(&state, step));
                if new {
                    graph.parents.push(Some((at as u32, step)));
                }
                graph.steps.push((step, next as u32));
            }
            graph.first.push(graph.steps.len() as u32);
            if graph.states.len() > states_max {
                return None;
            }
            at += 1;
        }
        Some(graph)
    }

    fn steps(&self, state: u32) -> &[(ThreadStep, u32)] {
        &self.steps[self.first[state as usize] as usize..self.first[state as usize + 1] as usize]
    }

    /// Looks for a deadlock first, then for somebody who starves.
    pub(crate) fn judge(&self, model: &ThreadModel) -> ThreadLiveness {
        let waits = |local: &Local| local.region == Region::Trying;
        let stuck = |locals: &[Local]| {
            let inside = |local: &Local| local.region == Region::Inside;
            locals.iter().any(waits) && !locals.iter().any(inside)
        };
        if let Some(lasso) = self.fair_cycle(model, &[0], stuck) {
            return ThreadLiveness::Stuck(lasso);
        }
        for victim in 0..model.processes {
            let unserved = |locals: &[Local]| {
                matches!(locals[victim].region, Region::Trying | Region::Exiting)
            };
            // With several permits, processes that stop anywhere must keep nobody else out, all permits but one.
            // Of more than a few processes there is no graph: each has asked or not.
            let stops = (0..1u64 << model.processes)
                .filter(|stopped| goes_on(model, *stopped, victim))
                .filter(|stopped| stopped.count_ones() <= model.stops_max);
            let mut stops: Vec<u64> = stops.collect();
            stops.sort_by_key(|stopped| stopped.count_ones());
            if let Some(lasso) = self.fair_cycle(model, &stops, unserved) {
                return ThreadLiveness::Starves(victim, lasso);
            }
        }
        ThreadLiveness::Holds
    }

    /// A cycle through states of which this holds, fair but for processes that may have stopped: one of these sets, a
    /// bit each.
    fn fair_cycle(
        &self,
        model: &ThreadModel,
        stops: &[u64],
        holds: impl Fn(&[Local]) -> bool,
    ) -> Option<ThreadLasso> {
        let states = self.states.iter();
        let counts: Vec<bool> = states.map(|state| holds(&model.locals(state))).collect();
        let found = components(self.states.len(), |state| self.steps(state), &counts);
        stops.iter().find_map(|&stopped| {
            let mut found = found.iter();
            let fair = found.find(|component| self.is_fair(model, stopped, component))?;
            Some(self.lasso(model, stopped, fair))
        })
    }

    /// Whether every actor either takes a step inside the component or need not take one somewhere in it.
    fn is_fair(&self, model: &ThreadModel, stopped: u64, component: &[u32]) -> bool {
        let inside: FxHashSet<u32> = component.iter().copied().collect();
        let mut actors = (0..model.actors).filter(|actor| goes_on(model, stopped, *actor));
        actors.all(|actor| {
            let mut states = component.iter();
            states.any(|&state| self.serves(model, state, actor, &inside).is_some())
        })
    }

    /// How a fair tour meets its duty towards an actor in this state: by a step, or because there is none.
    fn serves(
        &self,
        model: &ThreadModel,
        state: u32,
        actor: usize,
        inside: &FxHashSet<u32>,
    ) -> Option<Option<(ThreadStep, u32)>> {
        let mut owed = false;
        model.steps(&self.states[state as usize], |step, must| {
            owed |= must && usize::from(step.actor) == actor;
        });
        let mine = |(step, next): &&(ThreadStep, u32)| {
            usize::from(step.actor) == actor && inside.contains(next)
        };
        match owed {
            false => Some(None),
            true => self
                .steps(state)
                .iter()
                .find(mine)
                .map(|&found| Some(found)),
        }
    }

    /// The way to the component, and a tour of it that serves every actor and ends where it began.
    fn lasso(&self, model: &ThreadModel, stopped: u64, component: &[u32]) -> ThreadLasso {
        let inside: FxHashSet<u32> = component.iter().copied().collect();
        let start = component[0];
        let mut stem = Vec::new();
        let mut at = start;
        while let Some((parent, step)) = self.parents[at as usize] {
            stem.push(step);
            at = parent;
        }
        stem.reverse();
        let begins = self.states[at as usize].clone();
        let mut cycle = Vec::new();
        let mut at = start;
        for actor in (0..model.actors).filter(|actor| goes_on(model, stopped, *actor)) {
            let serves = |state: u32| self.serves(model, state, actor, &inside);
            at = self.walk(at, &inside, |state| serves(state).is_some(), &mut cycle);
            if let Some(Some((step, next))) = serves(at) {
                cycle.push(step);
                at = next;
            }
        }
        self.walk(at, &inside, |state| state == start, &mut cycle);
        ThreadLasso {
            begins,
            stem,
            cycle,
        }
    }

    /// The shortest way from a state to one of which this holds, without leaving the component.
    fn walk(
        &self,
        from: u32,
        inside: &FxHashSet<u32>,
        goal: impl Fn(u32) -> bool,
        way: &mut Vec<ThreadStep>,
    ) -> u32 {
        let mut came: FxHashMap<u32, (u32, ThreadStep)> = FxHashMap::default();
        let mut next = VecDeque::from([from]);
        while let Some(state) = next.pop_front() {
            if goal(state) {
                let (mut at, mut steps) = (state, Vec::new());
                while at != from {
                    let (parent, step) = came[&at];
                    steps.push(step);
                    at = parent;
                }
                way.extend(steps.into_iter().rev());
                return state;
            }
            for &(step, to) in self.steps(state) {
                if to != from && inside.contains(&to) && !came.contains_key(&to) {
                    came.insert(to, (state, step));
                    next.push_back(to);
                }
            }
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use testigo_memory::permits::Fife;
    use testigo_memory::{Memory, Program, Registers};

    use super::*;

    /// Keeps to fewer permits than it says that it has.
    #[derive(Debug)]
    struct Stingy {
        fife: Fife,
        says: usize,
    }

    impl Program for Stingy {
        fn processes(&self) -> usize {
            self.fife.processes
        }

        fn permits(&self) -> Option<usize> {
            Some(self.says)
        }

        fn registers(&self) -> Registers {
            self.fife.registers()
        }

        fn step(&self, actor: usize, local: &mut Local, memory: &mut dyn Memory) {
            self.fife.step(actor, local, memory);
        }
    }

    fn judge(permits: usize, says: usize) -> ThreadLiveness {
        let processes = 3;
        let fife = Fife { processes, permits };
        let model = ThreadModel::new(Arc::new(Stingy { fife, says }), &[], Some(1), |_| {});
        let graph = ThreadGraph::explore(&model, 1_000_000).expect("few states");
        graph.judge(&model)
    }

    #[test]
    fn as_many_may_stop_as_there_are_permits_but_one() {
        assert_eq!(judge(2, 2), ThreadLiveness::Holds);
        assert_eq!(judge(3, 3), ThreadLiveness::Holds);
        // With one stopped it goes on, with two it does not.
        assert!(matches!(judge(2, 3), ThreadLiveness::Starves(..)));
        assert!(matches!(judge(1, 2), ThreadLiveness::Starves(..)));
    }
}
