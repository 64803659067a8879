//! Hostile texts, a bounded number of them.

use testigo_flow::fuzz::{Hostile, withstand};

const TEXTS: u64 = 20_000;

#[test]
fn the_reader_withstands_hostile_texts() {
    let mut hostile = Hostile::new(1998);
    let mut flows = 0;
    for _ in 0..TEXTS {
        let text = hostile.text();
        if let Err(why) = withstand(&text) {
            panic!("{why}\n--- text:\n{text}");
        }
        flows += u64::from(testigo_flow::parse(&text).is_ok());
    }
    // Some must come through, or the texts would only try the first few characters.
    assert!(flows > TEXTS / 100 && flows < TEXTS / 2, "{flows} flows");
}
