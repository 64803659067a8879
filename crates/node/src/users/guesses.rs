//! Wrong passwords, by their origin and their user. A client that guesses is slowed, however many connections it opens;
//! others are not, neither the same user elsewhere nor other users there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Where a client authenticates from. For IPv6, all addresses of a site count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin(Option<IpAddr>);

impl Origin {
    pub(crate) fn of(address: IpAddr) -> Origin {
        Origin(Some(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address => address,
        }))
    }

    /// The origin in the text of a connection's address; a Unix socket is one origin.
    pub(crate) fn read(address: &str) -> Origin {
        let address = address.parse::<SocketAddr>().ok();
        address.map_or(Origin(None), |address| Origin::of(address.ip()))
    }
}

type Pair = (Origin, Box<str>);

/// Until when the passwords of a user from an origin are not checked. Pairs are forgotten when their time is over; if there
/// are too many, those whose time ends first.
#[derive(Debug, Default)]
pub(crate) struct Guesses {
    until: BTreeMap<Pair, u64>,
    over: BTreeSet<(u64, Pair)>,
}

impl Guesses {
    /// When the pair's next password is checked.
    pub(crate) fn due(&self, now: u64, origin: Origin, user: &str) -> u64 {
        let until = self.until.get(&(origin, user.into()));
        until.map_or(now, |until| now.max(*until))
    }

    /// A password was wrong: each one delays the next, up to `longest_ms` from now. At most `most` pairs are remembered.
    pub(crate) fn wrong(
        &mut self,
        now: u64,
        (origin, user): (Origin, &str),
        delay_ms: u64,
        longest_ms: u64,
        most: usize,
    ) {
        while self.over.first().is_some_and(|(until, _)| *until <= now) {
            self.forget_first();
        }
        let due = self.due(now, origin, user);
        self.forget(origin, user);
        if self.over.len() >= most {
            self.forget_first();
        }
        let until = due.saturating_add(delay_ms);
        let until = until.min(now + longest_ms.max(delay_ms));
        let pair: Pair = (origin, user.into());
        self.over.insert((until, pair.clone()));
        self.until.insert(pair, until);
    }

    /// A password was right: forgets the wrong ones before.
    pub(crate) fn right(&mut self, origin: Origin, user: &str) {
        self.forget(origin, user);
    }

    fn forget(&mut self, origin: Origin, user: &str) {
        let pair: Pair = (origin, user.into());
        if let Some(until) = self.until.remove(&pair) {
            self.over.remove(&(until, pair));
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, pair)) = self.over.pop_first() {
            self.until.remove(&pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 3;

    fn wrong(guesses: &mut Guesses, now: u64, from: &str, user: &str) {
        guesses.wrong(now, (Origin::read(from), user), 1_000, 60_000, MOST);
    }

    #[test]
    fn a_pair_is_slowed_whatever_its_connections_and_nobody_else() {
        let mut guesses = Guesses::default();
        for port in 1..=5 {
            wrong(&mut guesses, 0, &format!("10.0.0.1:{port}"), "alice");
        }
        let due = |from, user| guesses.due(0, Origin::read(from), user);
        assert_eq!(due("10.0.0.1:9", "alice"), 5_000);
        assert_eq!(due("10.0.0.2:9", "alice"), 0);
        assert_eq!(due("10.0.0.1:9", "bob"), 0);
        assert_eq!(due("/run/testigo.sock", "alice"), 0);
        let later = guesses.due(5_000, Origin::read("10.0.0.1:9"), "alice");
        assert_eq!(later, 5_000);
    }

    #[test]
    fn a_right_password_forgets_the_wrong_ones() {
        let mut guesses = Guesses::default();
        wrong(&mut guesses, 0, "10.0.0.1:1", "alice");
        guesses.right(Origin::read("10.0.0.1:2"), "alice");
        assert_eq!(guesses.due(0, Origin::read("10.0.0.1:3"), "alice"), 0);
        assert!(guesses.until.is_empty() && guesses.over.is_empty());
    }

    #[test]
    fn the_wait_and_the_memory_have_bounds() {
        let mut guesses = Guesses::default();
        for _ in 0..1_000 {
            wrong(&mut guesses, 0, "10.0.0.1:1", "alice");
        }
        assert_eq!(guesses.due(0, Origin::read("10.0.0.1:1"), "alice"), 60_000);
        for user in 0..1_000 {
            wrong(&mut guesses, 1, "10.0.0.1:1", &format!("u{user}"));
            assert!(guesses.until.len() <= MOST);
            assert_eq!(guesses.until.len(), guesses.over.len());
        }
        assert_eq!(
            guesses.due(1, Origin::read("10.0.0.1:1"), "alice"),
            60_000,
            "who has longest to wait is forgotten last"
        );
        wrong(&mut guesses, 100_000, "10.0.0.1:1", "bob");
        assert_eq!(guesses.until.len(), 1, "whose time is over is forgotten");
    }

    #[test]
    fn addresses_of_one_site_are_one_place() {
        let of = Origin::read;
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::ffff:2]:9"));
        assert_ne!(of("[2001:db8::1]:1"), of("[2001:db8:0:1::1]:1"));
        assert_eq!(of("[::ffff:10.0.0.1]:1"), of("10.0.0.1:2"));
    }
}
