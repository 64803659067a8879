//! Slots with labels: who asks for one gets it, and nobody starves.

use testigo_core::NodeId;
use testigo_core::pool::{Many, PoolAnswer, PoolDefinition, PoolTake, SlotNames};

use crate::{POOL, World};

/// Takes at a node, with a label or without, and waits.
pub(crate) fn wait_for(
    world: &mut World,
    at: usize,
    number: u64,
    label: Option<&'static str>,
    count: u32,
) {
    let (now, node) = (world.now, &mut world.nodes[at]);
    let take = PoolTake {
        pool: POOL,
        many: Many::Exactly(count),
        label,
        wait_ms: Some(600_000),
    };
    let session = World::session(node, number);
    match node
        .desk
        .take(now, &node.replicated, session, take)
        .unwrap()
    {
        PoolAnswer::Taken(taken) => world.clients.took(node.id, session, label, &taken),
        PoolAnswer::Waiting(ticket) => {
            let wait = (session, label);
            world.clients.waits.insert((node.id, ticket), wait);
        }
    }
    world.pass_on(at);
    world.settle();
}

pub(crate) fn give_back(world: &mut World, slot: &str) {
    give_back_here(world, slot);
    world.settle();
}

/// Nobody else has heard of it yet.
fn give_back_here(world: &mut World, slot: &str) {
    let (session, _, owner) = world.clients.held.remove(slot).expect("somebody has it");
    let at = world.nodes.iter().position(|node| node.id == owner);
    let node = &mut world.nodes[at.unwrap()];
    let given = node
        .desk
        .give(world.now, &node.replicated, session, POOL, &[slot]);
    assert_eq!(given, Ok(None));
    world.pass_on(at.unwrap());
}

/// How often the one slot with the rare label comes back until node 3 has it, while node 1 has all slots and ever more
/// waits of its own.
fn returns_until_served(own: Option<&'static str>, others: Option<&'static str>) -> usize {
    // An odd seed gives the slots labels.
    let mut world = World::new(1, 6, 0);
    wait_for(&mut world, 0, 100, None, 6);
    assert_eq!(world.clients.held.len(), 6);
    wait_for(&mut world, 0, 1, own, 1);
    wait_for(&mut world, 0, 2, own, 1);
    wait_for(&mut world, 2, 1, others, 1);
    for returns in 1..20 {
        give_back(&mut world, "0");
        if world
            .clients
            .held
            .get("0")
            .is_some_and(|held| held.2 == NodeId(3))
        {
            return returns;
        }
        wait_for(&mut world, 0, 2 + returns as u64, own, 1);
    }
    panic!("it waits for ever");
}

#[test]
fn who_waits_for_a_rare_label_is_not_starved_by_others_nor_the_others_by_it() {
    assert!(returns_until_served(None, Some("rare")) <= 2);
    assert!(returns_until_served(Some("rare"), None) <= 4);
    assert!(returns_until_served(Some("rare"), Some("rare")) <= 4);
}

#[test]
fn what_comes_for_a_label_that_nobody_waits_for_any_more_serves_others() {
    let mut world = World::new(1, 3, 0);
    wait_for(&mut world, 0, 100, None, 3);
    wait_for(&mut world, 2, 1, Some("rare"), 1);
    wait_for(&mut world, 1, 1, None, 1);
    // Node 1 gives the slot to whom it knows to wait for its label, and who does no longer.
    let node = &mut world.nodes[2];
    let session = World::session(node, 1);
    node.desk.end(session, &node.replicated);
    world.clients.waits.retain(|_, wait| wait.0 != session);
    world.pass_on(2);
    world.submit(2);
    give_back_here(&mut world, "0");
    world.settle();
    let held = world.clients.held.get("0").map(|held| held.2);
    assert_eq!(held, Some(NodeId(2)));
}

#[test]
fn a_take_with_a_label_gets_it_and_any_other_take_leaves_rare_slots_for_last() {
    let mut world = World::new(1, 6, 0);
    // Node 1 owns slots 0 (all labels) and 1 (none).
    wait_for(&mut world, 0, 1, None, 1);
    assert_eq!(
        world.clients.held.keys().next().map(String::as_str),
        Some("1")
    );
    // The even ones that node 1 has not are donated.
    wait_for(&mut world, 0, 2, Some("even"), 3);
    let held: Vec<&str> = world.clients.held.keys().map(String::as_str).collect();
    assert_eq!(held, ["0", "1", "2", "4"]);
    let node = &mut world.nodes[0];
    let session = World::session(node, 3);
    for (label, why) in [("evn", "there are even, most, rare"), ("rare", "it has 1")] {
        let take = PoolTake {
            pool: POOL,
            many: Many::Exactly(2),
            label: Some(label),
            wait_ms: None,
        };
        let refused = node.desk.take(0, &node.replicated, session, take);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn labels_that_make_no_sense_are_refused() {
    let many: Vec<String> = (0..17).map(|label| format!("l{label}")).collect();
    let many = format!("a:{}", many.join(","));
    let all: Vec<String> = (0..257).map(|slot| format!("s{slot}:l{slot}")).collect();
    let mut cases: Vec<(Vec<&str>, &str)> = vec![
        (vec!["a:big,big"], "twice"),
        (vec!["a:big,"], "empty"),
        (vec!["a:"], "empty"),
        (vec![":big"], "name is empty"),
        (vec!["a:big", "a:small"], "two slots are called a"),
        (
            vec!["a b"],
            "\"a b\" holds ' '; it has no blanks and no ':'",
        ),
        (vec!["a:big one"], "a label \"big one\" holds ' '"),
        (vec!["a:big:one"], "a label \"big:one\" holds ':'"),
        (vec![&many], "17 labels"),
    ];
    cases.push((all.iter().map(String::as_str).collect(), "257 different"));
    for (names, why) in cases {
        let definition = PoolDefinition {
            slots: SlotNames::read(names.into_iter()),
            free_low: 0,
        };
        let refused = definition.check().unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    // A program that embeds a node names slots without the wire's marks.
    let definition = PoolDefinition {
        slots: SlotNames::Named(vec!["a:b".into()]),
        free_low: 0,
    };
    let refused = definition.check().unwrap_err().to_string();
    assert!(refused.contains("\"a:b\" holds ':'"), "{refused}");
    // A label is looked up in their order.
    for labels in [["small", "big"], ["big", "big"]] {
        let definition = PoolDefinition {
            slots: SlotNames::Labelled {
                slots: vec![("a".into(), vec![0, 1])],
                labels: labels.map(Box::from).into(),
            },
            free_low: 0,
        };
        let refused = definition.check().unwrap_err().to_string();
        assert!(refused.contains("not sorted"), "{refused}");
    }
}
