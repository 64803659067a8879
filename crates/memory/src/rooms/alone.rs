//! The groups of two actors by themselves: every process is a group. So more groups can be explored, and the printed
//! forms of their contention are refuted and counted apart from what processes do.

use super::contention::{Contention, ENTRY, EXIT, Games};
use crate::{
    Access, Claimed, CountedMemory, Local, Memory, PROCESSES_MAX, Plan, PlanError, Program,
    Registers, ThreadAlgorithm, ThreadProfile, ThreadTelling, Word,
};

pub(super) static ADAPTIVE_GME_PRINTED: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "adaptive-gme-printed",
        title: "The groups of the adaptive algorithm as printed",
        problem: "threads-rooms",
        source: "group exclusion §6.1, thesis §5.5",
        specimen: Some(
            "the exit erases what the next of its side has registered; every process is a group",
        ),
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        telling: ThreadTelling {
            processes: 4,
            rooms: 1,
            present: &[0, 1, 2],
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| alone(plan, Contention::AdaptivePrinted),
};

pub(super) static ADAPTIVE_GME_LOCAL_PRINTED: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "adaptive-gme-local-printed",
        title: "The groups of the adaptive algorithm with local spin as printed",
        problem: "threads-rooms",
        source: "group exclusion §6.2, thesis §5.5",
        specimen: Some("a stale copy of the turn lets both sides win; every process is a group"),
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        telling: ThreadTelling {
            processes: 2,
            entries: 2,
            rooms: 1,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| alone(plan, Contention::LocalPrinted),
};

fn alone(plan: &Plan, form: Contention) -> Result<Box<dyn Program>, PlanError> {
    let groups = plan.processes(1, PROCESSES_MAX)?;
    Ok(Box::new(Alone::new(groups, form)))
}

/// The groups by themselves: every process is a group, and enters what the group wins.
#[derive(Clone, Copy, Debug)]
pub struct Alone {
    games: Games,
}

impl Alone {
    /// For so many groups.
    pub fn new(groups: usize, form: Contention) -> Alone {
        Alone {
            games: Games::new(form, groups, 0),
        }
    }
}

impl Program for Alone {
    fn processes(&self) -> usize {
        self.games.groups
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        self.games.register(&mut all, 0);
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        match at.line {
            0 => at.go(ENTRY),
            Local::EXIT => self.games.begin_leave(at),
            _ => {}
        }
        if at.line < EXIT {
            if self.games.enter(me, at, memory) {
                at.enter();
            }
        } else if self.games.leave(me, at, memory) {
            at.end();
        }
    }
}

impl Alone {
    /// The remote accesses of an entry of group 0 that meets a rival of its own level at every level, each turn of
    /// a wait counted once: the worst case of equation 5.3, for the printed form with local spin.
    pub fn remote_accesses_at_worst(&self) -> usize {
        let games = &self.games;
        let registers = self.registers();
        let mut memory = CountedMemory::new(&registers);
        let mut local = Local::asking(0);
        let mut remote = 0;
        while !local.is_idle() {
            let level = local.k as usize + 1;
            let (rival, rivals) = match games.tree.opponents(0, level).next() {
                Some(rival) => (rival, games.tree.rival(0, level)),
                None => break,
            };
            // The rival is at this level, and came first.
            memory.words[games.flag(rival)] = level as Word;
            if level > 1 {
                memory.words[games.winner(rivals)] = rival as Word + 1;
            }
            if local.line == 23 {
                memory.words[games.copy(0)] = 1;
            }
            memory.accesses.clear();
            self.step(0, &mut local, &mut memory);
            let far = |access: &&Access| registers[access.register()].home != Some(0);
            remote += memory.accesses.iter().filter(far).count();
        }
        remote
    }
}
