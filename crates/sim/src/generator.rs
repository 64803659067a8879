//! The one source of chance: seeded, portable, and never read from the machine.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// A seeded generator. Only whole-number arithmetic and `libm` stand between the seed and what is
/// drawn, so that a run repeats byte for byte on every machine.
#[derive(Clone, Debug)]
pub struct Generator(Xoshiro256PlusPlus);

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A generator of its own for one purpose, so that drawing more for one thing does not change
    /// what another draws.
    pub fn for_purpose(seed: u64, purpose: u64) -> Generator {
        Generator::new(seed ^ purpose.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`; 0 when the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high);
        low + self.below((high - low).saturating_add(1))
    }

    /// A number in `0.0..1.0`, with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// An exponential draw with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_stream() {
        let mut generator = Generator::new(7);
        let drawn: Vec<u64> = (0..4).map(|_| generator.below(1000)).collect();
        let mut again = Generator::new(7);
        assert_eq!(drawn, (0..4).map(|_| again.below(1000)).collect::<Vec<_>>());
        // Pinned: a change here would silently change every recorded run.
        assert_eq!(drawn, PINNED);
    }
    const PINNED: [u64; 4] = [55, 172, 717, 427];

    #[test]
    fn draws_have_the_mean_they_should() {
        let mut generator = Generator::new(1);
        let n = 100_000;
        let mean = |total: f64| total / f64::from(n);
        let uniform = mean((0..n).map(|_| generator.between(10, 20) as f64).sum());
        let exponential = mean((0..n).map(|_| generator.exponential(3.0)).sum());
        assert!((uniform - 15.0).abs() < 0.05, "{uniform}");
        assert!((exponential - 3.0).abs() < 0.05, "{exponential}");
    }
}
