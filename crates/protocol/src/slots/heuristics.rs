//! How many slots to ask for, and how many to give: figures 5 and 6 of the paper.

/// How many slots a member that runs short asks for: enough to reach the group's average or, if it owns that
/// many already, enough to have `low` free ones again. Only for a member with fewer than `low` free slots.
pub fn slots_to_request(slots: u32, members: u32, owned: u32, free: u32, low: u32) -> u32 {
    let average = slots.div_ceil(members.max(1));
    match average > owned {
        true => average - owned,
        false => low.saturating_sub(free),
    }
}

/// How many of its free slots a member gives for a request: its part of what was asked for, but never more
/// than it has above `low`. Every donor rounds up, so a request may bring more than it asked for.
pub fn slots_to_donate(wanted: u32, members: u32, free: u32, low: u32) -> u32 {
    let donors = members.saturating_sub(1).max(1);
    free.saturating_sub(low).min(wanted.div_ceil(donors))
}

/// Like [`slots_to_donate`], but all donors together never give more than was asked for: what does not divide is
/// asked of the first donors alone, one slot each. `place` is the donor's zero-based place among the other members.
pub fn exact_slots_to_donate(wanted: u32, members: u32, place: u32, free: u32, low: u32) -> u32 {
    let donors = members.saturating_sub(1).max(1);
    let part = wanted / donors + u32::from(place < wanted % donors);
    free.saturating_sub(low).min(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t01_as_many_are_asked_for_and_given_as_the_figures_say() {
        let request = |owned, free| slots_to_request(768, 32, owned, free, 4);
        assert_eq!(request(0, 0), 24);
        assert_eq!(request(24, 3), 1, "the average is reached");
        assert_eq!(request(30, 0), 4);
        assert_eq!(request(23, 3), 1);
        let donate = |free, wanted| slots_to_donate(wanted, 32, free, 4);
        let cases = [
            (4, 24),
            (5, 24),
            (6, 31),
            (6, 62),
            (100, 24),
            (7, 310),
            (3, 24),
            (9, 0),
        ];
        let given = cases.map(|(free, wanted)| donate(free, wanted));
        assert_eq!(given, [0, 1, 1, 2, 1, 3, 0, 0]);
        // Nobody to ask, and nobody to answer.
        assert_eq!(slots_to_request(768, 1, 768, 3, 4), 1);
        assert_eq!(slots_to_donate(5, 1, 9, 4), 5);
    }

    #[test]
    fn a13_rich_donors_together_give_exactly_what_was_asked_for() {
        for (wanted, members) in
            (0..80).flat_map(|wanted| (2..9).map(move |members| (wanted, members)))
        {
            let given = |free| -> u32 {
                let donors = 0..members - 1;
                donors
                    .map(|place| exact_slots_to_donate(wanted, members, place, free, 4))
                    .sum()
            };
            assert_eq!(given(100), wanted);
            assert!(given(5) <= wanted);
            assert_eq!(given(4), 0);
            // As printed, each rounds up.
            let printed = (members - 1) * slots_to_donate(wanted, members, 100, 4);
            assert!(printed >= wanted && printed < wanted + members - 1);
        }
    }

    #[test]
    fn t02_averages_and_parts_are_rounded_up() {
        let average = |members| slots_to_request(768, members, 0, 0, 4);
        assert_eq!((average(32), average(31)), (24, 25));
        assert_eq!(slots_to_donate(1, 32, 9, 4), 1);
    }
}
