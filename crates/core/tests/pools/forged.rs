//! Claims to slots with fences that nobody was ever given: they are refused, and whoever is given the slot has it.

use testigo_core::Fence;
use testigo_core::pool::SlotTaken;

use crate::claims::{open, restart, resume, take, user};
use crate::{POOL, World, name};

/// Fences that a slot cannot have been taken with before its node's present process: with the number that this process would give,
/// with a number above, and with a count that no take has.
fn impossible(world: &World, slot: u32) -> [Fence; 4] {
    const COUNT_BITS: u32 = 20;
    let record = world.log.head.pools().get(POOL).unwrap();
    let number = u64::from(record.state().table.get(slot).unwrap().number);
    let fence = |number: u64, count| Fence((number << COUNT_BITS) + count);
    [
        fence(number, 1),
        fence(number, 700),
        fence(number + 1, 1),
        fence(number - 1, 0),
    ]
}

#[test]
fn a_claim_with_a_fence_that_was_never_given_is_refused() {
    for which in 0..4 {
        let mut world = World::new(2, 3, 0);
        let [holder, liar] = [11, 12].map(|number| open(&mut world, 0, number));
        let has = take(&mut world, 0, holder).remove(0);
        restart(&mut world, 0);
        let fence = impossible(&world, has.slot.parse().unwrap())[which];
        let slot = has.slot.clone();
        resume(&mut world, 1, liar, &[&SlotTaken { slot, fence }]);
        assert_eq!(user(&world, 0, &has.slot), None, "{fence:?}");
        let record = world.log.head.pools().get(POOL).unwrap();
        assert_eq!(record.claims().count(), 0, "{fence:?}");
        let named = vec![(name(), has.slot.clone(), fence)];
        let node = &world.nodes[1];
        let lost = node.desk.lost_of(liar, named.clone(), &node.replicated);
        assert_eq!(lost, named);
        resume(&mut world, 0, holder, &[&has]);
        assert_eq!(user(&world, 0, &has.slot), Some((holder, has.fence)));
    }
}

#[test]
fn alone_a_session_has_what_it_named_in_its_first_resume_and_no_later_one_has_anything_from_before()
{
    let mut world = World::new(2, 3, 0);
    let [first, second] = [11, 12].map(|number| open(&mut world, 0, number));
    let had = take(&mut world, 0, first).remove(0);
    restart(&mut world, 0);
    let later = open(&mut world, 0, 13);
    let slot: u32 = had.slot.parse().unwrap();
    let [never, ..] = impossible(&world, slot);
    let node = &mut world.nodes[0];
    let mut claims = |session, fence| {
        let claims = [(name(), slot, fence)];
        node.desk.resume(session, &claims, &node.replicated);
        node.desk.has_slot(session, POOL, slot, fence)
    };
    assert!(!claims(later, had.fence), "it was opened after the restart");
    assert!(!claims(second, never));
    assert!(!claims(second, had.fence), "it has said what it has");
    assert!(claims(first, had.fence));
}
