//! Fences never fall: a grant that was asked for after another was answered has the higher fence, if the two conflict.

use std::collections::BTreeMap;

use super::Time;

/// A grant as a client saw it. One that is answered twice, under one `ID`, is recorded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) gate: String,
    pub(crate) client: u64,
    pub(crate) exclusive: bool,
    pub(crate) fence: i64,
    pub(crate) sent: Time,
    pub(crate) received: Time,
}

pub(crate) fn never_lowered(grants: &[Grant]) -> Result<(), String> {
    let mut gates: BTreeMap<&str, Vec<&Grant>> = BTreeMap::new();
    for grant in grants {
        gates.entry(&grant.gate).or_default().push(grant);
    }
    for grants in gates.values() {
        repeated(grants)?;
        let (mut by_answer, mut by_ask) = (grants.clone(), grants.clone());
        by_answer.sort_by_key(|grant| grant.received);
        by_ask.sort_by_key(|grant| grant.sent);
        let mut answered = by_answer.into_iter().peekable();
        // The highest fence of all that were answered, and of those that conflict with everybody.
        let mut highest: [Option<&Grant>; 2] = [None, None];
        for grant in by_ask {
            while let Some(before) = answered.next_if(|before| before.received < grant.sent) {
                let higher = |one: Option<&Grant>| one.is_none_or(|one| one.fence < before.fence);
                if higher(highest[0]) {
                    highest[0] = Some(before);
                }
                if before.exclusive && higher(highest[1]) {
                    highest[1] = Some(before);
                }
            }
            let before = highest[usize::from(!grant.exclusive)];
            if let Some(before) = before.filter(|before| before.fence >= grant.fence) {
                return Err(format!("a fence was lowered: {before:?}, then {grant:?}"));
            }
        }
    }
    Ok(())
}

/// Two that conflict never have the same fence, whenever they were granted.
fn repeated(grants: &[&Grant]) -> Result<(), String> {
    let mut fences: BTreeMap<i64, &Grant> = BTreeMap::new();
    for grant in grants {
        match fences.insert(grant.fence, grant) {
            Some(other) if other.exclusive || grant.exclusive => {
                return Err(format!("a fence was given twice: {other:?} and {grant:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(exclusive: bool, fence: i64, sent: Time, received: Time) -> Grant {
        Grant {
            gate: "a".into(),
            client: sent,
            exclusive,
            fence,
            sent,
            received,
        }
    }

    #[test]
    fn fences_that_rise_and_readers_that_share_one_pass() {
        let grants = [
            grant(true, 5, 0, 1),
            // Asked for together: either may be first.
            grant(true, 9, 2, 10),
            grant(true, 8, 3, 11),
            grant(false, 12, 12, 13),
            grant(false, 12, 14, 15),
            grant(true, 13, 16, 17),
        ];
        assert_eq!(never_lowered(&grants), Ok(()));
    }

    #[test]
    fn fences_that_fall_or_repeat_are_seen() {
        for (wrong, why) in [
            ([grant(true, 5, 0, 1), grant(true, 4, 2, 3)], "lowered"),
            ([grant(true, 5, 0, 1), grant(false, 4, 2, 3)], "lowered"),
            ([grant(false, 5, 0, 1), grant(true, 4, 2, 3)], "lowered"),
            ([grant(true, 5, 0, 9), grant(true, 5, 2, 3)], "twice"),
            ([grant(false, 5, 0, 9), grant(true, 5, 2, 3)], "twice"),
        ] {
            let found = never_lowered(&wrong);
            assert!(
                found.clone().is_err_and(|found| found.contains(why)),
                "{found:?}"
            );
        }
    }
}
