//! Clients that take and give slots at every node, and a referee that sees what all of them have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::bed::{connect, pause};
use crate::net::Party;
use crate::up::{Client, Value};

pub(crate) const POOL: &str = "ports";

/// What the clients have, and what they have seen.
#[derive(Default)]
pub(crate) struct Referee {
    seen: Mutex<Seen>,
    /// Clients do nothing, and keep what they have.
    pub(crate) pauses: AtomicBool,
    pub(crate) ends: AtomicBool,
    /// How many clients are in the middle of something.
    pub(crate) busy: AtomicU64,
}

#[derive(Default)]
struct Seen {
    in_use: BTreeMap<String, Party>,
    fences: BTreeMap<String, i64>,
    takes: u64,
    failure: Option<String>,
}

impl Referee {
    fn took(&self, node: Party, slot: &str, fence: i64) {
        let mut seen = self.seen.lock().unwrap();
        seen.takes += 1;
        if let Some(other) = seen.in_use.insert(slot.to_owned(), node) {
            let why = format!("slot {slot} is in use at nodes {other} and {node}");
            seen.failure.get_or_insert(why);
        }
        let before = seen.fences.insert(slot.to_owned(), fence);
        if before >= Some(fence) {
            let why = format!("slot {slot} has fence {fence} at node {node} after {before:?}");
            seen.failure.get_or_insert(why);
        }
    }

    fn gives(&self, slot: &str) {
        self.seen.lock().unwrap().in_use.remove(slot);
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.seen.lock().unwrap().failure.clone()
    }

    pub(crate) fn takes(&self) -> u64 {
        self.seen.lock().unwrap().takes
    }

    /// Takes and gives at one node until the run ends.
    pub(crate) fn play(&self, node: Party, mut chance: Chance) {
        let mut client: Option<Client> = None;
        let mut held = BTreeSet::new();
        while !self.ends.load(Ordering::SeqCst) {
            if !self.pauses.load(Ordering::SeqCst) {
                self.busy.fetch_add(1, Ordering::SeqCst);
                if client.is_none() {
                    client = connect(node);
                }
                let done = client
                    .as_mut()
                    .is_some_and(|client| self.step(node, client, &mut held, &mut chance).is_ok());
                if !done {
                    // What the session had is lost with its connection.
                    held.iter().for_each(|slot: &String| self.gives(slot));
                    held.clear();
                    client = None;
                }
                self.busy.fetch_sub(1, Ordering::SeqCst);
            }
            pause(chance.below(10));
        }
    }

    fn step(
        &self,
        node: Party,
        client: &mut Client,
        held: &mut BTreeSet<String>,
        chance: &mut Chance,
    ) -> std::io::Result<()> {
        if chance.below(2) == 0 || held.len() > 12 {
            if let Some(slot) = held.pop_first() {
                self.gives(&slot);
                let given = client.try_call(&["POOL", "GIVE", POOL, &slot])?;
                assert_eq!(
                    given,
                    Value::Simple("OK".into()),
                    "node {node}, slot {slot}"
                );
            }
            return Ok(());
        }
        let count = (1 + chance.below(4)).to_string();
        let how = ["COUNT", "UPTO"][chance.below(2) as usize];
        let mut words = vec!["POOL", "TAKE", POOL, how, &count];
        if chance.below(2) == 0 {
            words.extend(["WAIT", "200"]);
        }
        match client.try_call(&words)? {
            Value::List(taken) => {
                for pair in taken.chunks(2) {
                    let (Value::Text(slot), fence) = (&pair[0], pair[1].int()) else {
                        panic!("a slot has a name");
                    };
                    self.took(node, slot, fence);
                    held.insert(slot.clone());
                }
            }
            Value::Nil => {}
            // It knows of the pool when it has met somebody who does.
            Value::Error(error) => assert!(error.starts_with("NOPOOL"), "{error}"),
            other => panic!("{other} is no answer to a take"),
        }
        Ok(())
    }
}

/// Pseudo-random numbers: splitmix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
