//! What can go wrong, drawn from the seed.

use testigo_engine::simulated::Fate as Flush;
use testigo_engine::{DISK_RESERVE_BYTES, MemberChange, START_BYTES};
use testigo_sim::Time;

use super::{Event, World};

impl World {
    pub(super) fn fault(&mut self) {
        let node = self.any();
        let lasts = self.chance.between(30, 2_500);
        let life = self.machine(node).life;
        match self.chance.below(12) {
            0..=3 => self.crash(node),
            4 => {
                self.machine(node).paused = true;
                self.plan(lasts, Event::Resume { node, life });
            }
            5 | 6 => self.cut_off(node, lasts),
            7 => {
                let to = self.any();
                self.cut(node, to, lasts);
            }
            8 => {
                let fate = match self.chance.below(3) {
                    0 => Flush::Full,
                    1 => Flush::Unheard,
                    _ => Flush::Torn(self.chance.below(256) as u8),
                };
                self.machine(node).disk.next_flush(fate);
            }
            9 => {
                // Everybody at once.
                for node in 1..=self.machines.len() as u64 {
                    self.crash(node);
                }
            }
            10 => self.remove(node),
            _ => self.flush = Time::units(self.chance.between(1, 300)),
        }
    }

    /// One disk fills up, or several, for a while: so that it is short, or takes nothing more, or refuses writes soon.
    pub(super) fn fill_up(&mut self) {
        let machines = self.machines.len() as u64;
        let Some(chance) = &mut self.room else { return };
        let next = chance.between(500, 4_000);
        let count = chance.between(1, machines);
        let full = (0..count).map(|_| {
            let room = match chance.below(4) {
                0 => chance.below(3_000),
                1 => START_BYTES + chance.below(3_000),
                2 => DISK_RESERVE_BYTES / 3,
                _ => DISK_RESERVE_BYTES - 1,
            };
            (1 + chance.below(machines), room, chance.between(100, 4_000))
        });
        let full: Vec<_> = full.collect();
        for (node, room, lasts) in full {
            self.machine(node).disk.set_room(Some(room));
            self.plan(lasts, Event::MakeRoom { node });
        }
        self.plan(next, Event::FillUp);
    }

    fn crash(&mut self, node: u64) {
        let fate = match self.chance.below(4) {
            0 => Flush::Full,
            1 => Flush::Unheard,
            _ => Flush::Torn(self.chance.below(256) as u8),
        };
        self.machine(node).crash(fate);
        self.boot_later(node);
    }

    pub(super) fn boot_later(&mut self, node: u64) {
        let life = self.machine(node).life;
        let later = self.chance.between(10, 1_500);
        self.plan(later, Event::Boot { node, life });
    }

    /// Nobody hears a machine, or it hears nobody, or both.
    fn cut_off(&mut self, node: u64, lasts: u64) {
        let ways = self.chance.between(1, 3);
        for other in 1..=self.machines.len() as u64 {
            if ways & 1 != 0 {
                self.cut(node, other, lasts);
            }
            if ways & 2 != 0 {
                self.cut(other, node, lasts);
            }
        }
    }

    fn cut(&mut self, from: u64, to: u64, lasts: u64) {
        self.cuts.insert((from, to));
        self.plan(lasts, Event::Mend { from, to });
    }

    fn remove(&mut self, node: u64) {
        for machine in &self.machines {
            if let Some(running) = machine.leading() {
                running.log.change_members(0, MemberChange::Remove(node));
            }
        }
    }
}
