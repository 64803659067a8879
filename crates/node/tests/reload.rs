//! A node whose users change while connections are open: a right that is gone is gone for them, too.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine};
use support::{Client, Value};
use tempfile::TempDir;
use testigo_node::{Config, Node, Secret, User};

const PATIENCE: Duration = Duration::from_secs(60);

struct Running {
    dir: TempDir,
    node: Node,
}

impl Running {
    fn start(users: &[(&str, &str)]) -> Running {
        let dir = tempfile::tempdir().unwrap();
        let node = Node::start(config(&dir, users)).unwrap();
        Running { dir, node }
    }

    fn reload(&self, users: &[(&str, &str)]) {
        self.node.reload(&config(&self.dir, users)).unwrap();
    }

    fn client(&self, user: &str) -> Client {
        let mut client = Client::connect(self.node.resp_address().unwrap());
        assert_eq!(client.call(&["AUTH", user, user]).to_string(), "+OK");
        client
    }

    fn http(&self) -> SocketAddr {
        self.node.http_address().unwrap()
    }
}

/// Users whose passwords are their names; `root` may do everything.
fn config(dir: &TempDir, users: &[(&str, &str)]) -> Config {
    let mut config = Config::embedded(dir.path().join("data"));
    config.resp = Some("127.0.0.1:0".parse().unwrap());
    config.http = Some("127.0.0.1:0".parse().unwrap());
    let all = users.iter().chain(&[("root", "* : admin")]);
    for (name, rights) in all.filter(|_| !users.is_empty()) {
        let secret = Secret::read(name).unwrap();
        let user = User::new(name, secret, rights.parse().unwrap());
        config.users.push(user.unwrap());
    }
    config
}

/// Asks until the answer is as wanted.
fn until(client: &mut Client, words: &[&str], wanted: impl Fn(&Value) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = client.call(words);
        if wanted(&answer) {
            return;
        }
        assert!(Instant::now() < deadline, "{words:?}: {answer}");
    }
}

#[test]
fn a_right_that_is_gone_ends_waits_and_leaves_holds() {
    let running = Running::start(&[("alice", "deploy/* : use")]);
    let mut root = running.client("root");
    let mut alice = running.client("alice");
    let mut waiting = running.client("alice");
    assert!(alice.call(&["LOCK", "deploy/held"]).int() > 0);
    assert!(root.call(&["LOCK", "deploy/web"]).int() > 0);
    waiting.send(&["LOCK", "deploy/web", "WAIT", "60000"]);
    let waiters = |answer: &Value, count| answer.at("waiters").list().len() == count;
    until(&mut root, &["GATE", "SHOW", "deploy/web"], |gate| {
        waiters(gate, 1)
    });
    running.reload(&[("alice", "deploy/held : show")]);
    assert!(waiting.read().error().starts_with("DENIED"));
    let gate = root.call(&["GATE", "SHOW", "deploy/web"]);
    assert!(waiters(&gate, 0), "{gate}");
    assert!(
        alice
            .call(&["LOCK", "deploy/x"])
            .error()
            .starts_with("DENIED")
    );
    let held = root.call(&["GATE", "SHOW", "deploy/held"]);
    assert_eq!(held.at("holders").list().len(), 1, "{held}");
    assert_eq!(alice.call(&["UNLOCK", "deploy/held"]).to_string(), "+OK");
    running.reload(&[("alice", "deploy/* : use")]);
    assert!(alice.call(&["LOCK", "deploy/x"]).int() > 0);
}

#[test]
fn a_wait_that_blocks_nobody_ends_too() {
    let running = Running::start(&[("alice", "deploy/* : use")]);
    let mut root = running.client("root");
    assert!(root.call(&["LOCK", "deploy/web"]).int() > 0);
    let mut alice = running.client("alice");
    alice.call(&["HELLO", "3"]);
    let ticket = alice.call(&["LOCK", "deploy/web", "ASYNC"]).int();
    running.reload(&[("alice", "deploy/other : use")]);
    let told = alice.read().to_string();
    assert_eq!(told, format!(">[\"gone\", {ticket}, \"cancelled\"]"));
}

#[test]
fn a_wait_for_a_pool_that_may_not_be_used_any_more_ends() {
    let running = Running::start(&[("alice", "ports : use")]);
    let mut root = running.client("root");
    let created = root.call(&["POOL", "CREATE", "ports", "SLOTS", "1"]);
    assert_eq!(created.to_string(), "+OK");
    assert_eq!(root.call(&["POOL", "TAKE", "ports"]).list().len(), 2);
    let [mut waiting, mut asking] = [(); 2].map(|()| running.client("alice"));
    waiting.send(&["POOL", "TAKE", "ports", "WAIT", "60000"]);
    asking.call(&["HELLO", "3"]);
    let take = ["POOL", "TAKE", "ports", "WAIT", "60000", "ASYNC"];
    let ticket = asking.call(&take).int();
    let show = ["POOL", "SHOW", "ports"];
    until(&mut root, &show, |pool| pool.at("waiting").int() == 2);
    running.reload(&[("alice", "others : use")]);
    assert!(waiting.read().error().starts_with("DENIED"));
    let told = asking.read().to_string();
    assert_eq!(told, format!(">[\"gone\", {ticket}, \"timeout\"]"));
    assert_eq!(root.call(&show).at("waiting").int(), 0);
}

#[test]
fn who_is_gone_or_has_another_password_is_closed() {
    let users = [
        ("alice", "* : use"),
        ("bob", "* : use"),
        ("carol", "* : use"),
    ];
    let running = Running::start(&users);
    let mut root = running.client("root");
    let [mut alice, mut bob, mut carol] = ["alice", "bob", "carol"].map(|u| running.client(u));
    assert!(alice.call(&["LOCK", "a"]).int() > 0);
    let mut new = config(&running.dir, &users[1..]);
    let other = Secret::read("other").unwrap();
    new.users[0] = User::new("bob", other, "* : use".parse().unwrap()).unwrap();
    running.node.reload(&new).unwrap();
    assert!(alice.is_closed() && bob.is_closed());
    assert_eq!(carol.call(&["PING"]).to_string(), "+PONG");
    // What the implicit session held is free.
    until(&mut root, &["GATE", "LIST"], |gates| {
        gates.list().is_empty()
    });
    let mut bob = Client::connect(running.node.resp_address().unwrap());
    assert_eq!(bob.call(&["AUTH", "bob", "other"]).to_string(), "+OK");
}

#[test]
fn a_process_that_its_user_may_not_be_gives_its_jobs_back() {
    let running = Running::start(&[("alice", "shop/* : use")]);
    let mut root = running.client("root");
    let flow = "make -> [a] -> work -> [b] -> end";
    assert_eq!(
        root.call(&["FLOW", "APPLY", "shop", flow]).to_string(),
        "+OK"
    );
    assert_eq!(root.call(&["JOB", "CREATE", "shop/a", "one", "x"]).int(), 1);
    let [mut holds, mut waits] = [(); 2].map(|()| {
        let mut alice = running.client("alice");
        assert_eq!(alice.call(&["PRESENT", "shop", "work"]).to_string(), "+OK");
        alice
    });
    assert_eq!(holds.call(&["JOB", "TAKE", "a"]).list()[0].int(), 1);
    waits.send(&["JOB", "TAKE", "a", "WAIT", "60000"]);
    let show = ["QUEUE", "SHOW", "shop/a"];
    until(&mut root, &show, |queue| {
        queue.at("takers").list().len() == 1
    });
    running.reload(&[("alice", "shop/make : use")]);
    assert!(holds.is_closed() && waits.is_closed());
    until(&mut root, &["JOB", "SHOW", "1"], |job| {
        job.at("state").to_string() == "\"waiting\"" && job.at("deaths").int() == 0
    });
}

#[test]
fn a_take_of_who_is_no_administrator_any_more_ends() {
    let running = Running::start(&[("alice", "* : admin")]);
    let mut root = running.client("root");
    let flow = "make -> [a] -> work -> [b] -> end";
    assert_eq!(
        root.call(&["FLOW", "APPLY", "shop", flow]).to_string(),
        "+OK"
    );
    let mut alice = running.client("alice");
    alice.send(&["JOB", "TAKE", "shop/a", "WAIT", "60000"]);
    let show = ["QUEUE", "SHOW", "shop/a"];
    until(&mut root, &show, |queue| {
        queue.at("takers").list().len() == 1
    });
    running.reload(&[("alice", "* : show")]);
    assert_eq!(alice.read(), Value::Nil);
    let refused = alice.call(&["JOB", "TAKE", "shop/a"]);
    assert!(refused.error().starts_with("DENIED"), "{refused}");
}

#[test]
fn channels_and_streams_show_what_may_be_seen_now() {
    let running = Running::start(&[("alice", "* : show"), ("bob", "* : show")]);
    let mut root = running.client("root");
    let mut alice = running.client("alice");
    alice.call(&["HELLO", "3"]);
    alice.call(&["SUBSCRIBE", "gate:deploy/web"]);
    alice.call(&["PSUBSCRIBE", "gate:*"]);
    let mut streams = ["alice", "bob"].map(|user| events(running.http(), user));
    assert!(root.call(&["LOCK", "deploy/web"]).int() > 0);
    for _ in 0..2 {
        assert!(alice.read().to_string().contains("entered"));
    }
    for stream in &mut streams {
        read_until(stream, "deploy/web");
    }
    running.reload(&[("alice", "report/* : show")]);
    assert_eq!(root.call(&["UNLOCK", "deploy/web"]).to_string(), "+OK");
    assert!(root.call(&["LOCK", "report/today"]).int() > 0);
    let next = alice.read().to_string();
    assert!(next.contains("gate:report/today"), "{next}");
    let [alice, bob] = &mut streams;
    let seen = read_until(alice, "report/today");
    let last = seen.rsplit("event: state").next().unwrap();
    assert!(!last.contains("deploy/web"), "{last}");
    let mut rest = Vec::new();
    bob.read_to_end(&mut rest).expect("the stream ends");
}

fn events(at: SocketAddr, user: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let basic = BASE64_STANDARD.encode(format!("{user}:{user}"));
    let head = "GET /api/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    write!(stream, "{head}Authorization: Basic {basic}\r\n\r\n").unwrap();
    stream
}

fn read_until(stream: &mut TcpStream, word: &str) -> String {
    let mut seen = String::new();
    let mut chunk = [0; 4096];
    while !seen.contains(word) {
        let read = stream.read(&mut chunk).expect("in time");
        assert!(read > 0, "the stream ended: {seen}");
        seen.push_str(&String::from_utf8_lossy(&chunk[..read]));
    }
    seen
}

#[test]
fn what_is_wrong_changes_nothing() {
    let running = Running::start(&[("alice", "deploy/* : use")]);
    let mut alice = running.client("alice");
    let twice = [("alice", "* : show"), ("alice", "* : show")];
    assert!(running.node.reload(&config(&running.dir, &twice)).is_err());
    assert!(alice.call(&["LOCK", "deploy/x"]).int() > 0);
    assert_eq!(running.client("alice").call(&["PING"]).to_string(), "+PONG");
}

#[test]
fn the_first_users_close_who_never_said_who_they_are() {
    let running = Running::start(&[]);
    let mut anybody = Client::connect(running.node.resp_address().unwrap());
    assert_eq!(anybody.call(&["PING"]).to_string(), "+PONG");
    running.reload(&[("alice", "* : use")]);
    assert!(anybody.is_closed());
    let mut alice = running.client("alice");
    assert!(alice.call(&["LOCK", "a"]).int() > 0);
    // And back: who has not said who it is need not any more.
    let mut stranger = Client::connect(running.node.resp_address().unwrap());
    assert!(stranger.call(&["PING"]).error().starts_with("NOAUTH"));
    running.reload(&[]);
    assert!(alice.is_closed());
    assert_eq!(stranger.call(&["PING"]).to_string(), "+PONG");
}

#[test]
fn a_renewed_connection_is_no_administrator() {
    let running = Running::start(&[]);
    let at = running.node.resp_address().unwrap();
    let mut worker = Client::connect(at);
    let flow = "make -> [a] -> work -> [b] -> end";
    assert_eq!(
        worker.call(&["FLOW", "APPLY", "shop", flow]).to_string(),
        "+OK"
    );
    assert_eq!(
        worker.call(&["JOB", "CREATE", "shop/a", "one", "x"]).int(),
        1
    );
    let mut first = config(&running.dir, &[]);
    first.present_first = true;
    running.node.reload(&first).unwrap();
    let mut renewed = Client::connect(at);
    for refused in [
        &["JOB", "TAKE", "shop/a"][..],
        &["JOB", "SHOW", "1"],
        &["FLOW", "DELETE", "shop"],
        &["FLOW", "LIST"],
        &["QUEUE", "LIST"],
        &["CLIENT", "END", "1"],
    ] {
        let answer = renewed.call(refused);
        assert!(
            answer.error().starts_with("DENIED"),
            "{refused:?}: {answer}"
        );
        assert!(answer.error().contains("present_first"), "{answer}");
    }
    assert_eq!(renewed.call(&["MULTI"]).to_string(), "+OK");
    assert!(
        renewed
            .call(&["JOB", "DELETE", "1"])
            .error()
            .starts_with("DENIED")
    );
    assert!(
        renewed
            .call(&["EXEC"])
            .error()
            .starts_with("EXECABORT DENIED")
    );
    assert!(renewed.call(&["LOCK", "a"]).int() > 0, "gates are no flows");
    assert_eq!(
        renewed.call(&["PRESENT", "shop", "work"]).to_string(),
        "+OK"
    );
    assert_eq!(renewed.call(&["JOB", "TAKE", "a"]).list()[0].int(), 1);
    assert_eq!(renewed.call(&["RESET"]).to_string(), "+RESET");
    assert!(
        renewed
            .call(&["JOB", "SHOW", "1"])
            .error()
            .starts_with("DENIED")
    );
    // One user only.
    let mut one = config(
        &running.dir,
        &[("alice", "* : admin"), ("bob", "* : admin")],
    );
    one.users[0] = one.users[0].clone().presents_first(true);
    running.node.reload(&one).unwrap();
    assert!(
        running
            .client("alice")
            .call(&["FLOW", "LIST"])
            .error()
            .starts_with("DENIED")
    );
    assert_eq!(
        running.client("bob").call(&["FLOW", "LIST"]).list().len(),
        1
    );
}

#[test]
fn a_connection_of_one_user_holds_nothing_before_it_has_a_session() {
    let users = [("alice", "* : use"), ("bob", "* : use")];
    let running = Running::start(&users);
    let mut held = running.client("alice");
    assert!(held.call(&["LOCK", "a"]).int() > 0);
    let mut strict = config(&running.dir, &users);
    strict.users[0] = strict.users[0].clone().opens_first(true);
    running.node.reload(&strict).unwrap();
    let denied = |answer: Value| {
        let said = answer.error();
        assert!(said.starts_with("DENIED user alice"), "{said}");
        assert!(said.contains("session_first"), "{said}");
    };
    // One that was open before, too: its lock goes when it closes.
    denied(held.call(&["UNLOCK", "a"]));
    let mut alice = running.client("alice");
    denied(alice.call(&["PING"]));
    denied(alice.call(&["LOCK", "b"]));
    let session = alice.call(&["SESSION", "OPEN"]).int();
    assert!(alice.call(&["LOCK", "b"]).int() > 0);
    assert_eq!(alice.call(&["PING"]).to_string(), "+PONG");
    let ended = running
        .client("root")
        .call(&["SESSION", "END", &session.to_string()]);
    assert_eq!(ended.to_string(), "+OK");
    let over = alice.call(&["PING"]);
    assert!(over.error().starts_with("STALE"), "{over}");
    let mut bob = running.client("bob");
    assert!(bob.call(&["LOCK", "c"]).int() > 0);
    assert_eq!(bob.call(&["PING"]).to_string(), "+PONG");
}

/// Guesses from one address for one user wait for each other, whatever their connections; nobody else waits.
#[test]
fn guesses_over_many_connections_are_slowed_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut slow = config(&dir, &[("alice", "* : use"), ("bob", "* : use")]);
    slow.wire.password_delay_ms = 600_000;
    slow.wire.password_wait_ms = 600_000;
    let running = Running {
        node: Node::start(slow).unwrap(),
        dir,
    };
    let at = running.node.resp_address().unwrap();
    let mut root = running.client("root");
    let mut guesser = Client::connect(at);
    guesser.send(&["AUTH", "alice", "guess"]);
    let blocked =
        |count| move |list: &Value| list.to_string().matches("blocked=password").count() == count;
    until(&mut root, &["CLIENT", "LIST"], blocked(1));
    // Even the right one: else it would tell itself apart by its haste.
    let mut right = Client::connect(at);
    right.send(&["AUTH", "alice", "alice"]);
    until(&mut root, &["CLIENT", "LIST"], blocked(2));
    running.client("bob");
    let mut elsewhere = connect_from("127.0.0.2:0".parse().unwrap(), at);
    assert_eq!(
        elsewhere.call(&["AUTH", "alice", "alice"]).to_string(),
        "+OK"
    );
}

/// Connects from another address of this machine.
fn connect_from(own: SocketAddr, at: SocketAddr) -> Client {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.unwrap();
    socket.bind(&own.into()).unwrap();
    socket.connect(&at.into()).unwrap();
    Client::over(socket.into()).unwrap()
}
