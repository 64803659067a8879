//! Two actors: processes ask their group, and the groups compete. Any mutual exclusion serves the groups.
//!
//! Source: thesis §5.3 to §5.5. A group lets in whoever waits while its leader, the process that it was opened for, is
//! inside; then the door is shut, and the round ends with the last. As printed, a process lets itself in after
//! a look at the leader, and may be late: the specimen. Here the group alone lets in (server admission), so a
//! process writes one cell and spins on it. The leader is let in once in a round: a group that lets it in again
//! when it comes back between two looks can keep the door open for ever, and other rooms starve (a specimen).

use super::contention::{Contention, ENTRY, Games};
use super::sizes;
use crate::program::other;
use crate::{
    Claimed, Local, Lone, Memory, Plan, PlanError, Program, RegisterId, Registers, ThreadAlgorithm,
    ThreadProfile, ThreadTelling, Tree, Word,
};

/// What the process does: it asks, finds itself admitted, and takes that back. Each turn of its wait is counted once.
const LONE: Option<Lone> = Some(Lone {
    formula: "3",
    is_derived: true,
    range: |_| [3; 2],
});

/// Two groups meet at level 1 only; three play at every level that a tree has.
const TELLING: ThreadTelling = ThreadTelling {
    rooms: 3,
    ..ThreadProfile::PLAIN.telling
};

/// A cell for each process in each room.
fn cells(plan: &Plan) -> usize {
    plan.processes * plan.rooms
}

pub(super) static EMG_TOURNAMENT: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "emg-tournament",
        title: "Two actors over a tournament of groups",
        problem: "threads-rooms",
        source: "group exclusion §5, thesis §5.4",
        lone: LONE,
        registers: Some(Lone {
            formula: "NM + M + (2^⌈log M⌉ − 1)",
            is_derived: true,
            range: |plan| [cells(plan) + plan.rooms + Tree::new(plan.rooms).nodes(); 2],
        }),
        telling: TELLING,
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, Contention::Tournament),
};

pub(super) static ADAPTIVE_GME: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "adaptive-gme",
        title: "Two actors over adaptive groups",
        problem: "threads-rooms",
        source: "group exclusion §6.1, thesis §5.5",
        lone: LONE,
        registers: Some(Lone {
            formula: "NM + M + 2(2^⌈log M⌉ − 1)",
            is_derived: true,
            range: |plan| [cells(plan) + plan.rooms + 2 * Tree::new(plan.rooms).nodes(); 2],
        }),
        telling: TELLING,
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, Contention::Adaptive),
};

pub(super) static ADAPTIVE_GME_LOCAL: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "adaptive-gme-local",
        title: "Two actors over groups that spin locally",
        problem: "threads-rooms",
        source: "group exclusion §6.2, thesis §5.5",
        lone: LONE,
        registers: Some(Lone {
            formula: "NM + M + 3(2^⌈log M⌉ − 1) + M⌈log M⌉",
            is_derived: true,
            range: |plan| {
                let (rooms, tree) = (plan.rooms, Tree::new(plan.rooms));
                let nodes = 3 * tree.nodes() + rooms * tree.levels();
                [cells(plan) + rooms + nodes; 2]
            },
        }),
        telling: TELLING,
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, Contention::Local),
};

pub(super) static EMG_TOURNAMENT_RETURNING: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "emg-tournament-returning",
        title: "Two actors with a leader that may return",
        problem: "threads-rooms",
        source: "group exclusion §5, server admission",
        specimen: Some("a leader that comes back between two looks keeps the door open"),
        telling: ThreadTelling {
            processes: 2,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| {
        let (processes, rooms) = sizes(plan)?;
        Ok(Box::new(TwoActors {
            readmits: true,
            ..TwoActors::new(processes, rooms, Contention::Tournament)
        }))
    },
};

pub(super) static EMG_TOURNAMENT_PRINTED: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "emg-tournament-printed",
        title: "EMG-Tournament as the thesis prints it",
        problem: "threads-rooms",
        source: "group exclusion §5, thesis tables 5.2 and 5.3",
        specimen: Some("a process lets itself in after the round that it saw is over"),
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        telling: ThreadTelling {
            processes: 3,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| {
        let (processes, rooms) = sizes(plan)?;
        Ok(Box::new(TwoActorsPrinted::new(processes, rooms)))
    },
};

fn made(plan: &Plan, form: Contention) -> Result<Box<dyn Program>, PlanError> {
    let (processes, rooms) = sizes(plan)?;
    Ok(Box::new(TwoActors::new(processes, rooms, form)))
}

/// Processes and groups.
#[derive(Clone, Copy, Debug)]
pub struct TwoActors {
    processes: usize,
    rooms: usize,
    games: Games,
    /// Whether a leader that comes back is let in again in the same round.
    readmits: bool,
}

/// What stands in a process' cell.
const REST: Word = 0;
const WAITS: Word = 1;
const ADMITTED: Word = 2;

/// Lines of a group behind its entry.
const FIRST: u8 = 39;
const SWEEP: u8 = 40;
const ADMIT: u8 = 41;
const LEADER: u8 = 42;
const DRAIN: u8 = 43;

impl TwoActors {
    /// For so many processes and rooms.
    pub fn new(processes: usize, rooms: usize, form: Contention) -> TwoActors {
        TwoActors {
            processes,
            rooms,
            games: Games::new(form, rooms, processes * rooms),
            readmits: false,
        }
    }

    fn cell(&self, room: usize, process: usize) -> RegisterId {
        room * self.processes + process
    }

    fn group(&self, group: usize, at: &mut Local, memory: &mut dyn Memory) {
        let cell = |process: u8| self.cell(group, process as usize);
        let last = at.j as usize + 1 == self.processes;
        match at.line {
            // Whoever is found first leads; the search goes on where the last one ended, so that nobody is
            // passed over for ever.
            0 => match memory.load(cell(at.j)) {
                WAITS => {
                    at.kept = at.j;
                    at.j = 0;
                    at.go(ENTRY);
                }
                _ => at.j = if last { 0 } else { at.j + 1 },
            },
            FIRST => {
                memory.store(cell(at.kept), ADMITTED);
                self.sweep(0, at);
            }
            SWEEP => match memory.load(cell(at.j)) {
                WAITS => at.go(ADMIT),
                _ => self.sweep(at.j as usize + 1, at),
            },
            ADMIT => {
                memory.store(cell(at.j), ADMITTED);
                self.sweep(at.j as usize + 1, at);
            }
            LEADER => match memory.load(cell(at.kept)) {
                ADMITTED => self.sweep(0, at),
                _ => at.go(DRAIN),
            },
            DRAIN => {
                if memory.load(cell(at.j)) != ADMITTED {
                    at.j += 1;
                }
                if at.j as usize == self.processes {
                    at.j = 0;
                    self.games.begin_leave(at);
                }
            }
            line if line < FIRST => {
                if self.games.enter(group, at, memory) {
                    at.go(FIRST);
                }
            }
            _ => {
                if self.games.leave(group, at, memory) {
                    let next = (at.kept as usize + 1) % self.processes;
                    *at = Local {
                        j: next as u8,
                        ..Local::SERVING
                    };
                }
            }
        }
    }

    /// Looks at the next cell but the leader's, and after the last at the leader's.
    fn sweep(&self, from: usize, at: &mut Local) {
        let leader = match self.readmits {
            true => usize::MAX,
            false => at.kept as usize,
        };
        let next = other(leader, from, self.processes);
        at.j = next.unwrap_or(0) as u8;
        at.go(if next.is_some() { SWEEP } else { LEADER });
    }
}

impl Program for TwoActors {
    fn processes(&self) -> usize {
        self.processes
    }

    fn others(&self) -> Vec<String> {
        (0..self.rooms).map(|room| format!("g{room}")).collect()
    }

    fn rooms(&self) -> usize {
        self.rooms
    }

    fn permits(&self) -> Option<usize> {
        None
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        for room in 0..self.rooms {
            for process in 0..self.processes {
                all.at(process, format!("cell[{room}][{process}]"), [REST]);
            }
        }
        self.games.register(&mut all, self.processes);
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        if let Some(group) = me.checked_sub(self.processes) {
            return self.group(group, at, memory);
        }
        let cell = self.cell(at.room as usize, me);
        match at.line {
            0 => {
                memory.store(cell, WAITS);
                at.go(1);
            }
            1 => {
                if memory.load(cell) == ADMITTED {
                    at.enter();
                }
            }
            _ => {
                memory.store(cell, REST);
                at.end();
            }
        }
    }
}

/// The printed form over the tournament: processes let themselves in.
#[derive(Clone, Copy, Debug)]
pub struct TwoActorsPrinted(TwoActors);

/// What stands in a printed cell besides [`REST`]: the level of the process, waiting or inside.
const WAITS_PLAIN: Word = 1;
const WAITS_LEADING: Word = 2;
const INSIDE_PLAIN: Word = 3;
const INSIDE_LEADING: Word = 4;

impl TwoActorsPrinted {
    /// For so many processes and rooms.
    pub fn new(processes: usize, rooms: usize) -> TwoActorsPrinted {
        let form = Contention::Tournament;
        TwoActorsPrinted(TwoActors::new(processes, rooms, form))
    }

    /// The group's flag, which says that it is inside.
    fn flag(&self, room: usize) -> RegisterId {
        self.0.processes * self.0.rooms + room
    }

    fn flag_inside(&self) -> Word {
        Tree::new(self.0.rooms).levels() as Word + 1
    }

    fn group(&self, group: usize, at: &mut Local, memory: &mut dyn Memory) {
        let processes = self.0.processes;
        let cell = self.0.cell(group, at.j as usize);
        match at.line {
            // Somebody who leads already, or else the first who waits is made the leader: the local `v`.
            0 => {
                match memory.load(cell) {
                    WAITS_LEADING => {
                        (at.j, at.v) = (0, 0);
                        return at.go(ENTRY);
                    }
                    WAITS_PLAIN if at.v == 0 => at.v = Word::from(at.j) + 1,
                    _ => {}
                }
                at.j += 1;
                if at.j as usize == processes {
                    at.j = 0;
                    at.go(u8::from(at.v != 0));
                }
            }
            1 => {
                memory.store(self.0.cell(group, at.v as usize - 1), WAITS_LEADING);
                at.v = 0;
                at.go(ENTRY);
            }
            SWEEP => {
                memory.store(self.flag(group), self.flag_inside());
                at.go(DRAIN);
            }
            DRAIN => {
                if matches!(memory.load(cell), REST | WAITS_PLAIN) {
                    at.j += 1;
                }
                if at.j as usize == processes {
                    at.j = 0;
                    self.0.games.begin_leave(at);
                }
            }
            line if line < SWEEP => {
                if self.0.games.enter(group, at, memory) {
                    at.go(SWEEP);
                }
            }
            _ => {
                if self.0.games.leave(group, at, memory) {
                    *at = Local::SERVING;
                }
            }
        }
    }
}

impl Program for TwoActorsPrinted {
    fn processes(&self) -> usize {
        self.0.processes
    }

    fn others(&self) -> Vec<String> {
        self.0.others()
    }

    fn rooms(&self) -> usize {
        self.0.rooms
    }

    fn permits(&self) -> Option<usize> {
        None
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        for room in 0..self.0.rooms {
            for process in 0..self.0.processes {
                all.shared(format!("cell[{room}][{process}]"), [REST]);
            }
        }
        self.0.games.register(&mut all, self.0.processes);
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        if let Some(group) = me.checked_sub(self.0.processes) {
            return self.group(group, at, memory);
        }
        let room = at.room as usize;
        let cell = self.0.cell(room, me);
        match at.line {
            0 => {
                at.k = u8::from(memory.load(self.flag(room)) == 0);
                at.go(1);
            }
            1 => {
                let waits = [WAITS_PLAIN, WAITS_LEADING][at.k as usize];
                memory.store(cell, waits);
                at.go(2);
            }
            // Does somebody lead inside?
            2 => match memory.load(self.0.cell(room, at.j as usize)) {
                INSIDE_LEADING => {
                    at.j = 0;
                    at.go(5);
                }
                _ => {
                    at.j += 1;
                    if at.j as usize == self.0.processes {
                        at.j = 0;
                        at.go(3);
                    }
                }
            },
            3 => match memory.load(self.flag(room)) == self.flag_inside() {
                true => at.go(4),
                false => at.go(2),
            },
            4 => match memory.load(cell) {
                WAITS_LEADING => {
                    at.k = 1;
                    at.go(5);
                }
                _ => at.go(2),
            },
            5 => {
                let inside = [INSIDE_PLAIN, INSIDE_LEADING][at.k as usize];
                memory.store(cell, inside);
                at.enter();
            }
            _ => {
                memory.store(cell, REST);
                at.end();
            }
        }
    }
}
