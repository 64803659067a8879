//! Slots that are called by names of their own: many are found at once.

use testigo_core::pool::{NamedSlot, PoolDefinition, SlotNames};
use testigo_core::{Change, Fence, Name};

use crate::claims::open;
use crate::{Many, POOL, PoolAnswer, PoolTake, World};

const NAMED: &str = "n";

#[test]
fn many_slots_are_found_by_their_names() {
    let mut world = World::new(2, 3, 0);
    let names: Vec<String> = (0..SlotNames::NAMED_MAX)
        .map(|at| format!("s{at}"))
        .collect();
    let definition = PoolDefinition {
        slots: SlotNames::read(names.iter().map(String::as_str)),
        free_low: 0,
    };
    let pool = Name::new(NAMED).unwrap();
    let create = Change::CreatePool {
        pool: pool.clone(),
        definition: Box::new(definition),
    };
    world.log.append(None, create);
    world.settle();
    let session = open(&mut world, 0, 11);
    let node = &mut world.nodes[0];
    let take = PoolTake {
        pool: NAMED,
        many: Many::UpTo(10_000),
        label: None,
        wait_ms: None,
    };
    let taken = node.desk.take(0, &node.replicated, session, take).unwrap();
    let PoolAnswer::Taken(taken) = taken else {
        unreachable!("it does not wait");
    };
    world.pass_on(0);
    world.settle();
    // Whatever else it says means nothing, however often.
    let has = taken
        .iter()
        .map(|has| (pool.clone(), has.slot.clone(), has.fence));
    let mut named: Vec<NamedSlot> = has.collect();
    let count = named.len();
    assert!(count > 3_000);
    named.resize(35_000, (pool.clone(), "s10000".into(), Fence(1)));
    named.push((Name::new(POOL).unwrap(), "s1".into(), Fence(1)));
    named.push((Name::new("none").unwrap(), "s1".into(), Fence(1)));
    let found = world.log.head.pools().find(&named);
    assert_eq!(found.len(), count);
    let home = world.log.head.session(session).unwrap().home.index;
    let lost = named[count..].to_vec();
    world.nodes[1].under_way.push(Change::ResumeSession {
        session,
        home,
        serial: None,
        slots: Some(named.clone()),
    });
    world.settle();
    let node = &world.nodes[1];
    assert_eq!(node.desk.lost_of(session, named, &node.replicated), lost);
    // It gives them back where it is now, all at once.
    let slots: Vec<&str> = taken.iter().map(|has| &*has.slot).collect();
    let node = &mut world.nodes[1];
    let given = (node.desk).give(0, &node.replicated, session, NAMED, &slots);
    node.under_way.extend(given.unwrap());
    world.settle();
    let record = world.log.head.pools().get(NAMED).unwrap();
    assert_eq!(record.claims().count(), 0);
}
