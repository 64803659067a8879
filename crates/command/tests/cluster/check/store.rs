//! A fenced store: what the gates of the run protect. It lets a write through unless it has seen a higher fence, as a
//! careful service does, so that what it lets through must be exclusive even where a client believes for too long.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Store {
    things: BTreeMap<String, Thing>,
    /// Writes that a fence let through, and that it kept out.
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
}

#[derive(Debug, Default)]
struct Thing {
    highest: i64,
    /// Who has used the highest fence, and whether as the only one.
    users: BTreeSet<u64>,
    exclusive: bool,
}

impl Store {
    /// A client uses what a gate protects. Whether it was let through; an error if that breaks the promise of fences.
    pub(crate) fn uses(
        &mut self,
        gate: &str,
        client: u64,
        exclusive: bool,
        fence: i64,
    ) -> Result<bool, String> {
        let thing = self.things.entry(gate.to_owned()).or_default();
        if fence < thing.highest {
            self.refused += 1;
            return Ok(false);
        }
        if fence > thing.highest {
            *thing = Thing {
                highest: fence,
                users: BTreeSet::new(),
                exclusive,
            };
        }
        thing.exclusive |= exclusive;
        thing.users.insert(client);
        if thing.exclusive && thing.users.len() > 1 {
            let users = &thing.users;
            return Err(format!("{gate}: fence {fence} let {users:?} through"));
        }
        self.accepted += 1;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_holder_is_kept_out_and_readers_share() {
        let mut store = Store::default();
        assert_eq!(store.uses("a", 1, true, 5), Ok(true));
        assert_eq!(store.uses("a", 2, true, 6), Ok(true));
        assert_eq!(store.uses("a", 1, true, 5), Ok(false));
        assert_eq!(store.uses("a", 3, false, 7), Ok(true));
        assert_eq!(store.uses("a", 4, false, 7), Ok(true));
        assert_eq!((store.accepted, store.refused), (4, 1));
    }

    #[test]
    fn a_fence_of_two_holders_is_seen() {
        for kinds in [[true, true], [true, false], [false, true]] {
            let mut store = Store::default();
            assert_eq!(store.uses("a", 1, kinds[0], 5), Ok(true));
            assert!(store.uses("a", 2, kinds[1], 5).is_err(), "{kinds:?}");
        }
    }
}
