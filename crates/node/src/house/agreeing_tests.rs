//! Clients of several nodes agree on values and on the order of messages while nodes are killed.

use testigo_core::{NodeId, Start};

use super::cluster_tests::{World, number};

#[test]
fn two_nodes_that_propose_at_once_decide_one_value_for_good() {
    let mut world = World::of(3);
    let clients = [1, 2, 3].map(|node| (node, world.client(node)));
    for round in 0..10 {
        // All three are on their way before anybody is answered.
        for (node, client) in clients {
            world.begin(node, client, &format!("DECIDE d{round} from-{node}"));
        }
        world.settle();
        let told = clients.map(|(node, client)| world.hear(node, client));
        assert!(told[0].contains("from-"), "{told:?}");
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    }
    let decided = |world: &mut World, node| {
        let client = world.client(node);
        let told = (0..10).map(|round| world.say(node, client, &format!("DECIDE d{round} late")));
        told.collect::<Vec<_>>()
    };
    let first = decided(&mut world, 1);
    assert!(first.iter().all(|one| one.contains("from-")), "{first:?}");
    // Whichever node is killed, the others know the value, and so does the killed one when it is back.
    for killed in [1, 2, 3] {
        world.kill(killed);
        let other = killed % 3 + 1;
        world.until(20_000, |world| {
            let client = world.client(other);
            world.say(other, client, "DECIDE d0 late").starts_with('$')
        });
        assert_eq!(decided(&mut world, other), first);
        world.start(killed);
        world.until(20_000, |world| world.house(killed).acts());
        assert_eq!(decided(&mut world, killed), first);
    }
    // All of them at once.
    for node in [1, 2, 3] {
        world.kill(node);
    }
    for node in [1, 2, 3] {
        world.start(node);
    }
    world.until(20_000, |world| (1..=3).all(|node| world.house(node).acts()));
    assert_eq!(decided(&mut world, 2), first);
    let client = world.client(3);
    assert_eq!(world.say(3, client, "DECIDE FORGET d0"), "+OK");
    let client = world.client(1);
    assert_eq!(world.say(1, client, "DECIDE FORGET d0"), "$-1");
    assert!(world.say(1, client, "DECIDE d0 anew").contains("anew"));
    assert!(decided(&mut world, 2)[0].contains("anew"));
}

/// The lines of the group's channel in what a client heard.
fn lines(heard: &str) -> Vec<String> {
    let lines = heard.lines().filter(|line| line.starts_with("delivered "));
    lines.map(str::to_owned).collect()
}

#[test]
fn members_at_all_nodes_are_delivered_one_order_and_stay_members_when_they_move() {
    let mut world = World::of(3);
    let clients = [1, 2, 3].map(|node| (node, world.client(node)));
    let sessions = clients.map(|(node, client)| {
        world.say(node, client, "HELLO 3");
        let session = number(&world.say(node, client, "SESSION OPEN TTL 8000"));
        let joined = world.say(node, client, "GROUP JOIN talk");
        assert!(joined.contains("TOTAL"), "{joined}");
        session
    });
    for (node, client) in clients {
        world.hear(node, client);
    }
    for round in 0..10 {
        for (node, client) in clients {
            world.begin(node, client, &format!("GROUP SEND talk {round}-{node}"));
        }
    }
    world.settle();
    let told = clients.map(|(node, client)| lines(&world.hear(node, client)));
    assert_eq!(told[0].len(), 30, "{:?}", told[0]);
    assert!(told.iter().all(|one| *one == told[0]));
    let last = |lines: &[String]| -> u64 {
        let line = lines.last().unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let seen = last(&told[0]);
    // The first node is lost. Its member goes on at the third node, and gets what was sent meanwhile.
    world.kill(1);
    world.until(20_000, |world| {
        !world.house(3).replicated().view().has(NodeId(1), Start(1))
    });
    let (_, second) = clients[1];
    world.say(2, second, "GROUP SEND talk meanwhile");
    let moved = world.client(3);
    world.say(3, moved, "HELLO 3");
    let resume = format!("SESSION RESUME {}", sessions[0]);
    let mut told = world.say(3, moved, &resume);
    if told.is_empty() {
        world.pass(1_000);
        told = world.hear(3, moved);
    }
    assert!(told.contains("claims"), "{told}");
    let members = world.say(3, moved, "GROUP MEMBERS talk");
    for session in sessions {
        assert!(members.contains(&session.to_string()), "{members}");
    }
    let back = world.say(3, moved, &format!("GROUP JOIN talk AFTER {seen}"));
    assert!(back.contains("meanwhile"), "{back}");
    // From then on the new messages are pushed to it.
    world.say(2, second, "GROUP SEND talk afterwards");
    world.settle();
    let pushed = lines(&world.hear(3, moved));
    assert_eq!(pushed.len(), 1, "{pushed:?}");
    assert_eq!(last(&pushed), seen + 2);
    // A session leaves when it ends.
    world.say(3, moved, "SESSION CLOSE");
    world.settle();
    let left = world.hear(2, second);
    assert!(
        left.contains(&format!("left {} {}", seen + 2, sessions[0])),
        "{left}"
    );
    let members = world.say(2, second, "GROUP MEMBERS talk");
    assert!(!members.contains(&sessions[0].to_string()), "{members}");
}

/// Members at all nodes of a group that an algorithm orders, and what was pushed to each.
#[test]
fn an_algorithm_of_the_laboratory_orders_a_group_across_the_loss_of_a_node() {
    for using in ["isis", "sequencer"] {
        let mut world = World::of(3);
        let clients = [1, 2, 3].map(|node| (node, world.client(node)));
        let sessions = clients.map(|(node, client)| {
            world.say(node, client, "HELLO 3");
            let session = number(&world.say(node, client, "SESSION OPEN TTL 8000"));
            let joined = world.say(node, client, &format!("GROUP JOIN talk USING {using}"));
            assert!(joined.contains(using), "{joined}");
            session
        });
        for (node, client) in clients {
            world.hear(node, client);
        }
        for round in 0..10 {
            for (node, client) in clients {
                world.begin(node, client, &format!("GROUP SEND talk {round}-{node}"));
            }
        }
        world.settle();
        let told = clients.map(|(node, client)| lines(&world.hear(node, client)));
        assert_eq!(told[0].len(), 30, "{:?}", told[0]);
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
        let words: Vec<&str> = told[0][29].split(' ').collect();
        let seen: u64 = words[1].parse().unwrap();
        // The first node, which is the sequencer, is lost. Messages sent meanwhile wait for the next view.
        world.kill(1);
        world.begin(2, clients[1].1, "GROUP SEND talk meanwhile");
        world.until(20_000, |world| {
            !world.house(3).replicated().view().has(NodeId(1), Start(1))
        });
        world.settle();
        let moved = world.client(3);
        world.say(3, moved, "HELLO 3");
        let mut back = world.say(3, moved, &format!("SESSION RESUME {}", sessions[0]));
        if back.is_empty() {
            world.pass(1_000);
            back = world.hear(3, moved);
        }
        assert!(back.contains("claims"), "{back}");
        let back = world.say(3, moved, &format!("GROUP JOIN talk AFTER {}", seen - 1));
        assert!(
            back.contains(words[3]) && back.contains("meanwhile"),
            "{back}"
        );
        world.say(3, moved, "GROUP SEND talk afterwards");
        world.settle();
        let told = [2, 3].map(|node| lines(&world.hear(node, clients[node as usize - 1].1)));
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0].len(), 2, "{told:?}");
        // The lost node comes back with another start, and its members are told the same.
        world.start(1);
        world.until(20_000, |world| world.house(1).acts());
        let late = world.client(1);
        world.say(1, late, "HELLO 3");
        world.say(1, late, "SESSION OPEN TTL 8000");
        let joined = world.say(1, late, "GROUP JOIN talk");
        assert!(joined.contains(&format!(":{}", seen + 2)), "{joined}");
        world.say(2, clients[1].1, "GROUP SEND talk last");
        world.settle();
        assert_eq!(
            lines(&world.hear(1, late)),
            lines(&world.hear(3, clients[2].1))
        );
    }
}

/// The number that a session got when it joined holds at every node, so that nobody reads what was sent before it was a
/// member, or is told to have missed it.
#[test]
fn by_an_algorithm_a_late_member_cannot_come_back_behind_a_message_from_before_its_join() {
    for using in ["isis", "sequencer"] {
        let mut world = World::of(3);
        let first = world.client(1);
        world.say(1, first, "SESSION OPEN TTL 8000");
        world.say(1, first, &format!("GROUP JOIN talk USING {using}"));
        let mut before = 0;
        for _ in 0..5 {
            before = number(&world.say(1, first, "GROUP SEND talk early"));
        }
        let late = world.client(2);
        let session = number(&world.say(2, late, "SESSION OPEN TTL 8000"));
        let joined = world.say(2, late, "GROUP JOIN talk");
        assert!(joined.contains(&format!(":{before}")), "{joined}");
        assert!(!joined.contains("early"), "{joined}");
        world.say(1, first, "GROUP SEND talk later");
        let back = world.say(2, late, &format!("GROUP JOIN talk AFTER {before}"));
        assert!(back.contains("later") && !back.contains("early"), "{back}");
        let refused = format!(
            "-BADARG session {session} cannot have been delivered message {} of group talk; it joined after {before}",
            before - 1
        );
        let too_early = format!("GROUP JOIN talk AFTER {}", before - 1);
        assert_eq!(world.say(2, late, &too_early), refused);
        // The number moves with the session to another node.
        let moved = world.client(3);
        world.say(3, moved, &format!("SESSION RESUME {session}"));
        world.settle();
        world.hear(3, moved);
        assert_eq!(world.say(3, moved, &too_early), refused);
        let back = world.say(3, moved, &format!("GROUP JOIN talk AFTER {before}"));
        assert!(back.contains("later") && !back.contains("early"), "{back}");
    }
}
