//! The client over connections that a test holds the other end of, on a clock that only moves when everybody waits.

use std::io;
use std::time::Duration;

use testigo_client::{
    BoxStream, Client, Connector, GroupEvent, Lock, Loss, Member, Session, SessionOptions, State,
    Word,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

const TTL: Duration = Duration::from_secs(10);

/// Gives the client connections and the test their other ends.
fn network() -> (Connector, UnboundedReceiver<DuplexStream>) {
    let (ends, received) = unbounded_channel();
    let connector = Connector::new(move || {
        let ends: UnboundedSender<DuplexStream> = ends.clone();
        async move {
            let (near, far) = tokio::io::duplex(4096);
            ends.send(far)
                .map_err(|_| io::ErrorKind::ConnectionRefused)?;
            Ok(Box::new(near) as BoxStream)
        }
    });
    (connector, received)
}

/// The node's end of a connection.
struct Node {
    stream: DuplexStream,
    buffer: String,
}

impl Node {
    async fn accept(ends: &mut UnboundedReceiver<DuplexStream>) -> Node {
        let stream = ends.recv().await.expect("a connection");
        let buffer = String::new();
        Node { stream, buffer }
    }

    /// The next command, as one line.
    async fn command(&mut self) -> Option<String> {
        loop {
            if let Some((words, rest)) = command(&self.buffer) {
                self.buffer = rest;
                return Some(words.join(" "));
            }
            let mut bytes = [0; 1024];
            let count = self.stream.read(&mut bytes).await.unwrap_or(0);
            if count == 0 {
                return None;
            }
            let text = std::str::from_utf8(&bytes[..count]).expect("text");
            self.buffer.push_str(text);
        }
    }

    async fn say(&mut self, frames: &str) {
        let sent = self.stream.write_all(frames.as_bytes()).await;
        sent.expect("the client listens");
    }

    async fn expect(&mut self, command: &str, answer: &str) {
        assert_eq!(self.command().await.as_deref(), Some(command));
        self.say(answer).await;
    }
}

/// The first whole command of a text of RESP arrays, and what follows it.
fn command(text: &str) -> Option<(Vec<String>, String)> {
    let (count, mut rest) = text.strip_prefix('*')?.split_once("\r\n")?;
    let mut words = Vec::new();
    for _ in 0..count.parse::<usize>().ok()? {
        let (length, word) = rest.strip_prefix('$')?.split_once("\r\n")?;
        let length: usize = length.parse().ok()?;
        words.push(word.get(..length)?.to_owned());
        rest = word.get(length + 2..)?;
    }
    Some((words, rest.to_owned()))
}

const RESUMED: &str = "%2\r\n+claims\r\n*1\r\n+HELD\r\n+holds\r\n*1\r\n*2\r\n+a\r\n:5\r\n";

/// A session at a node, and the node's end.
async fn opened() -> (Session, Node, UnboundedReceiver<DuplexStream>) {
    let (connector, mut ends) = network();
    let open = async {
        let client = Client::over(connector, None).await.expect("a client");
        let options = SessionOptions {
            ttl: TTL,
            label: None,
        };
        client.open(options).await.expect("a session")
    };
    let serve = async {
        let mut node = Node::accept(&mut ends).await;
        node.expect("HELLO 3", "_\r\n").await;
        node.expect("PING", "+PONG\r\n").await;
        node.expect("SESSION OPEN TTL 10000", ":77\r\n").await;
        node
    };
    let (session, node) = tokio::join!(open, serve);
    (session, node, ends)
}

/// Lets the session enter gate `a` with fence 5.
async fn admit(node: &mut Node) {
    node.expect(
        "LOCK a ID t1 ASYNC GRANT",
        ":1\r\n>3\r\n+grant\r\n:1\r\n*3\r\n:5\r\n+r5\r\n_\r\n",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_loses_the_guard_by_the_clients_own_clock() {
    let (session, mut node, _ends) = opened().await;
    let started = Instant::now();
    let (guard, ()) = tokio::join!(session.lock(Lock::new("a")), admit(&mut node));
    let guard = guard.expect("an answer").expect("a guard");
    assert_eq!(
        (guard.gate(), guard.fence(), guard.state()),
        ("a", 5, State::Held)
    );
    assert_eq!(guard.changed(State::Held).await, State::Suspect);
    assert!(started.elapsed() < TTL / 10 * 7);
    assert_eq!(guard.lost().await, Loss::Silence);
    assert!(started.elapsed() <= TTL / 10 * 9 + Duration::from_millis(1));
    assert_eq!(guard.state(), State::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_resumed_and_the_guard_held_again() {
    let (session, mut node, mut ends) = opened().await;
    let (guard, ()) = tokio::join!(session.lock(Lock::new("a")), admit(&mut node));
    let guard = guard.expect("an answer").expect("a guard");
    drop(node);
    assert_eq!(guard.changed(State::Held).await, State::Suspect);
    let mut node = Node::accept(&mut ends).await;
    node.expect("HELLO 3", "_\r\n").await;
    node.expect(
        "SESSION RESUME 77 SERIAL 1 HOLDING 1 a 5 RECEIPTS r5 SLOTS 0",
        RESUMED,
    )
    .await;
    assert_eq!(guard.changed(State::Suspect).await, State::Held);
    let (released, ()) = tokio::join!(guard.release(), node.expect("UNLOCK a 5", "+OK\r\n"));
    released.expect("given back");
}

#[tokio::test(start_paused = true)]
async fn a_holder_hears_that_others_wait_and_that_it_has_lost() {
    let (session, mut node, _ends) = opened().await;
    let (guard, ()) = tokio::join!(session.lock(Lock::new("a")), admit(&mut node));
    let guard = guard.expect("an answer").expect("a guard");
    tokio::join!(guard.wanted(), node.say(">3\r\n+wanted\r\n+a\r\n:5\r\n"));
    let lost = node.say(">4\r\n+lost\r\n+a\r\n:5\r\n+lease\r\n");
    let (loss, ()) = tokio::join!(guard.lost(), lost);
    assert_eq!(loss, Loss::Told);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_is_cancelled_and_a_dropped_guard_given_back() {
    let (session, mut node, _ends) = opened().await;
    let (guard, ()) = tokio::join!(session.lock(Lock::new("a")), admit(&mut node));
    tokio::select! {
        ended = session.lock(Lock::new("b")) => panic!("the wait ended: {ended:?}"),
        () = node.expect("LOCK b ID t2 ASYNC GRANT", ":2\r\n") => {}
    }
    node.expect("CANCEL 2", ":1\r\n>3\r\n+gone\r\n:2\r\n+cancelled\r\n")
        .await;
    drop(guard);
    node.expect("UNLOCK a 5", "+OK\r\n").await;
    let close = node.expect("SESSION CLOSE", "+OK\r\n");
    let (closed, ()) = tokio::join!(session.close(), close);
    closed.expect("closed");
    assert_eq!(
        node.command().await,
        None,
        "the last handle ends the connection"
    );
}

#[tokio::test(start_paused = true)]
async fn many_waits_share_one_connection() {
    const WAITS: usize = 50;
    let (session, mut node, _ends) = opened().await;
    let tasks: Vec<_> = (0..WAITS)
        .map(|at| {
            let session = session.clone();
            tokio::spawn(async move { session.lock(Lock::new(format!("g{at}"))).await })
        })
        .collect();
    for ticket in 1..=WAITS {
        let lock = node.command().await.expect("a lock");
        assert!(
            lock.ends_with(&format!("ID t{ticket} ASYNC GRANT")),
            "{lock}"
        );
        node.say(&format!(":{ticket}\r\n")).await;
    }
    for ticket in (1..=WAITS).rev() {
        node.say(&format!(">3\r\n+gone\r\n:{ticket}\r\n+timeout\r\n"))
            .await;
    }
    for task in tasks {
        let ended = task.await.expect("no panic").expect("an answer");
        assert!(ended.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_of_nobody_is_refused() {
    let (connector, ends) = network();
    drop(ends);
    let refused = Client::over(connector, None)
        .await
        .expect_err("nobody there");
    assert_eq!(refused.word(), Some(&Word::Unavailable));
}

/// The answer to `GROUP JOIN`.
fn joined(last: u64, missed: u64, deliveries: &[u64]) -> String {
    let mut answer = format!(
        "%7\r\n+name\r\n+talk\r\n+order\r\n+TOTAL\r\n+using\r\n+log\r\n+last\r\n:{last}\r\n\
         +members\r\n:2\r\n+missed\r\n:{missed}\r\n+deliveries\r\n*{}\r\n",
        deliveries.len()
    );
    for number in deliveries {
        answer += &format!("*3\r\n:{number}\r\n:9\r\n+m{number}\r\n");
    }
    answer
}

fn line(text: &str) -> String {
    let length = text.len();
    format!(">3\r\n+message\r\n+group:talk\r\n${length}\r\n{text}\r\n")
}

fn delivered(number: u64) -> GroupEvent {
    let body = format!("m{number}").into_bytes();
    GroupEvent::Delivered {
        number,
        from: 9,
        body,
    }
}

async fn member() -> (Session, Member, Node, UnboundedReceiver<DuplexStream>) {
    let (session, mut node, ends) = opened().await;
    let answer = joined(5, 0, &[]);
    let join = node.expect("GROUP JOIN talk", &answer);
    let (member, ()) = tokio::join!(session.join_group("talk"), join);
    (session, member.expect("joined"), node, ends)
}

#[tokio::test(start_paused = true)]
async fn a_member_that_was_cut_off_is_given_the_rest_and_told_what_it_missed() {
    let (_session, mut member, mut node, mut ends) = member().await;
    node.say(&line("delivered 6 9 m6")).await;
    node.say(&line("joined 6 10")).await;
    assert_eq!(member.next().await, Ok(delivered(6)));
    let other = GroupEvent::Joined {
        number: 6,
        session: 10,
    };
    assert_eq!(member.next().await, Ok(other));
    drop(node);
    let serve = async {
        let mut node = Node::accept(&mut ends).await;
        node.expect("HELLO 3", "_\r\n").await;
        let none = "%2\r\n+claims\r\n*0\r\n+holds\r\n*0\r\n";
        node.expect("SESSION RESUME 77 SERIAL 1 SLOTS 0", none)
            .await;
        let again = "GROUP JOIN talk AFTER 6";
        // A node without a majority; the member asks again.
        node.expect(again, "-UNAVAILABLE no majority\r\n").await;
        node.expect(again, &joined(10, 2, &[9, 10])).await;
        node.say(&line("delivered 11 9 m11")).await;
        node
    };
    let (missed, _node) = tokio::join!(member.next(), serve);
    assert_eq!(missed, Ok(GroupEvent::Missed { count: 2, last: 8 }));
    for number in 9..=11 {
        assert_eq!(member.next().await, Ok(delivered(number)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_slow_asks_for_what_it_passed_over() {
    let (_session, mut member, mut node, _ends) = member().await;
    // More than a client keeps for a listener that does not listen.
    const LAST: u64 = 5 + 2_000;
    for number in 6..=LAST {
        let text = format!("delivered {number} 9 m{number}");
        node.say(&line(&text)).await;
    }
    let all: Vec<u64> = (6..=LAST).collect();
    let answer = joined(LAST, 0, &all);
    let serve = node.expect("GROUP JOIN talk AFTER 5", &answer);
    let (first, ()) = tokio::join!(member.next(), serve);
    assert_eq!(first, Ok(delivered(6)));
    node.say(&line("delivered 2006 9 m2006")).await;
    for number in 7..=LAST + 1 {
        assert_eq!(member.next().await, Ok(delivered(number)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_learns_that_it_is_none_any_more() {
    let (session, mut ended, mut node, _ends) = member().await;
    node.say(&line("left 5 77")).await;
    let left = GroupEvent::Left {
        number: 5,
        session: 77,
    };
    assert_eq!(ended.next().await, Ok(left));
    let stale = ended.next().await.expect_err("it has left");
    assert_eq!(stale.word(), Some(&Word::Stale));
    let answer = joined(5, 0, &[]);
    let join = node.expect("GROUP JOIN talk", &answer);
    let (silent, ()) = tokio::join!(session.join_group("talk"), join);
    let mut silent = silent.expect("joined");
    let away = silent.next().await.expect_err("nobody answers");
    assert_eq!(away.word(), Some(&Word::Unavailable));
}
