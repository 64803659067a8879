//! Any command at any node: a node that does not own what a command is about gives the owner's answer.

use serde_json::Value;

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
    // Pages lead through all members, and everything is in one of them.
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

/// The JSON in a reply.
fn json(reply: &str) -> Value {
    let text = reply.split_once("\r\n").map_or(reply, |(_, text)| text);
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {reply}"))
}

#[test]
fn the_state_is_of_all_members_and_names_who_is_missing() {
    let mut world = World::of(3);
    let gates: Vec<String> = (1..=3).map(|id| world.gate_of(id)).collect();
    let [one, two, three] = [1, 2, 3].map(|id| world.client(id));
    for gate in &gates {
        assert_eq!(
            world.say(1, one, &format!("GATE CREATE {gate} MUTEX")),
            "+OK"
        );
    }
    world.say(1, one, "SESSION OPEN LABEL deployer");
    number(&world.say(1, one, &format!("LOCK {}", gates[0])));
    world.say(2, two, "SESSION OPEN LABEL later");
    assert_eq!(world.say(2, two, &format!("LOCK {}", gates[0])), "");

    let state = json(&world.say(3, three, "STATE"));
    let shown = |state: &Value, at: usize| {
        (
            state["gates"][at]["name"].clone(),
            state["gates"][at]["owner"].clone(),
        )
    };
    let all = [0, 1, 2].map(|at| shown(&state, at));
    let wanted = [0, 1, 2].map(|at| (Value::from(gates[at].as_str()), Value::from(at + 1)));
    assert_eq!(all, wanted, "each once, with its owner");
    let gate = &state["gates"][0];
    assert_eq!(gate["holders"][0]["label"], "deployer");
    assert_eq!(gate["waiters"][0]["label"], "later");
    let there = world.say(3, three, &format!("GATE SHOW {}", gates[0]));
    assert!(there.contains("later"), "{there}");
    let of = |person: &Value, home: u64| {
        let sessions = state["sessions"].as_array().unwrap();
        sessions
            .iter()
            .any(|row| row["session"] == person["session"] && row["home"] == home)
    };
    assert!(
        of(&gate["holders"][0], 1) && of(&gate["waiters"][0], 2),
        "{state}"
    );
    assert_eq!(state["edges"][0]["gate"], gates[0].as_str());
    assert_eq!(
        (&state["node"], &state["missing"]),
        (&3.into(), &serde_json::json!([]))
    );
    assert_eq!(
        (&state["sizes"]["gates"], &state["sizes"]["sessions"]),
        (&3.into(), &2.into())
    );

    // Parts of the state.
    let only = json(&world.say(3, three, &format!("STATE {} GATE", gates[0])));
    assert_eq!(only["gates"].as_array().unwrap().len(), 1);
    assert_eq!(only["gates"][0]["holders"], gate["holders"]);
    let sessions = json(&world.say(3, three, "STATE * SESSIONS"));
    assert_eq!(sessions["sessions"], state["sessions"]);
    let waits = json(&world.say(3, three, "STATE * WAITS"));
    assert_eq!(waits["edges"], state["edges"]);
    let unknown = world.say(3, three, "STATE * NONSENSE");
    assert!(unknown.starts_with("-BADARG "), "{unknown}");

    // What this node has is told without asking anybody.
    let own = json(&world.say(3, three, "STALE STATE"));
    assert_eq!(shown(&own, 0), wanted[2]);
    assert_eq!(own["missing"], serde_json::json!([1, 2]));

    // It does not wait for a member that does not answer, and names it.
    world.cut.insert(1);
    assert_eq!(world.say(3, three, "STATE"), "");
    world.pass(1_100);
    let state = json(&world.hear(3, three));
    assert_eq!(state["missing"], serde_json::json!([1]));
    assert_eq!(shown(&state, 0), wanted[1]);
}

#[test]
fn clients_of_all_nodes_are_listed_and_ended_from_any() {
    let mut world = works();
    let [admin, worker] = [3, 1].map(|id| world.client(id));
    assert_eq!(world.say(1, worker, "CLIENT SETNAME till"), "+OK");
    let id = number(&world.say(1, worker, "CLIENT ID"));
    let listed = world.say(3, admin, "CLIENT LIST");
    let line = listed.lines().find(|line| line.contains("name=till"));
    let line = line.unwrap_or_else(|| panic!("{listed}"));
    assert!(line.starts_with(&format!("id={id} ")), "{line}");
    assert!(line.trim_end().ends_with(" node=1"), "{line}");
    let own = number(&world.say(3, admin, "CLIENT ID"));
    assert!(
        own != id && listed.contains(&format!("id={own} ")),
        "{listed}"
    );

    // A worker of node 1 has a job of a queue that node 2 owns; all three are different nodes.
    assert_eq!(world.say(1, worker, "PRESENT works price"), "+OK");
    number(&world.say(3, admin, "JOB CREATE works/orders one x"));
    number(&world.say(3, admin, "JOB CREATE works/orders two x"));
    let taken = world.say(1, worker, "JOB TAKE orders");
    assert!(taken.contains("one"), "{taken}");
    let clients = world.say(3, admin, "FLOW CLIENTS works");
    assert!(clients.starts_with("*1\r\n"), "{clients}");
    assert!(clients.contains("works/orders"), "with its job: {clients}");
    assert!(clients.contains(&format!(":{id}\r\n")), "{clients}");

    let live = json(&world.say(3, admin, "STATE * LIVE"));
    let flow = &live["flows"][0];
    let queue = &flow["queues"][0];
    assert_eq!(
        (&queue["name"], &queue["owner"]),
        (&"orders".into(), &2.into())
    );
    assert_eq!((&queue["waiting"], &queue["held"]), (&1.into(), &1.into()));
    let price = flow["processes"].as_array().unwrap();
    let price = price.iter().find(|row| row["name"] == "price").unwrap();
    assert_eq!(price["clients"], 1);

    let gone = world.say(3, admin, &format!("CLIENT END {id}"));
    assert_eq!(gone, ":1");
    // The reactor closes it.
    assert!(world.house(1).connections.client(worker).unwrap().overrun);
    world.house(1).farewell(worker);
    world.pass(200);
    assert_eq!(world.say(3, admin, "FLOW CLIENTS works"), "*0");
    assert_eq!(world.say(3, admin, &format!("CLIENT END {id}")), ":0");
    // The job waits again, and its worker's death is counted.
    let live = json(&world.say(3, admin, "STATE * LIVE"));
    let queue = &live["flows"][0]["queues"][0];
    assert_eq!(
        (&queue["waiting"], &queue["deaths"]),
        (&2.into(), &1.into())
    );
}

#[test]
fn statistics_are_of_all_nodes() {
    let mut world = works();
    let [admin, here] = [3, 1].map(|id| world.client(id));
    assert_eq!(world.say(1, here, "PRESENT works price"), "+OK");
    number(&world.say(3, admin, "JOB CREATE works/orders one x"));
    let taken = world.say(1, here, "JOB TAKE orders");
    let numbers: Vec<u64> = taken
        .lines()
        .filter(|line| line.starts_with(':'))
        .map(number)
        .collect();
    let pass = format!("JOB PASS {} {} priced", numbers[0], numbers[1]);
    world.pass(500);
    assert_eq!(world.say(1, here, &pass), "+OK");
    let stats = world.say(3, admin, "FLOW STATS works");
    for id in [1, 2] {
        let client = world.client(id);
        assert_eq!(
            field(
                &world.say(id, client, "FLOW STATS works"),
                "price",
                "passed"
            ),
            1
        );
    }
    assert_eq!(field(&stats, "orders", "arrivals"), 1);
    assert_eq!(field(&stats, "orders", "departures"), 1);
    assert_eq!(field(&stats, "priced", "waiting"), 1);
    assert_eq!(field(&stats, "price", "workers"), 1);
    assert_eq!(field(&stats, "price", "service_max_ms"), 500);
    assert_eq!(stats.matches("orders").count(), 1, "{stats}");
    // What it passed on was counted on the arrow.
    let live = json(&world.say(3, admin, "STATE * LIVE"));
    let arrows = live["flows"][0]["arrows"].as_array().unwrap();
    let along = |queue: &str| {
        let arrow = arrows
            .iter()
            .find(|row| row["process"] == "price" && row["queue"] == queue);
        arrow.unwrap()["count"].clone()
    };
    assert_eq!((along("orders"), along("priced")), (1.into(), 1.into()));
}

/// A number of the row with this name in a reply of maps.
fn field(reply: &str, row: &str, name: &str) -> u64 {
    let lines = lines(reply);
    let mut lines = lines.iter().skip_while(|line| *line != row);
    lines.find(|line| *line == name);
    number(lines.next().unwrap_or_else(|| panic!("{reply}")))
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
    let mut numbers = lines(&taken)
        .into_iter()
        .filter(|line| line.starts_with(':'));
    let attempt = number(&numbers.next_back().unwrap());
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
    // A client that leaves gives back what it has.
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
    // A read is routed again; the outcome of a change is unknown.
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

#[test]
fn a_stale_read_needs_nobody() {
    let mut world = works();
    let one = world.client(1);
    world.cut.insert(1);
    world.pass(4_000);
    let refused = world.say(1, one, "FLOW SHOW works");
    assert!(refused.starts_with("-UNAVAILABLE "), "{refused}");
    let known = world.say(1, one, "STALE FLOW SHOW works");
    assert!(known.contains("orders"), "{known}");
    let shown = world.say(1, one, "STALE QUEUE SHOW works/orders");
    assert!(shown.contains("works/orders"), "{shown}");
}

#[test]
fn a_job_is_finished_though_its_queue_changes_hands_meanwhile() {
    let mut world = works();
    let two = world.client(2);
    let made = world.say(2, two, "JOB CREATE works/orders one body");
    assert!(made.starts_with(':'), "{made}");
    let taken = world.say(2, two, "JOB TAKE works/orders");
    let numbers = taken.lines().filter(|line| line.starts_with(':'));
    let numbers: Vec<u64> = numbers.map(number).collect();
    let (job, attempt) = (numbers[0], numbers[1]);
    // The hand-over is in the log's queue before the delete.
    let replicated = world.house(2).replicated();
    let queue = replicated.queue_named("works/orders", None).unwrap();
    let shard = replicated.queue(queue).unwrap().shard();
    let start = world.house(3).start();
    world.pass(1_000);
    let taker = (testigo_core::NodeId(3), start);
    world.house(2).take_want(taker, &[shard]);
    let mut done = world.say(2, two, &format!("JOB DELETE {job} {attempt}"));
    if done.is_empty() {
        world.pass(1_000);
        done = world.hear(2, two);
    }
    let owner = world
        .house(2)
        .replicated()
        .ownership()
        .title(shard)
        .unwrap();
    assert_eq!(owner.owner, taker.0, "it has changed hands");
    assert_eq!(done, "+OK");
}

#[test]
fn a_refused_exec_ends_its_unit() {
    let mut world = works();
    let one = world.client(1);
    assert!(world.say(1, one, "SESSION OPEN").starts_with(':'));
    assert_eq!(world.say(1, one, "MULTI"), "+OK");
    assert_eq!(
        world.say(1, one, "JOB CREATE works/orders a body"),
        "+QUEUED"
    );
    world.cut.insert(1);
    world.pass(3_500);
    let refused = world.say(1, one, "EXEC");
    assert!(refused.contains("UNAVAILABLE"), "{refused}");
    let again = world.say(1, one, "MULTI");
    assert!(!again.contains("given already"), "{again}");
}

#[test]
fn a_take_waits_for_the_log_before_it_says_that_there_is_no_such_queue() {
    let mut world = World::of(3);
    let [one, three] = [1, 3].map(|id| world.client(id));
    world.cut.insert(3);
    assert_eq!(world.say(1, one, FLOW), "+OK");
    let mut taken = world.say(3, three, "JOB TAKE works/orders");
    assert!(!taken.contains("NOFLOW"), "{taken}");
    world.pass(12_000);
    taken += &world.hear(3, three);
    assert!(taken.contains("UNAVAILABLE"), "{taken}");
}
