//! Requests that name their donors: who answers, and what happens when the named have nothing.

use testigo_lab::slots::SlotsWorld;
use testigo_protocol::NodeId;
use testigo_protocol::slots::{SlotsMessage, SlotsPlan};

/// Four members; member 0 owns most of the slots.
fn started(free_low: u32) -> (SlotsWorld, SlotsPlan) {
    let plan = SlotsPlan::directed(4, 40, free_low);
    (SlotsWorld::started(&plan), plan)
}

/// Delivers everything, and says what was multicast meanwhile: who, and whether it asked, gave or refused.
fn settle(world: &mut SlotsWorld, plan: &SlotsPlan) -> Vec<(u32, &'static str)> {
    let mut said = Vec::new();
    while !world.is_quiet() {
        for member in NodeId::all(plan.members) {
            for letter in world.deliver(member, plan) {
                let what = match &letter.message {
                    SlotsMessage::Request { .. } => "asks",
                    SlotsMessage::Donate { slots, .. } if slots.is_empty() => "refuses",
                    SlotsMessage::Donate { .. } => "gives",
                    _ => "else",
                };
                said.push((member.0, what));
            }
        }
    }
    said
}

fn take(world: &mut SlotsWorld, plan: &SlotsPlan, member: u32, count: u32) {
    for _ in 0..count {
        let taken = world.take(NodeId(member), plan);
        assert!(taken.is_some(), "{member} has a slot");
    }
}

fn free(world: &SlotsWorld, member: u32) -> u32 {
    let sharer = world.sharer(NodeId(member)).expect("it runs");
    sharer.free().len()
}

#[test]
fn only_the_named_donor_answers() {
    let (mut world, plan) = started(4);
    let before = free(&world, 0);
    // The joins have told everybody that member 0 is rich.
    take(&mut world, &plan, 2, 1);
    let said = settle(&mut world, &plan);
    assert_eq!(said, [(0, "gives")], "one request, one answer");
    assert!(free(&world, 2) >= 4 && free(&world, 0) < before);
}

#[test]
fn a_request_is_everybodys_where_the_named_have_nothing() {
    let (mut world, plan) = started(4);
    // Member 1 gets slots from 0; then 0 uses all that it could give before it hears of a request.
    take(&mut world, &plan, 1, 2);
    settle(&mut world, &plan);
    let rich = free(&world, 1);
    assert!(rich > 4, "{rich}");
    take(&mut world, &plan, 3, 2);
    let all = free(&world, 0);
    take(&mut world, &plan, 0, all - 4);
    let said = settle(&mut world, &plan);
    assert_eq!(said[0], (0, "refuses"), "{said:?}");
    assert!(said.contains(&(1, "gives")), "{said:?}");
    assert!(said.iter().all(|(_, what)| *what != "asks"), "{said:?}");
    assert!(free(&world, 1) >= 4, "it keeps FREE_LOW");
}

#[test]
fn a_wish_is_served_when_somebody_has_slots_again() {
    let (mut world, plan) = started(1);
    // Everything is in use but for what members keep.
    for member in 0..4 {
        while free(&world, member) > 0 {
            take(&mut world, &plan, member, 1);
            settle(&mut world, &plan);
        }
    }
    assert!((0..4).all(|member| free(&world, member) == 0));
    for m in 0..4 {
        let s = world.sharer(NodeId(m)).unwrap();
        println!(
            "{m} {:?} {:?} used {}",
            s.state().standing,
            s.asking(),
            s.used().len()
        );
    }
    let used = world.sharer(NodeId(0)).expect("it runs").used().clone();
    for slot in used.iter().take(4) {
        world.give(NodeId(0), slot, &plan);
    }
    let said = settle(&mut world, &plan);
    assert!(said.iter().all(|said| said.1 != "refuses"), "{said:?}");
    let served = (1..4).filter(|&member| free(&world, member) > 0).count();
    assert!(served > 0, "{said:?}");
}
