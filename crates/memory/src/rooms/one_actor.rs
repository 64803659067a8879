//! One-Actor: the tournament in which companions, who want the same room, follow each other in.
//!
//! Source: thesis §5.2.3, fig. 5.6. As printed, two companions of one level wait for each other for ever, and a
//! follower looks at the room only, not at whom it follows: the specimen. The repair wins a level first and
//! follows only somebody who is inside, and stays registered with it until it has left itself.

use super::sizes;
use crate::program::other;
use crate::{
    Claimed, Local, Lone, Memory, Program, RegisterId, Registers, ThreadAlgorithm, ThreadProfile,
    ThreadTelling, Tree, Word,
};

pub(super) static ONE_ACTOR: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "one-actor",
        title: "One-Actor, companions in a tournament",
        problem: "threads-rooms",
        source: "group exclusion §3.3, thesis §5.2.3",
        lone: Some(Lone {
            formula: "2N + 2⌈log N⌉ + 7",
            is_derived: true,
            range: |plan| {
                let levels = Tree::new(plan.processes).levels();
                [2 * plan.processes + 2 * levels + 7; 2]
            },
        }),
        registers: Some(Lone {
            formula: "N² + 2N + 2 + (2^⌈log N⌉ − 1)",
            is_derived: true,
            range: |plan| {
                let (n, nodes) = (plan.processes, Tree::new(plan.processes).nodes());
                [n * n + 2 * n + 2 + nodes; 2]
            },
        }),
        ..ThreadProfile::PLAIN
    },
    program: |plan| {
        let (processes, rooms) = sizes(plan)?;
        Ok(Box::new(OneActor::new(processes, rooms)))
    },
};

pub(super) static ONE_ACTOR_PRINTED: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "one-actor-printed",
        title: "One-Actor as the thesis prints it",
        problem: "threads-rooms",
        source: "group exclusion §3.3, thesis fig. 5.6",
        specimen: Some("companions of one level wait for each other for ever"),
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        telling: ThreadTelling {
            processes: 2,
            rooms: 1,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| {
        let (processes, rooms) = sizes(plan)?;
        Ok(Box::new(OneActor::printed(processes, rooms)))
    },
};

/// The program, in both forms.
#[derive(Debug)]
pub struct OneActor {
    processes: usize,
    rooms: usize,
    tree: Tree,
    printed: bool,
}

/// Who keeps the door.
const KEEPER: RegisterId = 0;
/// The room that is in use.
const ROOM: RegisterId = 1;
const NONE: Word = 0;

/// Lines that both forms go to.
const LEVEL: u8 = 1;
const LOOK: u8 = 3;
const TURN: u8 = 5;
const LOOK_AGAIN: u8 = 9;
const ENTERS: u8 = 50;
const KEEPS: u8 = 52;
const SHUTS: u8 = 103;
const FOLLOWED: u8 = 104;
const LEAVES: u8 = 105;

impl OneActor {
    /// The repair, for so many.
    pub fn new(processes: usize, rooms: usize) -> OneActor {
        OneActor {
            processes,
            rooms,
            tree: Tree::new(processes),
            printed: false,
        }
    }

    /// The printed form, which the published access counts are about.
    pub fn printed(processes: usize, rooms: usize) -> OneActor {
        OneActor {
            printed: true,
            ..OneActor::new(processes, rooms)
        }
    }

    fn flag(&self, process: usize) -> RegisterId {
        2 + process
    }

    fn group(&self, process: usize) -> RegisterId {
        2 + self.processes + process
    }

    /// Whether `follower` waits on `leader`; in the memory of the leader.
    fn follows(&self, leader: usize, follower: usize) -> RegisterId {
        2 + (2 + leader) * self.processes + follower
    }

    fn turn(&self, me: usize, level: usize) -> RegisterId {
        2 + (2 + self.processes) * self.processes + self.tree.node(me, level)
    }

    /// What is written in one's own flag inside.
    fn inside(&self) -> Word {
        self.tree.levels() as Word + 1
    }

    /// The next opponent from this one on; the local `k` is the level less one.
    fn opponent(&self, me: usize, from: usize, at: &Local) -> Option<usize> {
        let mut opponents = self.tree.opponents(me, at.k as usize + 1);
        opponents.start = opponents.start.max(from);
        opponents.next()
    }

    /// Looks at the opponents of the level from the first on. The local `w` says whether somebody is in the way, `v`
    /// is a companion.
    fn scan(&self, me: usize, at: &mut Local) {
        (at.v, at.w) = (0, 0);
        self.looked(me, 0, LOOK, at);
    }

    /// After an opponent.
    fn looked(&self, me: usize, from: usize, line: u8, at: &mut Local) {
        let guarded = !self.printed || self.tree.guard_of_fig_3_9(me, at.k as usize + 1);
        match self.opponent(me, from, at).filter(|_| guarded) {
            Some(j) => {
                at.j = j as u8;
                at.go(line);
            }
            None if line == LOOK_AGAIN => {
                at.j = 0;
                at.go(13);
            }
            None if at.w == 0 => self.next_level(at),
            None => {
                (at.j, at.w) = (0, 0);
                at.go(TURN);
            }
        }
    }

    fn next_level(&self, at: &mut Local) {
        (at.j, at.v, at.w) = (0, 0, 0);
        match (at.k as usize) + 1 < self.tree.levels() {
            true => {
                at.k += 1;
                at.go(LEVEL);
            }
            false => at.go(ENTERS),
        }
    }

    /// Looks at the next who may follow; after the last, goes on.
    fn followed(&self, me: usize, from: usize, at: &mut Local) {
        let next = other(me, from, self.processes);
        at.j = next.unwrap_or(0) as u8;
        at.go(match (next, self.printed) {
            (Some(_), _) => FOLLOWED,
            (None, true) => SHUTS,
            (None, false) => LEAVES,
        });
    }

    /// The lines that only the repair has: who has lost the level follows a companion that is inside.
    fn step_repaired(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        let (j, room) = (at.j as usize, Word::from(at.room) + 1);
        let companion = (at.v as usize).wrapping_sub(1);
        match at.line {
            4 => {
                if memory.load(self.group(j)) == room && at.v == 0 {
                    at.v = j as Word + 1;
                }
                self.looked(me, j + 1, LOOK, at);
            }
            // Is the companion inside, and the door still kept?
            7..=10 => {
                let holds = match at.line {
                    7 => memory.load(self.group(companion)) == room,
                    8 => memory.load(self.flag(companion)) == self.inside(),
                    9 => memory.load(ROOM) == room,
                    _ => memory.load(KEEPER) != NONE,
                };
                match holds {
                    false => at.go(11),
                    true if at.line == 10 => {
                        (at.kept, at.v) = (at.v as u8, 0);
                        at.go(ENTERS);
                    }
                    true => at.go(at.line + 1),
                }
            }
            _ => {
                memory.store(self.follows(companion, me), 0);
                self.scan(me, at);
            }
        }
    }

    /// The lines that only the printed form has: whoever sees a companion waits for the room.
    fn step_printed(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        let (j, room) = (at.j as usize, Word::from(at.room) + 1);
        let companion = (at.v as usize).wrapping_sub(1);
        match at.line {
            4 => match memory.load(self.group(j)) == room {
                true => {
                    (at.v, at.w, at.j) = (j as Word + 1, 0, 0);
                    at.go(6);
                }
                false => self.looked(me, j + 1, LOOK, at),
            },
            7 => match memory.load(ROOM) == room {
                true => at.go(8),
                false => self.looked(me, 0, LOOK_AGAIN, at),
            },
            8 => match memory.load(KEEPER) != NONE {
                true => at.go(11),
                false => self.looked(me, 0, LOOK_AGAIN, at),
            },
            LOOK_AGAIN => match memory.load(self.flag(j)) > Word::from(at.k) {
                true => at.go(10),
                false => self.looked(me, j + 1, LOOK_AGAIN, at),
            },
            10 => match memory.load(self.group(j)) == room {
                true => {
                    at.j = 0;
                    at.go(7);
                }
                false => self.looked(me, j + 1, LOOK_AGAIN, at),
            },
            11 => {
                memory.store(self.flag(me), self.inside());
                at.go(12);
            }
            12 => {
                memory.store(self.follows(companion, me), 0);
                at.k = self.tree.levels() as u8 - 1;
                self.next_level(at);
            }
            _ => {
                memory.store(self.follows(companion, me), 0);
                self.next_level(at);
            }
        }
    }
}

impl Program for OneActor {
    fn processes(&self) -> usize {
        self.processes
    }

    fn rooms(&self) -> usize {
        self.rooms
    }

    fn permits(&self) -> Option<usize> {
        None
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        all.shared("keeper", [NONE]);
        all.shared("room", [NONE]);
        for kind in ["flag", "group"] {
            for process in 0..self.processes {
                all.at(process, format!("{kind}[{process}]"), [0]);
            }
        }
        for leader in 0..self.processes {
            for follower in 0..self.processes {
                all.at(leader, format!("follows[{leader}][{follower}]"), [0]);
            }
        }
        for node in 0..self.tree.nodes() {
            all.shared(format!("turn[{node}]"), [0, 1]);
        }
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        let (j, room) = (at.j as usize, Word::from(at.room) + 1);
        let level = at.k as usize + 1;
        let role = self.tree.role(me, level) as Word;
        match at.line {
            0 => {
                memory.store(self.group(me), room);
                at.go(if self.tree.levels() == 0 {
                    ENTERS
                } else {
                    LEVEL
                });
            }
            LEVEL => {
                memory.store(self.flag(me), level as Word);
                at.go(2);
            }
            2 => {
                memory.store(self.turn(me, level), role);
                self.scan(me, at);
            }
            LOOK => match memory.load(self.flag(j)) >= level as Word {
                true => {
                    at.w = 1;
                    at.go(4);
                }
                false => self.looked(me, j + 1, LOOK, at),
            },
            TURN => match memory.load(self.turn(me, level)) == role {
                true if at.v != 0 => at.go(6),
                true => self.scan(me, at),
                false => self.next_level(at),
            },
            6 => {
                memory.store(self.follows(at.v as usize - 1, me), 1);
                at.go(7);
            }
            ENTERS => {
                memory.store(self.flag(me), self.inside());
                at.k = 0;
                match (self.printed, at.kept) {
                    (true, _) => at.go(51),
                    (false, 0) => at.go(KEEPS),
                    (false, _) => at.enter(),
                }
            }
            51 => match memory.load(KEEPER) == NONE {
                true => at.go(KEEPS),
                false => at.enter(),
            },
            KEEPS => {
                memory.store(KEEPER, me as Word + 1);
                at.go(53);
            }
            53 => {
                memory.store(ROOM, room);
                at.enter();
            }
            Local::EXIT => match (memory.load(KEEPER) == me as Word + 1, self.printed) {
                (true, _) => at.go(101),
                (false, true) => self.followed(me, 0, at),
                (false, false) => at.go(SHUTS),
            },
            101 => {
                memory.store(KEEPER, NONE);
                at.go(102);
            }
            102 => {
                memory.store(ROOM, NONE);
                match self.printed {
                    true => self.followed(me, 0, at),
                    false => at.go(SHUTS),
                }
            }
            // The repair takes its group back before it waits, so that nobody else follows.
            SHUTS => {
                memory.store(self.group(me), NONE);
                match self.printed {
                    true => at.go(LEAVES),
                    false => self.followed(me, 0, at),
                }
            }
            FOLLOWED => {
                if memory.load(self.follows(me, j)) == 0 {
                    self.followed(me, j + 1, at);
                }
            }
            LEAVES => {
                memory.store(self.flag(me), 0);
                match at.kept {
                    0 => at.end(),
                    _ => at.go(106),
                }
            }
            106 => {
                memory.store(self.follows(at.kept as usize - 1, me), 0);
                at.end();
            }
            _ if self.printed => self.step_printed(me, at, memory),
            _ => self.step_repaired(me, at, memory),
        }
    }
}
