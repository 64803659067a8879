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
    /// Remote accesses with each turn of a wait counted once.
    pub remote_once: u64,
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
    /// Where the process has been: a step from there again is another turn of a wait.
    seen: FxHashSet<Local>,
}

impl OpenPassage {
    /// A step from `before` made these accesses.
    pub(crate) fn step(&mut self, actor: usize, before: Local, made: &[Access], all: &[Register]) {
        let first = self.seen.insert(before);
        for access in made {
            let remote = all[access.register()].home != Some(actor);
            self.so_far.accesses += 1;
            self.so_far.remote += u64::from(remote);
            self.so_far.once += u64::from(first);
            self.so_far.remote_once += u64::from(first && remote);
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
