//! Requests that stand: what a request did not bring comes later, to the oldest wish first.

mod slots_group;

use slots_group::Group;
use testigo_protocol::slots::SlotsPlan;

/// Everybody has used up all it has; `slots` are shared by three members.
fn all_used(slots: u32, free_low: u32) -> Group {
    let mut plan = SlotsPlan::strict(3, slots, free_low);
    plan.min_join = 3;
    let mut group = Group::started(plan);
    // Requests begin to stand when there is nothing more to give.
    for _ in 0..slots {
        for member in 0..3 {
            group.take_all(member);
        }
        group.calm();
    }
    assert_eq!((0..3).map(|member| group.free(member)).sum::<u32>(), 0);
    group.plan.standing_requests = true;
    group
}

fn give(group: &mut Group, member: u32, count: u32) {
    for _ in 0..count {
        let slot = group.sharer(member).used().first().expect("one is used");
        group.give(member, slot);
        assert_eq!(group.verdict(), Ok(()));
    }
}

#[test]
fn what_is_given_back_goes_to_the_oldest_wish() {
    let mut group = all_used(9, 0);
    group.want(1, 2);
    group.calm();
    group.want(2, 1);
    assert_eq!(group.verdict(), Ok(()));
    give(&mut group, 0, 1);
    assert_eq!((group.free(1), group.free(2)), (1, 0));
    give(&mut group, 0, 1);
    assert_eq!((group.free(1), group.free(2)), (2, 0));
    give(&mut group, 0, 1);
    assert_eq!((group.free(1), group.free(2)), (2, 1));
    give(&mut group, 0, 1);
    assert_eq!(group.free(0), 1, "nobody waits any more");
}

#[test]
fn a_later_wisher_gives_the_older_one_its_part_and_keeps_its_place() {
    let mut group = all_used(9, 0);
    group.want(1, 2);
    group.calm();
    group.want(2, 2);
    group.calm();
    // 2 could wait for one more, and so could 1: one of them must have both.
    give(&mut group, 2, 1);
    assert_eq!((group.free(1), group.free(2)), (1, 0));
    give(&mut group, 1, 1);
    assert_eq!((group.free(1), group.free(2)), (2, 0));
    // 1 keeps what it has waited for, and 2 is next.
    give(&mut group, 0, 2);
    assert_eq!((group.free(1), group.free(2)), (2, 2));
}

#[test]
fn what_nobody_waits_for_any_more_is_passed_on() {
    let mut group = all_used(9, 0);
    group.want(1, 2);
    group.calm();
    group.want(2, 1);
    group.calm();
    group.want(1, 0);
    give(&mut group, 0, 1);
    assert_eq!(group.free(2), 1, "1 got it first, and did not need it");
    assert_eq!(group.sharer(0).state().standing, []);
}

#[test]
fn a_wish_outlasts_a_partition_and_a_view_that_drops_its_request() {
    let mut group = all_used(9, 0);
    group.want(2, 2);
    group.part(&[2], [9, 9]);
    assert_eq!(group.verdict(), Ok(()));
    group.give_all(0);
    group.merge(0, 2);
    assert_eq!(group.verdict(), Ok(()));
    assert!(group.free(2) >= 2);
}

#[test]
fn a_donor_keeps_what_its_own_users_wait_for() {
    let mut group = all_used(18, 1);
    group.want(1, 3);
    group.calm();
    group.want(2, 3);
    group.calm();
    give(&mut group, 0, 4);
    // Users wait, so that nobody keeps anything back. 1 has all it waits for and has not taken it: 2 does not get it.
    let free = |group: &Group| [0, 1, 2].map(|member| group.free(member));
    assert_eq!(free(&group), [0, 3, 1]);
    give(&mut group, 0, 3);
    assert_eq!(free(&group), [1, 3, 3]);
}

#[test]
fn what_nobody_waits_for_does_not_stand() {
    let mut plan = SlotsPlan::strict(3, 9, 1);
    plan.standing_requests = true;
    let mut group = Group::started(plan);
    group.take(1);
    assert_eq!(group.verdict(), Ok(()));
    // It asked for two to reach the average: one came, and nobody waits for the other.
    assert_eq!(group.owned(1), [6, 2, 1]);
    assert_eq!(group.sharer(1).state().standing, []);
}

#[test]
fn a_member_asks_for_all_its_users_want_and_for_nothing_twice() {
    let mut group = all_used(9, 0);
    assert_eq!(group.owned(0), [4, 1, 4]);
    let wanted = |group: &Group| -> u32 {
        let standing = group.sharer(0).state().standing.iter();
        standing.map(|wish| wish.wanted).sum()
    };
    let before = group.world.multicasts();
    group.want(1, 5);
    group.calm();
    assert_eq!(wanted(&group), 5, "more than the average");
    assert_eq!(group.world.multicasts() - before, 3, "in one request");
    let mut group = all_used(9, 0);
    group.want(1, 2);
    group.calm();
    group.want(1, 3);
    group.calm();
    assert_eq!(wanted(&group), 3);
}

#[test]
fn a_wish_is_answered_once_at_a_time() {
    let mut group = all_used(9, 0);
    group.want(1, 1);
    group.calm();
    let before = group.world.multicasts();
    for _ in 0..3 {
        let slot = group.sharer(0).used().first().expect("one is used");
        group.give(0, slot);
    }
    assert_eq!(group.world.multicasts() - before, 1);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!((group.free(0), group.free(1)), (2, 1));
}

#[test]
fn users_that_begin_to_wait_during_a_request_are_asked_for_after_it() {
    let mut group = Group::started(SlotsPlan::strict(2, 8, 1));
    group.take(1);
    group.want(1, 5);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.free(1), 5);
}
