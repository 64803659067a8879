//! What is wrong in the histories of all users: the monitors of multicast. They know nothing of any algorithm.

use std::collections::BTreeMap;

use super::user::Event;
use super::{Cast, User};
use crate::NodeId;

/// A broken promise that no later delivery can mend.
pub(super) fn violation(users: &[User]) -> Option<String> {
    let promises = users.first()?.promises;
    let checks: [(bool, Check); 4] = [
        (promises.integrity, integrity),
        (promises.fifo, fifo),
        (promises.causal, causal),
        (promises.total, total),
    ];
    let claimed = checks.into_iter().filter(|(claimed, _)| *claimed);
    claimed
        .map(|(_, check)| check)
        .find_map(|check| check(users))
}

/// Says what breaks one promise.
type Check = fn(&[User]) -> Option<String>;

/// What is missing when nothing more will happen.
pub(super) fn missing(users: &[User]) -> Option<String> {
    let promises = users.first()?.promises;
    let delivered: Vec<Seen> = users
        .iter()
        .map(|user| Seen::of(user.delivered()))
        .collect();
    let correct = || users.iter().filter(|user| !user.crashed);
    let left_out = |cast: &Cast| {
        let mut members = correct().filter(|user| user.groups.has(cast.group, user.id));
        members
            .find(|user| !delivered[user.id.index()].has(*cast))
            .map(|user| user.id)
    };
    let validity = || {
        correct()
            .flat_map(User::casts)
            .find_map(|cast| Some((cast, left_out(&cast)?)))
    };
    let agreement = || {
        correct()
            .flat_map(User::delivered)
            .find_map(|cast| Some((cast, left_out(&cast)?)))
    };
    let uniform = || {
        users
            .iter()
            .flat_map(User::delivered)
            .find_map(|cast| Some((cast, left_out(&cast)?)))
    };
    let checks: [(bool, &Search<'_>, &str); 3] = [
        (promises.validity, &validity, "whose sender is correct"),
        (
            promises.agreement,
            &agreement,
            "which a correct member delivers",
        ),
        (
            promises.uniform,
            &uniform,
            "which a member delivered before it crashed",
        ),
    ];
    checks
        .into_iter()
        .filter(|(claimed, ..)| *claimed)
        .find_map(|(_, check, why)| {
            let (cast, member) = check()?;
            Some(format!("p{member} never delivers {cast}, {why}"))
        })
}

/// Finds a multicast and a member that lacks it.
type Search<'a> = dyn Fn() -> Option<(Cast, NodeId)> + 'a;

/// A set of multicasts.
#[derive(Default)]
struct Seen {
    senders: Vec<Vec<bool>>,
}

impl Seen {
    fn of(casts: impl Iterator<Item = Cast>) -> Seen {
        let mut seen = Seen::default();
        for cast in casts {
            seen.add(cast);
        }
        seen
    }

    fn has(&self, cast: Cast) -> bool {
        let numbers = self.senders.get(cast.sender.index());
        numbers.is_some_and(|numbers| numbers.get(cast.number as usize) == Some(&true))
    }

    /// False where it was there before.
    fn add(&mut self, cast: Cast) -> bool {
        let (sender, number) = (cast.sender.index(), cast.number as usize);
        if self.senders.len() <= sender {
            self.senders.resize(sender + 1, Vec::new());
        }
        let numbers = &mut self.senders[sender];
        if numbers.len() <= number {
            numbers.resize(number + 1, false);
        }
        !std::mem::replace(&mut numbers[number], true)
    }
}

/// §4.3: at most once, and only what was sent to a group of the member.
fn integrity(users: &[User]) -> Option<String> {
    let sent: Vec<Vec<Cast>> = users.iter().map(|user| user.casts().collect()).collect();
    for user in users {
        let id = user.id;
        let mut seen = Seen::default();
        for cast in user.delivered() {
            let casts = sent.get(cast.sender.index());
            let named = casts.and_then(|casts| casts.get((cast.number as usize).checked_sub(1)?));
            if named != Some(&cast) {
                return Some(format!("p{id} delivers {cast}, which nobody multicast"));
            }
            if !user.groups.has(cast.group, id) {
                return Some(format!("p{id} delivers {cast} and is not in its group"));
            }
            if !seen.add(cast) {
                return Some(format!("p{id} delivers {cast} twice"));
            }
        }
    }
    None
}

/// §4.5: what one process multicasts to a member is delivered to it in the order of multicasting.
fn fifo(users: &[User]) -> Option<String> {
    users.iter().find_map(|user| {
        let mut due = Due::of(user, users);
        user.delivered().find_map(|cast| {
            let early = due.before(cast.sender.index(), cast.number.saturating_sub(1));
            due.delivered(cast);
            let early = early?;
            Some(format!(
                "p{} delivers {cast} before {early}, which its sender multicast first",
                user.id
            ))
        })
    })
}

/// §4.5: what was multicast before, by happened-before, is delivered before.
fn causal(users: &[User]) -> Option<String> {
    let pasts = pasts(users);
    users.iter().find_map(|user| {
        let mut due = Due::of(user, users);
        user.delivered().find_map(|cast| {
            let past = pasts.get(&cast);
            let early = past.and_then(|past| {
                let own = |sender: usize| u32::from(sender == cast.sender.index());
                let mut senders = past.iter().enumerate();
                senders.find_map(|(sender, &upto)| due.before(sender, upto - own(sender)))
            });
            due.delivered(cast);
            let early = early?;
            Some(format!(
                "p{} delivers {cast} before {early}, which was multicast before it",
                user.id
            ))
        })
    })
}

/// What a member should have been delivered, by sender and in the order of multicasting.
struct Due {
    senders: Vec<Vec<(Cast, bool)>>,
    /// How many of each sender's, from the first, are delivered.
    done: Vec<usize>,
}

impl Due {
    fn of(member: &User, users: &[User]) -> Due {
        let addressed = |sender: &User| {
            let casts = sender.casts();
            let to_it = casts.filter(|cast| member.groups.has(cast.group, member.id));
            to_it.map(|cast| (cast, false)).collect()
        };
        Due {
            senders: users.iter().map(addressed).collect(),
            done: vec![0; users.len()],
        }
    }

    /// The first of a sender's multicasts, up to its number `upto`, that is not delivered yet.
    fn before(&self, sender: usize, upto: u32) -> Option<Cast> {
        let next = self.senders.get(sender)?.get(self.done[sender])?;
        (next.0.number <= upto).then_some(next.0)
    }

    fn delivered(&mut self, cast: Cast) {
        let sender = cast.sender.index();
        let Some(casts) = self.senders.get_mut(sender) else {
            return;
        };
        if let Ok(place) = casts.binary_search_by_key(&cast.number, |(other, _)| other.number) {
            casts[place].1 = true;
        }
        while casts.get(self.done[sender]).is_some_and(|(_, done)| *done) {
            self.done[sender] += 1;
        }
    }
}

/// How many multicasts of each sender happened before each multicast, itself counted (§1.3, with transitivity): a
/// vector clock of multicasts.
fn pasts(users: &[User]) -> BTreeMap<Cast, Vec<u32>> {
    let mut pasts: BTreeMap<Cast, Vec<u32>> = BTreeMap::new();
    let mut at = vec![0; users.len()];
    let mut clocks = vec![vec![0; users.len()]; users.len()];
    loop {
        let mut moved = false;
        for (index, user) in users.iter().enumerate() {
            while let Some(event) = user.history.get(at[index]) {
                let clock = &mut clocks[index];
                match event {
                    Event::Sent(cast) => {
                        clock[index] += 1;
                        pasts.insert(*cast, clock.clone());
                    }
                    Event::Delivered(cast) => {
                        // Its sender's history has not come that far yet.
                        let Some(past) = pasts.get(cast) else {
                            break;
                        };
                        for (mine, theirs) in clock.iter_mut().zip(past) {
                            *mine = (*mine).max(*theirs);
                        }
                    }
                }
                at[index] += 1;
                moved = true;
            }
        }
        if !moved {
            return pasts;
        }
    }
}

/// §4.5: if one process delivers m before m', every process does. Two members' deliveries, as far as both are meant to
/// have them, are the same up to the end of the shorter; and the orders of all members together have no circle.
fn total(users: &[User]) -> Option<String> {
    for (place, user) in users.iter().enumerate() {
        for other in &users[place + 1..] {
            let for_both = |user: &User, other: &User| -> Vec<Cast> {
                let casts = user.delivered();
                let shared = casts.filter(|cast| other.groups.has(cast.group, other.id));
                shared.collect()
            };
            let (mine, theirs) = (for_both(user, other), for_both(other, user));
            if let Some((one, two)) = mine.iter().zip(&theirs).find(|(one, two)| one != two) {
                let (p, q) = (user.id, other.id);
                return Some(format!("p{p} delivers {one} where p{q} delivers {two}"));
            }
        }
    }
    circle(users)
}

/// Members that cannot all have delivered by one order: pairs may agree where groups overlap in a circle.
fn circle(users: &[User]) -> Option<String> {
    let orders: Vec<Vec<Cast>> = users
        .iter()
        .map(|user| user.delivered().collect())
        .collect();
    let mut waits: BTreeMap<Cast, usize> = BTreeMap::new();
    for cast in orders.iter().flatten() {
        *waits.entry(*cast).or_default() += 1;
    }
    let mut at = vec![0; orders.len()];
    // A multicast is next in the common order when it is next for every member that delivered it.
    loop {
        let mut moved = false;
        let heads = || {
            orders
                .iter()
                .zip(&at)
                .map(|(order, &at)| order.get(at).copied())
        };
        let all: Vec<Option<Cast>> = heads().collect();
        for head in all.iter().flatten() {
            let next_for = all.iter().filter(|other| **other == Some(*head)).count();
            if waits.get(head) == Some(&next_for) {
                for (at, other) in at.iter_mut().zip(&all) {
                    *at += usize::from(*other == Some(*head));
                }
                moved = true;
                break;
            }
        }
        if !moved {
            let stuck = all.into_iter().flatten().next()?;
            return Some(format!(
                "no one order of all multicasts has the deliveries around {stuck}"
            ));
        }
    }
}
