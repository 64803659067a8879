//! Hostile texts, a bounded number of them; `cargo xtask chaos parsers` runs it with more.

use testigo_flow::fuzz::{Hostile, withstand};

const TEXTS: u64 = 20_000;
/// Says another number of texts.
const ROUNDS: &str = "TESTIGO_ROUNDS";

#[test]
fn the_reader_withstands_hostile_texts() {
    let rounds = std::env::var(ROUNDS).ok();
    let texts = rounds.map_or(TEXTS, |rounds| rounds.parse().unwrap());
    let mut hostile = Hostile::new(1998);
    let mut flows = 0;
    for _ in 0..texts {
        let text = hostile.text();
        if let Err(why) = withstand(&text) {
            panic!("{why}\n--- text:\n{text}");
        }
        flows += u64::from(testigo_flow::parse(&text).is_ok());
    }
    // Some must come through, or the texts would only try the first few characters.
    assert!(flows > texts / 100 && flows < texts / 2, "{flows} flows");
}
