//! A program as a model for a checker. A state is a short list of numbers: what the registers hold, where each
//! actor is, and how often each process may still ask.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use stateright::Property;
use testigo_memory::{CountedMemory, Local, Program, Region, Registers};

use super::stage::{first_locals, violation};

/// A state, as numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ThreadState(Box<[u32]>);

/// A step of an actor; `room` is what a process that asks by it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ThreadStep {
    pub(crate) actor: u8,
    pub(crate) room: u8,
}

pub(crate) struct ThreadModel {
    program: Arc<dyn Program>,
    pub(crate) registers: Registers,
    pub(crate) processes: usize,
    pub(crate) actors: usize,
    /// How many processes may stop anywhere without keeping others out: all permits but one.
    pub(crate) stops_max: u32,
    /// How often each process asks; none for ever.
    entries: Option<u32>,
    present: Vec<bool>,
    tables: Mutex<Tables>,
    taken: AtomicUsize,
    progress: fn(usize),
    /// The first violation is the shortest schedule; later ones must not replace it.
    unsafe_found: AtomicBool,
}

#[derive(Default)]
struct Tables {
    locals: IndexSet<Local, FxBuildHasher>,
    memory: CountedMemory,
    words: Vec<u32>,
    all: Vec<Local>,
}

const STATES_PER_REPORT: usize = 1 << 16;
/// So many combinations of first values are tried; beyond, only the first.
const FIRSTS_MAX: u64 = 1 << 16;

impl ThreadModel {
    pub(crate) fn new(
        program: Arc<dyn Program>,
        present: &[usize],
        entries: Option<u32>,
        progress: fn(usize),
    ) -> ThreadModel {
        let processes = program.processes();
        ThreadModel {
            registers: program.registers(),
            actors: processes + program.others().len(),
            stops_max: program.permits().map_or(0, |permits| permits as u32 - 1),
            present: (0..processes)
                .map(|process| present.is_empty() || present.contains(&process))
                .collect(),
            program,
            processes,
            entries,
            tables: Mutex::default(),
            taken: AtomicUsize::new(0),
            progress,
            unsafe_found: AtomicBool::new(false),
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables
            .lock()
            .expect("a step of a program does not panic")
    }

    /// How many combinations there are of what registers may hold at first, at most as many as can be counted.
    pub(crate) fn combinations(&self) -> u64 {
        let values = self.registers.iter().map(|one| one.first.len() as u64);
        values.fold(1, u64::saturating_mul)
    }

    /// Whether all of them are tried.
    pub(crate) fn tries_all_firsts(&self) -> bool {
        self.combinations() <= FIRSTS_MAX
    }

    /// Every combination of what registers may hold at first; the first one only, where they are too many.
    pub(crate) fn firsts(&self) -> Vec<ThreadState> {
        let mut tables = self.tables();
        let all = self.tries_all_firsts();
        let mut memories = vec![Vec::new()];
        for register in self.registers.iter() {
            let values = match all {
                true => &register.first[..],
                false => &register.first[..1],
            };
            let with = |words: &Vec<u32>| {
                let words = words.clone();
                values.iter().map(move |&value| {
                    let mut words = words.clone();
                    words.push(small(value));
                    words
                })
            };
            memories = memories.iter().flat_map(with).collect();
        }
        let locals: Vec<u32> = first_locals(&*self.program)
            .into_iter()
            .map(|local| tables.number(local))
            .collect();
        let left = self.present.iter().map(|&present| match present {
            true => self.entries.unwrap_or(1),
            false => 0,
        });
        let left: Vec<u32> = left.collect();
        let state = |memory: Vec<u32>| {
            let words = memory.iter().chain(&locals).chain(&left);
            ThreadState(words.copied().collect())
        };
        memories.into_iter().map(state).collect()
    }

    fn local_words<'s>(&self, state: &'s ThreadState) -> &'s [u32] {
        &state.0[self.registers.len()..self.registers.len() + self.actors]
    }

    /// What the registers hold.
    pub(crate) fn memory<'s>(&self, state: &'s ThreadState) -> &'s [u32] {
        &state.0[..self.registers.len()]
    }

    /// Where each actor is.
    pub(crate) fn locals(&self, state: &ThreadState) -> Vec<Local> {
        let tables = self.tables();
        let words = self.local_words(state).iter();
        words.map(|&word| tables.locals[word as usize]).collect()
    }

    /// Every step that can be taken, and whether a fair schedule must take it if it stays possible.
    pub(crate) fn steps(&self, state: &ThreadState, mut found: impl FnMut(ThreadStep, bool)) {
        let mut tables = self.tables();
        tables.load(self.local_words(state));
        let left = &state.0[self.registers.len() + self.actors..];
        for (actor, local) in tables.all.iter().enumerate() {
            let step = |room: usize| ThreadStep {
                actor: actor as u8,
                room: room as u8,
            };
            match local.region {
                Region::Remainder if left[actor] == 0 => {}
                Region::Remainder => {
                    (0..self.program.rooms()).for_each(|room| found(step(room), false));
                }
                _ if self.program.is_delayed(actor, &tables.all) => {}
                _ => found(step(0), true),
            }
        }
    }

    pub(crate) fn take(&self, state: &ThreadState, step: ThreadStep) -> ThreadState {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
        if taken.is_multiple_of(STATES_PER_REPORT) {
            (self.progress)(taken);
        }
        let actor = usize::from(step.actor);
        let registers = self.registers.len();
        let mut tables = self.tables();
        let Tables {
            locals,
            memory,
            words,
            ..
        } = &mut *tables;
        words.clear();
        words.extend_from_slice(&state.0);
        memory.accesses.clear();
        memory.words.clear();
        memory
            .words
            .extend(words[..registers].iter().map(|&word| u64::from(word)));
        let mut local = locals[words[registers + actor] as usize];
        match local.region {
            Region::Remainder => {
                local = Local::asking(step.room);
                if self.entries.is_some() {
                    words[registers + self.actors + actor] -= 1;
                }
            }
            Region::Inside if local.is_idle() => local.leave(),
            _ => {}
        }
        self.program.step(actor, &mut local, memory);
        for access in &memory.accesses {
            let register = access.register();
            words[register] = small(memory.words[register]);
        }
        words[registers + actor] = locals.insert_full(local).0 as u32;
        ThreadState(words.as_slice().into())
    }

    /// What is wrong in this state.
    pub(crate) fn violation(&self, state: &ThreadState) -> Option<String> {
        let mut tables = self.tables();
        tables.load(self.local_words(state));
        violation(&*self.program, &tables.all)
    }
}

impl Tables {
    fn number(&mut self, local: Local) -> u32 {
        self.locals.insert_full(local).0 as u32
    }

    fn load(&mut self, words: &[u32]) {
        self.all.clear();
        let locals = &self.locals;
        self.all
            .extend(words.iter().map(|&word| locals[word as usize]));
    }
}

/// What a register holds in a search: tickets and labels grow by little there.
fn small(value: u64) -> u32 {
    u32::try_from(value).expect("a bounded search stays among small numbers")
}

pub(crate) const SAFETY: &str = "safety";

impl stateright::Model for ThreadModel {
    type State = ThreadState;
    type Action = ThreadStep;

    fn init_states(&self) -> Vec<ThreadState> {
        self.firsts()
    }

    fn actions(&self, state: &ThreadState, actions: &mut Vec<ThreadStep>) {
        self.steps(state, |step, _| actions.push(step));
    }

    fn next_state(&self, last: &ThreadState, step: ThreadStep) -> Option<ThreadState> {
        Some(self.take(last, step))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(SAFETY, |model: &Self, state| {
            model.violation(state).is_none() || model.unsafe_found.swap(true, Ordering::Relaxed)
        })]
    }
}
