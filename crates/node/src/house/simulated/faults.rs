//! Faults, drawn from the seed.

use testigo_engine::simulated::Fate;

use super::world::{Event, World};

impl World {
    pub(super) fn fault(&mut self) -> Result<(), String> {
        let node = self.any_node();
        let lasts = self.chance.between(100, 6_000);
        match self.chance.below(12) {
            0..=3 => {
                self.kill(node);
            }
            4 | 5 if self.machine(node).works() => {
                self.tally.pauses += 1;
                self.note(|_| format!("node {node} is paused for {lasts}"));
                self.machine(node).paused = true;
                self.suspend(node);
                let life = self.machine(node).life;
                self.plan(lasts, Event::Resume { node, life });
            }
            6..=8 => self.cut_off(node, lasts),
            9 => {
                let to = self.any_node();
                self.cut(node, to, lasts);
            }
            10 => {
                let fate = self.fate();
                self.machine(node).disk.next_flush(fate);
            }
            _ => {
                self.flush_ms = self.chance.between(1, 100);
                if self.chance.chance(0.3) {
                    // All nodes at once.
                    for node in 1..=self.machines.len() as u64 {
                        self.kill(node);
                    }
                }
            }
        }
        Ok(())
    }

    fn kill(&mut self, node: u64) {
        if self.machine(node).running.is_some() {
            self.tally.crashes += 1;
            let fate = self.fate();
            self.crash(node, fate);
            self.boot_later(node);
        }
    }

    fn fate(&mut self) -> Fate {
        match self.chance.below(3) {
            0 => Fate::Full,
            1 => Fate::Unheard,
            _ => Fate::Torn(self.chance.below(256) as u8),
        }
    }

    /// Nobody hears a node, or it hears nobody, or both.
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
        self.tally.cuts += 1;
        self.note(|_| format!("cut {from} -> {to} for {lasts}"));
        self.cuts.insert((from, to));
        self.plan(lasts, Event::Mend { from, to });
    }
}
