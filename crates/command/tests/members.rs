//! Three nodes as real processes: they join, serve one gate together, lose one of them, and take it back.

mod up;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{Pid, Signal, kill_process};
use up::disk::Disk;
use up::places::Places;
use up::{Client, Up, Value, command, ok, refused};

/// Longer than a lease, an election and everything else that is waited for, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until the answer is one that is looked for; nodes that have lost another one do not know everything at once.
fn until(client: &mut Client, words: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = client.call(words);
        if wanted(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{words:?}: {answer:?}");
    }
}

fn is_int(value: &Value) -> bool {
    matches!(value, Value::Int(_))
}

#[test]
fn a_lock_is_one_lock_at_all_nodes_and_survives_the_loss_of_one() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let (mut at_one, mut at_two, mut at_three) = (one.client(), two.client(), three.client());
    at_two.call(&["SESSION", "OPEN", "TTL", "60000"]).int();
    let fence = until(&mut at_two, &["LOCK", "deploy", "WAIT", "0"], is_int).int();
    for client in [&mut at_one, &mut at_three] {
        assert_eq!(client.call(&["LOCK", "deploy", "WAIT", "0"]), Value::Nil);
    }
    assert_eq!(at_three.call(&["GATE", "CREATE", "made", "MUTEX"]), ok());

    // The founder led and owned everything; it is nobody special.
    one.kill();
    let held = |answer: &Value| *answer == Value::Nil;
    until(&mut at_three, &["LOCK", "deploy", "WAIT", "0"], held);
    let made = until(&mut at_three, &["LOCK", "made", "WAIT", "0"], is_int);
    assert!(is_int(&made));
    let check = ["FENCE", "CHECK", "deploy", &fence.to_string()];
    until(&mut at_two, &check, |answer| *answer == Value::Int(1));

    // It comes back by itself, without being told whom to join.
    let one = places.up(1, &[]);
    let mut at_one = one.client();
    until(&mut at_one, &["LOCK", "deploy", "WAIT", "0"], held);
    until(&mut at_two, &["UNLOCK", "deploy"], |answer| {
        *answer == Value::Int(1) || *answer == ok()
    });
    let next = until(&mut at_one, &["LOCK", "deploy", "WAIT", "0"], is_int).int();
    assert!(next > fence, "{next} is not above {fence}");
    for node in [one, two, three] {
        assert_eq!(node.signal(Signal::TERM).code(), Some(0));
    }
}

#[test]
fn an_election_is_one_election_at_all_nodes_and_survives_the_loss_of_one() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let (mut at_one, mut at_two, mut at_three) = (one.client(), two.client(), three.client());
    let mut listener = three.client();
    listener.call(&["SUBSCRIBE", "elect:db"]);
    at_two
        .call(&["SESSION", "OPEN", "TTL", "60000", "LABEL", "two"])
        .int();
    let campaign = ["ELECT", "CAMPAIGN", "db", "10.0.0.2", "RANK", "-1"];
    let term = until(&mut at_two, &campaign, is_int).int();
    for client in [&mut at_one, &mut at_three] {
        let leader = until(client, &["ELECT", "LEADER", "db"], |leader| {
            *leader != Value::Nil
        });
        assert_eq!(leader.at("term").int(), term);
        assert_eq!(leader.at("value"), &Value::Text("10.0.0.2".into()));
        assert_eq!(
            client.call(&["ELECT", "CAMPAIGN", "db", "x", "WAIT", "0"]),
            Value::Nil
        );
    }
    // The founder owned the election; whoever owns it next knows who leads, and what it says of itself.
    one.kill();
    let leads = |leader: &Value| matches!(leader, Value::List(_));
    let leader = until(&mut at_three, &["ELECT", "LEADER", "db"], leads);
    assert_eq!(leader.at("term").int(), term);
    assert_eq!(leader.at("label"), &Value::Text("two".into()));
    let change = ["ELECT", "CAMPAIGN", "db", "10.0.0.2:5432", "RANK", "7"];
    assert_eq!(until(&mut at_two, &change, is_int).int(), term);
    let mut candidates = [three.client(), three.client()];
    for (client, rank) in candidates.iter_mut().zip(["1", "2"]) {
        client.send(&["ELECT", "CAMPAIGN", "db", rank, "RANK", rank]);
    }
    let two_wait = |shown: &Value| leads(shown) && shown.at("waiting").int() == 2;
    until(&mut at_three, &["ELECT", "SHOW", "db"], two_wait);
    assert_eq!(at_two.call(&["ELECT", "RESIGN", "db"]), ok());
    let next = candidates[1].read().int();
    assert!(next > term, "{next} is not above {term}");
    let leader = until(&mut at_two, &["ELECT", "LEADER", "db"], leads);
    assert_eq!(
        (leader.at("term").int(), leader.at("rank").int()),
        (next, 2)
    );
}

#[test]
fn a_node_that_slept_past_its_lease_starts_anew_by_itself() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let (mut at_one, mut at_three) = (one.client(), three.client());
    until(&mut at_three, &["LOCK", "deploy", "WAIT", "0"], is_int);
    three.freeze();
    // Its implicit session ends when the others have left it out.
    let fence = until(&mut at_one, &["LOCK", "deploy", "WAIT", "0"], is_int).int();
    three.thaw();
    assert!(at_three.is_closed(), "its holder was told");
    // Whoever comes before it has started anew is sent away once more.
    let deadline = Instant::now() + PATIENCE;
    let mut at_three = loop {
        let mut client = three.client();
        match client.try_call(&["LOCK", "deploy", "WAIT", "0"]) {
            Ok(Value::Nil) => break client,
            other => assert!(Instant::now() < deadline, "{other:?}"),
        }
    };
    assert_ne!(at_one.call(&["UNLOCK", "deploy"]), Value::Nil);
    let next = until(&mut at_three, &["LOCK", "deploy", "WAIT", "0"], is_int).int();
    assert!(next > fence, "{next} is not above {fence}");
    drop((one, two, three));
}

#[test]
fn whoever_cannot_be_a_member_is_told_why() {
    let places = Places::new(3);
    let [one, two, _three] = places.three();
    let secret = places.path().join("secret");
    let secret = secret.to_str().unwrap();
    // Free again as soon as its number is known.
    let other = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let other = other.unwrap().to_string();
    let join = |data: &str, id: &str| {
        let data = places.path().join(data);
        let own = ["--id", id, "--peer", &other, "--secret-file", secret];
        refused(&data, &[&own[..], &["--join", &places.peers[0]]].concat())
    };
    let (_, told) = join("new", "2");
    assert!(told.contains("testigo cluster remove 2"), "{told}");
    // A directory that is a member's knows its cluster, and is nobody's who is alone.
    two.kill();
    let (_, told) = refused(&places.path().join("node-2"), &[]);
    assert!(told.contains("node 2's, not node 1's"), "{told}");
    drop(one);
}

#[test]
fn a_founder_without_its_directory_founds_no_second_cluster() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    one.kill();
    let data = places.path().join("node-1");
    std::fs::rename(&data, places.path().join("lost")).unwrap();
    let secret = places.path().join("secret");
    let secret = secret.to_str().unwrap();
    let first = [
        "--id",
        "1",
        "--peer",
        &places.peers[0],
        "--secret-file",
        secret,
    ];
    let (_, told) = refused(&data, &first);
    assert!(told.contains("no second cluster is founded"), "{told}");
    assert!(told.contains("--join"), "{told}");
    // With its directory it is what it was.
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::rename(places.path().join("lost"), &data).unwrap();
    let one = places.up(1, &[]);
    until(&mut one.client(), &["LOCK", "deploy", "WAIT", "0"], is_int);
    drop((two, three));
}

#[test]
fn an_older_copy_of_a_directory_is_told_what_it_is() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let (data, copy) = (places.path().join("node-3"), places.path().join("copy"));
    three.kill();
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([&data, &copy])
        .status();
    assert!(copied.unwrap().success());
    let three = places.up(3, &[]);
    let mut at_three = three.client();
    for gate in ["a", "b", "c"] {
        until(
            &mut at_three,
            &["GATE", "CREATE", gate, "MUTEX"],
            |answer| *answer == ok(),
        );
    }
    three.kill();
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::rename(&copy, &data).unwrap();
    let secret = places.path().join("secret");
    let own = ["--id", "3", "--peer", &places.peers[2], "--secret-file"];
    let mut older = command(&data, &[&own[..], &[secret.to_str().unwrap()]].concat());
    let mut older = older.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(older.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let told = lines.find(|line| line.contains("is an older copy"));
    assert!(told.unwrap().contains("remove the node"));
    // Stopped before it was ready, it does not say that it is.
    kill_process(Pid::from_child(&older), Signal::TERM).unwrap();
    assert_eq!(lines.find(|line| line == "ready"), None);
    older.wait().unwrap();
    drop((one, two));
}

#[test]
fn what_is_restored_is_no_member() {
    let places = Places::new(1);
    let data = places.path().join("node-1");
    let own = ["--restored", "--id", "1", "--peer", &places.peers[0]];
    let (_, told) = refused(&data, &own);
    assert!(told.contains("testigo cluster restore"), "{told}");
}

#[test]
fn a_removed_number_joins_again() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let mut at_one = one.client();
    assert_eq!(at_one.call(&["CLUSTER", "REMOVE", "3"]), ok());
    three.kill();
    std::fs::remove_dir_all(places.path().join("node-3")).unwrap();
    let three = places.join(3);
    let mut at_three = three.client();
    until(&mut at_three, &["LOCK", "deploy", "WAIT", "0"], is_int);
    for node in [one, two, three] {
        assert_eq!(node.signal(Signal::TERM).code(), Some(0));
    }
}

/// The others still count the killed node among the voters then, and believe that it has what it had.
#[test]
fn the_number_of_a_killed_node_joins_again_at_once() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    three.kill();
    assert_eq!(one.client().call(&["CLUSTER", "REMOVE", "3"]), ok());
    std::fs::remove_dir_all(places.path().join("node-3")).unwrap();
    let three = places.join(3);
    let mut at_three = three.client();
    until(&mut at_three, &["LOCK", "deploy", "WAIT", "0"], is_int);
    for node in [one, two, three] {
        assert_eq!(node.signal(Signal::TERM).code(), Some(0));
    }
}

/// What is left of a small disk when the reserve is used up in part, and when it is full.
#[test]
fn a_leader_without_room_lets_another_lead_and_goes_on_when_there_is_room() {
    let places = Places::new(3);
    let data = places.path().join("node-1");
    std::fs::create_dir(&data).unwrap();
    let Some(disk) = Disk::mount(&data, "200m") else {
        println!("SKIPPED: this user may not mount a small file system to fill");
        return;
    };
    let [one, two, three] = places.three();
    let (mut at_one, mut at_two, mut at_three) = (one.client(), two.client(), three.client());
    let leader = |client: &mut Client| client.call(&["CLUSTER", "STATUS"]).at("leader").clone();
    assert_eq!(leader(&mut at_two), Value::Int(1), "the founder");
    // No short change, which would be let through.
    let value = "x".repeat(4_000);
    let is_decided = |answer: &Value| matches!(answer, Value::Text(decided) if *decided == value);
    let decide = |client: &mut Client, name: &str| {
        until(client, &["DECIDE", name, &value], is_decided);
    };
    let fill = File::create(data.join("fill")).unwrap();
    fallocate(&fill, FallocateFlags::empty(), 0, 140 << 20).unwrap();
    until(&mut at_two, &["CLUSTER", "STATUS"], |status| {
        !matches!(status.at("leader"), Value::Int(1) | Value::Nil)
    });
    for (nth, client) in [&mut at_one, &mut at_two, &mut at_three]
        .into_iter()
        .enumerate()
    {
        decide(client, &format!("short-{nth}"));
    }
    let mut rest = 64u64 << 20;
    while rest >= 4 << 10 {
        match fallocate(
            &fill,
            FallocateFlags::empty(),
            fill.metadata().unwrap().len(),
            rest,
        ) {
            Ok(()) => {}
            Err(_) => rest /= 2,
        }
    }
    for (nth, client) in [&mut at_two, &mut at_three].into_iter().enumerate() {
        decide(client, &format!("full-{nth}"));
    }
    assert_ne!(leader(&mut at_two), Value::Int(1));

    drop(fill);
    std::fs::remove_file(data.join("fill")).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let get = ["DECIDE", "full-0", "later"];
    while !one
        .client()
        .try_call(&get)
        .is_ok_and(|answer| is_decided(&answer))
    {
        assert!(Instant::now() < deadline, "node 1 does not go on");
    }
    for node in [one, two, three] {
        assert_eq!(node.signal(Signal::TERM).code(), Some(0));
    }
    drop(disk);
}

/// Of two, the vote of the one that is removed is needed for its removal, whichever of them leads.
#[test]
fn the_last_but_one_is_removed_and_the_last_goes_on() {
    for removed in [1, 2] {
        let places = Places::new(2);
        let nodes = [places.up(1, &[]), places.join(2)];
        let [mut leaves, mut stays] = [&nodes[removed - 1], &nodes[2 - removed]].map(Up::client);
        until(&mut leaves, &["LOCK", "deploy", "WAIT", "0"], is_int);
        let remove = ["CLUSTER", "REMOVE", &removed.to_string()];
        assert_eq!(stays.call(&remove), ok());
        until(&mut stays, &["LOCK", "deploy", "WAIT", "0"], is_int);
        for node in nodes {
            assert_eq!(node.signal(Signal::TERM).code(), Some(0));
        }
    }
}
