//! How many free slots a member keeps: each its own number, or as many as its users come for.

mod slots_group;

use slots_group::Group;
use testigo_lab::Verdict;
use testigo_lab::slots::{SlotsCheckPlan, SlotsTrouble, check_slots};
use testigo_protocol::slots::{Asking, SlotsPlan};

#[test]
fn each_member_keeps_and_asks_for_as_many_as_it_was_told() {
    let mut plan = SlotsPlan::strict(3, 12, 1);
    plan.own_free_low = [1, 4, 2].into();
    let mut group = Group::started(plan);
    let lows = [0, 1, 2].map(|member| group.sharer(member).free_low());
    assert_eq!(lows, [1, 4, 2]);
    // They look at their needs when a user comes or goes.
    for _ in 0..4 {
        for member in 0..3 {
            let slot = group.take(member).expect("it has some");
            group.calm();
            group.give(member, slot);
            group.calm();
        }
    }
    // Whoever runs short then gets all that the others have above their own.
    for taker in [0, 2] {
        let mut group = group.clone();
        while group.take(taker).is_some() {
            group.calm();
        }
        let donors = (0..3).filter(|member| *member != taker);
        for donor in donors {
            let (free, low) = (group.free(donor), group.sharer(donor).free_low());
            assert!(free >= low.min(group.sharer(donor).owned()), "{donor}");
        }
        assert_eq!(group.free(1), 4, "the most careful one keeps the most");
        assert_eq!(group.verdict(), Ok(()));
    }
    assert_eq!(group.verdict(), Ok(()));
}

/// Takes one too many, so that a request leaves, and then this many before it is answered.
fn asks_while(group: &mut Group, member: u32, come: u32) {
    while group.sharer(member).asking() == Asking::Idle {
        group.take(member).expect("it asks before it has none");
    }
    for _ in 0..come {
        group.take(member);
    }
    group.calm();
    assert_eq!(group.sharer(member).asking(), Asking::Idle);
}

#[test]
fn a_member_keeps_as_many_as_users_come_while_it_asks() {
    let mut plan = SlotsPlan::strict(2, 200, 2);
    plan.free_low_max = Some(6);
    let mut group = Group::started(plan);
    let keeps = |group: &Group| group.sharer(1).free_low();
    // One more than came, and one less at a time where fewer come. Those who found nothing came, too.
    for (come, kept) in [(3, 4), (0, 3), (1, 2), (9, 6), (4, 5), (0, 4), (0, 3)] {
        asks_while(&mut group, 1, come);
        assert_eq!(keeps(&group), kept, "after {come}");
    }
    assert_eq!(group.sharer(0).free_low(), 2, "nobody came there");
    assert_eq!(group.verdict(), Ok(()));
}

#[test]
fn a_number_that_follows_demand_keeps_all_promises_in_every_order() {
    let all = [
        (3, SlotsTrouble::None, 2, 9_205),
        (3, SlotsTrouble::Join, 2, 67_816),
        (2, SlotsTrouble::Part, 3, 52_729),
        (2, SlotsTrouble::Crash, 3, 76_412),
        (2, SlotsTrouble::Depart, 3, 22_904),
    ];
    for (members, trouble, uses, states) in all {
        let mut plan = SlotsPlan::strict(members, 4, 1);
        plan.free_low_max = Some(2);
        let checked = check_slots(&SlotsCheckPlan {
            plan,
            trouble,
            uses,
            states_max: 4_000_000,
            progress: |_| {},
        });
        println!("{trouble}: {} states", checked.states);
        assert_eq!(checked.counterexample, None, "{trouble}");
        assert_eq!((checked.complete, checked.states), (true, states));
        let verdicts = (checked.safety, checked.rest);
        assert_eq!(verdicts, (Verdict::Holds, Verdict::Holds));
    }
}
