//! Clients of a run. Each records what it asked and what it was answered; none of them knows of faults.

pub(crate) mod definitions;
pub(crate) mod implicit;
pub(crate) mod jobs;
pub(crate) mod once;
pub(crate) mod opened;
pub(crate) mod pools;
pub(crate) mod watch;

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::door::Door;
use crate::net::Party;
use crate::stage::Stage;

/// Gates that only one may be inside.
const MUTEXES: [&str; 3] = ["backup", "deploy", "report"];
/// Gates that readers share.
const SHARED: [&str; 2] = ["catalog", "prices"];

/// The gates of a run.
#[derive(Clone, Debug)]
pub(crate) struct Gates {
    pub(crate) mutexes: &'static [&'static str],
    pub(crate) shared: &'static [&'static str],
    /// Whether their names say by which algorithm their ownership travels.
    pub(crate) using: bool,
    /// Of the mutexes, those that are one permit, or rooms of one client each.
    permits: &'static [&'static str],
    rooms: &'static [&'static str],
}

impl Gates {
    pub(crate) const PLAIN: Gates = Gates {
        mutexes: &MUTEXES,
        shared: &SHARED,
        using: false,
        permits: &[],
        rooms: &[],
    };
    /// Writers enter all of them, readers some.
    pub(crate) const USING: Gates = Gates {
        mutexes: &USING,
        shared: &["box-office", "lamport", "maekawa", "raymond", "central"],
        using: true,
        permits: &["ricart-agrawala", "token-ring"],
        rooms: &["sanders", "chang"],
    };

    pub(crate) fn all(&self) -> impl Iterator<Item = &'static str> {
        let shared = self.shared.iter().filter(|_| !self.using);
        self.mutexes.iter().chain(shared).copied()
    }

    /// The gates that are created, and how.
    pub(crate) fn created(&self) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
        let created = if self.using {
            self.mutexes
        } else {
            self.shared
        };
        created.iter().map(|gate| {
            let mut words = match gate {
                _ if self.shared.contains(gate) => vec!["SHARED"],
                _ if self.permits.contains(gate) => vec!["PERMITS", "1"],
                _ if self.rooms.contains(gate) => vec!["ROOMS"],
                _ => vec!["MUTEX"],
            };
            if self.using {
                words.extend(["USING", gate, "BURST", "2"]);
            }
            (*gate, words)
        })
    }

    /// What a client says behind a gate's name, to be inside alone or with other readers. It has a room to itself.
    pub(crate) fn mode<'r>(&self, gate: &str, exclusive: bool, room: &'r str) -> Vec<&'r str> {
        match exclusive {
            false => vec!["SHARED"],
            true if self.rooms.contains(&gate) => vec!["ROOM", room],
            true => Vec::new(),
        }
    }
}

/// Each is called as the algorithm by which its ownership travels.
const USING: [&str; 10] = [
    "box-office",
    "ricart-agrawala",
    "lamport",
    "maekawa",
    "sanders",
    "raymond",
    "chang",
    "central",
    "token-ring",
    "tree-quorum",
];
/// How long a client waits for a gate or a job.
pub(crate) const WAIT_MS: &str = "1500";
/// Before a client that nobody serves tries again.
const RETRY_MS: u64 = 50;

/// A client: where it is connected, and what it draws.
pub(crate) struct Client<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) number: u64,
    rng: Xoshiro256StarStar,
    door: Option<Door<'a>>,
    next: Party,
}

impl<'a> Client<'a> {
    pub(crate) fn new(stage: &'a Stage, number: u64) -> Client<'a> {
        let seed = stage.seed.wrapping_add(number + 1);
        Client {
            stage,
            number,
            rng: Xoshiro256StarStar::seed_from_u64(seed),
            door: None,
            next: (number % u64::from(stage.nodes)) as Party + 1,
        }
    }

    /// The room that nobody else enters.
    pub(crate) fn room(&self) -> String {
        format!("client{}", self.number)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.rng.next_u64() % end
    }

    pub(crate) fn one_of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Its connection, to whichever node takes it. Nothing when the run is over. Whether it is a new one.
    pub(crate) fn connected(&mut self) -> Option<(&mut Door<'a>, bool)> {
        if self.door.as_ref().is_some_and(Door::is_broken) {
            self.leave();
        }
        let mut fresh = false;
        while self.door.is_none() {
            if self.stage.is_over() {
                return None;
            }
            fresh = true;
            self.door = Door::open(self.stage, self.next);
            if self.door.is_none() {
                self.leave();
                self.stage.goes_on_after(RETRY_MS);
            }
        }
        self.door.as_mut().map(|door| (door, fresh))
    }

    /// The connection that there is, if it is not broken.
    pub(crate) fn present(&mut self) -> Option<&mut Door<'a>> {
        self.door.as_mut().filter(|door| !door.is_broken())
    }

    /// Hangs up. The next connection is to the next node.
    pub(crate) fn leave(&mut self) {
        self.door = None;
        self.next = self.next % self.stage.nodes + 1;
    }

    /// A pause between two things; whether the run goes on.
    pub(crate) fn rests(&mut self, most_ms: u64) -> bool {
        let ms = self.below(most_ms + 1);
        self.stage.goes_on_after(ms)
    }
}
