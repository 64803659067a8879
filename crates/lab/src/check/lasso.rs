//! A lasso: a schedule to a state, and a fair cycle from it back to itself.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use testigo_protocol::{Channels, Problem};

use super::liveness::{Graph, Obligation, obligations};
use super::model::{Model, Step};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lasso {
    pub(crate) stem: Vec<Step>,
    pub(crate) cycle: Vec<Step>,
}

impl Lasso {
    /// The same, found among canonical states, as it is played.
    pub(crate) fn into_played<Q: Problem>(mut self, model: &Model<Q>) -> Lasso {
        let stem = self.stem.len();
        self.stem.append(&mut self.cycle);
        let mut steps = model.as_played(&self.stem);
        let cycle = steps.split_off(stem);
        Lasso { stem: steps, cycle }
    }
}

/// The state nearest to the start, and a short tour from it through the component that meets every
/// obligation: by taking its step, or by passing a state where there is none.
pub(crate) fn tour<Q: Problem>(
    model: &Model<Q>,
    graph: &Graph,
    channels: Channels,
    component: &[u32],
) -> Lasso {
    let inside: FxHashSet<u32> = component.iter().copied().collect();
    let start = component[0];
    let owed = |state: u32| obligations(model, graph, channels, state);
    let mut cycle = Vec::new();
    let mut at = start;
    // What has been owed ever since the tour began, and not been met.
    let mut open: FxHashSet<Obligation> = owed(start).into_iter().map(|(o, _)| o).collect();
    while !open.is_empty() {
        let serves = |state: u32| {
            let here = owed(state);
            let free = open
                .iter()
                .any(|o| !here.iter().any(|(other, _)| other == o));
            let step = here
                .into_iter()
                .find(|(o, next)| open.contains(o) && inside.contains(next));
            (free, step)
        };
        let goal = |state: u32| {
            let (free, step) = serves(state);
            free || step.is_some()
        };
        let Some(way) = route(graph, &inside, at, goal) else {
            break;
        };
        let mut visited = vec![at];
        for (step, next) in way {
            cycle.push(step);
            visited.push(next);
            at = next;
        }
        let (free, met) = serves(at);
        if let (false, Some((obligation, next))) = (free, met) {
            let taken = graph.steps(at).iter().find(|(step, to)| {
                *to == next
                    && owed(at).iter().any(|(o, n)| *o == obligation && n == to)
                    && model.is_obliged(&graph.states[at as usize], *step)
            });
            if let Some((step, _)) = taken {
                cycle.push(*step);
            }
            open.remove(&obligation);
            at = next;
            visited.push(next);
        }
        for state in visited {
            let here: FxHashSet<Obligation> = owed(state).into_iter().map(|(o, _)| o).collect();
            open.retain(|obligation| here.contains(obligation));
        }
    }
    let home = |state: u32| state == start;
    if cycle.is_empty() {
        // Nothing is owed: any way round will do.
        if let Some(&(step, next)) = graph
            .steps(start)
            .iter()
            .find(|(_, next)| inside.contains(next))
        {
            cycle.push(step);
            at = next;
        }
    }
    if let Some(way) = route(graph, &inside, at, home) {
        cycle.extend(way.into_iter().map(|(step, _)| step));
    }
    Lasso {
        stem: graph.path(start),
        cycle,
    }
}

/// The shortest way inside the component to a state that is wanted.
fn route(
    graph: &Graph,
    inside: &FxHashSet<u32>,
    from: u32,
    wanted: impl Fn(u32) -> bool,
) -> Option<Vec<(Step, u32)>> {
    let mut reached: FxHashMap<u32, (u32, Step)> = FxHashMap::default();
    let mut queue = VecDeque::from([from]);
    let mut seen: FxHashSet<u32> = [from].into_iter().collect();
    while let Some(state) = queue.pop_front() {
        if wanted(state) {
            let mut way = Vec::new();
            let mut at = state;
            while at != from {
                let (parent, step) = reached[&at];
                way.push((step, at));
                at = parent;
            }
            way.reverse();
            return Some(way);
        }
        for &(step, next) in graph.steps(state) {
            if inside.contains(&next) && seen.insert(next) {
                reached.insert(next, (state, step));
                queue.push_back(next);
            }
        }
    }
    None
}
