//! CTP-m: the congenial talking philosophers (Joung). Rooms have turns, and whoever opens a round captures those
//! who wait for the same room.
//!
//! Source: thesis §5.2.1. A lost parenthesis and the indentation of the stay are restored as the prose has them; each
//! conjunct of the test at the end of the entry is a scan of its own.

use super::sizes;
use crate::program::other;
use crate::{
    Local, Lone, Memory, Program, RegisterId, Registers, ThreadAlgorithm, ThreadProfile, Word,
};

pub(super) static CTP: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "ctp",
        title: "CTP-m, congenial talking philosophers",
        problem: "threads-rooms",
        source: "group exclusion §3.1, thesis §5.2.1",
        // More by a look at everybody where the turn is another room's.
        lone: Some(Lone {
            formula: "5N+6 or 6N+5",
            is_derived: true,
            range: |plan| match (plan.processes, plan.rooms) {
                (n, 1) => [5 * n + 6; 2],
                (n, _) => [5 * n + 6, 6 * n + 5],
            },
        }),
        registers: Some(Lone {
            formula: "2N+1",
            is_derived: true,
            range: |plan| [2 * plan.processes + 1; 2],
        }),
        ..ThreadProfile::PLAIN
    },
    program: |plan| {
        let (processes, rooms) = sizes(plan)?;
        Ok(Box::new(Ctp { processes, rooms }))
    },
};

#[derive(Debug)]
struct Ctp {
    processes: usize,
    rooms: usize,
}

const TURN: RegisterId = 0;
const PASSIVE: Word = 0;

/// Lines at which something is looked at, process by process.
const NEXT_OP: u8 = 5;
const IN_OTHER: u8 = 8;
const SUCCESSOR: u8 = 9;
const NAMED: u8 = 12;
const NEXT_TURN: u8 = 21;
const CAPTURE: u8 = 23;

impl Ctp {
    fn flag(&self, process: usize) -> RegisterId {
        1 + process
    }

    fn successor(&self, process: usize) -> RegisterId {
        1 + self.processes + process
    }

    fn request(&self, room: u8) -> Word {
        1 + Word::from(room)
    }

    fn inside(&self, room: u8) -> Word {
        1 + self.rooms as Word + Word::from(room)
    }

    /// The room that a flag names.
    fn named(&self, flag: Word) -> Option<Word> {
        (flag != PASSIVE).then(|| (flag - 1) % self.rooms as Word)
    }

    /// How far a room is from another in the order of turns.
    fn distance(&self, from: Word, room: Word) -> Word {
        let rooms = self.rooms as Word;
        (room + rooms - from) % rooms
    }

    /// Looks at the next other process at this line; after the last, goes on.
    fn look_at(&self, me: usize, from: usize, line: u8, at: &mut Local) {
        if let Some(j) = other(me, from, self.processes) {
            at.j = j as u8;
            return at.go(line);
        }
        at.j = 0;
        match line {
            // The local `w` is the distance of the nearest room that is named, from the turn in `v`.
            NEXT_OP => {
                let nearest = at.w == self.distance(at.v, Word::from(at.room));
                (at.v, at.w) = (0, 0);
                at.go(if nearest { 6 } else { 3 });
            }
            IN_OTHER => self.look_at(me, 0, SUCCESSOR, at),
            SUCCESSOR => at.go(11),
            NAMED => at.enter_at(20),
            NEXT_TURN => at.go(22),
            _ => at.rest(),
        }
    }

    /// The test at the end of the entry fails.
    fn again(&self, at: &mut Local) {
        (at.j, at.v) = (0, 0);
        at.go(2);
    }
}

impl Program for Ctp {
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
        all.shared("turn", Vec::from_iter(0..self.rooms as Word));
        for kind in ["flag", "successor"] {
            for process in 0..self.processes {
                all.at(process, format!("{kind}[{process}]"), [0]);
            }
        }
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        let (j, room) = (at.j as usize, Word::from(at.room));
        match at.line {
            0 | 2 => {
                memory.store(self.flag(me), self.request(at.room));
                at.go(at.line + 1);
            }
            1 => {
                memory.store(self.successor(me), 0);
                at.go(2);
            }
            3 => match memory.load(self.successor(me)) == room + 1 {
                true => at.go(6),
                false => at.go(4),
            },
            4 => {
                at.v = memory.load(TURN);
                at.w = self.distance(at.v, room);
                self.look_at(me, 0, NEXT_OP, at);
            }
            NEXT_OP | NEXT_TURN => {
                if let Some(named) = self.named(memory.load(self.flag(j))) {
                    at.w = at.w.min(self.distance(at.v, named));
                }
                self.look_at(me, j + 1, at.line, at);
            }
            6 => {
                memory.store(self.flag(me), self.inside(at.room));
                at.go(7);
            }
            7 => match memory.load(self.successor(me)) == room + 1 {
                true => at.enter_at(20),
                false => self.look_at(me, 0, IN_OTHER, at),
            },
            IN_OTHER => {
                let flag = memory.load(self.flag(j));
                match flag > self.rooms as Word && flag != self.inside(at.room) {
                    true => self.again(at),
                    false => self.look_at(me, j + 1, IN_OTHER, at),
                }
            }
            SUCCESSOR => match memory.load(self.successor(j)) {
                captured if captured != 0 && captured != room + 1 => {
                    at.v = captured - 1;
                    at.go(10);
                }
                _ => self.look_at(me, j + 1, SUCCESSOR, at),
            },
            10 => match self.named(memory.load(self.flag(j))) == Some(at.v) {
                true => self.again(at),
                false => {
                    at.v = 0;
                    self.look_at(me, j + 1, SUCCESSOR, at);
                }
            },
            11 => match memory.load(TURN) {
                turn if turn == room => at.enter_at(20),
                turn => {
                    at.v = turn;
                    self.look_at(me, 0, NAMED, at);
                }
            },
            NAMED => match self.named(memory.load(self.flag(j))) == Some(at.v) {
                true => self.again(at),
                false => self.look_at(me, j + 1, NAMED, at),
            },
            20 => match memory.load(self.successor(me)) == room + 1 {
                true => at.rest(),
                // It opens the round: the turn goes on, and those who wait for the room are captured.
                false => {
                    at.v = (room + 1) % self.rooms as Word;
                    at.w = self.distance(at.v, room);
                    self.look_at(me, 0, NEXT_TURN, at);
                }
            },
            22 => {
                memory.store(TURN, (at.v + at.w) % self.rooms as Word);
                (at.v, at.w) = (0, 0);
                self.look_at(me, 0, CAPTURE, at);
            }
            CAPTURE => match self.named(memory.load(self.flag(j))) == Some(room) {
                true => at.go(24),
                false => self.look_at(me, j + 1, CAPTURE, at),
            },
            24 => {
                memory.store(self.successor(j), room + 1);
                self.look_at(me, j + 1, CAPTURE, at);
            }
            _ => {
                memory.store(self.flag(me), PASSIVE);
                at.end();
            }
        }
    }
}
