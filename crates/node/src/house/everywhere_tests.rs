//! Every command of the wire, given at the owner and at another node: the answers are the same.

use super::cluster_tests::{World, number};

/// Commands about gates, sessions, flows and jobs, which one client gives in order. `{g}` is a gate, `{f}` a flow, `{j}` the
/// last job, `{a}` its last attempt, `{s}` a session that another client has opened.
const SCRIPT: &[&str] = &[
    "GATE CREATE {g} SHARED",
    "GATE CREATE {g} SHARED",
    "GATE CREATE {g} MUTEX",
    "GATE CREATE {g} NONSENSE",
    "GATE CREATE",
    "GATE SHOW {g}",
    "GATE SHOW no-such-{g}",
    "GATE LIST {g}",
    "GATE LIST {g} CURSOR nowhere LIMIT 5",
    "GATE NONSENSE",
    "LOCK {g} SHARED REASON audit",
    "GATE SHOW {g}",
    "TRACE {g}",
    "TRACE no-such-{g}",
    "TRACE {g} 1 0.0 0",
    "TRACE {g} x",
    "TRACE {g} ARRIVALS 0",
    "TRACE {g} ARRIVALS",
    "FENCE CHECK {g} 1",
    "FENCE CHECK {g} 9007199254740992",
    "FENCE CHECK {g} x",
    "STATE {g}",
    "GATE DELETE {g}",
    "DOWNGRADE {g}",
    "UNLOCK {g}",
    "UNLOCK {g}",
    "LOCKALL 2 {g} SHARED {g}-2 WAIT 0",
    "CANCEL 99",
    "SESSION CLOSE",
    "GATE DELETE {g}",
    "GATE DELETE {g}",
    "ELECT LEADER {g}",
    "ELECT CAMPAIGN {g} one RANK -3",
    "ELECT CAMPAIGN {g} two RANK 4",
    "ELECT CAMPAIGN {g} two RANK 4 TTL 5000",
    "ELECT LEADER {g}",
    "ELECT SHOW {g}",
    "ELECT LIST {g}",
    "SESSION INFO",
    "ELECT RESIGN {g} 1",
    "ELECT RESIGN {g}",
    "ELECT RESIGN {g}",
    "ELECT SHOW {g}",
    "ELECT NONSENSE",
    "SESSION END {s}",
    "SESSION END {s}",
    "SESSION LIST",
    "SESSION RESUME 12345",
    "ONCE START {g} 0",
    "ONCE DONE {g} 0 1",
    "ONCE ABANDON {g} 1",
    "ONCE FORGET {g}",
    "DECIDE {g} one",
    "DECIDE {g} two",
    "DECIDE {g}",
    "DECIDE FORGET {g}",
    "DECIDE FORGET {g}",
    "GROUP JOIN {g}",
    "GROUP MEMBERS {g}",
    "GROUP SEND {g} body",
    "GROUP LEAVE {g}",
    "GROUP NONSENSE {g}",
    "FLOW APPLY {f} \"in -> [orders RETRIES 0 REJECT bad] -> price -> [priced] -> bill; in -> [bad] -> bill\"",
    "POOL CREATE {g} SLOTS 9",
    "POOL CREATE {g} SLOTS 8",
    "POOL LIST",
    "POOL TAKE {g} COUNT 2",
    "POOL TAKE no-such-{g}",
    "POOL GIVE {g} 99",
    "POOL SHOW {g}",
    "POOL SHOW no-such-{g}",
    "POOL DELETE {g}",
    "FLOW APPLY {f} \"nonsense\"",
    "FLOW APPLY {f} \"in -> [orders] -> price -> [priced] -> bill\"",
    "FLOW APPLY {f} \"in -> [orders] -> price -> [priced] -> bill\" OVER NONE",
    "FLOW APPLY {f} \"in -> [orders] -> bill\" OVER 0123456789abcdef",
    "FLOW SHOW {f}",
    "FLOW SHOW no-such-{f}",
    "STALE FLOW SHOW {f}",
    "FLOW LIST",
    "FLOW STATS {f}",
    "FLOW CLIENTS {f}",
    "STATE {g} FLOWS",
    "QUEUE SHOW {f}/orders",
    "QUEUE SHOW {f}/nothing",
    "QUEUE LIST {f}/*",
    "JOB CREATE {f}/orders one first",
    "JOB CREATE {f}/orders one again",
    "JOB CREATE {f}/nothing two x",
    "JOB SHOW {j}",
    "JOB SHOW 999999",
    "JOB FIND *",
    "JOB LIST {f}/orders",
    "JOB LIST {f}/orders CURSOR 0 LIMIT 1",
    "JOB COUNT {f}/orders",
    "JOB COUNT",
    "JOB HISTORY {j}",
    "JOB TAKE {f}/priced",
    "JOB TAKE {f}/priced WAIT 0",
    "JOB TAKE {f}/nothing",
    "JOB TAKE {f}/orders NAME one",
    "JOB SHOW {j}",
    "JOB FIND *",
    "JOB FIND * CURSOR 0 LIMIT 1",
    "JOB FIND * IN {f}/orders",
    "FLOW SHOW {f}",
    "JOB BACK {j} 1",
    "JOB BACK {j} {a}",
    "JOB BACK {j} {a}",
    "JOB TAKE {f}/priced {f}/orders",
    "JOB PASS {j} {a} {f}/nothing",
    "JOB PASS {j} {a} {f}/priced changed",
    "JOB PASS {j} {a} {f}/priced",
    "JOB MOVE {j} {f}/orders",
    "JOB TAKE {f}/orders",
    "JOB BACK {j} {a} FAILED",
    "JOB TAKE {f}/orders",
    "JOB DELETE {j}",
    "JOB DELETE {j} {a}",
    "JOB DELETE {j} {a}",
    "MULTI",
    "JOB CREATE {f}/orders * a",
    "JOB CREATE {f}/priced * b",
    "EXEC",
    "MULTI",
    "JOB DELETE 999999 1",
    "EXEC",
    "EXEC",
    "MULTI",
    "JOB NONSENSE",
    "DISCARD",
    "QUEUE LIST {f}/*",
    "FLOW DELETE {f}",
    "JOB DELETE {j}",
    "PRESENT {f} price",
    "SESSION INFO",
];

/// Commands about the connection or its node, whose answers differ everywhere.
const OF_THE_NODE: &[&str] = &[
    "SESSION OPEN",
    "CLIENT ID",
    "CLIENT SETNAME",
    "CLIENT END",
    "CLIENT LIST",
    "CLIENT UNBLOCK",
    "CLIENT REDIRECT",
    "CLUSTER",
    "OWNER",
    "PING",
    "ECHO",
    "HELLO",
    "AUTH",
    "COMMAND",
    "INFO",
    "SELECT",
    "RESET",
    "QUIT",
];

/// Gives the script at a node. Node 2 owns everything that it is about. Numbers are replaced by their order in the run.
fn played(world: &mut World, id: u64, variant: &str) -> Vec<String> {
    let (gate, flow) = (format!("gate-{variant}"), format!("flow-{variant}"));
    for name in [&gate, &format!("{gate}-2"), &format!("no-such-{gate}")] {
        world.hand_over(testigo_core::Shard::of(name), 2);
    }
    let election = testigo_core::Name::election(&gate).expect("a name");
    world.hand_over(testigo_core::Shard::of(&election), 2);
    let opener = world.client(3);
    let session = number(&world.say(3, opener, "SESSION OPEN")).to_string();
    let client = world.client(id);
    let (mut job, mut attempt) = ("0".to_owned(), "0".to_owned());
    let mut told = Vec::new();
    for line in SCRIPT {
        let command = line.replace("{g}", &gate).replace("{f}", &flow);
        let command = command.replace("{j}", &job).replace("{a}", &attempt);
        let mut reply = world.say(id, client, &command.replace("{s}", &session));
        for _ in 0..100 {
            if reply.is_empty() {
                world.pass(100);
                reply = world.hear(id, client);
            }
        }
        if line.starts_with("FLOW APPLY") && reply == "+OK" {
            for queue in ["orders", "priced", "bad"] {
                let replicated = world.house(1).replicated();
                let queue = replicated.queue_named(&format!("{flow}/{queue}"), None);
                if let Some(queue) = queue.ok().and_then(|queue| replicated.queue(queue)) {
                    let shard = queue.shard();
                    world.hand_over(shard, 2);
                }
            }
        }
        let numbers: Vec<&str> = reply.lines().filter(|line| line.starts_with(':')).collect();
        if line.starts_with("JOB CREATE") && reply.starts_with(':') {
            job = number(&reply).to_string();
        }
        if line.starts_with("JOB TAKE") && reply.starts_with('*') {
            (job, attempt) = (
                number(numbers[0]).to_string(),
                number(numbers[1]).to_string(),
            );
        }
        let mut masked = String::new();
        for letter in reply
            .replace(&gate, "gate-?")
            .replace(&flow, "flow-?")
            .chars()
        {
            match letter.is_ascii_digit() {
                true if masked.ends_with('#') => {}
                true => masked.push('#'),
                false => masked.push(letter),
            }
        }
        told.push(format!("{line}\n{masked}"));
    }
    world.house(id).farewell(client);
    world.settle();
    told
}

#[test]
fn every_command_is_answered_elsewhere_as_by_the_owner() {
    let owner = played(&mut World::of(3), 2, "a");
    let other = played(&mut World::of(3), 1, "a");
    let differ = owner
        .iter()
        .zip(&other)
        .filter(|(owner, other)| owner != other);
    let differ: Vec<_> = differ.collect();
    assert!(differ.is_empty(), "{differ:#?}");
    // No command of the wire is missing.
    let wire = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wire.md"));
    let wire = wire.unwrap();
    let rows = wire.lines().filter_map(|line| line.strip_prefix("| `"));
    let errors = rows.clone().skip_while(|row| !row.starts_with("BADARG"));
    let errors: Vec<&str> = errors.collect();
    for row in rows.filter(|row| !errors.contains(row)) {
        let words = row.split(['`', ' ']).take_while(|word| {
            !word.is_empty() && word.chars().all(|letter| letter.is_ascii_uppercase())
        });
        let words: Vec<&str> = words.take(2).collect();
        let command = words.join(" ");
        let known = SCRIPT
            .iter()
            .any(|line| line.trim_start_matches("STALE ").starts_with(&command))
            || OF_THE_NODE.iter().any(|of| command.starts_with(of));
        assert!(known || command.is_empty(), "{command} is not tried");
    }
}
