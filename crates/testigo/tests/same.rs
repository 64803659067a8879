//! One program, three ways: every scenario runs against a node inside of this process, and against one that is reached over
//! TCP and over TLS, through the same handles.

use std::time::{Duration, Instant};

use tempfile::TempDir;
use testigo::node::{Node, Secret, TlsFiles, User};
use testigo::{
    Address, Campaign, Config, Definition, Guard, Lock, Mode, NotDone, OnceStart, Rule, Session,
    SessionOptions, State, Target, Testigo, Tls, Value, Word,
};

/// Writes the three tests of a scenario.
macro_rules! all {
    ($($scenario:ident)*) => {
        mod embedded {
            $(#[tokio::test]
            async fn $scenario() {
                let stage = super::Stage::embedded().await;
                super::$scenario(&stage.testigo).await;
                stage.end().await;
            })*
        }
        mod over_tls {
            $(#[tokio::test]
            async fn $scenario() {
                let stage = super::Stage::over_tls().await;
                super::$scenario(&stage.testigo).await;
                stage.end().await;
            })*
        }
        mod over_tcp {
            $(#[tokio::test]
            async fn $scenario() {
                let stage = super::Stage::over_tcp().await;
                super::$scenario(&stage.testigo).await;
                stage.end().await;
            })*
        }
    };
}

all! {
    a_lock_is_one_line
    a_dropped_guard_is_given_back_and_its_session_ends
    the_wait_of_one_line_ends
    a_guard_is_held_and_given_back
    waiting_is_first_come_first_served
    a_wait_ends
    a_dropped_wait_leaves_nothing_behind
    a_set_is_entered_together_or_not_at_all
    a_writer_becomes_a_reader
    a_hold_limit_shows_in_the_deadline
    an_ended_session_loses_its_guards
    a_holder_is_told_that_others_wait
    what_is_refused_says_why
    gates_are_defined_and_shown
    events_are_heard
    a_key_is_done_once
    much_at_once_is_answered_in_order
    the_highest_rank_leads_next_and_is_told
    a_leader_that_is_none_any_more_changes_nothing
}

async fn the_highest_rank_leads_next_and_is_told(testigo: &Testigo) {
    let mut events = testigo.watch_election("db").await.expect("events");
    let leads = testigo.campaign(Campaign::new("db").value("a")).await;
    let leads = leads.expect("nobody else is there");
    assert_eq!(leads.gate(), "db");
    let refused = testigo.campaign(Campaign::new("db").wait(Duration::ZERO));
    assert_eq!(word(refused.await), Word::Busy);
    let candidates = [("low", -1), ("high", 4)].map(|(value, rank)| {
        let campaign = Campaign::new("db").value(value).rank(rank);
        let session = testigo.session(SessionOptions::default());
        async move {
            let session = session.await.expect("a session");
            let leads = session.campaign(campaign).await.expect("asked");
            leads.expect("it leads in the end")
        }
    });
    let [low, high] = candidates;
    let resign = async {
        // Both are candidates by then.
        loop {
            let leader = testigo.leader("db").await.expect("asked");
            if leader.is_some_and(|leader| leader.candidates == 2) {
                break;
            }
        }
        leads.update(-7, "a, again").await.expect("it leads");
        let leader = testigo.leader("db").await.expect("asked");
        let leader = leader.expect("it leads");
        assert_eq!((leader.rank, leader.text()), (-7, Some("a, again")));
        assert_eq!(leader.term, leads.fence(), "in the same term");
        leads.release().await.expect("it resigns");
    };
    let first = async {
        let high = high.await;
        let leader = testigo.leader("db").await.expect("asked");
        assert_eq!(leader.expect("it leads").text(), Some("high"));
        let term = high.fence();
        high.release().await.expect("it resigns");
        term
    };
    let ((), first, low) = tokio::join!(resign, first, low);
    assert!(low.fence() > first);
    low.release().await.expect("it resigns");
    assert_eq!(testigo.leader("db").await, Ok(None));
    for expected in [
        "elected", "changed", "vacant", "elected", "vacant", "elected", "vacant",
    ] {
        let event = events.next().await.expect("an event");
        assert!(event.starts_with(expected), "{event}, not {expected}");
    }
}

async fn a_leader_that_is_none_any_more_changes_nothing(testigo: &Testigo) {
    let session = testigo.session(SessionOptions::default()).await;
    let session = session.expect("a session");
    let leads = session.campaign("db").await.expect("asked");
    let leads = leads.expect("nobody else is there");
    let term = leads.fence().to_string();
    // Behind the guard's back.
    let resigned = session.client().call(["ELECT", "RESIGN", "db", &term]);
    resigned.await.expect("it led");
    assert_eq!(word(leads.update(1, "x").await), Word::NotHeld);
    assert_eq!(
        testigo.leader("db").await,
        Ok(None),
        "nobody leads by mistake"
    );
    let held = session.lock(Lock::new("gate")).await.expect("asked");
    let held = held.expect("nobody else is there");
    assert_eq!(word(held.update(1, "x").await), Word::BadArg);
}

struct Stage {
    testigo: Testigo,
    /// The node that is reached over TCP.
    elsewhere: Option<Node>,
    _data: TempDir,
}

impl Stage {
    async fn embedded() -> Stage {
        let data = tempfile::tempdir().expect("a folder");
        let testigo = testigo::embed(Config::embedded(data.path())).await;
        Stage {
            testigo: testigo.expect("a node"),
            elsewhere: None,
            _data: data,
        }
    }

    async fn over_tcp() -> Stage {
        let data = tempfile::tempdir().expect("a folder");
        let mut config = Config::embedded(data.path());
        config.resp = Some("127.0.0.1:0".parse().expect("an address"));
        let node = Node::start(config).expect("a node");
        let address = node.resp_address().expect("it listens").to_string();
        Stage {
            testigo: testigo::connect(&address).await.expect("a connection"),
            elsewhere: Some(node),
            _data: data,
        }
    }

    /// As a user with all rights, too.
    async fn over_tls() -> Stage {
        let data = tempfile::tempdir().expect("a folder");
        let own = rcgen::generate_simple_self_signed(["localhost".into()]).expect("a certificate");
        let (cert, key) = (data.path().join("cert.pem"), data.path().join("key.pem"));
        std::fs::write(&cert, own.cert.pem()).expect("writable");
        std::fs::write(&key, own.signing_key.serialize_pem()).expect("writable");
        let mut config = Config::embedded(data.path().join("data"));
        config.resp = Some("127.0.0.1:0".parse().expect("an address"));
        config.tls = Some(TlsFiles {
            cert: cert.clone(),
            key,
            client_ca: None,
        });
        let secret = Secret::read("a secret").expect("a password");
        let rights = "* : admin".parse().expect("rights");
        config.users = vec![User::new("alice", secret, rights).expect("a user")];
        let node = Node::start(config).expect("a node");
        let port = node.resp_address().expect("it listens").port();
        let address: Address = format!("localhost:{port}").parse().expect("an address");
        let tls = Tls::new(Some(&cert), None).expect("it is believed");
        let target = Target::from(address).user("alice", "a secret").tls(tls);
        Stage {
            testigo: Testigo::reach(target).await.expect("a connection"),
            elsewhere: Some(node),
            _data: data,
        }
    }

    async fn end(self) {
        self.testigo.stop().await.expect("a clean stop");
        if let Some(node) = self.elsewhere {
            node.stop().expect("a clean stop");
        }
    }
}

async fn session(testigo: &Testigo) -> Session {
    let options = SessionOptions {
        ttl: Duration::from_secs(60),
        label: Some("scenario".into()),
    };
    testigo.session(options).await.expect("a session")
}

async fn inside(session: &Session, lock: Lock) -> Guard {
    let guard = session.lock(lock).await.expect("an answer");
    guard.expect("nobody is in the way")
}

/// Waits until so many wait at a gate.
async fn until_waiting(testigo: &Testigo, gate: &str, count: usize) {
    loop {
        let shown = testigo.show_gate(gate).await.expect("the gate");
        let waiters = shown.field("waiters").and_then(Value::list);
        if waiters.is_some_and(|waiters| waiters.len() == count) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn word<T>(end: Result<T, NotDone>) -> Word {
    let refused = end.err().expect("it is refused");
    refused.word().expect("a refusal has a word").clone()
}

async fn a_lock_is_one_line(testigo: &Testigo) {
    let held = testigo.lock("a").await.expect("nobody is in the way");
    assert_eq!(held.state(), State::Held);
    let tried = testigo.try_lock("a").await.expect("an answer");
    assert!(tried.is_none(), "two tasks keep each other out");
    let fence = held.fence();
    held.release().await.expect("given back");
    let set = testigo.lock_all(Lock::all(["a", "b"])).await;
    let set = set.expect("nobody is in the way");
    assert!(set[0].fence() > fence);
    let one = testigo.lock(Lock::all(["c", "d"])).await;
    assert_eq!(word(one), Word::BadArg);
}

async fn a_dropped_guard_is_given_back_and_its_session_ends(testigo: &Testigo) {
    let held = testigo.lock("a").await.expect("nobody is in the way");
    let fence = held.fence();
    drop(held);
    let next = testigo.lock("a").await.expect("given back");
    assert!(next.fence() > fence);
    next.release().await.expect("given back");
    loop {
        let shown = testigo.list_sessions().await.expect("a list");
        if shown.list().is_some_and(<[Value]>::is_empty) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn the_wait_of_one_line_ends(testigo: &Testigo) {
    let _held = testigo.lock("a").await.expect("nobody is in the way");
    let short = Duration::from_millis(5);
    let ended = testigo.lock(Lock::new("a").wait(short)).await;
    assert_eq!(word(ended), Word::Busy);
    let ended = testigo.lock_all(Lock::all(["b", "a"]).wait(short)).await;
    assert_eq!(word(ended), Word::Busy);
}

async fn a_guard_is_held_and_given_back(testigo: &Testigo) {
    let session = session(testigo).await;
    let guard = inside(&session, Lock::new("a")).await;
    assert_eq!((guard.gate(), guard.state()), ("a", State::Held));
    assert!(guard.deadline() > Instant::now());
    let fence = guard.fence();
    assert!(testigo.check_fence("a", fence).await.expect("an answer"));
    guard.release().await.expect("given back");
    assert!(!testigo.check_fence("a", fence).await.expect("an answer"));
    let again = inside(&session, Lock::new("a")).await;
    assert!(again.fence() > fence);
    session.close().await.expect("closed");
    assert_eq!(again.state(), State::Lost);
}

async fn waiting_is_first_come_first_served(testigo: &Testigo) {
    let [a, b, c] = [(); 3].map(|()| session(testigo));
    let (a, b, c) = (a.await, b.await, c.await);
    let guard = inside(&a, Lock::new("x")).await;
    let second = tokio::spawn(async move { (inside(&b, Lock::new("x")).await, b) });
    until_waiting(testigo, "x", 1).await;
    let urgent = tokio::spawn(async move { (inside(&c, Lock::new("x").class(0)).await, c) });
    until_waiting(testigo, "x", 2).await;
    guard.release().await.expect("given back");
    let (urgent, _c) = urgent.await.expect("the urgent one is next");
    assert!(!second.is_finished());
    urgent.release().await.expect("given back");
    second.await.expect("then the other");
}

async fn a_wait_ends(testigo: &Testigo) {
    let (a, b) = (session(testigo).await, session(testigo).await);
    let _guard = inside(&a, Lock::new("x")).await;
    for wait in [Duration::ZERO, Duration::from_millis(5)] {
        let ended = b.lock(Lock::new("x").wait(wait)).await.expect("an answer");
        assert!(ended.is_none());
    }
}

async fn a_dropped_wait_leaves_nothing_behind(testigo: &Testigo) {
    let (a, b) = (session(testigo).await, session(testigo).await);
    let _guard = inside(&a, Lock::new("x")).await;
    let waiting = tokio::spawn(async move { b.lock(Lock::new("x")).await });
    until_waiting(testigo, "x", 1).await;
    waiting.abort();
    until_waiting(testigo, "x", 0).await;
}

async fn a_set_is_entered_together_or_not_at_all(testigo: &Testigo) {
    let (a, b) = (session(testigo).await, session(testigo).await);
    let set = || Lock::set([("x", Mode::Exclusive), ("y", Mode::Shared)]);
    let guards = a.lock_all(set()).await.expect("an answer").expect("inside");
    assert_eq!(guards.len(), 2);
    let tried = b.lock_all(set().wait(Duration::ZERO)).await;
    assert!(tried.expect("an answer").is_none());
    let reader = Lock::new("y").shared().wait(Duration::ZERO);
    assert!(b.lock(reader).await.expect("an answer").is_some());
}

async fn a_writer_becomes_a_reader(testigo: &Testigo) {
    let rule = Definition::new(Rule::Shared);
    testigo.create_gate("doc", &rule).await.expect("created");
    let (a, b) = (session(testigo).await, session(testigo).await);
    let writer = inside(&a, Lock::new("doc")).await;
    let before = writer.fence();
    let reader = || Lock::new("doc").shared().wait(Duration::ZERO);
    assert!(b.lock(reader()).await.expect("an answer").is_none());
    let fence = writer.downgrade().await.expect("downgraded");
    assert!(fence > before);
    assert_eq!((writer.fence(), writer.state()), (fence, State::Held));
    let other = inside(&b, reader()).await;
    assert_eq!(other.fence(), fence);
    writer
        .release()
        .await
        .expect("given back with the new fence");
}

async fn a_hold_limit_shows_in_the_deadline(testigo: &Testigo) {
    let mut limited = Definition::new(Rule::Mutex);
    limited.lease = Some(Duration::from_secs(20));
    testigo
        .create_gate("short", &limited)
        .await
        .expect("created");
    let session = session(testigo).await;
    let guard = inside(&session, Lock::new("short")).await;
    let unlimited = inside(&session, Lock::new("long")).await;
    assert!(guard.deadline() + Duration::from_secs(20) < unlimited.deadline());
}

async fn an_ended_session_loses_its_guards(testigo: &Testigo) {
    let session = session(testigo).await;
    let guard = inside(&session, Lock::new("x")).await;
    testigo.end_session(session.id()).await.expect("ended");
    guard.lost().await;
    assert_eq!(guard.state(), State::Lost);
    assert_eq!(word(guard.release().await), Word::NotHeld);
    assert_eq!(word(session.lock(Lock::new("x")).await), Word::Stale);
}

async fn a_holder_is_told_that_others_wait(testigo: &Testigo) {
    let (a, b) = (session(testigo).await, session(testigo).await);
    let guard = inside(&a, Lock::new("x")).await;
    let other = tokio::spawn(async move { (inside(&b, Lock::new("x")).await.fence(), b) });
    guard.wanted().await;
    let fence = guard.fence();
    guard.release().await.expect("given back");
    let (next, _) = other.await.expect("inside");
    assert!(next > fence);
}

async fn what_is_refused_says_why(testigo: &Testigo) {
    let session = session(testigo).await;
    let two_words = Lock::new("two words");
    assert_eq!(word(session.lock(two_words).await), Word::BadArg);
    assert_eq!(word(testigo.show_gate("nowhere").await), Word::NoGate);
    let _x = inside(&session, Lock::new("x")).await;
    assert_eq!(word(session.lock(Lock::new("x")).await), Word::Held);
    let permits = Lock::new("x").permits(2).wait(Duration::ZERO);
    assert!(session.lock(permits).await.is_err());
    let end = testigo.end_session(1 << 40).await;
    assert_eq!(word(end), Word::Stale);
}

async fn gates_are_defined_and_shown(testigo: &Testigo) {
    let pool = Definition::new(Rule::Permits(3));
    testigo.create_gate("pool", &pool).await.expect("created");
    testigo.create_gate("pool", &pool).await.expect("the same");
    let session = session(testigo).await;
    let _two = inside(&session, Lock::new("pool").permits(2).reason("work")).await;
    let shown = testigo.show_gate("pool").await.expect("shown");
    let text = |name| shown.field(name).and_then(Value::text);
    assert_eq!(text("rule"), Some("PERMITS 3"));
    let holders = shown.field("holders").and_then(Value::list).expect("rows");
    let of_holder = |name| holders[0].field(name).and_then(Value::text);
    assert_eq!(of_holder("label"), Some("scenario"));
    assert_eq!(of_holder("reason"), Some("work"));
    let list = testigo.list_gates("p*").await.expect("a list");
    assert_eq!(list.list().map(<[Value]>::len), Some(1));
    assert_eq!(word(testigo.delete_gate("pool").await), Word::Busy);
}

async fn events_are_heard(testigo: &Testigo) {
    let mut events = testigo.watch_gate("x").await.expect("subscribed");
    let session = session(testigo).await;
    let guard = inside(&session, Lock::new("x")).await;
    let (fence, id) = (guard.fence(), session.id());
    guard.release().await.expect("given back");
    let entered = format!("entered {fence} {id} EXCLUSIVE");
    assert_eq!(events.next().await, Some(entered));
    assert_eq!(events.next().await, Some(format!("left {fence} {id}")));
}

async fn a_key_is_done_once(testigo: &Testigo) {
    let session = session(testigo).await;
    let _guard = inside(&session, Lock::new("nightly")).await;
    let Ok(OnceStart::Run(first)) = session.start_once("nightly", 7, false).await else {
        panic!("not to be run");
    };
    let again = session.start_once("nightly", 7, false).await;
    assert_eq!(again, Ok(OnceStart::Run(first.clone())), "the same attempt");
    session.abandon_once(&first).await.expect("abandoned");
    let Ok(OnceStart::Run(second)) = session.start_once("nightly", 7, false).await else {
        panic!("not to be run again");
    };
    let late = session.finish_once(&first).await;
    assert!(late.is_err(), "an attempt that was abandoned: {late:?}");
    session.finish_once(&second).await.expect("recorded");
    let third = session.start_once("nightly", 7, false).await;
    assert!(matches!(third, Ok(OnceStart::Done { period: 7, .. })));
    testigo.forget_once("nightly").await.expect("forgotten");
}

async fn much_at_once_is_answered_in_order(testigo: &Testigo) {
    let session = session(testigo).await;
    let mut locks = tokio::task::JoinSet::new();
    for number in 0..200 {
        let session = session.clone();
        locks.spawn(async move { inside(&session, Lock::new(format!("g{number}"))).await });
    }
    let guards = locks.join_all().await;
    assert_eq!(guards.len(), 200);
    let list = testigo.list_gates("g*").await.expect("a list");
    assert_eq!(list.list().map(<[Value]>::len), Some(200));
}

#[tokio::test]
async fn a_stopped_node_is_found_to_be_gone() {
    let stage = Stage::embedded().await;
    let session = session(&stage.testigo).await;
    let guard = inside(&session, Lock::new("x")).await;
    stage.end().await;
    assert_eq!(guard.changed(State::Held).await, State::Suspect);
    let refused = testigo::connect("nowhere").await;
    assert_eq!(word(refused), Word::BadArg);
}

#[tokio::test]
async fn a_data_directory_has_one_node() {
    let stage = Stage::embedded().await;
    let second = testigo::embed(Config::embedded(stage._data.path())).await;
    assert_eq!(word(second), Word::Unavailable);
    stage.end().await;
}
