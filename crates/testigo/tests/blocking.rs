//! The blocking face, against a node that is reached over TCP.

use tempfile::TempDir;
use testigo::blocking::Testigo;
use testigo::node::Node;
use testigo::{Config, Lock, Loss, SessionOptions, State, Word};

struct Stage {
    node: Node,
    _data: TempDir,
}

impl Stage {
    fn start() -> Stage {
        let data = tempfile::tempdir().expect("a folder");
        let mut config = Config::embedded(data.path());
        config.resp = Some("127.0.0.1:0".parse().expect("an address"));
        Stage {
            node: Node::start(config).expect("a node"),
            _data: data,
        }
    }

    fn connect(&self) -> Testigo {
        let address = self.node.resp_address().expect("it listens");
        Testigo::connect(&address.to_string()).expect("a connection")
    }

    fn sessions(&self) -> usize {
        let sessions = self.node.sessions();
        let opened = |session: &&testigo::node::SessionView| !session.session.is_implicit();
        sessions.iter().filter(opened).count()
    }
}

#[test]
fn a_dropped_guard_has_been_given_back() {
    let stage = Stage::start();
    let held = stage.connect().lock("deploy").expect("entered");
    let other = stage.connect();
    assert!(other.try_lock("deploy").expect("an answer").is_none());
    let fence = held.fence();
    drop(held);
    let next = other.try_lock("deploy").expect("an answer");
    let next = next.expect("a drop waits for the node");
    assert!(next.fence() > fence);
    next.release().expect("given back");
    stage.node.stop().expect("a clean stop");
}

#[test]
fn a_session_ends_with_its_guard_although_every_handle_is_gone() {
    let stage = Stage::start();
    let held = stage.connect().lock("deploy").expect("entered");
    assert_eq!(stage.sessions(), 1);
    drop(held);
    while stage.sessions() > 0 {
        std::thread::yield_now();
    }
    stage.node.stop().expect("a clean stop");
}

#[test]
fn a_thread_waits_until_a_guard_is_lost() {
    let stage = Stage::start();
    let testigo = stage.connect();
    let session = testigo.session(SessionOptions::default());
    let session = session.expect("a session");
    let held = session.lock("deploy").expect("an answer").expect("entered");
    let all = session.lock_all(Lock::all(["a", "b"])).expect("an answer");
    assert_eq!(all.map(|guards| guards.len()), Some(2));
    std::thread::scope(|scope| {
        let lost = scope.spawn(|| held.wait_until_lost());
        session.close().expect("closed");
        assert_eq!(lost.join().expect("it ended"), Loss::SessionOver);
    });
    assert_eq!(held.state(), State::Lost);
    let refused = held.release().expect_err("it is lost");
    assert_eq!(refused.word(), Some(&Word::NotHeld));
    testigo.stop().expect("a clean stop");
    stage.node.stop().expect("a clean stop");
}

#[tokio::test]
async fn a_guard_may_be_dropped_inside_a_runtime() {
    let stage = Stage::start();
    let address = stage.node.resp_address().expect("it listens").to_string();
    let entered = move || Testigo::connect(&address)?.lock("deploy");
    let held = tokio::task::spawn_blocking(entered).await;
    drop(held.expect("it ended").expect("entered"));
    let address = stage.node.resp_address().expect("it listens").to_string();
    let other = testigo::connect(&address).await.expect("a connection");
    other.lock("deploy").await.expect("it was given back");
    stage.node.stop().expect("a clean stop");
}

#[test]
fn what_is_refused_says_why() {
    let refused = Testigo::connect("nowhere").expect_err("no address");
    assert_eq!(refused.word(), Some(&Word::BadArg));
    let refused = Testigo::connect("127.0.0.1:1").expect_err("nobody listens");
    assert_eq!(refused.word(), Some(&Word::Unavailable));
}
