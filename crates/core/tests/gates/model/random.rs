//! A small generator with seeds in the tree, and random houses.

use testigo_core::{Definition, GateOrder, Rule};

/// SplitMix64: enough for choosing tests, and the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A gate of any rule and order, with or without bounds.
    pub(crate) fn definition(&mut self) -> Definition {
        let k = 1 + self.below(4) as u32;
        let rule = self.pick(&[Rule::Mutex, Rule::Shared, Rule::Permits(k), Rule::Rooms]);
        let mut definition = Definition::new(rule);
        definition.order = match rule {
            Rule::Shared => self.pick(&[
                GateOrder::Arrival,
                GateOrder::Class,
                GateOrder::Readers,
                GateOrder::Writers,
            ]),
            _ => self.pick(&[GateOrder::Arrival, GateOrder::Class]),
        };
        definition.overtakes = self.pick(&[0, 1, 2, 5]);
        definition.classes = self.pick(&[1, 2, 3]);
        if self.one_in(3) {
            definition.lease_ms = Some(1 + self.below(30));
        }
        if rule == Rule::Rooms {
            definition.capacity = self.one_in(3).then(|| 1 + k);
            definition.stay_ms = self.one_in(2).then(|| 5 + self.below(40));
        }
        definition
    }
}
