//! Starvation: the graph of all states with users that ask for ever, and in it a fair cycle on which
//! somebody waits and is never served.
//!
//! Fairness is weak: a message that stays under way is delivered in the end, a user that stays
//! inside leaves. A strongly connected component (of the states in which the victim waits) contains
//! a fair cycle exactly when every obligation that holds in all of its states is met by one of its
//! steps; then a tour of the component is fair.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashSet};
use testigo_protocol::{Channels, NodeId, Problem, Timer, UserId};

use super::lasso::{Lasso, tour};
use super::model::{Model, Step, Timing};
use super::state::State;

/// What the pass found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Holds {
        states: usize,
    },
    /// Somebody can wait for ever.
    Starves {
        states: usize,
        victim: UserId,
        lasso: Lasso,
    },
    /// A state that bounded entries did not reach is wrong.
    Wrong {
        states: usize,
        steps: Vec<Step>,
        stuck: bool,
    },
    NotCovered {
        states: usize,
        why: String,
    },
}

/// Something that must happen in the end: a message is delivered (any message of a FIFO link stands
/// for its first), a user leaves, a timer fires that is due.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Obligation {
    Leave(UserId),
    Link(u32),
    Message(u32, u32),
    Timer(NodeId, Timer),
}

/// The explored graph.
pub(crate) struct Graph {
    pub(crate) states: IndexSet<State, FxBuildHasher>,
    /// The state from which each was first reached, and by which step.
    parents: Vec<(u32, Step)>,
    /// Steps of state `s`: `steps[first[s]..first[s + 1]]`.
    first: Vec<u32>,
    steps: Vec<(Step, u32)>,
}

impl Graph {
    pub(crate) fn steps(&self, state: u32) -> &[(Step, u32)] {
        &self.steps[self.first[state as usize] as usize..self.first[state as usize + 1] as usize]
    }

    /// The shortest schedule to a state.
    pub(crate) fn path(&self, mut state: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        while state != 0 {
            let (parent, step) = self.parents[state as usize];
            steps.push(step);
            state = parent;
        }
        steps.reverse();
        steps
    }
}

/// Explores and judges.
pub(crate) fn liveness<Q: Problem>(
    model: &Model<Q>,
    channels: Channels,
    states_max: usize,
) -> Liveness {
    let graph = match explore(model, states_max) {
        Ok(graph) => graph,
        Err(ended) => return ended,
    };
    let states = graph.states.len();
    for victim in UserId::all(model.users) {
        let waits: Vec<bool> = graph
            .states
            .iter()
            .map(|state| model.waits(state, victim))
            .collect();
        for component in components(states, |state| graph.steps(state), &waits) {
            if is_fair(model, &graph, channels, &component) {
                let lasso = tour(model, &graph, channels, &component).into_played(model);
                return Liveness::Starves {
                    states,
                    victim,
                    lasso,
                };
            }
        }
    }
    Liveness::Holds { states }
}

fn explore<Q: Problem>(model: &Model<Q>, states_max: usize) -> Result<Graph, Liveness> {
    let first = model.canonical(model.first());
    let mut graph = Graph {
        states: IndexSet::default(),
        parents: vec![(0, Step::Ask(UserId(0), 0))],
        first: vec![0],
        steps: Vec::new(),
    };
    graph.states.insert(first);
    let mut at = 0;
    let mut steps = Vec::new();
    while at < graph.states.len() {
        let state = graph.states[at].clone();
        let stuck = model.stuck(&state).is_some();
        if stuck || model.violation(&state).is_some() {
            let (states, steps) = (graph.states.len(), model.as_played(&graph.path(at as u32)));
            return Err(Liveness::Wrong {
                states,
                steps,
                stuck,
            });
        }
        if model.bounds.timing == Timing::Asynchronous && model.has_timers(&state) {
            let why =
                "a timer may fire at any time, so nothing can be said of every fair run".into();
            return Err(Liveness::NotCovered {
                states: graph.states.len(),
                why,
            });
        }
        steps.clear();
        model.steps(&state, &mut steps);
        for &step in &steps {
            let (next, new) = graph
                .states
                .insert_full(model.canonical(model.take(&state, step)));
            if new {
                graph.parents.push((at as u32, step));
            }
            graph.steps.push((step, next as u32));
        }
        graph.first.push(graph.steps.len() as u32);
        if graph.states.len() > states_max {
            let why = format!("more than {states_max} states when users ask for ever");
            return Err(Liveness::NotCovered {
                states: graph.states.len(),
                why,
            });
        }
        at += 1;
    }
    Ok(graph)
}

/// What must happen in the end, in this state, and by which of its steps it does.
pub(crate) fn obligations<Q: Problem>(
    model: &Model<Q>,
    graph: &Graph,
    channels: Channels,
    state: u32,
) -> Vec<(Obligation, u32)> {
    let words = &graph.states[state as usize];
    let obliged = graph
        .steps(state)
        .iter()
        .filter(|(step, _)| model.is_obliged(words, *step));
    obliged
        .map(|&(step, next)| {
            let obligation = match step {
                Step::Ask(user, _) => Obligation::Leave(user),
                Step::Carry {
                    from, to, place, ..
                } => {
                    let link = from.0 * model.nodes as u32 + to.0;
                    match channels {
                        Channels::Fifo => Obligation::Link(link),
                        Channels::AnyOrder => {
                            let messages = model.view(words).messages;
                            let first = messages.partition_point(|[other, _]| *other < link);
                            Obligation::Message(link, messages[first + place as usize][1])
                        }
                    }
                }
                Step::Fire(node, timer) => Obligation::Timer(node, timer),
                Step::Crash(_) | Step::Restart(_) => unreachable!("nobody must crash or come back"),
            };
            (obligation, next)
        })
        .collect()
}

fn is_fair<Q: Problem>(
    model: &Model<Q>,
    graph: &Graph,
    channels: Channels,
    component: &[u32],
) -> bool {
    let inside: FxHashSet<u32> = component.iter().copied().collect();
    let mut unmet: Option<FxHashSet<Obligation>> = None;
    let mut met = FxHashSet::default();
    for &state in component {
        let here = obligations(model, graph, channels, state);
        met.extend(
            here.iter()
                .filter(|(_, next)| inside.contains(next))
                .map(|(o, _)| *o),
        );
        let here: FxHashSet<Obligation> =
            here.into_iter().map(|(obligation, _)| obligation).collect();
        unmet = Some(match unmet {
            None => here,
            Some(unmet) => unmet.intersection(&here).copied().collect(),
        });
        if unmet.as_ref().is_some_and(|unmet| unmet.is_empty()) {
            return true;
        }
    }
    unmet.is_some_and(|unmet| unmet.is_subset(&met))
}

/// The strongly connected components with a step inside, among the states that count (Tarjan, 1972,
/// without recursion).
pub(crate) fn components<'g, S: 'g>(
    states: usize,
    steps_of: impl Fn(u32) -> &'g [(S, u32)],
    counts: &[bool],
) -> Vec<Vec<u32>> {
    const UNSEEN: u32 = u32::MAX;
    let mut number = vec![UNSEEN; states];
    let mut low = vec![0u32; states];
    let mut on_stack = vec![false; states];
    let (mut stack, mut found, mut numbered) = (Vec::new(), Vec::new(), 0);
    let mut calls: Vec<(u32, usize)> = Vec::new();
    for root in 0..states as u32 {
        if !counts[root as usize] || number[root as usize] != UNSEEN {
            continue;
        }
        calls.push((root, 0));
        while let Some((state, next_step)) = calls.pop() {
            let s = state as usize;
            if next_step == 0 {
                (number[s], low[s]) = (numbered, numbered);
                numbered += 1;
                stack.push(state);
                on_stack[s] = true;
            }
            let steps = steps_of(state);
            let mut descended = false;
            for (index, &(_, next)) in steps.iter().enumerate().skip(next_step) {
                let n = next as usize;
                if !counts[n] {
                    continue;
                }
                if number[n] == UNSEEN {
                    calls.push((state, index + 1));
                    calls.push((next, 0));
                    descended = true;
                    break;
                }
                if on_stack[n] {
                    low[s] = low[s].min(number[n]);
                }
            }
            if descended {
                continue;
            }
            if let Some(&(parent, _)) = calls.last() {
                low[parent as usize] = low[parent as usize].min(low[s]);
            }
            if low[s] == number[s] {
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member as usize] = false;
                    component.push(member);
                    if member == state {
                        break;
                    }
                }
                let loops = component.len() > 1 || steps.iter().any(|(_, next)| *next == state);
                if loops {
                    component.sort_unstable();
                    found.push(component);
                }
            }
        }
    }
    found
}
