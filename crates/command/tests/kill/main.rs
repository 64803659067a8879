//! `kill -9` under load: workers with sessions take gates, alone and in sets, while the node is killed again and again.
//! Whoever lives on resumes with what it holds. No two are ever inside together, no fence is repeated or lowered, no
//! survivor is turned away, and what was acknowledged of gates (created, deleted) stays so.
//!
//! `cargo xtask chaos gates` runs it with more kills.

mod belief;
#[path = "../up/mod.rs"]
mod up;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Condvar, Mutex};
use std::thread;

use belief::Belief;
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rustix::process::Signal;
use up::{Client, Up, Value};

const KILLS: u64 = 30;
/// Says another number of kills.
const ROUNDS: &str = "TESTIGO_ROUNDS";
const WORKERS: u64 = 6;
const GATES: [&str; 3] = ["deploy", "backup", "report"];
const SEED: u64 = 0x7E57_160C;

/// Gates beyond so many are deleted again, and so many deleted ones are remembered.
const GATES_KEPT: usize = 200;

struct Stage {
    belief: Mutex<Belief>,
    changed: Condvar,
}

#[test]
fn no_kill_ever_makes_two_holders() {
    let rounds = std::env::var(ROUNDS).ok();
    let kills = rounds.map_or(KILLS, |rounds| rounds.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage {
        belief: Mutex::new(Belief::default()),
        changed: Condvar::new(),
    };
    let stage = &stage;
    thread::scope(|scope| {
        for number in 0..WORKERS {
            scope.spawn(move || work(stage, number));
        }
        scope.spawn(move || build(stage));
        direct(stage, dir.path(), kills);
    });
    let belief = stage.belief.lock().unwrap();
    assert!(
        belief.resumed >= kills,
        "too few survivors came back: {}",
        belief.resumed
    );
    assert!(
        belief.kept > 0,
        "nobody was inside when the node was killed"
    );
    println!("\n{}", so_far(kills, &belief));
}

fn so_far(kills: u64, belief: &Belief) -> String {
    let Belief {
        grants,
        resumed,
        kept,
        ..
    } = belief;
    format!("{kills} kills, {grants} grants, {resumed} sessions resumed, {kept} holds kept")
}

/// Starts the node, lets the workers get on for a while, kills it, and so on; now and then it is stopped cleanly.
fn direct(stage: &Stage, data: &Path, kills: u64) {
    let mut rng = Xoshiro256StarStar::seed_from_u64(SEED);
    // However this thread ends, the others do not wait for it.
    let _end = End(stage);
    // Clean stops come on top.
    let (mut killed, mut turn) = (0, 0);
    loop {
        let node = Up::start(data, &[]);
        let list = node.client().call(&["GATE", "LIST", "made-*"]);
        let known = list.list().iter().map(|row| match &row.list()[0] {
            Value::Text(gate) => gate.clone(),
            other => panic!("{other} is no name"),
        });
        let mut belief = stage.belief.lock().unwrap();
        let agreed = belief.knows(&known.collect());
        assert_eq!(agreed, Ok(()), "after {killed} kills");
        belief.node = Some((node.address, turn));
        belief.back.clear();
        stage.changed.notify_all();
        let until = belief.grants + 20 + rng.next_u64() % 400;
        // Every other node lives until all have come back; the others may be killed while some do.
        let all = killed == kills || rng.next_u64() % 2 == 0;
        let mut belief = stage
            .changed
            .wait_while(belief, |belief| {
                let missing = all && belief.back.len() < WORKERS as usize;
                (belief.grants < until || missing) && !belief.over
            })
            .unwrap();
        belief.node = None;
        if killed % 10 == 0 && std::env::var_os(ROUNDS).is_some() {
            eprint!("\r{}", so_far(killed, &belief));
        }
        if killed == kills || belief.over {
            return;
        }
        drop(belief);
        match turn % 5 {
            4 => assert_eq!(node.signal(Signal::TERM).code(), Some(0)),
            _ => {
                node.kill();
                killed += 1;
            }
        }
        turn += 1;
    }
}

/// A worker's connection and session.
struct Worker<'a> {
    stage: &'a Stage,
    number: u64,
    session: Option<i64>,
    client: Option<Client>,
    seen: Option<u64>,
    /// What it knows to hold, and what proves it: every other worker asks for that.
    holds: BTreeMap<&'static str, (i64, Option<String>)>,
}

fn work(stage: &Stage, number: u64) {
    let mut worker = Worker {
        stage,
        number,
        session: None,
        client: None,
        seen: None,
        holds: BTreeMap::new(),
    };
    let mut rng = Xoshiro256StarStar::seed_from_u64(SEED + 1 + number);
    // However this thread ends, the others do not wait for it.
    let _end = End(stage);
    for round in 0.. {
        let first = rng.next_u64() as usize % GATES.len();
        let gates = match rng.next_u64() % 4 {
            0 => vec![GATES[first], GATES[(first + 1) % GATES.len()]],
            _ => vec![GATES[first]],
        };
        if worker.enter(&gates, round).is_none() {
            return;
        }
        for gate in &gates {
            if worker.leave(gate).is_none() {
                return;
            }
        }
    }
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

impl Worker<'_> {
    /// Enters gates, through as many crashes as it takes. Nothing when the test is over.
    fn enter(&mut self, gates: &[&'static str], round: u64) -> Option<()> {
        let id = format!("{}-{round}", self.number);
        let count = gates.len().to_string();
        let mut words = vec!["LOCKALL", &count];
        words.extend(gates);
        words.extend(["ID", &id]);
        let proves = self.number.is_multiple_of(2);
        words.extend(proves.then_some("RECEIPT"));
        loop {
            let answer = self.ask(&words)?;
            match answer {
                Ok(Value::List(grants)) => {
                    for (gate, grant) in gates.iter().zip(&grants) {
                        match grant {
                            Value::List(grant) => match &grant[..] {
                                [Value::Int(fence), Value::Text(receipt)] if proves => {
                                    self.believe(gate, *fence, Some(receipt.clone()));
                                }
                                other => panic!("{other:?} is no grant"),
                            },
                            fence => self.believe(gate, fence.int(), None),
                        }
                    }
                    return Some(());
                }
                Ok(other) => panic!("worker {} was answered {other}", self.number),
                // Unknown: the same ID is answered again, or asked anew after a crash.
                Err(_) => {}
            }
        }
    }

    fn believe(&mut self, gate: &'static str, fence: i64, receipt: Option<String>) {
        let mut belief = self.stage.belief.lock().unwrap();
        let entered = belief.enters(gate, self.number, fence);
        self.stage.changed.notify_all();
        drop(belief);
        assert_eq!(entered, Ok(()));
        self.holds.insert(gate, (fence, receipt));
    }

    fn leave(&mut self, gate: &'static str) -> Option<()> {
        // From here on it does nothing that the gate protects, whatever becomes of the command.
        let fence = self.holds.remove(gate).unwrap().0.to_string();
        self.stage.belief.lock().unwrap().leaves(gate);
        loop {
            match self.ask(&["UNLOCK", gate, &fence])? {
                Ok(Value::Simple(_)) => return Some(()),
                // Done before the crash, or forgotten by it.
                Ok(Value::Error(error)) if error.starts_with("NOTHELD") => return Some(()),
                Ok(other) => panic!("worker {} was answered {other}", self.number),
                Err(_) => {}
            }
        }
    }

    /// Asks the present node, connected and with the session resumed. Nothing when the test is over.
    fn ask(&mut self, words: &[&str]) -> Option<io::Result<Value>> {
        while self.client.is_none() {
            let node = self.stage.next_node(self.seen)?;
            self.seen = Some(node.1);
            self.client = self.come_back(node.0).ok();
            if self.client.is_some() {
                self.stage.came_back(self.number, node.1);
            }
        }
        let answer = self.client.as_mut()?.try_call(words);
        if answer.is_err() {
            self.client = None;
        }
        Some(answer)
    }

    fn come_back(&mut self, node: SocketAddr) -> io::Result<Client> {
        let mut client = Client::try_connect(node)?;
        let Some(session) = self.session else {
            let opened = client.try_call(&["SESSION", "OPEN", "TTL", "60000"])?;
            self.session = Some(opened.int());
            return Ok(client);
        };
        let mut words = vec![
            "SESSION".to_owned(),
            "RESUME".to_owned(),
            session.to_string(),
        ];
        words.extend(["HOLDING".to_owned(), self.holds.len().to_string()]);
        for (gate, (fence, _)) in &self.holds {
            words.extend([(*gate).to_owned(), fence.to_string()]);
        }
        words.push("RECEIPTS".to_owned());
        let receipts = self.holds.values().map(|(_, receipt)| receipt.clone());
        words.extend(receipts.map(|receipt| receipt.unwrap_or_else(|| "-".into())));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let resumed = client.try_call(&words)?;
        let held = Value::Text("HELD".into());
        let claims = resumed.at("claims").list();
        assert_eq!(claims.len(), self.holds.len());
        assert!(claims.iter().all(|claim| *claim == held), "{resumed}");
        let mut belief = self.stage.belief.lock().unwrap();
        belief.resumed += 1;
        belief.kept += self.holds.len() as u64;
        drop(belief);
        Ok(client)
    }
}

impl Stage {
    fn came_back(&self, worker: u64, turn: u64) {
        let mut belief = self.belief.lock().unwrap();
        if belief.node.is_some_and(|(_, present)| present == turn) {
            belief.back.insert(worker);
        }
        self.changed.notify_all();
    }

    /// Waits for a node after the one that was seen last.
    fn next_node(&self, seen: Option<u64>) -> Option<(SocketAddr, u64)> {
        let belief = self.belief.lock().unwrap();
        let newer = |belief: &Belief| belief.node.filter(|(_, turn)| Some(*turn) > seen);
        let belief = self
            .changed
            .wait_while(belief, |belief| !belief.over && newer(belief).is_none())
            .unwrap();
        newer(&belief).filter(|_| !belief.over)
    }
}

/// Creates and deletes gates and remembers what was acknowledged.
fn build(stage: &Stage) {
    let (mut seen, mut number) = (None, 0);
    while let Some((address, turn)) = stage.next_node(seen) {
        seen = Some(turn);
        let Ok(mut client) = Client::try_connect(address) else {
            continue;
        };
        loop {
            number += 1;
            let gate = format!("made-{number}");
            if !acknowledged(&mut client, &["GATE", "CREATE", &gate, "MUTEX"]) {
                break;
            }
            let mut belief = stage.belief.lock().unwrap();
            belief.created.push_back(gate);
            if belief.created.len() <= GATES_KEPT {
                continue;
            }
            // Until it is acknowledged nobody knows whether it is there.
            let gate = belief.created.pop_front().unwrap();
            drop(belief);
            if !acknowledged(&mut client, &["GATE", "DELETE", &gate]) {
                break;
            }
            let mut belief = stage.belief.lock().unwrap();
            belief.deleted.push_back(gate);
            if belief.deleted.len() > GATES_KEPT {
                belief.deleted.pop_front();
            }
        }
    }
}

fn acknowledged(client: &mut Client, words: &[&str]) -> bool {
    match client.try_call(words) {
        Ok(Value::Simple(_)) => true,
        Ok(other) => panic!("the builder was answered {other}"),
        Err(_) => false,
    }
}
