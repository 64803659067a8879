//! Any command at any node: given at a node that does not own what it is about, it is answered as at the owner.

use super::cluster_tests::{World, number};

const FLOW: &str = "FLOW APPLY works \"intake -> [orders] -> price -> [priced] -> bill\"";

/// A cluster with a flow, whose queues belong to nodes 2 and 3.
fn works() -> World {
    let mut world = World::of(3);
    let one = world.client(1);
    assert_eq!(world.say(1, one, FLOW), "+OK");
    for (queue, id) in [("works/orders", 2), ("works/priced", 3)] {
        let replicated = world.house(1).replicated();
        let queue = replicated.queue_named(queue, None).unwrap();
        let shard = replicated.queue(queue).unwrap().shard();
        world.hand_over(shard, id);
    }
    world
}

fn lines(reply: &str) -> Vec<String> {
    reply.lines().map(str::to_owned).collect()
}

#[test]
fn gates_are_created_shown_and_deleted_from_any_node() {
    let mut world = World::of(3);
    let gate = world.gate_of(2);
    let [one, two, three] = [1, 2, 3].map(|id| world.client(id));
    assert_eq!(
        world.say(1, one, &format!("GATE CREATE {gate} PERMITS 2")),
        "+OK"
    );
    let again = world.say(3, three, &format!("GATE CREATE {gate} MUTEX"));
    assert!(again.starts_with("-BUSY "), "{again}");
    let fence = number(&world.say(3, three, &format!("LOCK {gate}")));
    let shown = world.say(2, two, &format!("GATE SHOW {gate}"));
    assert!(
        shown.contains("PERMITS 2") && shown.contains(&fence.to_string()),
        "{shown}"
    );
    for (id, client) in [(1, one), (3, three)] {
        assert_eq!(world.say(id, client, &format!("GATE SHOW {gate}")), shown);
        assert_eq!(
            world.say(id, client, &format!("FENCE CHECK {gate} {fence}")),
            ":1"
        );
    }
    let busy = world.say(1, one, &format!("GATE DELETE {gate}"));
    assert!(busy.starts_with("-BUSY "), "{busy}");
    assert_eq!(world.say(3, three, &format!("UNLOCK {gate}")), "+OK");
    assert_eq!(world.say(1, one, &format!("GATE DELETE {gate}")), "+OK");
    let gone = world.say(3, three, &format!("GATE SHOW {gate}"));
    assert!(gone.starts_with("-NOGATE "), "{gone}");
}

#[test]
fn lists_are_of_all_nodes_in_the_order_of_their_names() {
    let mut world = World::of(3);
    let gates: Vec<String> = (1..=3).map(|id| world.gate_of(id)).collect();
    let [one, two, three] = [1, 2, 3].map(|id| world.client(id));
    for gate in &gates {
        assert_eq!(
            world.say(1, one, &format!("GATE CREATE {gate} MUTEX")),
            "+OK"
        );
    }
    let listed = world.say(1, one, "GATE LIST");
    assert!(listed.starts_with("*3\r\n"), "{listed}");
    let mut sorted = gates.clone();
    sorted.sort();
    let places: Vec<usize> = sorted
        .iter()
        .map(|gate| listed.find(gate.as_str()).unwrap())
        .collect();
    assert!(places.is_sorted(), "{listed}");
    for (id, client) in [(2, two), (3, three)] {
        assert_eq!(world.say(id, client, "GATE LIST"), listed);
    }
    // Pages lead through all members, and whatever is there is in one of them.
    let (mut cursor, mut seen) = ("0".to_owned(), String::new());
    for _ in 0..10 {
        let page = world.say(2, two, &format!("GATE LIST CURSOR {cursor} LIMIT 1"));
        cursor = lines(&page)[2].clone();
        seen += &page;
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(cursor, "0");
    for gate in &gates {
        assert_eq!(seen.matches(gate.as_str()).count(), 1, "{seen}");
    }
    let opened = number(&world.say(3, three, "SESSION OPEN"));
    let sessions = world.say(1, one, "SESSION LIST");
    assert!(sessions.contains(&opened.to_string()), "{sessions}");
    let state = world.say(1, one, "STATE");
    assert!(
        gates.iter().all(|gate| state.contains(gate.as_str())),
        "{state}"
    );
    assert_eq!(world.say(2, two, &format!("SESSION END {opened}")), "+OK");
    assert!(
        !world
            .say(1, one, "SESSION LIST")
            .contains(&opened.to_string())
    );
}

#[test]
fn jobs_are_made_taken_passed_and_deleted_from_any_node() {
    let mut world = works();
    let (owner, other) = (2, 1);
    let [there, here] = [owner, other].map(|id| world.client(id));
    let job = number(&world.say(other, here, "JOB CREATE works/orders order-1 hello"));
    assert_eq!(world.say(other, here, "JOB COUNT works/orders"), ":1");
    assert_eq!(world.say(owner, there, "JOB COUNT"), ":1");
    let taken = world.say(other, here, "JOB TAKE works/orders");
    assert!(taken.contains("hello"), "{taken}");
    let numbers = lines(&taken)
        .into_iter()
        .filter(|line| line.starts_with(':'));
    let attempt = number(&numbers.last().unwrap());
    let shown = world.say(owner, there, &format!("JOB SHOW {job}"));
    assert!(shown.contains("held"), "{shown}");
    let stale = world.say(
        owner,
        there,
        &format!("JOB PASS {job} {attempt} works/priced"),
    );
    assert!(stale.starts_with('-'), "another's job: {stale}");
    assert_eq!(
        world.say(
            other,
            here,
            &format!("JOB PASS {job} {attempt} works/priced")
        ),
        "+OK"
    );
    assert_eq!(world.say(other, here, "JOB COUNT works/orders"), ":0");
    assert_eq!(world.say(other, here, "JOB COUNT works/priced"), ":1");
    // A take that waits is answered when a job comes, from wherever.
    assert_eq!(world.say(other, here, "JOB TAKE works/orders"), "$-1");
    assert_eq!(
        world.say(other, here, "JOB TAKE works/orders WAIT 60000"),
        ""
    );
    number(&world.say(owner, there, "JOB CREATE works/orders order-2 later"));
    let taken = world.hear(other, here);
    assert!(taken.contains("later"), "{taken}");
    // Whoever goes away gives back what it has.
    world.house(other).farewell(here);
    world.pass(100);
    assert_eq!(world.say(owner, there, "JOB COUNT works/orders"), ":1");
    let here = world.client(other);
    assert_eq!(
        world.say(other, here, "JOB TAKE works/orders NAME nobody WAIT 300"),
        ""
    );
    world.pass(400);
    assert_eq!(world.hear(other, here), "$-1");
}

#[test]
fn a_take_of_several_owners_gives_one_job() {
    let mut world = works();
    for id in 1..=3 {
        let client = world.client(id);
        for queue in ["works/orders", "works/priced"] {
            number(&world.say(id, client, &format!("JOB CREATE {queue} * x")));
        }
        let taken = world.say(id, client, "JOB TAKE works/orders works/priced");
        assert!(taken.starts_with("*5\r\n"), "{taken}");
        world.pass(200);
        assert_eq!(
            world.say(id, client, "JOB COUNT"),
            format!(":{id}"),
            "one gave"
        );
    }
}

#[test]
fn a_unit_of_several_owners_is_done_whole() {
    let mut world = works();
    for id in 1..=3 {
        let client = world.client(id);
        assert_eq!(world.say(id, client, "MULTI"), "+OK");
        for queue in ["orders", "priced"] {
            let queued = world.say(id, client, &format!("JOB CREATE works/{queue} * x"));
            assert_eq!(queued, "+QUEUED");
        }
        let mut done = world.say(id, client, "EXEC");
        for _ in 0..30 {
            if done.is_empty() {
                world.pass(100);
                done = world.hear(id, client);
            }
        }
        assert!(done.starts_with("*2\r\n:"), "{done}");
        assert_eq!(world.say(id, client, "JOB COUNT"), format!(":{}", 2 * id));
    }
}

#[test]
fn whoever_listens_hears_of_gates_of_other_nodes() {
    let mut world = World::of(3);
    let gate = world.gate_of(2);
    let [listener, holder] = [1, 3].map(|id| world.client(id));
    world.say(1, listener, &format!("SUBSCRIBE gate:{gate}"));
    world.pass(100);
    number(&world.say(3, holder, &format!("LOCK {gate}")));
    world.pass(100);
    let heard = world.hear(1, listener);
    assert!(heard.contains("entered"), "{heard}");
}

#[test]
fn nobody_waits_for_ever_for_a_lost_owner() {
    let mut world = World::of(3);
    let gate = world.gate_of(3);
    let one = world.client(1);
    assert_eq!(
        world.say(1, one, &format!("GATE CREATE {gate} MUTEX")),
        "+OK"
    );
    let other = world.client(1);
    world.kill(3);
    // A read is routed again, a change is unknown.
    assert_eq!(world.say(1, one, &format!("GATE SHOW {gate}")), "");
    assert_eq!(world.say(1, other, &format!("GATE DELETE {gate}")), "");
    world.pass(6_000);
    let shown = world.hear(1, one);
    assert!(shown.contains(&gate), "{shown}");
    let deleted = world.hear(1, other);
    assert!(deleted.starts_with("-UNKNOWN "), "{deleted}");
}

#[test]
fn a_client_that_wants_it_is_told_where_the_owner_is() {
    let mut world = World::of(3);
    let gate = world.gate_of(2);
    let one = world.client(1);
    assert_eq!(world.say(1, one, "CLIENT REDIRECT ON"), "+OK");
    let moved = world.say(1, one, &format!("GATE SHOW {gate}"));
    let known = world
        .house(1)
        .replicated()
        .cluster()
        .address(testigo_core::NodeId(2))
        .unwrap();
    match known.client.clone() {
        Some(client) => assert_eq!(
            moved,
            format!("-MOVED {} {client}", testigo_core::Shard::of(&gate).0)
        ),
        None => assert!(!moved.starts_with("-MOVED "), "{moved}"),
    }
    assert_eq!(world.say(1, one, "CLIENT REDIRECT OFF"), "+OK");
}
