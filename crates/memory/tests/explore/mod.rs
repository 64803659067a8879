//! Every interleaving of a small program, for tests.

use std::collections::HashSet;

use testigo_memory::{CountedMemory, Local, Program, Region};

/// A state of all threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    pub(crate) words: Vec<u64>,
    pub(crate) locals: Vec<Local>,
    pub(crate) left: Vec<u32>,
    /// Whatever a test remembers.
    pub(crate) note: u64,
}

impl State {
    pub(crate) fn first(program: &dyn Program, entries: u32) -> State {
        let memory = CountedMemory::new(&program.registers());
        State {
            words: memory.words,
            locals: vec![Local::REMAINDER; program.processes()],
            left: vec![entries; program.processes()],
            note: 0,
        }
    }

    /// The next step of a process; none where it has nothing to do.
    pub(crate) fn step(&self, program: &dyn Program, process: usize) -> Option<State> {
        let mut next = self.clone();
        let mut local = self.locals[process];
        match local.region {
            Region::Remainder if self.left[process] == 0 => return None,
            Region::Remainder => {
                local = Local::asking(0);
                next.left[process] -= 1;
            }
            Region::Inside if local.is_idle() => local.leave(),
            _ => {}
        }
        let mut memory = CountedMemory {
            words: std::mem::take(&mut next.words),
            accesses: Vec::new(),
        };
        program.step(process, &mut local, &mut memory);
        next.words = memory.words;
        next.locals[process] = local;
        Some(next)
    }

    pub(crate) fn inside(&self) -> impl Iterator<Item = (usize, &Local)> {
        let all = self.locals.iter().enumerate();
        all.filter(|(_, local)| local.region == Region::Inside)
    }
}

/// Visits every state once; `note` says what is remembered after a step of a process.
pub(crate) fn explore(
    program: &dyn Program,
    entries: u32,
    note: impl Fn(&State, &State, usize) -> u64,
    see: impl FnMut(&State),
) -> usize {
    explore_from(State::first(program, entries), program, note, see)
}

/// The same from a state.
pub(crate) fn explore_from(
    first: State,
    program: &dyn Program,
    note: impl Fn(&State, &State, usize) -> u64,
    mut see: impl FnMut(&State),
) -> usize {
    let mut seen = HashSet::from([first.clone()]);
    let mut open = vec![first];
    while let Some(state) = open.pop() {
        see(&state);
        for process in 0..program.processes() {
            if let Some(mut next) = state.step(program, process) {
                next.note = note(&state, &next, process);
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
    }
    seen.len()
}
