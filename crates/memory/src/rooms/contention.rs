//! How the groups of two actors compete for their turn: a tournament in three forms.
//!
//! Source: thesis §5.4 (EMG-Tournament), §5.5 (adaptive, with remote and with local spin). The adaptive forms look at
//! the winner of the other side of a node, not at all that might come from there. As printed, the exit with
//! remote spin erases what a successor has registered; with local spin a wake-up can be lost, a copy of the turn
//! can be stale, and a release is not tied to its level. The repairs: clear from the root down and the flag last;
//! and the local-spin tournament of Yang and Anderson in place of the printed one.

use crate::{Local, Memory, RegisterId, Registers, Tree, Word};

/// Which form of the tournament.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contention {
    /// Every possible opponent is looked at.
    Tournament,
    /// The winner of the other side is looked at.
    Adaptive,
    /// The same, as printed.
    AdaptivePrinted,
    /// Everybody spins in its own memory (Yang and Anderson).
    Local,
    /// Local spin, as printed.
    LocalPrinted,
}

/// The tournament of so many groups, whose registers begin at a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Games {
    pub(super) form: Contention,
    pub(super) groups: usize,
    pub(super) tree: Tree,
    base: RegisterId,
}

/// The first line of a group's entry, and of its exit.
pub(super) const ENTRY: u8 = 10;
pub(super) const EXIT: u8 = 60;
const NONE: Word = 0;

impl Games {
    pub(super) fn new(form: Contention, groups: usize, base: RegisterId) -> Games {
        Games {
            form,
            groups,
            tree: Tree::new(groups),
            base,
        }
    }

    /// Adds its registers; group g is the actor `first + g`.
    pub(super) fn register(&self, all: &mut Registers, first: usize) {
        debug_assert_eq!(all.len(), self.base);
        for group in 0..self.groups {
            all.at(first + group, format!("flag[{group}]"), [0]);
        }
        for node in 0..self.tree.nodes() {
            all.shared(format!("turn[{node}]"), self.first_turns());
        }
        for node in 0..self.tree.nodes() {
            match self.form {
                Contention::Tournament => {}
                Contention::Local => {
                    all.shared(format!("left[{node}]"), [NONE]);
                    all.shared(format!("right[{node}]"), [NONE]);
                }
                _ => {
                    all.shared(format!("winner[{node}]"), [NONE]);
                }
            }
        }
        for group in 0..self.groups {
            match self.form {
                Contention::Local => {
                    for level in 1..=self.tree.levels() {
                        all.at(first + group, format!("spin[{group}][{level}]"), [0]);
                    }
                }
                Contention::LocalPrinted => {
                    all.at(first + group, format!("copy[{group}]"), [0, 1]);
                    all.at(first + group, format!("level[{group}]"), [0]);
                }
                _ => {}
            }
        }
    }

    fn first_turns(&self) -> Vec<Word> {
        match self.form {
            // There the turn names a group, and is written before it is read.
            Contention::Local => vec![NONE],
            _ => vec![0, 1],
        }
    }

    pub(super) fn flag(&self, group: usize) -> RegisterId {
        self.base + group
    }

    fn turn(&self, node: usize) -> RegisterId {
        self.base + self.groups + node
    }

    pub(super) fn winner(&self, node: usize) -> RegisterId {
        self.base + self.groups + self.tree.nodes() + node
    }

    fn side(&self, node: usize, side: usize) -> RegisterId {
        self.base + self.groups + self.tree.nodes() + 2 * node + side
    }

    fn spin(&self, group: usize, level: usize) -> RegisterId {
        let before = self.base + self.groups + 3 * self.tree.nodes();
        before + group * self.tree.levels() + level - 1
    }

    pub(super) fn copy(&self, group: usize) -> RegisterId {
        self.base + self.groups + 2 * self.tree.nodes() + 2 * group
    }

    fn level(&self, group: usize) -> RegisterId {
        self.copy(group) + 1
    }

    /// The rival at the first level, where there is one.
    fn rival_leaf(&self, group: usize) -> Option<usize> {
        self.tree.opponents(group, 1).next()
    }

    fn next_level(&self, at: &mut Local) -> bool {
        (at.j, at.v) = (0, 0);
        match (at.k as usize) + 1 < self.tree.levels() {
            true => {
                at.k += 1;
                at.go(ENTRY);
                false
            }
            false => {
                at.k = 0;
                true
            }
        }
    }

    /// One step of a group's entry; says whether it has won.
    pub(super) fn enter(&self, group: usize, at: &mut Local, memory: &mut dyn Memory) -> bool {
        if self.tree.levels() == 0 {
            memory.store(self.flag(group), 1);
            return true;
        }
        match self.form {
            Contention::Tournament => self.enter_tournament(group, at, memory),
            Contention::Adaptive | Contention::AdaptivePrinted => {
                self.enter_adaptive(group, at, memory)
            }
            Contention::Local => self.enter_local(group, at, memory),
            Contention::LocalPrinted => self.enter_local_printed(group, at, memory),
        }
    }

    /// Before the first step of a group's exit.
    pub(super) fn begin_leave(&self, at: &mut Local) {
        at.k = self.tree.levels().saturating_sub(1) as u8;
        at.go(EXIT);
    }

    /// One step of a group's exit; says whether it is over.
    pub(super) fn leave(&self, group: usize, at: &mut Local, memory: &mut dyn Memory) -> bool {
        let level = at.k as usize + 1;
        if self.tree.levels() == 0 {
            memory.store(self.flag(group), 0);
            return true;
        }
        let node = self.tree.node(group, level);
        let down = |at: &mut Local, last: u8| {
            at.v = 0;
            match at.k {
                0 => at.go(last),
                _ => {
                    at.k -= 1;
                    at.go(EXIT);
                }
            }
            at.line == OVER
        };
        const OVER: u8 = 99;
        match (self.form, at.line) {
            (Contention::Tournament, _) => {
                memory.store(self.flag(group), 0);
                at.k = 0;
                true
            }
            (Contention::Adaptive, EXIT) => {
                memory.store(self.winner(node), NONE);
                down(at, EXIT + 1)
            }
            (Contention::Adaptive, _) => {
                memory.store(self.flag(group), 0);
                true
            }
            // As printed: the flag first, then from the leaf up.
            (Contention::AdaptivePrinted, EXIT) => {
                memory.store(self.flag(group), 0);
                at.k = 0;
                at.go(EXIT + 1);
                false
            }
            (Contention::AdaptivePrinted, _) => {
                memory.store(self.winner(node), NONE);
                match level < self.tree.levels() {
                    true => {
                        at.k += 1;
                        false
                    }
                    false => {
                        at.k = 0;
                        true
                    }
                }
            }
            (Contention::Local, EXIT) => {
                memory.store(self.side(node, self.tree.role(group, level)), NONE);
                at.go(EXIT + 1);
                false
            }
            (Contention::Local, 61) => match memory.load(self.turn(node)) {
                rival if rival != group as Word + 1 && rival != NONE => {
                    at.v = rival;
                    at.go(EXIT + 2);
                    false
                }
                _ => down(at, OVER),
            },
            (Contention::Local, _) => {
                memory.store(self.spin(at.v as usize - 1, level), 2);
                down(at, OVER)
            }
            (Contention::LocalPrinted, EXIT) if memory_is_flagged(at) => {
                memory.store(self.flag(group), 0);
                at.w = 1;
                false
            }
            (Contention::LocalPrinted, EXIT) => {
                memory.store(self.winner(node), NONE);
                match (level, self.rival_leaf(group)) {
                    (1, Some(rival)) => {
                        at.v = rival as Word + 1;
                        at.go(EXIT + 2);
                        false
                    }
                    (1, None) => {
                        at.w = 0;
                        down(at, OVER)
                    }
                    _ => {
                        at.go(EXIT + 1);
                        false
                    }
                }
            }
            (Contention::LocalPrinted, 61) => {
                match memory.load(self.winner(self.tree.rival(group, level))) {
                    NONE => down(at, OVER),
                    rival => {
                        at.v = rival;
                        at.go(EXIT + 2);
                        false
                    }
                }
            }
            (Contention::LocalPrinted, _) => {
                memory.store(self.level(at.v as usize - 1), 2);
                if level == 1 {
                    at.w = 0;
                }
                down(at, OVER)
            }
        }
    }

    fn enter_tournament(&self, group: usize, at: &mut Local, memory: &mut dyn Memory) -> bool {
        let level = at.k as usize + 1;
        let turn = self.turn(self.tree.node(group, level));
        let role = self.tree.role(group, level) as Word;
        let look_at = |from: usize, at: &mut Local| {
            let opponents = self.tree.opponents(group, level);
            match from.max(opponents.start) {
                next if next < opponents.end => {
                    at.j = next as u8;
                    at.go(12);
                    false
                }
                _ => self.next_level(at),
            }
        };
        match at.line {
            ENTRY => {
                memory.store(self.flag(group), level as Word);
                at.go(11);
                false
            }
            11 => {
                memory.store(turn, role);
                look_at(0, at)
            }
            12 => match memory.load(self.flag(at.j as usize)) < level as Word {
                true => look_at(at.j as usize + 1, at),
                false => {
                    at.j = 0;
                    at.go(13);
                    false
                }
            },
            _ => match memory.load(turn) == role {
                true => look_at(0, at),
                false => self.next_level(at),
            },
        }
    }

    fn enter_adaptive(&self, group: usize, at: &mut Local, memory: &mut dyn Memory) -> bool {
        let level = at.k as usize + 1;
        let node = self.tree.node(group, level);
        let role = self.tree.role(group, level) as Word;
        let (look, won) = (if level == 1 { 12 } else { 14 }, 16);
        at.line = match at.line {
            ENTRY => {
                memory.store(self.flag(group), level as Word);
                11
            }
            11 => {
                memory.store(self.turn(node), role);
                match self.tree.opponents(group, level).is_empty() {
                    true => won,
                    false => look,
                }
            }
            12 => {
                let rival = self.rival_leaf(group).expect("it has opponents");
                match memory.load(self.flag(rival)) {
                    0 => won,
                    _ => 13,
                }
            }
            13 => match memory.load(self.turn(node)) == role {
                true => look,
                false => won,
            },
            14 => match memory.load(self.winner(node)) {
                NONE => 15,
                _ => 13,
            },
            15 => match memory.load(self.winner(self.tree.rival(group, level))) {
                NONE => won,
                _ => 13,
            },
            _ => {
                memory.store(self.winner(node), group as Word + 1);
                return self.next_level(at);
            }
        };
        false
    }

    fn enter_local(&self, group: usize, at: &mut Local, memory: &mut dyn Memory) -> bool {
        let level = at.k as usize + 1;
        let node = self.tree.node(group, level);
        let (role, me) = (self.tree.role(group, level), group as Word + 1);
        at.line = match at.line {
            ENTRY => {
                memory.store(self.side(node, role), me);
                11
            }
            11 => {
                memory.store(self.turn(node), me);
                12
            }
            12 => {
                memory.store(self.spin(group, level), 0);
                13
            }
            13 => match memory.load(self.side(node, 1 - role)) {
                NONE => return self.next_level(at),
                rival => {
                    at.v = rival;
                    14
                }
            },
            14 => match memory.load(self.turn(node)) == me {
                true => 15,
                false => return self.next_level(at),
            },
            15 => match memory.load(self.spin(at.v as usize - 1, level)) {
                0 => 16,
                _ => {
                    at.v = 0;
                    17
                }
            },
            16 => {
                memory.store(self.spin(at.v as usize - 1, level), 1);
                at.v = 0;
                17
            }
            17 => match memory.load(self.spin(group, level)) {
                0 => 17,
                _ => 18,
            },
            18 => match memory.load(self.turn(node)) == me {
                true => 19,
                false => return self.next_level(at),
            },
            _ => match memory.load(self.spin(group, level)) {
                2 => return self.next_level(at),
                _ => 19,
            },
        };
        false
    }

    fn enter_local_printed(&self, group: usize, at: &mut Local, memory: &mut dyn Memory) -> bool {
        let level = at.k as usize + 1;
        let node = self.tree.node(group, level);
        let role = self.tree.role(group, level) as Word;
        let first = level == 1;
        let (check, won) = (19, 24);
        let opposed = !self.tree.opponents(group, level).is_empty();
        at.line = match at.line {
            ENTRY => {
                memory.store(self.level(group), 0);
                11
            }
            11 => {
                memory.store(self.flag(group), level as Word);
                12
            }
            12 => {
                memory.store(self.turn(node), role);
                13
            }
            13 => {
                memory.store(self.copy(group), role);
                match self.rival_leaf(group) {
                    Some(rival) if first => {
                        at.v = rival as Word + 1;
                        15
                    }
                    None if first => won,
                    _ => 14,
                }
            }
            14 => match memory.load(self.winner(self.tree.rival(group, level))) {
                NONE if opposed => check,
                NONE => won,
                rival => {
                    at.v = rival;
                    15
                }
            },
            15 => match memory.load(self.flag(at.v as usize - 1)) == level as Word {
                true => 16,
                false => {
                    at.v = 0;
                    check
                }
            },
            16 => {
                at.w = memory.load(self.turn(node));
                17
            }
            17 => {
                memory.store(self.copy(at.v as usize - 1), at.w);
                (at.v, at.w) = (0, 0);
                check
            }
            19 => match memory.load(self.level(group)) {
                0 if first => 20,
                0 => 21,
                1 => 23,
                _ => won,
            },
            20 => {
                let rival = self.rival_leaf(group).expect("it has opponents");
                match memory.load(self.flag(rival)) {
                    0 => won,
                    _ => 22,
                }
            }
            21 => match memory.load(self.winner(node)) {
                NONE => 25,
                _ => 22,
            },
            25 => match memory.load(self.winner(self.tree.rival(group, level))) {
                NONE => won,
                _ => 22,
            },
            22 => {
                memory.store(self.level(group), 1);
                23
            }
            23 => match memory.load(self.copy(group)) == role {
                true => check,
                false => won,
            },
            _ => {
                memory.store(self.winner(node), group as Word + 1);
                return self.next_level(at);
            }
        };
        false
    }
}

/// Whether the exit of the printed local form has still to take the flag back.
fn memory_is_flagged(at: &Local) -> bool {
    at.w == 0
}
