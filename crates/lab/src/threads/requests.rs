//! When the processes of a run ask, for which room, and how long they stay.

use std::collections::VecDeque;

use testigo_sim::{Generator, Time};

use crate::arrivals::Arrivals;
use crate::world::World;

pub(super) struct Requests<'a> {
    world: &'a World,
    /// Requests that have come or will come, of each process.
    of: Vec<VecDeque<Time>>,
    /// Requests that nobody has been given yet.
    left: u64,
    chance: Generator,
}

impl<'a> Requests<'a> {
    pub(super) fn new(users: usize, world: &'a World) -> Requests<'a> {
        let mut requests = Requests {
            world,
            of: vec![VecDeque::new(); users],
            left: world.entries,
            chance: Generator::for_purpose(world.seed, 2),
        };
        match &world.arrivals {
            Arrivals::Script(items) => {
                for (user, at) in items {
                    requests.of[*user as usize].push_back(*at);
                }
                requests.left = 0;
            }
            Arrivals::Closed(_) => (0..users).for_each(|user| requests.give(user, Time::ZERO)),
            Arrivals::Poisson(_) => {
                (0..users).for_each(|user| requests.give_poisson(user, Time::ZERO));
            }
        }
        requests
    }

    /// When a process asks next, if it does.
    pub(super) fn next(&self, user: usize) -> Option<Time> {
        self.of[user].front().copied()
    }

    /// A process asks now; for which of so many rooms.
    pub(super) fn take(&mut self, user: usize, now: Time, rooms: usize) -> u8 {
        self.of[user].pop_front();
        self.give_poisson(user, now);
        self.chance.below(rooms as u64) as u8
    }

    /// The exit of a process is over: with closed arrivals it asks again.
    pub(super) fn ended(&mut self, user: usize, now: Time) {
        if let Arrivals::Closed(pause) = &self.world.arrivals {
            let at = now + pause.draw(&mut self.chance);
            self.give(user, at);
        }
    }

    /// How long a stay inside takes.
    pub(super) fn hold(&mut self) -> Time {
        self.world.hold.draw(&mut self.chance).max(Time(1))
    }

    fn give(&mut self, user: usize, at: Time) {
        if self.left > 0 {
            self.left -= 1;
            self.of[user].push_back(at);
        }
    }

    fn give_poisson(&mut self, user: usize, from: Time) {
        if let Arrivals::Poisson(mean) = self.world.arrivals {
            let apart = Time(self.chance.exponential(mean.0 as f64) as u64);
            self.give(user, from + apart);
        }
    }
}
