//! Hostile input for the parsers: how much of it to generate, and how much memory reading it may take.

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// How many inputs each parser gets; `cargo xtask chaos parsers` sets it.
const ROUNDS: &str = "TESTIGO_ROUNDS";

/// What reading may allocate in addition to a multiple of the input: room for an error's text.
const SPARE_BYTES: u64 = 2048;
/// How many bytes a byte of input may cost.
const BYTES_PER_BYTE: u64 = 16;

/// Gives a parser its inputs, made from a seeded generator.
pub(crate) fn inputs(ordinarily: u64, mut parse: impl FnMut(&mut Chance)) {
    let rounds = std::env::var(ROUNDS).ok();
    let count = rounds
        .as_ref()
        .map_or(ordinarily, |n| n.parse().expect("a number"));
    let mut chance = Chance(Xoshiro256StarStar::seed_from_u64(0x7E57_160A));
    for number in 1..=count {
        parse(&mut chance);
        if rounds.is_some() && (number % 100_000 == 0 || number == count) {
            eprint!("\r{number} of {count} inputs");
        }
    }
    if rounds.is_some() {
        eprintln!();
    }
}

/// Runs a parser on an input and checks that it allocates no more than the input justifies, whatever the input claims.
pub(crate) fn frugally<T>(input: &[u8], parse: impl FnOnce() -> T) -> T {
    let mut parsed = None;
    let taken = allocation_counter::measure(|| parsed = Some(parse()));
    let most = SPARE_BYTES + BYTES_PER_BYTE * input.len() as u64;
    assert!(
        taken.bytes_max <= most,
        "{} bytes for an input of {}: {}",
        taken.bytes_max,
        input.len(),
        input.escape_ascii()
    );
    parsed.expect("it ran")
}

pub(crate) struct Chance(Xoshiro256StarStar);

impl Chance {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound as u64) as usize
    }

    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1))
            .map(|_| self.below(256) as u8)
            .collect()
    }

    /// Changes, adds, drops and cuts a few bytes.
    pub(crate) fn mutate(&mut self, input: &mut Vec<u8>, alphabet: &[u8], most: usize) {
        for _ in 0..self.below(most + 1) {
            if input.is_empty() {
                return;
            }
            let at = self.below(input.len());
            match self.below(6) {
                0 => input[at] = self.below(256) as u8,
                1 => input[at] = self.one(alphabet),
                2 => input.insert(at, self.one(alphabet)),
                3 => drop(input.remove(at)),
                4 => {
                    // Repeats a piece of it.
                    let to = at + self.below(input.len() - at + 1);
                    let piece = input[at..to].to_vec();
                    let into = self.below(input.len() + 1);
                    input.splice(into..into, piece);
                }
                _ => input.truncate(at + 1),
            }
        }
    }
}

/// A parser that trusts what a header claims.
#[test]
#[should_panic(expected = "bytes for an input of 9")]
fn a_trusting_parser_is_seen() {
    let input = b"*1000000\n";
    // Otherwise the optimiser removes it as unused.
    frugally(input, || {
        std::hint::black_box(Vec::<u8>::with_capacity(1_000_000))
    });
}
