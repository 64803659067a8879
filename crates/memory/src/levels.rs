//! Peterson's levels: at each the last to come waits, for those who are in its way. For mutual exclusion everybody is;
//! for rooms, whoever wants another room (Vidyasankar).

use crate::program::other;
use crate::{Local, Memory, Program, RegisterId, Registers, Word};

/// The program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    pub(crate) processes: usize,
    /// How many rooms there are; none for mutual exclusion.
    pub(crate) rooms: Option<usize>,
    /// Whether the flag is 1 at every level, as fig. 3.4 prints it.
    pub(crate) printed: bool,
}

/// Where the levels begin, behind the line that says which room is wanted.
const FLAG: u8 = 1;

impl Levels {
    fn flag(&self, process: usize) -> RegisterId {
        process
    }

    fn turn(&self, level: u8) -> RegisterId {
        self.processes + level as usize - 1
    }

    /// The room that a process wants, plus one.
    fn forum(&self, process: usize) -> RegisterId {
        2 * self.processes - 1 + process
    }

    fn look_at(&self, me: usize, from: usize, at: &mut Local) {
        match other(me, from, self.processes) {
            Some(j) => {
                at.j = j as u8;
                at.go(3);
            }
            None => self.won(at),
        }
    }

    /// Somebody is in the way: only the turn can help.
    fn hindered(&self, at: &mut Local) {
        at.j = 0;
        at.go(5);
    }

    fn won(&self, at: &mut Local) {
        at.j = 0;
        match at.k as usize + 2 < self.processes {
            true => {
                at.k += 1;
                at.go(FLAG);
            }
            false => at.enter(),
        }
    }
}

impl Program for Levels {
    fn processes(&self) -> usize {
        self.processes
    }

    fn rooms(&self) -> usize {
        self.rooms.unwrap_or(1)
    }

    fn permits(&self) -> Option<usize> {
        match self.rooms {
            None => Some(1),
            Some(_) => None,
        }
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        for process in 0..self.processes {
            all.at(process, format!("flag[{process}]"), [0]);
        }
        for level in 1..self.processes {
            let anybody = Vec::from_iter(0..self.processes as Word);
            all.shared(format!("turn[{level}]"), anybody);
        }
        for process in (0..self.processes).filter(|_| self.rooms.is_some()) {
            all.at(process, format!("forum[{process}]"), [0]);
        }
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        // The local `k` is the level less one.
        let (level, j, room) = (at.k + 1, at.j as usize, Word::from(at.room) + 1);
        match at.line {
            0 if self.rooms.is_some() => {
                memory.store(self.forum(me), room);
                at.go(FLAG);
            }
            0 | FLAG => {
                let value = if self.printed { 1 } else { level };
                memory.store(self.flag(me), Word::from(value));
                match self.processes {
                    1 => at.enter(),
                    _ => at.go(2),
                }
            }
            2 => {
                memory.store(self.turn(level), me as Word);
                self.look_at(me, 0, at);
            }
            3 => match memory.load(self.flag(j)) < Word::from(level) {
                true => self.look_at(me, j + 1, at),
                false if self.rooms.is_some() => at.go(4),
                false => self.hindered(at),
            },
            // A forum that has been taken back counts as another one.
            4 => match memory.load(self.forum(j)) == room {
                true => self.look_at(me, j + 1, at),
                false => self.hindered(at),
            },
            5 => match memory.load(self.turn(level)) == me as Word {
                true => self.look_at(me, 0, at),
                false => self.won(at),
            },
            Local::EXIT => {
                memory.store(self.flag(me), 0);
                match self.rooms {
                    None => at.end(),
                    Some(_) => at.go(Local::EXIT + 1),
                }
            }
            _ => {
                memory.store(self.forum(me), 0);
                at.end();
            }
        }
    }
}
