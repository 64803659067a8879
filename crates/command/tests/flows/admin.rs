//! Administration by command: flows, jobs in hand, jobs by pattern, queues.

use std::io::Write;
use std::net::TcpStream;

use crate::running::Node;
use crate::scene::{ORDERS, apply, counts, create, create_many, node_with};

#[test]
fn a_flow_is_applied_shown_changed_and_deleted() {
    let node = node_with(ORDERS);
    assert_eq!(node.run("flow show f --text", "").stdout, ORDERS);
    let flows = node.json("flow list");
    assert_eq!(
        (&flows[0]["name"], &flows[0]["queues"]),
        (&"f".into(), &3.into())
    );
    create(&node, "f/priced", &["o-1"]);
    // A change that would strand a job is refused whole.
    std::fs::write(node.file("g.flow"), "intake -> [orders] -> bill\n").expect("a file");
    let plan = node.run("flow plan g.flow --running f", "");
    assert_eq!(plan.code, 1, "{}", plan.stderr);
    let stranded = "[priced] would vanish with 1 job in it (o-1); ";
    assert!(plan.stdout.contains(stranded), "{}", plan.stdout);
    let plan = node.run("flow plan g.flow --running f --json", "").stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(plan["stranded"][0]["names"], serde_json::json!(["o-1"]));
    assert_eq!(node.run("flow plan g.flow --running none", "").code, 2);
    let stranding = node.run("flow apply f g.flow", "");
    assert_eq!(stranding.code, 75, "{}", stranding.stderr);
    assert!(
        stranding.stderr.contains("1 in queue priced (o-1)"),
        "{}",
        stranding.stderr
    );
    assert_eq!(node.run("flow show f --text", "").stdout, ORDERS);
    assert_eq!(node.run("flow delete f", "").code, 75);
    assert_eq!(node.run("job delete 1", "").stdout, "1 deleted\n");
    apply(&node, "intake -> [orders] -> bill\n");
    assert_eq!(node.json("flow show f")["queues"][0]["name"], "orders");
    assert_eq!(node.run("flow delete f", "").code, 0);
    assert_eq!(node.json("flow list"), serde_json::json!([]));
}

#[test]
fn a_second_author_is_refused_and_told_the_difference() {
    let node = node_with("intake -> [orders] -> bill\n");
    let write = |file: &str, text: &str| std::fs::write(node.file(file), text).expect("a file");
    write("seen.flow", &node.run("flow show f --text", "").stdout);
    write(
        "mine.flow",
        "intake -> [orders] -> mine -> [done] -> bill\n",
    );
    let theirs = "intake -> [orders] -> bill\nintake -> [audit] -> bill\n";
    apply(&node, theirs);
    let refused = node.run("flow apply f mine.flow --over seen.flow", "");
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let said = "testigo: others have changed flow f";
    assert!(refused.stderr.starts_with(said), "{}", refused.stderr);
    let (since, mine) = refused
        .stderr
        .split_once("what your file would change of that:")
        .expect("both differences");
    let since = since.split_once("what others have changed since:");
    let since = since.expect("what changed").1;
    assert!(since.contains("  + queue audit\n") && !since.contains("done"));
    assert!(mine.contains("  - queue audit\n") && mine.contains("  + queue done\n"));
    assert_eq!(node.run("flow show f --text", "").stdout, theirs);
    assert_eq!(node.run("flow apply f mine.flow --new", "").code, 1);
    assert_eq!(node.run("flow apply g mine.flow --new", "").code, 0);
    // Who has seen it may change it, and who wants no condition needs none.
    write("seen.flow", theirs);
    let applied = node.run("flow apply f mine.flow --over seen.flow", "");
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    assert_eq!(node.run("flow apply f seen.flow", "").code, 0);
}

#[test]
fn a_plan_names_the_clients_that_work_on_what_it_removes() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    let mut price = TcpStream::connect(node.address()).expect("a node");
    let words = "CLIENT SETNAME till\r\nPRESENT f price\r\nJOB TAKE orders\r\n";
    price.write_all(words.as_bytes()).expect("sent");
    node.until("queue show f/orders", |queue| queue["held"] == 1);
    let shorter = ORDERS.replace("price -> [priced] -> bill", "bill");
    std::fs::write(node.file("g.flow"), shorter).expect("a file");
    let plan = node.run("flow plan g.flow --running f", "");
    assert_eq!(plan.code, 0, "{}{}", plan.stdout, plan.stderr);
    let line = plan.stdout.lines().last().unwrap_or_default();
    assert!(line.starts_with("client "), "{line}");
    let end = " (till, 127.0.0.1) with o-1 in hand works as price, which would be gone";
    assert!(line.ends_with(end), "{line}");
    let plan = node.run("flow plan g.flow --running f --json", "").stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    let losing = plan["losing"].as_array().expect("processes");
    let price = losing.iter().find(|one| one["process"] == "price");
    assert_eq!(price.expect("price")["clients"][0]["name"], "till");
}

#[test]
fn a_flow_that_is_none_is_refused_with_its_place() {
    let node = node_with(ORDERS);
    std::fs::write(node.file("bad.flow"), "a -> [q] -> b\nc -> [r]\n").expect("a file");
    let refused = node.run("flow apply g bad.flow", "");
    assert_eq!(refused.code, 1);
    for part in ["error[R1]", "bad.flow:2:6", "2 | c -> [r]", "help: "] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
}

#[test]
fn a_person_takes_a_job_and_passes_it_on() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1", "o-2", "o-3"]);
    let taken = node.json("job take f/orders --as f/price");
    assert_eq!(
        (&taken["name"], &taken["body"]),
        (&"o-1".into(), &"o-1".into())
    );
    let by = |taken: &serde_json::Value| {
        format!(
            "--attempt {} --session {}",
            taken["attempt"], taken["session"]
        )
    };
    let held = by(&taken);
    assert_eq!(
        node.run(&format!("job pass 1 priced seven {held}"), "")
            .code,
        0
    );
    let job = node.json("job show 1");
    assert_eq!(
        (&job["queue"], &job["body"]),
        (&"f/priced".into(), &"seven".into())
    );
    let again = node.run(&format!("job pass 1 priced seven {held}"), "");
    assert_eq!(again.code, 2, "its session is over: {}", again.stderr);
    let second = node.json("job take f/orders --name o-3");
    assert_eq!(second["id"], 3);
    assert_eq!(
        node.run(&format!("job back 3 --failed {}", by(&second)), "")
            .code,
        0
    );
    node.until("job show 3", |job| {
        job["deaths"] == 1 && job["state"] == "waiting"
    });
    let third = node.json("job take f/orders --name o-2");
    assert_eq!(
        node.run(&format!("job delete 2 {}", by(&third)), "").code,
        0
    );
    assert_eq!(node.run("job show 2", "").code, 2);
    assert_eq!(node.run("job take f/failed", "").code, 75);
    assert_eq!(node.run("job take f/failed --wait 10ms", "").code, 75);
    assert_eq!(
        node.json("session list"),
        serde_json::json!([]),
        "nothing is left behind"
    );
}

#[test]
fn many_jobs_are_found_counted_moved_and_deleted_by_pattern() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["a-1", "a-2", "b-1"]);
    create(&node, "f/priced", &["a-3"]);
    let names = |found: serde_json::Value| -> Vec<String> {
        let rows = found.as_array().expect("rows").clone();
        rows.iter()
            .map(|row| row["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(names(node.json("job find a-*")), ["a-1", "a-2", "a-3"]);
    assert_eq!(
        names(node.json("job find a-* --in f/orders")),
        ["a-1", "a-2"]
    );
    assert_eq!(names(node.json("job find * --limit 2")), ["a-1", "a-2"]);
    assert_eq!(node.run("job count", "").stdout, "4\n");
    assert_eq!(node.run("job count f/orders", "").stdout, "3\n");
    let unsure = node.run("job move --find a-* --in f/orders --to priced", "");
    assert_eq!(unsure.code, 2);
    assert!(
        unsure
            .stderr
            .contains("move to priced 2 jobs (a-1, a-2); say --yes"),
        "{}",
        unsure.stderr
    );
    assert_eq!(counts(&node, "f/orders"), (3, 0), "nothing was moved");
    let moved = node.run("job move --find a-* --in f/orders --to priced --yes", "");
    assert_eq!((moved.code, moved.stdout.as_str()), (0, "2 moved\n"));
    assert_eq!(counts(&node, "f/priced"), (3, 0));
    assert_eq!(node.run("job delete --find a-*", "").code, 2);
    assert_eq!(
        node.run("job delete --find a-* --yes", "").stdout,
        "3 deleted\n"
    );
    // What is in somebody's hands is not an administrator's to move, and the rest goes on.
    create(&node, "f/orders", &["c-1"]);
    let held = node.json("job take f/orders");
    assert_eq!(held["name"], "b-1");
    let part = node.run("job move --find * --to priced --yes", "");
    assert_eq!(
        (part.code, part.stdout.as_str()),
        (1, "1 moved\n"),
        "{}",
        part.stderr
    );
    assert!(part.stderr.contains("job 3: "), "{}", part.stderr);
    let not_rejected = node.run("job retry 5", "");
    assert_eq!(not_rejected.code, 1);
    assert!(
        not_rejected.stderr.contains("it was not rejected"),
        "{}",
        not_rejected.stderr
    );
}

#[test]
fn a_job_whose_queue_is_gone_is_not_sent_back_to_one_of_another_name() {
    let node = node_with("a -> [one] -> b\nqueue one { retries 0; reject [bad] }\nqueue bad");
    create(&node, "f/one", &["j"]);
    let failed = node.run("work f b --once", "exit 1");
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    apply(
        &node,
        "a -> [deleted] -> b\nqueue deleted { reject [bad] }\nqueue bad",
    );
    let retried = node.run("job retry --find * --in f/bad --yes", "");
    assert_eq!(retried.code, 1, "{}", retried.stdout);
    assert!(
        retried.stderr.contains("rejected from a deleted queue"),
        "{}",
        retried.stderr
    );
    assert_eq!(counts(&node, "f/bad"), (1, 0));
}

#[test]
fn all_that_fit_are_meant_however_many_and_a_limit_is_said() {
    let node = node_with(ORDERS);
    create_many(&node, "f/orders", 1_100);
    assert_eq!(
        node.json("job find *").as_array().map(Vec::len),
        Some(1_000)
    );
    let found = node.run("job find 1*", "");
    assert_eq!(found.stderr, "", "all of them");
    let found = node.run("job find *", "");
    let more = "testigo: more fit than these 1000; --limit N shows N\n";
    assert_eq!(found.stderr, more);
    let listed = node.run("job list f/orders --limit 7", "");
    let more = "testigo: 1100 wait, of which these are 7; --limit N shows N\n";
    assert_eq!(
        (listed.stdout.lines().count(), listed.stderr.as_str()),
        (8, more)
    );
    let unsure = node.run("job delete --find *", "");
    assert!(
        unsure
            .stderr
            .contains("delete 1100 jobs (1, 2, 3, 4, 5, …)"),
        "{}",
        unsure.stderr
    );
    let few = node.run("job delete --find * --limit 10", "");
    assert!(few.stderr.contains("delete 10 jobs"), "{}", few.stderr);
    let few = node.run("job delete --find * --limit 10 --yes", "");
    assert_eq!(few.stdout, "10 deleted\n");
    assert_eq!(few.stderr, "testigo: more fit than --limit 10\n");
    let moved = node.run("job move --find * --to priced --yes", "");
    assert_eq!((moved.code, moved.stdout.as_str()), (0, "1090 moved\n"));
    assert_eq!(moved.stderr, "testigo: 1000 of 1090 moved\n");
    let deleted = node.run("job delete --find * --yes", "");
    assert_eq!(deleted.stdout, "1090 deleted\n");
}

#[test]
fn more_than_the_node_lists_at_once_are_done_in_rounds() {
    let node = Node::with_config("list_rows = 100\n");
    apply(&node, ORDERS);
    create_many(&node, "f/orders", 250);
    let unsure = node.run("job delete --find *", "");
    assert!(
        unsure.stderr.contains("delete at least 97 jobs"),
        "{}",
        unsure.stderr
    );
    // What is moved still fits, unless its queue is named.
    let moved = node.run("job move --find * --to priced --yes", "");
    assert_eq!((moved.code, moved.stdout.as_str()), (1, "97 moved\n"));
    assert!(moved.stderr.contains("with --in"), "{}", moved.stderr);
    let moved = node.run("job move --find * --in f/orders --to priced --yes", "");
    assert_eq!((moved.code, moved.stdout.as_str()), (0, "153 moved\n"));
    let deleted = node.run("job delete --find * --yes", "");
    assert_eq!(
        (deleted.code, deleted.stdout.as_str()),
        (0, "250 deleted\n")
    );
}

#[test]
fn queues_are_listed_with_their_depth_and_age() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["a-1", "a-2"]);
    let queues = node.json("queue list f/o*");
    assert_eq!(queues.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&queues[0]["waiting"], &queues[0]["next"]),
        (&2.into(), &1.into())
    );
    assert!(queues[0]["age_ms"].is_u64());
    let plain = node.run("queue list", "").stdout;
    assert!(
        plain.contains("f/orders") && plain.contains("f/failed"),
        "{plain}"
    );
    // A plain look works for people, too.
    for line in [
        "job show 1",
        "job list f/orders",
        "queue show f/orders",
        "flow show f",
        "client list",
    ] {
        let shown = node.run(line, "");
        assert_eq!((shown.code, shown.stderr.as_str()), (0, ""), "{line}");
        assert!(!shown.stdout.is_empty(), "{line}");
    }
}
