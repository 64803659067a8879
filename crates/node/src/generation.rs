//! Generations: slots of time, counted from 2026. A log that is restored from a backup, or recovered without its majority,
//! begins one, and its numbers begin above those of every earlier slot. It waits for the next slot, so no two logs begin in
//! the same one: whatever another log has given out that was restored from the same backup, or from another one, is lower.
//! Only for this must wall clocks be right, to within a slot.

use std::thread;
use std::time::Duration;

use crate::clock::wall_ms;

/// The length of a slot. Until its end, a log that has begun in it must not use up its numbers, `Number::GENERATION`.
const SLOT_MS: u64 = 32_000;
/// 2026-01-01, in milliseconds since 1970.
const EPOCH_MS: u64 = 1_767_225_600_000;

/// How long a node that begins a generation now has to wait for it, in seconds.
pub fn wait_secs() -> u64 {
    let into = wall_ms().saturating_sub(EPOCH_MS) % SLOT_MS;
    (SLOT_MS - into).div_ceil(1000)
}

/// Waits for the next slot. The error says why there is none.
pub(crate) fn next() -> Result<u32, String> {
    let present = slot(wall_ms());
    loop {
        match slot(wall_ms()) {
            None => {
                return Err(
                    "the clock says that it is before 2026: set it, or fences might repeat".into(),
                );
            }
            Some(now) if Some(now) > present => return Ok(now),
            Some(_) => {}
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn slot(wall_ms: u64) -> Option<u32> {
    let slot = wall_ms.checked_sub(EPOCH_MS)? / SLOT_MS;
    u32::try_from(slot).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testigo_core::Number;

    #[test]
    fn slots_have_numbers_for_decades_and_none_for_ever() {
        let year_ms = 365 * 24 * 3_600_000;
        let first = |wall_ms| slot(wall_ms).and_then(Number::first_of);
        assert_eq!(slot(EPOCH_MS - 1), None);
        assert_eq!(slot(EPOCH_MS + 3 * SLOT_MS), Some(3));
        assert!(first(EPOCH_MS + 33 * year_ms).is_some());
        assert_eq!(first(EPOCH_MS + 35 * year_ms), None);
        assert_eq!(slot(u64::MAX), None);
    }
}
