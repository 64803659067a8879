//! Random numbers: the system's, or, in a simulated run, those of its seed.

/// Fills a buffer with bytes that nobody can guess.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
    #[cfg(test)]
    if simulated::fill(bytes) {
        return Ok(());
    }
    getrandom::fill(bytes)
}

/// A number that nobody can guess; 0 if the system provides none.
pub(crate) fn number() -> u64 {
    let mut bytes = [0; 8];
    match fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => 0,
    }
}

/// What a simulated run draws, on its own thread.
#[cfg(test)]
pub(crate) mod simulated {
    use std::cell::RefCell;

    use testigo_sim::Generator;

    thread_local! {
        static DRAWN: RefCell<Option<Generator>> = const { RefCell::new(None) };
    }

    /// From here on this thread draws from a seed; with `None`, from the system again.
    pub(crate) fn seed(seed: Option<u64>) {
        DRAWN.set(seed.map(Generator::new));
    }

    pub(super) fn fill(bytes: &mut [u8]) -> bool {
        DRAWN.with_borrow_mut(|drawn| {
            let Some(generator) = drawn else {
                return false;
            };
            bytes.fill_with(|| generator.bits() as u8);
            true
        })
    }
}
