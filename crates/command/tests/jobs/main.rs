//! `kill -9` under load: creators and workers move jobs through a flow while the node is killed again and again, and
//! workers die with jobs in their hands or while the node answers them: some are threads that hang up, some are
//! processes that are killed. Every acknowledged job is accounted for exactly once, and none is in two hands.
//!
//! `cargo xtask chaos jobs` runs it with more kills.

mod disk;
mod scheme;
#[path = "../up/mod.rs"]
mod up;
mod vanish;
mod worker;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rustix::process::Signal;
use testigo_core::monitor::{Fate, JobLedger};
use up::{Client, Up, Value};
use worker::Worker;

const KILLS: u64 = 25;
/// Says another number of kills.
const ROUNDS: &str = "TESTIGO_ROUNDS";
const CREATORS: u64 = 2;
/// Workers that are threads. They are nobody in particular, and may do everything.
const THREADS: u64 = 4;
/// Workers that are processes of this machine, and what they are in the flow, if anything.
const PROCESSES: [Option<&str>; 3] = [Some("price"), Some("bill"), None];
const LONG_BYTES: usize = 64 << 10;
const SEED: u64 = 0x7E57_1605;

/// So many jobs at most live at once, so that the run moves jobs and does not only pile them up.
const FLOW: &str = "\
    intake -> [orders] -> price -> [priced] -> bill\n\
    [rejected] -> mend -> [orders] -> price -> [priced] -> bill\n\
    queue orders { limit 200; retries 1; reject [rejected] }\n\
    queue priced { retries 3; reject [rejected] }\n";

const FLOW_NAME: &str = "shop";
const QUEUES: [&str; 3] = ["shop/orders", "shop/priced", "shop/rejected"];

#[derive(Default)]
struct Belief {
    ledger: JobLedger,
    /// Where the present node is, and the how manieth it is.
    node: Option<(SocketAddr, u64)>,
    done: u64,
    deaths: u64,
    /// Processes that were killed with a job in hand, and while the node answered them.
    killed: [u64; 2],
    /// Changes that were acknowledged to processes.
    acknowledged: u64,
    units: u64,
    over: bool,
}

struct Stage {
    belief: Mutex<Belief>,
    changed: Condvar,
}

#[test]
fn no_kill_ever_loses_or_doubles_a_job() {
    let rounds = std::env::var(ROUNDS).ok();
    let kills = rounds.map_or(KILLS, |rounds| rounds.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage {
        belief: Mutex::new(Belief::default()),
        changed: Condvar::new(),
    };
    let stage = &stage;
    thread::scope(|scope| {
        for number in 0..CREATORS {
            scope.spawn(move || Hand::new(stage, number, Kind::Thread).create_all());
        }
        let threads = (0..THREADS).map(|_| Kind::Thread);
        let workers = threads.chain(PROCESSES.map(Kind::Process));
        for (number, kind) in (CREATORS..).zip(workers) {
            scope.spawn(move || Hand::new(stage, number, kind).work_all());
        }
        direct(stage, dir.path(), kills);
    });
    let belief = stage.belief.lock().unwrap();
    let node = Up::start(dir.path(), &[]);
    let mut client = node.client();
    let found = client.call(&["JOB", "FIND", "*", "LIMIT", "100000"]);
    let found: Vec<&[Value]> = found.list().iter().map(Value::list).collect();
    let names: Vec<&str> = found.iter().map(|row| text(&row[1])).collect();
    belief.ledger.settle(names.iter().copied()).unwrap();
    assert!(found.iter().all(|row| text(&row[3]) == "waiting"));
    let [in_hand, under_way] = belief.killed;
    assert!(belief.deaths > in_hand, "no worker hung up with a job");
    assert!(in_hand > 0, "no process was killed with a job");
    assert!(under_way > 0, "no process was killed at an answer");
    assert!(belief.acknowledged > 0, "no process did anything");
    assert!(belief.units > 0, "no unit of work was done");
    let files = std::fs::read_dir(dir.path()).unwrap();
    let mut names_of_files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let merged = names_of_files.any(|file| file.starts_with("snapshot-"));
    assert!(merged, "the log was never merged into a snapshot");
    println!(
        "{kills} kills, {} jobs tried (some were refused), {} changes, {} of them by processes, {} units of work, {} deaths, \
         {in_hand} of them of processes, {under_way} processes killed while they were answered, {} jobs left",
        belief.ledger.len(),
        belief.done,
        belief.acknowledged,
        belief.units,
        belief.deaths,
        names.len()
    );
}

/// Every other one is long, so that the log is merged into a snapshot now and then.
fn body(name: &str) -> String {
    let long = name.bytes().map(usize::from).sum::<usize>() % 2 == 0;
    let mut body = name.to_owned();
    body.extend(std::iter::repeat_n('.', if long { LONG_BYTES } else { 0 }));
    body
}

/// Starts the node, lets the others get on for a while, kills it, and so on; now and then it is stopped cleanly.
fn direct(stage: &Stage, data: &Path, kills: u64) {
    let _end = End(stage);
    let mut rng = Xoshiro256StarStar::seed_from_u64(SEED);
    for turn in 0..=kills {
        let node = Up::start(data, &[]);
        let applied = node.client().call(&["FLOW", "APPLY", FLOW_NAME, FLOW]);
        assert_eq!(applied, Value::Simple("OK".into()));
        let mut belief = stage.lock();
        belief.node = Some((node.address, turn));
        stage.changed.notify_all();
        let until = belief.done + 20 + rng.next_u64() % 400;
        let goes_on = |belief: &mut Belief| belief.done < until && !belief.over;
        let mut belief = stage.changed.wait_while(belief, goes_on).unwrap();
        assert!(!belief.over, "somebody gave up");
        // From here on nobody believes what this node gives out, and what it acknowledges still counts.
        belief.node = None;
        belief.ledger.restarted();
        belief.over = turn == kills;
        stage.changed.notify_all();
        drop(belief);
        match turn % 5 {
            4 => assert_eq!(node.signal(Signal::TERM).code(), Some(0)),
            _ => node.kill(),
        }
    }
}

impl Stage {
    fn lock(&self) -> MutexGuard<'_, Belief> {
        self.belief.lock().unwrap()
    }
}

/// A creator or worker with its connection; its session is the connection's own and ends with it.
struct Hand<'a> {
    stage: &'a Stage,
    number: u64,
    kind: Kind,
    rng: Xoshiro256StarStar,
    connection: Option<(Connection, u64)>,
    /// Who it is in the ledger: another one after every death.
    life: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    Thread,
    /// What it presents itself as.
    Process(Option<&'static str>),
}

/// A connection of a thread, or a process that has one.
enum Connection {
    Own(Client),
    Of(Worker),
}

struct End<'a>(&'a Stage);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if let Ok(mut belief) = self.0.belief.lock() {
            belief.over = true;
        }
        self.0.changed.notify_all();
    }
}

impl<'a> Hand<'a> {
    fn new(stage: &'a Stage, number: u64, kind: Kind) -> Hand<'a> {
        Hand {
            stage,
            number,
            kind,
            rng: Xoshiro256StarStar::seed_from_u64(SEED + 1 + number),
            connection: None,
            life: number << 32,
        }
    }

    fn create_all(mut self) {
        let _end = End(self.stage);
        for nth in 0.. {
            if self.create(&format!("job-{}-{nth}", self.number)).is_none() {
                return;
            }
        }
    }

    /// Nothing when the run is over.
    fn create(&mut self, name: &str) -> Option<()> {
        self.stage
            .lock()
            .ledger
            .created(name, Fate::Unknown)
            .unwrap();
        let answer = self.ask(&["JOB", "CREATE", QUEUES[0], name, &body(name)])?;
        let mut belief = self.stage.lock();
        match answer {
            Ok(Value::Int(_)) => {
                belief.ledger.created(name, Fate::Yes).unwrap();
                belief.done += 1;
                self.stage.changed.notify_all();
            }
            Ok(Value::Error(error)) => {
                let expected = ["FULL", "UNAVAILABLE the node is stopping"];
                assert!(
                    expected.iter().any(|word| error.starts_with(word)),
                    "{error}"
                );
                belief.ledger.created(name, Fate::No).unwrap();
            }
            Ok(other) => panic!("{other}"),
            // Whether it was done shows at the end.
            Err(_) => {}
        }
        Some(())
    }

    fn work_all(mut self) {
        let _end = End(self.stage);
        while self.work().is_some() {}
    }

    fn work(&mut self) -> Option<()> {
        let queues: &[&str] = match self.kind {
            Kind::Process(Some("price")) => &[QUEUES[0]],
            Kind::Process(Some(_)) => &[QUEUES[1]],
            Kind::Process(None) | Kind::Thread => &[QUEUES[2], QUEUES[1], QUEUES[0]],
        };
        let take = [&["JOB", "TAKE"], queues, &["WAIT", "50"]].concat();
        let Ok(Value::List(row)) = self.ask(&take)? else {
            return Some(());
        };
        let (id, attempt) = (row[0].int().to_string(), row[3].int().to_string());
        let (name, queue) = (text(&row[1]).to_owned(), text(&row[2]).to_owned());
        assert!(text(&row[4]) == body(&name), "a body that is not its job's");
        let generation = self.connection.as_ref().map(|(_, turn)| *turn);
        let mut belief = self.stage.lock();
        if generation.is_none() || belief.node.map(|(_, turn)| turn) != generation {
            // The worker is dead, or the node that gave it is no more, and the job is not this worker's.
            return Some(());
        }
        let attempt_number = row[3].int() as u64;
        belief
            .ledger
            .taken(&name, attempt_number, self.life)
            .unwrap();
        drop(belief);
        match self.rng.next_u64() % 16 {
            0 => self.die(),
            1 => self.let_go(&name, &["JOB", "BACK", &id, &attempt])?,
            2 => self.let_go(&name, &["JOB", "BACK", &id, &attempt, "FAILED"])?,
            3..=6 if !matches!(self.kind, Kind::Process(Some(_))) => {
                self.replace(&name, &id, &attempt)?;
            }
            _ if queue == QUEUES[1] => self.finish(&name, &id, &attempt)?,
            _ => self.let_go(&name, &["JOB", "PASS", &id, &attempt, "shop/priced"])?,
        }
        Some(())
    }

    /// The connection is cut with a job in hand: the thread hangs up, the process is killed.
    fn die(&mut self) {
        let mut belief = self.stage.lock();
        belief.ledger.died(self.life);
        belief.deaths += 1;
        belief.killed[0] += u64::from(matches!(self.kind, Kind::Process(_)));
        self.life += 1;
        self.connection = None;
    }

    fn let_go(&mut self, name: &str, words: &[&str]) -> Option<()> {
        self.stage.lock().ledger.let_go(name);
        self.done(words)?;
        Some(())
    }

    fn finish(&mut self, name: &str, id: &str, attempt: &str) -> Option<()> {
        let mut belief = self.stage.lock();
        belief.ledger.let_go(name);
        belief.ledger.deleted(name, Fate::Unknown);
        drop(belief);
        if self.done(&["JOB", "DELETE", id, attempt])? {
            self.stage.lock().ledger.deleted(name, Fate::Yes);
        }
        Some(())
    }

    /// A unit of work: one job ends and another begins, both or neither, whenever the node is killed.
    fn replace(&mut self, name: &str, id: &str, attempt: &str) -> Option<()> {
        let next = format!("{name}+");
        let mut belief = self.stage.lock();
        belief.ledger.let_go(name);
        belief.ledger.replaced(name, &next, Fate::Unknown).unwrap();
        drop(belief);
        // All on one connection: on another it would be no unit.
        let mut collected = matches!(self.ask_here(&["MULTI"]), Ok(Value::Simple(_)));
        for words in [
            &["JOB", "DELETE", id, attempt][..],
            &["JOB", "CREATE", QUEUES[1], &next, &body(&next)],
        ] {
            collected = collected && matches!(self.ask_here(words), Ok(Value::Simple(_)));
        }
        if !collected {
            // Nothing is done before EXEC.
            return self.replaced(name, &next, Fate::No);
        }
        let fate = match self.ask_here(&["EXEC"]) {
            Ok(Value::List(done)) => {
                assert_eq!(done.len(), 2, "{done:?}");
                Fate::Yes
            }
            Ok(Value::Error(error)) => {
                assert!(error.starts_with("EXECABORT UNAVAILABLE"), "{error}");
                Fate::No
            }
            Ok(other) => panic!("{other}"),
            Err(_) => return Some(()),
        };
        self.replaced(name, &next, fate)
    }

    fn replaced(&mut self, name: &str, next: &str, fate: Fate) -> Option<()> {
        let mut belief = self.stage.lock();
        belief.ledger.replaced(name, next, fate).unwrap();
        belief.done += 1;
        belief.units += u64::from(fate == Fate::Yes);
        self.note(&mut belief, fate == Fate::Yes);
        self.stage.changed.notify_all();
        Some(())
    }

    /// Whether a change was acknowledged. A holder is never told that it is none while its node lives: it asks where it
    /// took the job, since the next node would refuse it with good reason.
    fn done(&mut self, words: &[&str]) -> Option<bool> {
        let done = match self.ask_here(words) {
            Ok(Value::Simple(_)) => true,
            Ok(Value::Error(error)) => {
                let node = self.stage.lock().node;
                let here = self.connection.as_ref().map(|(_, turn)| *turn);
                let stops = node.map(|(_, turn)| turn) != here;
                assert!(stops, "{words:?}: {error}");
                false
            }
            Ok(other) => panic!("{other}"),
            Err(_) => false,
        };
        let mut belief = self.stage.lock();
        belief.done += 1;
        self.note(&mut belief, done);
        self.stage.changed.notify_all();
        Some(done)
    }

    fn note(&self, belief: &mut Belief, done: bool) {
        let by_process = matches!(self.kind, Kind::Process(_));
        belief.acknowledged += u64::from(done && by_process);
    }

    /// Asks the present node, once there is one. Nothing when the run is over; an error when the answer did not come.
    fn ask(&mut self, words: &[&str]) -> Option<io::Result<Value>> {
        let waiting = |belief: &mut Belief| belief.node.is_none() && !belief.over;
        let belief = self.stage.changed.wait_while(self.stage.lock(), waiting);
        let belief = belief.unwrap();
        if belief.over {
            return None;
        }
        let (address, turn) = belief.node.expect("there is one");
        drop(belief);
        if self
            .connection
            .as_ref()
            .is_none_or(|(_, seen)| *seen != turn)
        {
            let connected = match self.kind {
                Kind::Thread => Client::try_connect(address).map(Connection::Own),
                Kind::Process(process) => Worker::start(address, process).map(Connection::Of),
            };
            match connected {
                Ok(connection) => self.connection = Some((connection, turn)),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(self.ask_here(words))
    }

    /// Asks over the connection that there is. A process may be killed at any moment of it; what it was answered before
    /// counts.
    fn ask_here(&mut self, words: &[&str]) -> io::Result<Value> {
        let mut dies = false;
        let answer = match self.connection.as_mut() {
            None => return Err(io::ErrorKind::NotConnected.into()),
            Some((Connection::Own(client), _)) => client.try_call(words),
            Some((Connection::Of(worker), _)) => worker.tell(words).and_then(|()| {
                dies = self.rng.next_u64().is_multiple_of(32);
                if dies {
                    for _ in 0..self.rng.next_u64() % 200 {
                        thread::yield_now();
                    }
                    worker.kill();
                }
                worker.answer()
            }),
        };
        self.stage.lock().killed[1] += u64::from(dies);
        if dies || answer.is_err() {
            self.connection = None;
        }
        answer
    }
}

fn text(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        other => panic!("{other} is no text"),
    }
}
