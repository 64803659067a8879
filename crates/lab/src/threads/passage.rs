//! What an entry and its exit cost a process, in accesses.

use rustc_hash::FxHashSet;
use serde::Serialize;
use testigo_memory::{Access, Local, Register};

/// One entry and its exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// Accesses to any register.
    pub accesses: u64,
    /// Accesses to registers that are not in the process' own memory.
    pub remote: u64,
    /// Accesses with each turn of a wait counted once.
    pub once: u64,
    /// Accesses of the actor behind its room during it, with each turn of a wait counted once.
    pub behind_once: u64,
    /// The most processes that were active at one time during it, itself included.
    pub point: u32,
    /// The processes that were active at any time during it, itself included.
    pub interval: u32,
}

/// A passage that has not ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenPassage {
    so_far: Passage,
    /// The processes that were active during it, a bit each.
    met: u64,
    waits: Waits,
    waits_behind: Waits,
}

/// Tells the turns of a wait from steps that go on: a wait is a cycle of reads.
#[derive(Clone, Debug, Default)]
struct Waits {
    /// Where the actor has been since it last wrote: a step from there again is another turn of a wait.
    seen: FxHashSet<Local>,
}

impl Waits {
    /// Whether a step from `before`, which made these accesses, is another turn of a wait.
    fn is_turn(&mut self, before: Local, made: &[Access]) -> bool {
        let reads = made.iter().all(|access| matches!(access, Access::Read(..)));
        if !reads {
            self.seen.clear();
            return false;
        }
        !self.seen.insert(before)
    }
}

impl OpenPassage {
    /// A step from `before` made these accesses.
    pub(crate) fn step(&mut self, actor: usize, before: Local, made: &[Access], all: &[Register]) {
        let far = |access: &&Access| all[access.register()].home != Some(actor);
        let count = made.len() as u64;
        self.so_far.accesses += count;
        self.so_far.remote += made.iter().filter(far).count() as u64;
        if !self.waits.is_turn(before, made) {
            self.so_far.once += count;
        }
    }

    /// A step of the actor behind its room.
    pub(crate) fn step_behind(&mut self, before: Local, made: &[Access]) {
        if !self.waits_behind.is_turn(before, made) {
            self.so_far.behind_once += made.len() as u64;
        }
    }

    /// These processes are active, a bit each.
    pub(crate) fn meets(&mut self, active: u64) {
        self.met |= active;
        self.so_far.point = self.so_far.point.max(active.count_ones());
    }

    pub(crate) fn ended(self) -> Passage {
        Passage {
            interval: self.met.count_ones(),
            ..self.so_far
        }
    }
}

/// The accesses of a run. Its field names are a contract with scripts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AccessReport {
    pub registers: usize,
    pub reads: u64,
    pub writes: u64,
    /// Accesses of processes per entry, spinning included.
    pub per_entry: Option<f64>,
    /// The same without accesses to a process' own memory.
    pub remote_per_entry: Option<f64>,
    /// The same with each turn of a wait counted once.
    pub once_per_entry: Option<f64>,
    /// Accesses of actors behind the processes, such as groups, per entry; null where there are none.
    pub behind_per_entry: Option<f64>,
    /// The fewest and the most accesses of an entry and its exit that met nobody.
    pub lone_min: Option<u64>,
    pub lone_max: Option<u64>,
}
