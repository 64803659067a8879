//! The words of readers and writers by class, their user, and the property.

use crate::{Next, Phase, Problem, Tally, UserId};

use super::{Bounds, Trade};

/// The problem of readers and writers with classes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Readers;

/// A class of requests; an earlier one is more urgent. The box office's §1: T0, T1 and T2.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub enum Class {
    /// Annulments and payments, as writers.
    Cancel,
    /// Reservations and administration, as writers.
    Reservation,
    /// Queries, as readers.
    Query,
}

impl Class {
    pub const ALL: [Class; 3] = [Class::Cancel, Class::Reservation, Class::Query];

    pub fn name(self) -> &'static str {
        match self {
            Class::Cancel => "cancel",
            Class::Reservation => "reservation",
            Class::Query => "query",
        }
    }

    pub fn index(self) -> usize {
        self as usize
    }

    pub fn writes(self) -> bool {
        self != Class::Query
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ask {
    Enter(Class),
    Leave(Class),
}

/// What a node tells whoever of this class is first in its line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tell {
    Entered(Class),
}

/// How much may be let in before those who wait, by nodes that can know of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Promise {
    /// Reservations before a query; after as many, the query goes first.
    pub query: u32,
    /// Writers of a class at other nodes, before a node that has one in line.
    pub elsewhere: u32,
}

impl Problem for Readers {
    const NAME: &'static str = "readers";
    type Ask = Ask;
    type Tell = Tell;
    type User = User;
    type Monitor = Bounds;

    fn violation(users: &[User]) -> Option<String> {
        let inside = |user: &User| user.phase == Phase::Inside;
        let writes = |user: &User| inside(user) && user.class.writes();
        let writer = users.iter().position(writes)?;
        let others = users.iter().enumerate();
        let (other, beside) = others
            .rev()
            .find(|(index, user)| *index != writer && inside(user))?;
        let (class, theirs) = (users[writer].class.name(), beside.class.name());
        Some(format!(
            "p{writer} ({class}) and p{other} ({theirs}) are inside together"
        ))
    }

    /// Queries are inside together while nobody else wants in.
    fn violation_at_rest(users: &[User]) -> Option<String> {
        let busy = || users.iter().filter(|user| user.phase != Phase::Idle);
        if busy().any(|user| user.class.writes()) {
            return None;
        }
        let waits = users.iter().position(|user| user.phase == Phase::Waiting)?;
        Some(format!("p{waits} waits, and there are only queries"))
    }

    fn may_violate(tally: &Tally) -> bool {
        let queries = tally.inside_of(Class::Query.index() as u32);
        tally.inside() > 1 && tally.inside() > queries
    }

    fn may_violate_at_rest(tally: &Tally) -> bool {
        let query = Class::Query.index() as u32;
        let writers_wait = tally.waiting() > tally.waiting_of(query);
        let writers_inside = tally.inside() > tally.inside_of(query);
        tally.waiting() > 0 && !writers_wait && !writers_inside
    }

    /// The rest of what is promised is judged by [`Bounds`].
    fn bypass_max(users: &[User], entered: UserId, waiting: UserId) -> Option<u32> {
        let (passer, passed) = (&users[entered.index()], &users[waiting.index()]);
        let passes = (passer.class, passed.class) == (Class::Reservation, Class::Query);
        passes.then_some(passed.promise.query)
    }

    fn kind_name(kind: u32) -> String {
        let class = Class::ALL.get(kind as usize);
        class.map_or("?", |class| class.name()).into()
    }
}

/// A user: idle, then waiting by a class, then inside, then idle again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct User {
    phase: Phase,
    /// Of the request that it has, or had last.
    class: Class,
    trade: Trade,
    /// A client's reservation, which it could cancel.
    reserved: bool,
    home: u32,
    /// How many of a million requests are queries, where it draws lots.
    readers: u32,
    promise: Promise,
}

impl User {
    pub fn new(trade: Trade, home: u32, readers: u32, promise: Promise) -> User {
        User {
            phase: Phase::Idle,
            class: match trade {
                Trade::Only(class) => class,
                Trade::Client | Trade::Any => Class::Query,
            },
            trade,
            reserved: false,
            home,
            readers,
            promise,
        }
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    pub(super) fn home(&self) -> u32 {
        self.home
    }

    pub(super) fn promise(&self) -> Promise {
        self.promise
    }

    fn choice(&self, choice: u32) -> Class {
        match (self.trade, choice) {
            (Trade::Only(class), _) => class,
            (Trade::Any, 0) => Class::Cancel,
            (Trade::Client, 0) if self.reserved => Class::Cancel,
            (Trade::Client, 0) | (Trade::Any, 1) => Class::Reservation,
            (Trade::Any | Trade::Client, _) => Class::Query,
        }
    }
}

impl Default for User {
    fn default() -> Self {
        User::new(Trade::Any, 0, 500_000, Promise::default())
    }
}

impl crate::User<Readers> for User {
    fn next(&self) -> Next<Ask> {
        self.choose(0)
    }

    fn choices(&self) -> u32 {
        match (self.phase, self.trade) {
            (Phase::Idle, Trade::Client) => 2,
            (Phase::Idle, Trade::Any) => 3,
            _ => 1,
        }
    }

    fn choose(&self, choice: u32) -> Next<Ask> {
        match self.phase {
            Phase::Idle => Next::May(Ask::Enter(self.choice(choice))),
            Phase::Waiting => Next::Nothing,
            Phase::Inside => Next::Must(Ask::Leave(self.class)),
        }
    }

    /// A query, as often as was chosen; the writers share the rest.
    fn draw(&self, lot: f64) -> u32 {
        let queries = f64::from(self.readers) / 1e6;
        let writers = self.choices() - 1;
        match lot < queries {
            true => writers,
            false => ((lot - queries) / (1.0 - queries) * f64::from(writers)) as u32,
        }
    }

    fn asked(&mut self, ask: Ask) {
        match ask {
            Ask::Enter(class) => (self.phase, self.class) = (Phase::Waiting, class),
            Ask::Leave(class) => {
                self.phase = Phase::Idle;
                if self.trade == Trade::Client && class.writes() {
                    self.reserved = class == Class::Reservation;
                }
            }
        }
    }

    fn told(&mut self, Tell::Entered(class): Tell) -> Result<(), String> {
        if (self.phase, self.class) != (Phase::Waiting, class) {
            return Err(format!(
                "told that a {} may enter, without having asked",
                class.name()
            ));
        }
        self.phase = Phase::Inside;
        Ok(())
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn hears(&self, Tell::Entered(class): &Tell) -> bool {
        (self.phase, self.class) == (Phase::Waiting, *class)
    }

    fn kind(&self) -> u32 {
        self.class.index() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User as _;

    fn inside(class: Class) -> User {
        let mut user = User::default();
        user.asked(Ask::Enter(class));
        user.told(Tell::Entered(class)).expect("asked");
        user
    }

    #[test]
    fn a_writer_is_inside_alone_and_readers_are_together() {
        let [cancel, reservation, query] = Class::ALL.map(inside);
        assert_eq!(Readers::violation(&[query, query, User::default()]), None);
        assert_eq!(Readers::violation(&[reservation]), None);
        for pair in [[query, cancel], [cancel, query], [reservation, cancel]] {
            assert!(Readers::violation(&pair).is_some(), "{pair:?}");
        }
    }

    #[test]
    fn the_kinds_of_entries_are_the_classes_by_name() {
        assert_eq!(
            [0, 1, 2, 3].map(Readers::kind_name),
            ["cancel", "reservation", "query", "?"]
        );
    }

    #[test]
    fn a_query_does_not_wait_for_queries() {
        let mut waits = User::default();
        waits.asked(Ask::Enter(Class::Query));
        let query = inside(Class::Query);
        assert!(Readers::violation_at_rest(&[query, waits]).is_some());
        assert_eq!(
            Readers::violation_at_rest(&[query, waits, inside(Class::Cancel)]),
            None
        );
        assert_eq!(Readers::violation_at_rest(&[query, query]), None);
    }

    #[test]
    fn a_client_cancels_only_what_it_has_reserved() {
        let mut client = User::new(Trade::Client, 0, 500_000, Promise::default());
        let asks = |client: &User| [0, 1].map(|choice| client.choose(choice));
        let may = |class| Next::May(Ask::Enter(class));
        assert_eq!(asks(&client), [may(Class::Reservation), may(Class::Query)]);
        client.asked(Ask::Enter(Class::Reservation));
        client
            .told(Tell::Entered(Class::Reservation))
            .expect("asked");
        client.asked(Ask::Leave(Class::Reservation));
        assert_eq!(asks(&client), [may(Class::Cancel), may(Class::Query)]);
    }

    #[test]
    fn lots_fall_on_queries_as_often_as_was_chosen() {
        let user = User::new(Trade::Any, 0, 250_000, Promise::default());
        assert_eq!(
            [0.0, 0.2, 0.25, 0.3, 0.6, 0.7, 0.99].map(|lot| user.draw(lot)),
            [2, 2, 0, 0, 0, 1, 1]
        );
        let all = User::new(Trade::Any, 0, 1_000_000, Promise::default());
        assert_eq!(all.draw(0.999), 2);
    }
}
