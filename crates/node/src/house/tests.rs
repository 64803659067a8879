//! The house without sockets: what the log does to it, played by hand.

use std::sync::mpsc::{Receiver, channel};

use tempfile::TempDir;
use testigo_core::{Change, Event, Shard, Word};
use testigo_engine::{Delivery, DiskError, FlushError, LogThread, SnapshotError};

use super::*;
use crate::commands::Serves;
use crate::config::Config;
use crate::open;
use crate::wire::{Frame, Framer, Progress};

pub(super) struct Stage {
    pub(super) house: House,
    deliveries: Receiver<Delivery>,
    _dir: TempDir,
}

impl Stage {
    pub(super) fn new() -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let (mut house, engine) =
            open::open(&Config::embedded(dir.path()), Clock::start()).unwrap();
        let (send, deliveries) = channel();
        let log = LogThread::start(engine, move |delivery| send.send(delivery).unwrap());
        house.move_in(log.unwrap());
        Stage {
            house,
            deliveries,
            _dir: dir,
        }
    }

    pub(super) fn client(&mut self) -> ClientId {
        self.house.welcome(Outlet::Socket(0), "test".into())
    }

    /// Gives a command; returns what is in the outbox then.
    pub(super) fn say(&mut self, client: ClientId, command: &str) -> String {
        self.begin(client, command);
        while self.house.has_long_work() {
            self.house.make_slice();
        }
        self.hear(client)
    }

    /// Gives a command without making any slice of it.
    pub(super) fn begin(&mut self, client: ClientId, command: &str) {
        let mut framer = Framer::default();
        let line = format!("{command}\r\n");
        match framer.read(
            line.as_bytes(),
            &WireLimits::default().of_users(),
            &mut Progress::default(),
        ) {
            Frame::Command(line, _) => drop(self.house.serve(client, line)),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn hear(&mut self, client: ClientId) -> String {
        let heard = self.house.connections.take_written(client);
        String::from_utf8_lossy(&heard).into()
    }

    /// Ends the turn, and takes the log's next delivery.
    pub(super) fn deliver(&mut self) {
        self.house.submissions.begin_flush();
        let delivery = self.deliveries.recv().unwrap();
        self.house.deliver(delivery);
    }

    /// The disk fails under whatever is on its way.
    fn fail(&mut self) {
        let unknown = self.house.submissions.tags();
        let error = FlushError(DiskError::Failed("input/output error".into()));
        self.house.deliver(Delivery::Stopped { error, unknown });
    }

    pub(super) fn at(&mut self, now: u64) {
        self.house.now = now;
        self.house.keep_waiting_alive();
        self.house.services.tick(now);
        self.house.pass_on();
    }
}

#[test]
fn nothing_durable_is_answered_before_the_log_has_it() {
    let mut stage = Stage::new();
    let client = stage.client();
    assert_eq!(stage.say(client, "GATE CREATE g MUTEX"), "");
    assert!(stage.house.connections[client].has_under_way());
    assert!(stage.house.local().gate("g").is_err());
    stage.deliver();
    assert_eq!(stage.hear(client), "+OK\r\n");
    assert!(stage.house.local().gate("g").is_ok());
    assert_eq!(stage.house.connections.take_unblocked(), [client]);
}

#[test]
fn a_failed_disk_ends_the_node_and_leaves_no_lock_stuck() {
    let mut stage = Stage::new();
    let [client, waiter] = [(); 2].map(|()| stage.client());
    stage.say(client, "SESSION OPEN TTL 100");
    stage.deliver();
    stage.hear(client);
    stage.say(client, "LOCK held");
    assert_eq!(stage.say(waiter, "LOCK held"), "");
    stage.say(client, "GATE CREATE g MUTEX");
    let early = Completion::new();
    stage.house.submissions.watch(Arc::clone(&early));
    assert!(early.take().is_none());
    stage.fail();
    let heard = stage.hear(client);
    assert!(heard.starts_with("-UNKNOWN "), "{heard}");

    assert!(
        stage.house.stopping,
        "a dead holder's end could not be logged"
    );
    assert!(stage.house.connections.iter().all(|client| client.leaving));
    assert_eq!(stage.house.submissions.len(), 0);
    let late = Completion::new();
    stage.house.submissions.watch(Arc::clone(&late));
    for told in [early, late].map(|watcher| watcher.take()) {
        assert!(told.is_some_and(|why| why.contains("input/output error")));
    }
}

#[test]
fn a_snapshot_that_meets_a_failed_disk_ends_the_node_and_one_without_room_does_not() {
    let mut stage = Stage::new();
    let full = SnapshotError::Disk(DiskError::Full("no room".into()));
    stage.house.deliver(Delivery::Snapshot(Err(full)));
    assert!(!stage.house.stopping);
    let failed = SnapshotError::Disk(DiskError::Failed("input/output error".into()));
    stage.house.deliver(Delivery::Snapshot(Err(failed)));
    assert!(stage.house.stopping);
}

#[test]
fn after_a_failed_disk_no_change_of_a_flow_or_job_is_acknowledged() {
    let mut stage = Stage::new();
    let [admin, passer, holder] = [(); 3].map(|()| stage.client());
    let flow = "intake -> [orders] -> price -> [priced] -> bill";
    stage.apply(admin, "shop", flow);
    stage.create(admin, 4);
    let on_its_way = stage.take(passer, "orders");
    let state = |stage: &Stage| stage.house.replicated().records().clone();
    let durable = state(&stage);
    let pass = format!("JOB PASS {on_its_way} shop/priced");
    assert_eq!(stage.say(passer, &pass), "");
    stage.fail();
    let heard = stage.hear(passer);
    assert!(heard.starts_with("-UNKNOWN "), "{heard}");

    // Commands served in the same turn.
    for change in [
        "JOB CREATE shop/orders * body",
        "JOB MOVE 4 priced",
        "JOB DELETE 4",
        &format!("FLOW APPLY mill \"{flow}\""),
        "FLOW DELETE shop",
        "GATE CREATE h MUTEX",
        "ONCE FORGET k",
        "SESSION OPEN",
    ] {
        // The connection is closed, and nothing that it says is heard.
        let heard = stage.say(admin, change);
        assert_eq!(heard, "", "{change}");
    }
    for word in ["MULTI", "JOB CREATE shop/orders * body", "EXEC"] {
        assert_eq!(stage.say(holder, word), "", "{word}");
    }
    assert_eq!(stage.house.submissions.len(), 0);
    assert_eq!(state(&stage), durable, "nothing has changed for good");
}

#[test]
fn what_a_failed_disk_leaves_open_is_unknown_and_never_aborted() {
    let mut stage = Stage::new();
    let [admin, worker] = [(); 2].map(|()| stage.client());
    stage.apply(admin, "shop", "intake -> [orders] -> price");
    for word in ["MULTI", "JOB CREATE shop/orders * body"] {
        stage.say(worker, word);
    }
    stage.hear(worker);
    assert_eq!(stage.say(worker, "EXEC"), "");
    let embedded = Completion::new();
    let session = SessionId::opened(1);
    let change = Change::OpenSession {
        session,
        ttl_ms: 1_000,
        label: None,
        user: None,
    };
    let answers = Answers::Embedded(Arc::clone(&embedded), None);
    stage.house.submit(change, answers).unwrap();
    stage.fail();
    let heard = stage.hear(worker);
    assert!(heard.starts_with("-UNKNOWN "), "{heard}");
    let refusal = embedded.take().expect("an answer").expect_err("no outcome");
    assert_eq!(refusal.word, Word::Unknown);
}

#[test]
fn a_session_that_runs_out_ends_when_the_log_says_so() {
    let mut stage = Stage::new();
    let (holder, waiter) = (stage.client(), stage.client());
    stage.say(holder, "SESSION OPEN TTL 100");
    stage.deliver();
    stage.hear(holder);
    assert!(stage.say(holder, "LOCK a").starts_with(':'));
    assert_eq!(stage.say(waiter, "LOCK a"), "");
    stage.at(stage.house.now + 200);
    assert_eq!(stage.hear(waiter), "");
    assert!(stage.say(holder, "UNLOCK a").starts_with("-STALE "));
    stage.deliver();
    assert!(stage.hear(waiter).starts_with(':'));
    assert!(stage.say(holder, "LOCK b").starts_with("-STALE "));
}

#[test]
fn a_session_that_waits_for_a_slow_disk_is_not_silent() {
    let mut stage = Stage::new();
    let client = stage.client();
    stage.say(client, "SESSION OPEN TTL 100");
    stage.deliver();
    stage.hear(client);
    stage.say(client, "LOCK a");
    stage.say(client, "GATE CREATE g MUTEX");
    for _ in 0..5 {
        stage.at(stage.house.now + 90);
    }
    stage.deliver();
    assert_eq!(stage.hear(client), "+OK\r\n");
    assert_eq!(stage.say(client, "UNLOCK a"), "+OK\r\n");
}

#[test]
fn when_fences_run_low_the_shard_gets_its_next_number() {
    let mut stage = Stage::new();
    let floors = |stage: &Stage| ["a", "b"].map(|gate| stage.house.local().floor(gate));
    let before = floors(&stage);
    let shard = Shard::of("a");
    stage.house.services.tell(Event::FencesLow { shard });
    stage.house.pass_on();
    assert_eq!(floors(&stage), before);
    stage.deliver();
    let after = floors(&stage);
    assert!(after[0] > before[0]);
    assert_eq!(after[1], before[1], "another shard");
}
