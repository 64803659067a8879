//! Exclusion by the wall clock: nobody may be inside a gate together with somebody in whose way it is, as long as both
//! have reason to believe that they are inside.

use std::collections::BTreeMap;

use super::Time;

/// One client's stay inside a gate, from the answer that let it in to the last moment at which it was entitled to
/// believe in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) gate: String,
    pub(crate) client: u64,
    pub(crate) exclusive: bool,
    pub(crate) fence: i64,
    pub(crate) from: Time,
    pub(crate) until: Time,
}

/// Looks for two that were inside together.
pub(crate) fn exclusive(holds: &[Hold]) -> Result<(), String> {
    let mut gates: BTreeMap<&str, Vec<&Hold>> = BTreeMap::new();
    for hold in holds.iter().filter(|hold| hold.from < hold.until) {
        gates.entry(&hold.gate).or_default().push(hold);
    }
    for inside in gates.values_mut() {
        inside.sort_by_key(|hold| hold.from);
        // Of those before, the one that stays longest, and the one that stays longest and is in everybody's way.
        let mut longest: [Option<&Hold>; 2] = [None, None];
        for hold in inside.iter() {
            let [any, exclusive] = longest;
            let before = if hold.exclusive { any } else { exclusive };
            if let Some(before) = before.filter(|before| before.until > hold.from) {
                return Err(format!("two inside together: {before:?} and {hold:?}"));
            }
            let later = |one: Option<&Hold>| one.is_none_or(|one| one.until < hold.until);
            if later(any) {
                longest[0] = Some(hold);
            }
            if hold.exclusive && later(exclusive) {
                longest[1] = Some(hold);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(client: u64, exclusive: bool, from: Time, until: Time) -> Hold {
        Hold {
            gate: "a".into(),
            client,
            exclusive,
            fence: from as i64,
            from,
            until,
        }
    }

    #[test]
    fn stays_one_after_the_other_and_readers_together_pass() {
        let mut holds = vec![
            hold(1, true, 0, 10),
            hold(2, true, 10, 20),
            hold(3, false, 20, 40),
            hold(4, false, 25, 30),
            hold(5, true, 40, 50),
            // Left before it was in.
            hold(6, true, 45, 44),
        ];
        holds.push(Hold {
            gate: "b".into(),
            ..hold(7, true, 5, 15)
        });
        assert_eq!(exclusive(&holds), Ok(()));
    }

    #[test]
    fn two_inside_together_are_seen() {
        for wrong in [
            [hold(1, true, 0, 10), hold(2, true, 9, 20)],
            [hold(1, true, 0, 10), hold(2, false, 9, 20)],
            [hold(1, false, 0, 30), hold(2, true, 9, 20)],
        ] {
            let found = exclusive(&wrong);
            assert!(found.is_err_and(|why| why.contains("two inside together")));
        }
        // A short stay in between hides nothing.
        let hidden = [
            hold(1, false, 0, 100),
            hold(2, false, 5, 6),
            hold(3, true, 50, 60),
        ];
        assert!(exclusive(&hidden).is_err());
    }
}
