//! The embedded door: the same gates without a socket, alone and beside the wire.

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use support::{House, Value};
use testigo_core::{
    Ask, Body, ClaimEnd, Definition, Fence, GroupEvent, GroupMessage, Lock, LockAll, Name, Outcome,
    Rule, SessionId, Settled, WaitEnd, Word,
};
use testigo_engine::SnapshotPolicy;
use testigo_node::{Campaign, Config, Entering, Holding, Node, SessionEvent, StopError};

fn lock(gate: &str) -> Lock<'_> {
    Lock {
        gate,
        ..Lock::default()
    }
}

fn attempt(gate: &str) -> Lock<'_> {
    Lock {
        wait_ms: Some(0),
        ..lock(gate)
    }
}

#[test]
fn threads_take_turns() {
    let house = House::open();
    let node = house.node.as_ref().unwrap();
    let (inside, highest) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let session = node.session().unwrap();
                for _ in 0..500 {
                    let grant = session.lock(&lock("one")).unwrap().unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
                    let before = highest.swap(grant.fence.0, Ordering::SeqCst);
                    assert!(before < grant.fence.0, "a fence that does not grow");
                    inside.fetch_sub(1, Ordering::SeqCst);
                    session.unlock("one", Some(grant.fence)).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_connection_and_a_thread_campaign_in_one_election() {
    let house = House::open();
    let node = house.node.as_ref().unwrap();
    let session = node.session().unwrap();
    let campaign = Campaign {
        election: "db",
        value: b"\xff\0 bytes",
        rank: 2,
        wait_ms: Some(0),
    };
    let term = session.campaign(&campaign).unwrap().expect("it leads");
    let leader = node.leader("db").unwrap().expect("it leads");
    assert_eq!((leader.term, leader.rank), (term, 2));
    assert_eq!(&*leader.value, campaign.value);
    assert_eq!(leader.session, session.id());
    let mut client = house.client();
    client.send(&["ELECT", "CAMPAIGN", "db", "next"]);
    let rival = node.session().unwrap();
    assert_eq!(rival.campaign(&campaign).unwrap(), None);
    assert!(
        node.gates("*").unwrap().is_empty(),
        "an election is no gate"
    );
    // The same again changes nothing.
    assert_eq!(session.campaign(&campaign).unwrap(), Some(term));
    session.resign("db").unwrap();
    assert!(client.read().int() > term.0 as i64);
    assert_eq!(session.resign("db").unwrap_err().word, Word::NotHeld);
    assert_eq!(session.resign("two words").unwrap_err().word, Word::BadArg);
}

#[test]
fn a_connection_and_a_thread_meet_at_one_gate() {
    let house = House::open();
    let node = house.node.as_ref().unwrap();
    let session = node.session().unwrap();
    let grant = session.lock(&lock("door")).unwrap().unwrap();
    let mut client = house.client();
    client.send(&["LOCK", "door"]);
    let wanted = SessionEvent::Wanted {
        gate: Name::new("door").unwrap(),
        fence: grant.fence,
    };
    assert_eq!(session.wait_for_event(), wanted);
    session.unlock("door", None).unwrap();
    assert!(client.read().int() > grant.fence.0 as i64);
    assert_eq!(session.lock(&attempt("door")).unwrap(), None);
    let waiting = thread::scope(|scope| {
        let waiting = scope.spawn(|| session.lock(&lock("door")).unwrap());
        while node.gate("door").unwrap().waiters.is_empty() {}
        assert_eq!(client.call(&["UNLOCK", "door"]), Value::Simple("OK".into()));
        waiting.join().unwrap()
    });
    assert!(waiting.is_some());
}

#[test]
fn a_connection_and_a_thread_are_members_of_one_group() {
    let house = House::open();
    let node = house.node.as_ref().unwrap();
    let implicit = node.session().unwrap();
    let none = implicit.join_group("talk", None, None, None).unwrap_err();
    assert_eq!(none.word, Word::BadArg, "it would end with its drop");
    let session = node.open_session(None, Some("thread")).unwrap();
    let joined = session.join_group("talk", None, None, None).unwrap();
    let mut client = house.client();
    let other = client.call(&["SESSION", "OPEN", "TTL", "60000"]).int();
    client.call(&["GROUP", "JOIN", "talk"]);
    let sent = session.send_to_group("talk", b"hello").unwrap();
    assert_eq!(sent, joined.last + 1);
    let answer = client.call(&["GROUP", "SEND", "talk", "good day"]).int();
    let (name, other) = (Name::new("talk").unwrap(), SessionId::opened(other as u64));
    let told: Vec<SessionEvent> = std::iter::from_fn(|| session.next_event()).collect();
    let message = |number, from, body: &[u8]| {
        let body = Body::from(body);
        GroupEvent::Delivered(name.clone(), GroupMessage { number, from, body })
    };
    let expected = [
        GroupEvent::Joined(name.clone(), other, joined.last),
        message(sent, session.id(), b"hello"),
        message(answer as u64, other, b"good day"),
    ];
    assert_eq!(told, expected.clone().map(SessionEvent::Group));
    assert_eq!(node.group("talk").unwrap().members.len(), 2);

    // Who comes back says what it has; until then it is told nothing.
    let id = session.id();
    drop(session);
    let (session, _) = node.resume_session(id, &[]).unwrap();
    client.call(&["GROUP", "SEND", "talk", "who is there"]);
    assert_eq!(session.next_event(), None);
    let back = session.join_group("talk", None, None, Some(sent)).unwrap();
    let bodies: Vec<&[u8]> = back.kept.iter().map(|message| &message.body[..]).collect();
    assert_eq!(bodies, [&b"good day"[..], b"who is there"]);
    client.call(&["SESSION", "CLOSE"]);
    let left = GroupEvent::Left(name, other, back.last);
    assert_eq!(session.next_event(), Some(SessionEvent::Group(left)));
    session.leave_group("talk").unwrap();
    assert!(node.group("talk").is_none(), "nobody is a member");
    let again = session.leave_group("talk").unwrap_err();
    assert_eq!(again.word, Word::NotHeld);
}

#[test]
fn a_dropped_session_gives_everything_back_and_a_dropped_wait_is_cancelled() {
    let house = House::open();
    let node = house.node.as_ref().unwrap();
    let (holder, waiter) = (node.session().unwrap(), node.session().unwrap());
    holder.lock(&lock("a")).unwrap().unwrap();
    let Entering::Waiting(wait) = waiter.enter(&lock("a")).unwrap() else {
        panic!("it is held");
    };
    drop(wait);
    assert!(node.gate("a").unwrap().waiters.is_empty());

    // Granted between asking and dropping: the grant goes back.
    let Entering::Waiting(wait) = waiter.enter(&lock("a")).unwrap() else {
        panic!("it is held");
    };
    drop(holder);
    assert_eq!(node.gate("a").unwrap().holders.len(), 1);
    drop(wait);
    assert_eq!(node.gate("a").unwrap_err().word, Word::NoGate);
}

struct Flag(AtomicU64);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_wait_is_a_future() {
    let house = House::open();
    let node = house.node.as_ref().unwrap();
    let (holder, waiter) = (node.session().unwrap(), node.session().unwrap());
    let set = LockAll {
        gates: vec![("a", Ask::Plain), ("b", Ask::Plain)].into(),
        ..LockAll::default()
    };
    assert_eq!(holder.lock_all(&set).unwrap().unwrap().len(), 2);
    let Entering::Waiting(wait) = waiter.enter_all(&set).unwrap() else {
        panic!("it is held");
    };
    let flag = Arc::new(Flag(AtomicU64::new(0)));
    let waker = Waker::from(Arc::clone(&flag));
    let mut context = Context::from_waker(&waker);
    let mut wait = pin!(wait);
    assert_eq!(wait.as_mut().poll(&mut context), Poll::Pending);
    drop(holder);
    assert_eq!(flag.0.load(Ordering::SeqCst), 1);
    let settled = wait.as_mut().poll(&mut context);
    assert!(matches!(settled, Poll::Ready(Settled::EnteredAll(grants)) if grants.len() == 2));
}

#[test]
fn gates_are_created_and_sessions_opened_through_the_log() {
    let mut house = House::open();
    let node = house.node.as_ref().unwrap();
    let made = node
        .create_gate("pages", Definition::new(Rule::Shared))
        .unwrap();
    assert!(matches!(made.wait().unwrap(), Outcome::GateCreated { .. }));
    let session = node.open_session(Some(60_000), Some("writer")).unwrap();
    let grant = session.lock(&lock("pages")).unwrap().unwrap();
    let fence = session.downgrade("pages").unwrap();
    assert!(fence > grant.fence);
    assert!(node.fence_check("pages", fence) && !node.fence_check("pages", grant.fence));
    let id = session.id();
    drop(session);
    house.restart();

    let node = house.node.as_ref().unwrap();
    let claim = |fence| Holding {
        gate: "pages".into(),
        fence,
        ask: Ask::Shared,
        receipt: None,
        reason: None,
    };
    let claims = [claim(fence), claim(Fence(1))];
    let (session, resumed) = node.resume_session(id, &claims).unwrap();
    assert_eq!(resumed.claims, [ClaimEnd::Held, ClaimEnd::Lost]);
    assert_eq!(node.sessions()[0].label.as_deref(), Some("writer"));
    session.renew().unwrap();
    session.close().unwrap();
    assert_eq!(node.sessions(), []);
    node.delete_gate("pages").unwrap().wait().unwrap();
    assert_eq!(node.gates("*").unwrap(), []);
}

#[test]
fn who_waits_when_the_node_stops_is_told() {
    let house = House::open();
    let node = house.node.as_ref().unwrap();
    let (holder, waiter) = (node.session().unwrap(), node.session().unwrap());
    let opened = node.open_session(Some(60_000), None).unwrap();
    opened.lock(&lock("b")).unwrap().unwrap();
    holder.lock(&lock("a")).unwrap().unwrap();
    let Entering::Waiting(wait) = waiter.enter(&lock("b")).unwrap() else {
        panic!("it is held");
    };
    let stopper = node.stopper();
    thread::scope(|scope| {
        let told = scope.spawn(move || wait.wait());
        stopper.stop();
        assert_eq!(told.join().unwrap(), Settled::Ended(WaitEnd::SessionEnded));
    });
    assert_eq!(waiter.lock(&lock("c")).unwrap_err().word, Word::Unavailable);
    assert_eq!(node.session().unwrap_err().word, Word::Unavailable);
}

#[test]
fn a_second_node_on_the_same_directory_is_refused() {
    let house = House::open();
    let config = Config::embedded(house.dir.path().join("data"));
    let error = Node::start(config).unwrap_err();
    assert!(
        error.to_string().contains("in use by another process"),
        "{error}"
    );
}

/// A data directory that is gone stands for a disk that fails: the first snapshot finds nowhere to be written.
/// It is moved away, not deleted: the node may be making its next segment just then.
#[test]
fn a_node_whose_disk_fails_stops_and_tells_its_program() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::embedded(dir.path().join("data"));
    config.snapshots = SnapshotPolicy {
        // One more than a first start logs itself (its view, the key of receipts): the change below brings it.
        entries: 3,
        bytes: u64::MAX,
    };
    let node = Node::start(config).unwrap();
    let failure = node.disk_failure();
    let session = node.session().unwrap();
    assert!(session.lock(&attempt("deploy")).unwrap().is_some());
    std::fs::rename(dir.path().join("data"), dir.path().join("gone")).unwrap();
    // The disk may be missed before the change is proposed (by a new segment), before it is written, or after.
    let created = node.create_gate("g", Definition::new(Rule::Mutex));
    if let Err(refused) = created.and_then(|created| created.wait()) {
        assert_eq!(refused.word, Word::Unavailable);
    }
    let why = failure.wait();
    assert!(why.contains("the disk failed"), "{why}");
    let refused = session.lock(&attempt("other")).unwrap_err();
    assert_eq!(refused.word, Word::Unavailable);
    drop(session);
    let stopped = node.wait();
    assert!(matches!(stopped, Err(StopError::Disk(_))), "{stopped:?}");
}
