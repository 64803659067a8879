//! What the specification of SLOTS demands when members come, go and lose each other, by its numbers.

mod slots_group;

use std::collections::BTreeMap;

use slots_group::{Group, gifts, p};
use testigo_lab::slots::{SlotsFault, SlotsStep, SlotsViolation};
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{Change, Delivery, Flaws, SlotsMessage, SlotsPlan, Transaction};
use testigo_sim::Generator;

/// LEAVE (an operator removes a member) and DISCONNECT (its process crashes) are one event here: the group communication
/// system says that the process has ended, and no rule asks why, since nobody uses its slots any more either way. So there is
/// one fault, `Depart`, and one change, `Departed`, and the test below covers both: for an ordinary member and for the
/// primary. If there is ever a change of its own for one of the two, this does not compile, and that change needs a test, too.
fn has_left(change: Change) -> Option<u32> {
    match change {
        Change::Departed(member) => Some(member.0),
        Change::Joined(_) | Change::Returned(_) | Change::Restarted(_) => None,
        Change::Parted | Change::Merged | Change::Raised(_) => None,
    }
}

#[test]
fn t09_the_slots_of_who_leaves_or_disconnects_are_free_at_the_primary() {
    for (leaver, primary) in [(2, 0), (0, 1)] {
        let mut group = Group::started(SlotsPlan::strict(3, 9, 1));
        group.take_all(leaver);
        group.calm();
        let owned = group.owned(1);
        let stays = 3 - leaver - primary;
        assert_eq!(group.sharer(stays).state().primary, Some(p(0)));
        group.depart(leaver);
        for member in [primary, stays] {
            let Some(Delivery::View { change, .. }) = group.world.next(p(member)) else {
                panic!("it is told first");
            };
            assert_eq!(has_left(*change), Some(leaver));
        }
        assert_eq!(group.verdict(), Ok(()));
        let mut after = [0; 3];
        after[primary as usize] = owned[primary as usize] + owned[leaver as usize];
        after[stays as usize] = owned[stays as usize];
        for member in [primary, stays] {
            assert_eq!(group.owned(member), after);
            assert_eq!(group.sharer(member).state().primary, Some(p(primary)));
        }
        assert_eq!(group.sharer(primary).used().len(), 0);
    }
}

#[test]
fn t09_an_ordinary_member_that_leaves_does_not_change_the_primary() {
    let mut group = Group::empty(SlotsPlan::strict(3, 9, 1));
    group.found(1);
    for newcomer in [0, 2] {
        group.join(newcomer);
        group.calm();
    }
    group.depart(2);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.sharer(0).state().primary, Some(p(1)));
    assert_eq!(group.owned(0), [1, 8, 0]);
}

#[test]
fn t10_whoever_is_primary_then_sends_the_status() {
    let mut group = Group::empty(SlotsPlan::strict(6, 24, 1));
    group.found(0);
    for newcomer in [1, 2, 3] {
        group.join(newcomer);
        group.calm();
    }
    group.join(4);
    // 0 sends the status, and its machine stops: nobody hears it.
    let sent = group.hear(0);
    assert!(matches!(sent[0].message, SlotsMessage::Status { .. }));
    group.crash(0, 9);
    // 1 does not come to it before its process ends; 5 joins in between.
    group.hear(1);
    group.depart(1);
    group.join(5);
    assert_eq!(group.verdict(), Ok(()));
    for member in 2..6 {
        assert!(group.sharer(member).is_initialised());
        assert_eq!(group.sharer(member).state().primary, Some(p(2)));
        assert!(group.sharer(member).state().pending.is_empty());
    }
}

#[test]
fn t11_a_requester_that_ends_keeps_what_came_before_and_no_more() {
    let mut group = Group::started(SlotsPlan::strict(3, 12, 1));
    group.take(1);
    group.calm();
    group.give_all(1);
    assert_eq!(group.owned(0), [8, 3, 1]);

    group.take(2);
    let delivered = gifts(&group.hear(1));
    group.depart(2);
    let late = gifts(&group.hear(0));
    assert!(!delivered.is_empty() && !late.is_empty());
    assert_eq!(group.verdict(), Ok(()));
    for slot in delivered {
        assert_eq!(group.sharer(1).table().owner(slot), Some(p(0)));
    }
    for slot in late {
        assert_eq!(group.sharer(1).table().owner(slot), Some(p(0)));
        assert!(
            group.sharer(0).free().contains(slot),
            "its donor has it back"
        );
    }
    assert_eq!(group.owned(0), [11, 1, 0]);
}

/// The components with running members, the one with the lowest member first.
fn components(group: &Group) -> Vec<NodeSet> {
    let mut components: Vec<NodeSet> = Vec::new();
    for member in group.members() {
        let component = group.world.component_of(p(member));
        if !components.contains(&component) {
            components.push(component);
        }
    }
    components
}

#[test]
fn t13_components_part_and_merge_in_any_order_under_load() {
    // Of three components: how often each two met first, and were calm before the third came.
    let mut first_two = BTreeMap::from([([0, 1], 0), ([0, 2], 0), ([1, 2], 0)]);
    let mut runs_in_three = 0;
    for seed in 1..=6 {
        let mut chance = Generator::new(seed);
        let (mut most, mut met) = (1, None);
        let mut group = Group::started(SlotsPlan::strict(6, 30, 2));
        for round in 0..120 {
            for _ in 0..400 {
                let member = chance.below(6) as u32;
                match chance.below(4) {
                    0 => {
                        group.take(member);
                    }
                    1 => {
                        if let Some(slot) = group.sharer(member).used().first() {
                            group.give(member, slot);
                        }
                    }
                    _ => {
                        group.hear(member);
                    }
                }
            }
            assert_eq!(group.wrong, None, "seed {seed}, round {round}");
            let fault = match chance.below(2) {
                0 => SlotsFault::Part {
                    away: (0..6).filter(|_| chance.below(3) == 0).collect(),
                    lost: [chance.below(9) as u32, chance.below(9) as u32],
                },
                _ => SlotsFault::Merge {
                    one: p(chance.below(6) as u32),
                    other: p(chance.below(6) as u32),
                },
            };
            if group.world.may(&fault) {
                let before = components(&group);
                let merges = matches!(fault, SlotsFault::Merge { .. });
                group.strike(fault);
                let after = components(&group);
                most = most.max(after.len());
                let gone = |at: &usize| !after.contains(&before[*at]);
                let gone: Vec<usize> = (0..before.len()).filter(gone).collect();
                let partly = merges && before.len() == 3;
                met = partly.then(|| [gone[0], gone[1]]);
            }
            if chance.below(4) == 0 {
                assert_eq!(group.verdict(), Ok(()), "seed {seed}, round {round}");
                *met.take()
                    .and_then(|met| first_two.get_mut(&met))
                    .unwrap_or(&mut 0) += 1;
            }
        }
        for other in 1..6 {
            if !group.world.component_of(p(0)).contains(other) {
                group.merge(other as u32, 0);
            }
        }
        assert_eq!(group.verdict(), Ok(()), "seed {seed}");
        assert_eq!(group.owned(0).iter().sum::<u32>(), 30);
        runs_in_three += u32::from(most >= 3);
    }
    println!("{runs_in_three} runs with three components; met first: {first_two:?}");
    assert!(runs_in_three > 0);
    assert!(first_two.values().all(|&times| times > 0), "{first_two:?}");
}

#[test]
fn t14_a_view_in_the_middle_of_a_merge_rolls_it_back_and_it_ends_all_the_same() {
    type Event = fn(&mut Group);
    let events: [(Event, usize); 5] = [
        (|group| group.depart(1), 3),
        (|group| group.depart(2), 3),
        (|group| group.join(4), 5),
        (|group| group.part(&[3], [0, 0]), 3),
        (|group| group.crash(0, 3), 3),
    ];
    for (at, (event, members)) in events.into_iter().enumerate() {
        // How much of the merge is over when it happens.
        for heard in 0..2 {
            let mut group = Group::empty(SlotsPlan::strict(5, 20, 1));
            group.found(0);
            for newcomer in [1, 2, 3] {
                group.join(newcomer);
                group.calm();
            }
            group.part(&[2, 3], [0, 0]);
            group.calm();
            let before = [0, 1, 2, 3].map(|member| group.sharer(member).table().clone());
            group.merge(0, 2);
            for _ in 0..=heard {
                for member in 0..4 {
                    group.hear(member);
                    assert_eq!(group.sharer(member).transaction(), Transaction::Merge);
                }
            }
            event(&mut group);
            for (member, table) in (0..4).zip(before) {
                let Some(sharer) = group.world.sharer(p(member)) else {
                    continue;
                };
                assert_eq!(sharer.table(), &table, "nothing changes before the end");
            }
            assert_eq!(group.verdict(), Ok(()), "event {at}, heard {heard}");
            let state = group.sharer(group.members()[1]).state();
            assert_eq!(state.component.len(), members, "event {at}, heard {heard}");
        }
    }
}

#[test]
fn t14_a_view_after_only_one_word_of_a_merge_discards_that_word() {
    let mut group = Group::started(SlotsPlan::strict(4, 16, 1));
    group.part(&[2, 3], [0, 0]);
    group.calm();
    group.merge(0, 2);
    for member in 0..4 {
        group.hear(member);
    }
    // Everybody hears what {0,1} own; then 1 ends, and its slots are 0's.
    for member in 0..4 {
        let word = group.world.next(p(member));
        assert!(matches!(
            word,
            Some(Delivery::Letter { from, .. }) if *from == p(0)
        ));
        group.hear(member);
    }
    group.part(&[2, 3], [9, 9]);
    group.depart(1);
    group.merge(0, 2);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.owned(3)[1], 0);
}

/// A2: a member that starts alone, beside a group that it does not reach.
fn isolated_start(plan: SlotsPlan) -> (Group, Result<(), SlotsViolation>) {
    let mut group = Group::started(plan);
    group.crash(2, 0);
    group.calm();
    group.join(2);
    group.calm();
    group.merge(0, 2);
    let verdict = group.verdict();
    (group, verdict)
}

/// A4: a member restarts in reach of those who do not know whom it gave its slots to.
fn restart_on_the_wrong_side(plan: SlotsPlan) -> (Group, Result<(), SlotsViolation>) {
    let mut group = Group::started(plan);
    group.part(&[2, 3], [0, 0]);
    group.calm();
    // 2 has more than it keeps, and gives 3 some.
    group.take_all(3);
    group.calm();
    group.take_all(3);
    group.crash(2, 0);
    group.merge(2, 0);
    group.join(2);
    group.calm();
    let early = group.wrong.clone().map_or(Ok(()), Err);
    group.merge(0, 3);
    let verdict = early.and(group.verdict());
    (group, verdict)
}

/// Four members, of which the third has slots to spare.
fn plan_of_four(flaws: Flaws) -> SlotsPlan {
    let mut plan = SlotsPlan::strict(4, 16, 1);
    plan.min_join = 3;
    plan.flaws = flaws;
    plan
}

#[test]
fn t15_a_lone_start_and_a_restart_break_the_printed_rules_and_not_the_strict_ones() {
    for flaws in [
        Flaws::PAPER,
        Flaws {
            lone_start: true,
            ..Flaws::NONE
        },
    ] {
        let (_, found) = isolated_start(plan_of_four(flaws));
        assert!(
            matches!(found, Err(SlotsViolation::TwoUsers { .. })),
            "{found:?}"
        );
    }
    for flaws in [
        Flaws::PAPER,
        Flaws {
            restart_frees: true,
            ..Flaws::NONE
        },
    ] {
        let (_, found) = restart_on_the_wrong_side(plan_of_four(flaws));
        assert!(
            matches!(found, Err(SlotsViolation::TwoUsers { .. })),
            "{found:?}"
        );
    }
    for scenario in [isolated_start, restart_on_the_wrong_side] {
        let (group, found) = scenario(plan_of_four(Flaws::NONE));
        assert_eq!(found, Ok(()));
        assert_eq!(group.frozen(0), 0, "everybody is here");
        assert_eq!(group.owned(0).iter().sum::<u32>(), 16);
    }
}

#[test]
fn t15_frozen_slots_stay_frozen_until_everybody_is_present() {
    let mut group = Group::started(plan_of_four(Flaws::NONE));
    let owned = group.owned(0)[2];
    group.crash(2, 0);
    group.crash(3, 0);
    group.merge(2, 0);
    group.join(2);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.frozen(0), owned as usize, "3 may have them");
    group.merge(3, 0);
    assert_eq!(group.frozen(0), owned as usize, "nothing runs at 3");
    group.join(3);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.frozen(0), 0);
}

#[test]
fn t16_a_machine_that_restarts_gets_nothing_back_and_its_slots_go_to_the_primary() {
    let mut plan = SlotsPlan::strict(3, 9, 1);
    plan.implicit_request = false;
    let mut group = Group::started(plan);
    let owned = group.owned(0);
    group.plan.min_join = 0;
    group.take_all(2);
    group.calm();
    let owned_by_2 = group.owned(0)[2];
    assert!(owned_by_2 >= owned[2]);
    let of_0 = group.owned(0)[0];
    group.crash(2, 0);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.owned(0)[2], owned_by_2, "it may be alive");
    group.merge(2, 0);
    group.join(2);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.owned(2)[2], 0);
    assert_eq!(group.owned(2)[0], of_0 + owned_by_2);
    assert_eq!(
        group.sharer(0).free().len() + group.sharer(0).used().len(),
        of_0 + owned_by_2
    );
}

/// A6: 0 donates to 1, they part, and `lost` of what 0 sent does not reach 1.
fn donation_across_a_partition(flaws: Flaws, lost: u32) -> (Group, u32) {
    let mut plan = SlotsPlan::strict(2, 8, 1);
    plan.flaws = flaws;
    let mut group = Group::started(plan);
    group.take(1);
    let slot = gifts(&group.hear(0))[0];
    group.hear(1);
    group.part(&[1], [lost, 0]);
    group.calm();
    (group, slot)
}

#[test]
fn t17_a_donation_across_a_partition_belongs_to_one_in_the_end() {
    let (mut group, slot) = donation_across_a_partition(Flaws::NONE, 0);
    assert_eq!(group.sharer(0).table().owner(slot), Some(p(1)));
    assert!(group.sharer(1).free().contains(slot), "it was delivered");
    group.merge(0, 1);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.sharer(0).table().owner(slot), Some(p(1)));

    let (mut group, slot) = donation_across_a_partition(Flaws::NONE, 1);
    assert_eq!(group.sharer(0).table().owner(slot), Some(p(1)));
    assert_eq!(group.sharer(1).table().owner(slot), Some(p(0)));
    for member in [0, 1] {
        group.take_all(member);
        assert!(!group.sharer(member).used().contains(slot), "frozen");
    }
    group.merge(0, 1);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.sharer(1).table().owner(slot), Some(p(0)));

    for flaws in [
        Flaws::PAPER,
        Flaws {
            unclaimed_as_recorded: true,
            ..Flaws::NONE
        },
    ] {
        let (mut group, slot) = donation_across_a_partition(flaws, 1);
        group.merge(0, 1);
        assert!(group.verdict().is_err());
        for member in [0, 1] {
            let owner = group.sharer(member).table().owner(slot);
            assert_eq!(owner, None, "nobody ever has it again");
        }
    }
}

#[test]
fn a_member_that_was_retired_and_joins_anew_is_a_member_like_the_others() {
    let mut group = Group::started(SlotsPlan::strict(4, 16, 1));
    group.crash(3, 0);
    group.crash(2, 0);
    group.calm();
    group.retire(0, 3);
    assert_eq!(group.verdict(), Ok(()));
    assert!(group.frozen(0) > 0, "2 may have what 3 owned");
    group.merge(3, 0);
    group.join(3);
    assert_eq!(group.verdict(), Ok(()), "it has what its table says");
    // What it owns now is its own, also when it is out of reach.
    group.part(&[3], [0, 0]);
    group.merge(2, 0);
    group.join(2);
    assert_eq!(group.verdict(), Ok(()));
    assert!(group.owned(0)[3] > 0);
}

#[test]
fn what_one_component_retires_another_may_have_given_slots_to() {
    let mut plan = SlotsPlan::strict(3, 12, 1);
    plan.min_join = 4;
    let mut group = Group::started(plan);
    assert_eq!(group.owned(0), [6, 2, 4]);
    group.crash(2, 0);
    group.part(&[0], [0, 0]);
    group.calm();
    group.retire(0, 2);
    group.calm();
    group.merge(2, 1);
    group.join(2);
    group.calm();
    assert_eq!(group.owned(1)[2], 1, "1 gave it what it could");
    group.part(&[2], [0, 0]);
    group.merge(0, 1);
    assert_eq!(group.verdict(), Ok(()));
    group.merge(0, 2);
    assert_eq!(group.verdict(), Ok(()));
}

#[test]
fn a_retirement_in_the_middle_of_a_join_counts_for_nobody() {
    let mut group = Group::empty(SlotsPlan::strict(4, 12, 1));
    group.found(0);
    for newcomer in [1, 2] {
        group.join(newcomer);
        group.calm();
    }
    group.crash(2, 0);
    group.calm();
    group.join(3);
    group.hear(1);
    // Ordered before the status, of which the newcomer knows only what was written before.
    group.retire(1, 2);
    assert_eq!(group.verdict(), Ok(()));
    assert!(group.sharer(3).state().provisioned.contains(2));
}

#[test]
fn slots_of_the_retired_are_free_once_everybody_else_is_here() {
    let mut group = Group::started(SlotsPlan::strict(3, 12, 1));
    group.crash(2, 0);
    group.calm();
    let owned = group.owned(0);
    group.retire(1, 2);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.owned(0), [owned[0] + owned[2], owned[1], 0]);
    group.retire(1, 0);
    assert_eq!(group.verdict(), Ok(()));
    assert!(
        group.sharer(1).state().provisioned.contains(0),
        "it is here"
    );
}

#[test]
fn a_slot_that_two_components_claim_is_nobodys_for_good() {
    // Two founders: what no operator should do.
    let mut group = Group::empty(SlotsPlan::strict(3, 4, 1));
    group.part(&[1], [0, 0]);
    group.found(0);
    group.found(1);
    group.take(0);
    group.merge(0, 1);
    group.calm();
    group.join(2);
    group.calm();
    for member in 0..3 {
        assert_eq!(group.sharer(member).alarms(), [0, 1, 2, 3]);
        assert_eq!(group.frozen(member), 4, "also with everybody here");
        assert_eq!(group.take(member), None);
    }
}

#[test]
fn a_disputed_slot_is_not_the_next_claimants_either() {
    let mut group = Group::empty(SlotsPlan::strict(3, 4, 1));
    group.part(&[1], [0, 0]);
    group.part(&[2], [0, 0]);
    for founder in 0..3 {
        group.found(founder);
    }
    group.merge(0, 1);
    group.calm();
    group.merge(0, 2);
    group.calm();
    for member in 0..3 {
        assert_eq!((group.frozen(member), group.free(member)), (4, 0));
    }
}

#[test]
fn a_step_is_told_in_words() {
    let mut group = Group::started(SlotsPlan::strict(3, 9, 1));
    group.take(1);
    let step = SlotsStep::Deliver { member: p(0) };
    assert_eq!(group.world.describe(&step), "p0 hears that p1 asks for 2");
    group.part(&[2], [0, 1]);
    group.hear(0);
    let step = SlotsStep::Deliver { member: p(0) };
    assert_eq!(
        group.world.describe(&step),
        "p0 sees {0,1}: the others are out of reach"
    );
}
