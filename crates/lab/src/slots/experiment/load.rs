//! What the members of an experiment are asked to do: how many uses of a slot begin in a round, and how
//! long each of them lasts. With the same seed, every algorithm meets the same demand.

use testigo_sim::Generator;

/// Who needs slots, when, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Preset A: one mean lifetime for all members.
    OneMean(f64),
    /// Preset B: every member draws its own mean from 1 to 100.
    OwnMeans,
    /// Exactly these uses.
    Script(Vec<Arrival>),
}

/// One use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub round: u64,
    pub member: usize,
    /// In rounds.
    pub lifetime: u32,
}

/// The paper's bounds on arrivals per member and round.
pub(super) const RATES: (f64, f64) = (0.5, 0.8);
/// The paper's bounds on lifetimes, or on their means; in either reading nothing lasts longer.
pub(super) const LIFETIME_MAX: u32 = 100;
/// How many rounds pass before all rates are drawn anew.
pub(super) const RATES_LAST: u64 = 10_000;

/// Draws the demand of a run, one member after the other, round after round.
pub(super) struct Demand<'a> {
    load: &'a Load,
    chance: Generator,
    rates: Vec<f64>,
    means: Vec<f64>,
    scripted: usize,
}

impl Demand<'_> {
    pub(super) fn new(load: &Load, members: usize, seed: u64) -> Demand<'_> {
        let mut chance = Generator::for_purpose(seed, 18);
        let means = (0..members).map(|_| match load {
            Load::OneMean(mean) => *mean,
            Load::OwnMeans => 1.0 + 99.0 * chance.unit(),
            Load::Script(_) => 0.0,
        });
        Demand {
            load,
            means: means.collect(),
            chance,
            rates: vec![0.0; members],
            scripted: 0,
        }
    }

    /// Starts a round.
    pub(super) fn begin(&mut self, round: u64) {
        if round.is_multiple_of(RATES_LAST) {
            for rate in &mut self.rates {
                *rate = RATES.0 + (RATES.1 - RATES.0) * self.chance.unit();
            }
        }
    }

    /// How many slots' worth of work a member asks for at present.
    pub(super) fn offered(&self, member: usize) -> f64 {
        self.rates[member] * self.means[member]
    }

    /// The lifetimes of the uses that a member begins in a round.
    pub(super) fn arrivals(&mut self, round: u64, member: usize, lifetimes: &mut Vec<u32>) {
        lifetimes.clear();
        if let Load::Script(arrivals) = self.load {
            let due = |at: &&Arrival| (at.round, at.member) == (round, member);
            let rest = arrivals[self.scripted..].iter().take_while(due);
            lifetimes.extend(rest.map(|arrival| arrival.lifetime));
            self.scripted += lifetimes.len();
            return;
        }
        for _ in 0..poisson(&mut self.chance, self.rates[member]) {
            lifetimes.push(lifetime(&mut self.chance, self.means[member]));
        }
    }
}

/// By multiplying uniform draws: rates are small.
fn poisson(chance: &mut Generator, mean: f64) -> u32 {
    let limit = libm::exp(-mean);
    let mut product = chance.unit();
    let mut count = 0;
    while product > limit {
        product *= chance.unit();
        count += 1;
    }
    count
}

/// An inverse Gaussian draw whose shape is its mean, as a whole number of rounds within the bounds.
fn lifetime(chance: &mut Generator, mean: f64) -> u32 {
    let normal = libm::sqrt(-2.0 * libm::log(1.0 - chance.unit()))
        * libm::cos(std::f64::consts::TAU * chance.unit());
    let square = normal * normal;
    let (m, k) = (mean, mean);
    let root = libm::sqrt(4.0 * m * k * square + m * m * square * square);
    let x = m + m * m * square / (2.0 * k) - m / (2.0 * k) * root;
    let drawn = match chance.unit() <= m / (m + x) {
        true => x,
        false => m * m / x,
    };
    libm::round(drawn).clamp(1.0, f64::from(LIFETIME_MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_means_that_they_should() {
        let mut chance = Generator::new(1);
        let n = 200_000;
        let mean = |total: f64| total / f64::from(n);
        let arrivals = mean((0..n).map(|_| f64::from(poisson(&mut chance, 0.65))).sum());
        assert!((arrivals - 0.65).abs() < 0.01, "{arrivals}");
        // SciPy: the mean of round(invgauss(mu=1, scale=m)) clipped to 1 to 100.
        for (nominal, clipped) in [(28.0, 26.9), (40.0, 36.4)] {
            let found = mean(
                (0..n)
                    .map(|_| f64::from(lifetime(&mut chance, nominal)))
                    .sum(),
            );
            assert!((found - clipped).abs() < 0.2, "{nominal}: {found}");
        }
    }

    #[test]
    fn a_seed_fixes_the_demand() {
        let draw = |seed| {
            let mut demand = Demand::new(&Load::OwnMeans, 3, seed);
            let mut all = Vec::new();
            for round in 0..50 {
                demand.begin(round);
                for member in 0..3 {
                    let mut lifetimes = Vec::new();
                    demand.arrivals(round, member, &mut lifetimes);
                    all.push(lifetimes);
                }
            }
            all
        };
        assert_eq!(draw(4), draw(4));
        assert_ne!(draw(4), draw(5));
    }
}
