//! Three nodes as real processes: they join, serve one gate together, lose one of them, and take it back.

mod up;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;
use up::{Client, Up, Value, ok, refused};

/// Longer than a lease, an election and everything else that is waited for, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the nodes live and are reached.
struct Places {
    dir: TempDir,
    peers: Vec<String>,
}

impl Places {
    fn new(count: usize) -> Places {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("secret");
        std::fs::write(secret, "the secret of these nodes\n").unwrap();
        // All at once, so that no two are the same.
        let free: Vec<_> = (0..count)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let address = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
        let peers = free.iter().map(address).collect();
        Places { dir, peers }
    }

    /// Starts a node, counted from 1; `more` is what it is told besides.
    fn up(&self, id: usize, more: &[&str]) -> Up {
        let data = self.dir.path().join(format!("node-{id}"));
        let (number, secret) = (id.to_string(), self.dir.path().join("secret"));
        let own = ["--id", &number, "--peer", &self.peers[id - 1]];
        let secret = ["--secret-file", secret.to_str().unwrap()];
        Up::start(&data, &[&own[..], &secret, more].concat())
    }

    fn join(&self, id: usize) -> Up {
        self.up(id, &["--join", &self.peers[0]])
    }

    fn three(&self) -> [Up; 3] {
        [self.up(1, &[]), self.join(2), self.join(3)]
    }
}

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
    let secret = places.dir.path().join("secret");
    let secret = secret.to_str().unwrap();
    // Free again as soon as its number is known.
    let other = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let other = other.unwrap().to_string();
    let join = |data: &str, id: &str| {
        let data = places.dir.path().join(data);
        let own = ["--id", id, "--peer", &other, "--secret-file", secret];
        refused(&data, &[&own[..], &["--join", &places.peers[0]]].concat())
    };
    let (_, told) = join("new", "2");
    assert!(told.contains("testigo cluster remove 2"), "{told}");
    // A directory that is a member's knows its cluster, and is nobody's who is alone.
    two.kill();
    let (_, told) = refused(&places.dir.path().join("node-2"), &[]);
    assert!(told.contains("node 2's, not node 1's"), "{told}");
    drop(one);
}

#[test]
fn a_removed_number_joins_again() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let mut at_one = one.client();
    assert_eq!(at_one.call(&["CLUSTER", "REMOVE", "3"]), ok());
    three.kill();
    std::fs::remove_dir_all(places.dir.path().join("node-3")).unwrap();
    let three = places.join(3);
    let mut at_three = three.client();
    until(&mut at_three, &["LOCK", "deploy", "WAIT", "0"], is_int);
    for node in [one, two, three] {
        assert_eq!(node.signal(Signal::TERM).code(), Some(0));
    }
}
