//! Every order of whole operations on a lock, however many: users that enter and leave for ever have finitely many
//! states, and all of them are visited. Loom tries what happens within the operations, in `tests/loom.rs`.

use std::collections::{HashSet, VecDeque};

use super::parts::Arc;
use super::permit_lock::PermitLock;
use super::room_lock::RoomLock;
use super::waiter::Waiter;

/// What one of the users of a lock does; `wants` is its room, or its number of permits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum User {
    Idle,
    Waiting {
        wants: u32,
        /// Its place in line.
        place: usize,
        /// How many may be served before it at most, and how many have been.
        bound: usize,
        served: usize,
    },
    Inside(u32),
}

/// A lock with its users.
trait Stage: Default {
    /// A user that is inside leaves; one that is idle asks. Whatever must hold is asserted.
    fn act(&mut self, user: usize, wants: u32);
    fn users(&self) -> Vec<User>;
}

/// Visits every state that can be reached; each is reached anew, by a shortest way. Returns how many there are.
fn visit<S: Stage>(wants: std::ops::RangeInclusive<u32>) -> usize {
    let mut seen = HashSet::from([S::default().users()]);
    let mut open = VecDeque::from([Vec::new()]);
    while let Some(way) = open.pop_front() {
        let play = |way: &[(usize, u32)]| {
            let mut stage = S::default();
            way.iter().for_each(|&(user, wants)| stage.act(user, wants));
            stage
        };
        for (user, at) in play(&way).users().into_iter().enumerate() {
            let asks = match at {
                User::Waiting { .. } => continue,
                User::Inside(_) => 0..=0,
                User::Idle => wants.clone(),
            };
            for wants in asks {
                let longer = [&way[..], &[(user, wants)]].concat();
                if seen.insert(play(&longer).users()) {
                    open.push_back(longer);
                }
            }
        }
    }
    seen.len()
}

/// The users and their waiters.
struct Crowd {
    users: Vec<User>,
    waiters: Vec<Option<Arc<Waiter>>>,
    /// The users in line.
    line: Vec<usize>,
}

impl Crowd {
    fn new(users: usize) -> Crowd {
        Crowd {
            users: vec![User::Idle; users],
            waiters: vec![None; users],
            line: Vec::new(),
        }
    }

    fn inside(&self) -> Vec<u32> {
        let inside = |user: &User| match user {
            User::Inside(wants) => Some(*wants),
            _ => None,
        };
        self.users.iter().filter_map(inside).collect()
    }

    fn wants(&self, user: usize) -> u32 {
        self.waiters[user].as_ref().map_or(0, |waiter| waiter.wants)
    }

    /// A user was let in, or stands in line behind all others.
    fn asked(&mut self, user: usize, wants: u32, waiter: Option<Arc<Waiter>>, bound: usize) {
        self.users[user] = match waiter {
            None => User::Inside(wants),
            Some(_) => {
                self.line.push(user);
                User::Waiting {
                    wants,
                    place: self.line.len() - 1,
                    bound,
                    served: 0,
                }
            }
        };
        self.waiters[user] = waiter;
    }

    /// Lets those in who were admitted; returns them, in the order of the line.
    fn admitted(&mut self) -> Vec<usize> {
        let (enter, stay): (Vec<usize>, Vec<usize>) = self.line.iter().partition(|user| {
            let waiter = self.waiters[**user].as_ref();
            waiter.is_some_and(|waiter| waiter.is_admitted())
        });
        for &user in &enter {
            self.users[user] = User::Inside(self.wants(user));
            self.waiters[user] = None;
        }
        for (now, &user) in stay.iter().enumerate() {
            if let User::Waiting { place, served, .. } = &mut self.users[user] {
                (*place, *served) = (now, *served + usize::from(!enter.is_empty()));
            }
        }
        self.line = stay;
        enter
    }
}

struct Rooms {
    lock: RoomLock,
    crowd: Crowd,
}

impl Default for Rooms {
    fn default() -> Rooms {
        Rooms {
            lock: RoomLock::new(),
            crowd: Crowd::new(4),
        }
    }
}

impl Stage for Rooms {
    fn users(&self) -> Vec<User> {
        self.crowd.users.clone()
    }

    fn act(&mut self, user: usize, room: u32) {
        let crowd = &mut self.crowd;
        let before = crowd.users.clone();
        let in_use = crowd.inside().first().copied();
        if before[user] == User::Idle {
            // As `enter` does.
            let waiter = match self.lock.join(room) {
                true => None,
                false => self.lock.stand_in_line(room),
            };
            // Nobody enters past the line; and while nobody waits, the room in use is open.
            let open = crowd.line.is_empty() && in_use.is_none_or(|in_use| in_use == room);
            assert_eq!(waiter.is_none(), open, "{before:?}: {user} enters {room}");
            let rooms: HashSet<u32> = crowd.line.iter().map(|user| crowd.wants(*user)).collect();
            let bound = rooms.iter().filter(|other| **other != room).count();
            crowd.asked(user, room, waiter, bound);
        } else {
            self.lock.leave();
            crowd.users[user] = User::Idle;
            let line = crowd.line.clone();
            let wants: Vec<u32> = line.iter().map(|user| crowd.wants(*user)).collect();
            let enter = crowd.admitted();
            // A round: the room of the first in line, and all who wait for it.
            let opens = crowd.inside().len() == enter.len() && !line.is_empty();
            let round = line
                .iter()
                .zip(&wants)
                .filter(|(_, room)| **room == wants[0]);
            let round = round.map(|(user, _)| *user).filter(|_| opens);
            assert_eq!(
                enter,
                round.collect::<Vec<_>>(),
                "{before:?}: {user} leaves"
            );
        }
        let inside = crowd.inside();
        assert!(inside.iter().all(|room| *room == inside[0]), "{before:?}");
        assert!(crowd.line.is_empty() || !inside.is_empty(), "{before:?}");
        for user in &crowd.users {
            if let User::Waiting { bound, served, .. } = user {
                assert!(served <= bound, "bounded waiting: {before:?}");
            }
        }
    }
}

#[test]
fn rooms_open_in_the_order_of_the_line_and_waiting_is_bounded() {
    let states = visit::<Rooms>(0..=2);
    assert!(states > 1_000, "{states} states");
}

struct Permits {
    lock: PermitLock,
    crowd: Crowd,
}

const PERMITS: u32 = 3;

impl Default for Permits {
    fn default() -> Permits {
        Permits {
            lock: PermitLock::new(PERMITS),
            crowd: Crowd::new(4),
        }
    }
}

impl Stage for Permits {
    fn users(&self) -> Vec<User> {
        self.crowd.users.clone()
    }

    fn act(&mut self, user: usize, permits: u32) {
        let crowd = &mut self.crowd;
        let before = crowd.users.clone();
        let line = crowd.line.clone();
        let free = |crowd: &Crowd| PERMITS - crowd.inside().iter().sum::<u32>();
        if let User::Inside(permits) = before[user] {
            self.lock.give_back(permits);
            crowd.users[user] = User::Idle;
            let enter = crowd.admitted();
            assert_eq!(enter, line[..enter.len()], "first come, first served");
        } else {
            let open = line.is_empty() && permits <= free(crowd);
            let waiter = self.lock.stand_in_line(permits);
            assert_eq!(waiter.is_none(), open, "{before:?}: {user} takes {permits}");
            crowd.asked(user, permits, waiter, line.len());
        }
        let taken: u32 = crowd.inside().iter().sum();
        assert!(taken <= PERMITS, "{before:?}");
        let first = crowd.line.first().map(|user| crowd.wants(*user));
        assert!(
            first.is_none_or(|first| first > PERMITS - taken),
            "{before:?}"
        );
    }
}

#[test]
fn permits_are_served_in_the_order_of_the_line() {
    let states = visit::<Permits>(1..=PERMITS);
    assert!(states > 1_000, "{states} states");
}

#[test]
#[should_panic(expected = "0 permits: take from 1 to 3")]
fn no_permits_are_none_to_take() {
    drop(PermitLock::new(PERMITS).take(0));
}

#[test]
#[should_panic(expected = "4 permits: take from 1 to 3")]
fn more_permits_than_there_are_are_refused() {
    drop(PermitLock::new(PERMITS).try_take(PERMITS + 1));
}

/// The room may be left, or even be the one in use, by the time that somebody stands in line for it.
#[test]
fn whoever_comes_to_the_line_of_an_open_room_enters() {
    let lock = RoomLock::new();
    assert!(lock.stand_in_line(1).is_none(), "all rooms are empty");
    assert!(lock.stand_in_line(1).is_none(), "its room is in use");
    assert!(lock.stand_in_line(2).is_some());
    assert!(lock.stand_in_line(1).is_some(), "somebody is in line");
}
