//! The bounds of the box office, watched from both sides: what its §11 calls F1 to F3 and L3.
//!
//! The monitor counts overtakes itself, from what nodes can know, and never asks the algorithm. Then each
//! grant must be the one that the order of the classes demands: a reservation that passes a query once too
//! often is wrong, and so is a query that goes first before its turn.

use super::{Class, Promise, Readers, User};
use crate::{Admission, Grant, Monitor, NodeId, Phase, UserId};

/// What has been granted since, by those who could know.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    promise: Promise,
    /// Reservations that went before a query that was known to wait, since a query was last let in.
    overtakes: u32,
    /// For each node, the writers of each class let in elsewhere while one of its own was known to wait.
    elsewhere: Vec<[u32; 2]>,
}

impl Monitor<Readers> for Bounds {
    fn new(users: &[User]) -> Bounds {
        let nodes = users.iter().map(|user| user.home() + 1).max();
        Bounds {
            promise: users.first().map(User::promise).unwrap_or_default(),
            overtakes: 0,
            elsewhere: vec![[0; 2]; nodes.unwrap_or(0) as usize],
        }
    }

    fn entered(
        &mut self,
        users: &[User],
        entered: UserId,
        admission: Admission,
        known: &dyn Fn(UserId) -> bool,
    ) -> Option<String> {
        let user = &users[entered.index()];
        let class = user.class();
        let who = || format!("p{entered} ({})", class.name());
        let wrong = match admission {
            Admission::Decided => self.out_of_order(users, class, known),
            Admission::Together | Admission::Granted => None,
        };
        let wrong = wrong.map(|what| format!("{} was let in before {what}", who()));
        match class {
            Class::Query => self.overtakes = 0,
            Class::Reservation if waits(users, Class::Query, known).is_some() => {
                self.overtakes += 1;
            }
            _ => {}
        }
        if class.writes() {
            let late = self.turns(users, user, known);
            return wrong.or_else(|| late.map(|what| format!("{} was let in while {what}", who())));
        }
        wrong
    }

    fn sent(
        &mut self,
        users: &[User],
        from: NodeId,
        grant: Grant,
        known: &dyn Fn(UserId) -> bool,
    ) -> Option<String> {
        let Grant::Entry(_) = grant else { return None };
        let what = self.out_of_order(users, Class::Query, known)?;
        Some(format!("n{from} let queries in elsewhere before {what}"))
    }

    /// L3: whoever is sent a token has somebody who waits for it.
    fn received(&mut self, users: &[User], at: NodeId, grant: Grant) -> Option<String> {
        let wants = |user: &User| match grant {
            Grant::Entry(kind) => user.class().index() as u32 == kind,
            Grant::Token => true,
        };
        let waits = |user: &User| user.home() == at.0 && is_waiting(user) && wants(user);
        let phantom = !users.iter().any(waits);
        phantom.then(|| format!("n{at} was sent a token that nobody there waits for"))
    }
}

impl Bounds {
    /// F1 and F2: who should have gone first, if a node that knows of these lets this class in.
    fn out_of_order(
        &self,
        users: &[User],
        class: Class,
        known: &dyn Fn(UserId) -> bool,
    ) -> Option<String> {
        let Promise { query: most, .. } = self.promise;
        let full = self.overtakes >= most;
        let better: &[Class] = match (class, full) {
            (Class::Cancel, _) => &[],
            (Class::Reservation, false) => &[Class::Cancel],
            (Class::Reservation, true) => &[Class::Cancel, Class::Query],
            (Class::Query, false) => &[Class::Cancel, Class::Reservation],
            (Class::Query, true) => &[Class::Cancel],
        };
        let first = better
            .iter()
            .find_map(|&class| Some((waits(users, class, known)?, class)));
        let (first, theirs) = first?;
        let (name, overtakes) = (theirs.name(), self.overtakes);
        Some(format!(
            "p{first} ({name}), known to wait, after {overtakes} of at most {most} overtakes"
        ))
    }

    /// F3: counts a writer's entry against every other node with one of its class in line.
    fn turns(
        &mut self,
        users: &[User],
        entered: &User,
        known: &dyn Fn(UserId) -> bool,
    ) -> Option<String> {
        let (class, most) = (entered.class().index(), self.promise.elsewhere);
        let mut late = None;
        for (node, counts) in self.elsewhere.iter_mut().enumerate() {
            let in_line = |(index, user): (usize, &User)| {
                user.home() as usize == node
                    && is_waiting(user)
                    && user.class() == entered.class()
                    && known(UserId(index as u32))
            };
            if node == entered.home() as usize {
                counts[class] = 0;
            } else if users.iter().enumerate().any(in_line) {
                counts[class] += 1;
                if counts[class] > most {
                    let count = counts[class];
                    late = Some(format!(
                        "n{node} waits for its turn: {count} went before, at most {most} may"
                    ));
                }
            }
        }
        late
    }
}

fn is_waiting(user: &User) -> bool {
    crate::User::phase(user) == Phase::Waiting
}

/// Somebody who is known to wait by this class.
fn waits(users: &[User], class: Class, known: &dyn Fn(UserId) -> bool) -> Option<UserId> {
    let mut all = UserId::all(users.len());
    all.find(|user| {
        let state = &users[user.index()];
        is_waiting(state) && state.class() == class && known(*user)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Ask, Tell, Trade};
    use super::*;
    use crate::User as _;

    const PROMISE: Promise = Promise {
        query: 2,
        elsewhere: 1,
    };

    fn user(home: u32, class: Class, phase: Phase) -> User {
        let mut user = User::new(Trade::Only(class), home, 0, PROMISE);
        if phase != Phase::Idle {
            user.asked(Ask::Enter(class));
        }
        if phase == Phase::Inside {
            user.told(Tell::Entered(class)).expect("asked");
        }
        user
    }

    fn enters(bounds: &mut Bounds, users: &[User], knows: bool) -> Option<String> {
        bounds.entered(users, UserId(0), Admission::Decided, &|_| knows)
    }

    /// A class is let in, and others wait.
    fn scene(class: Class, waiting: &[(u32, Class)]) -> Vec<User> {
        let waiting = waiting
            .iter()
            .map(|&(home, class)| user(home, class, Phase::Waiting));
        let first = std::iter::once(user(0, class, Phase::Inside));
        first.chain(waiting).collect()
    }

    #[test]
    fn reservations_pass_a_query_as_often_as_promised_and_then_it_goes_first() {
        let passes = scene(Class::Reservation, &[(1, Class::Query)]);
        let query_first = scene(Class::Query, &[(0, Class::Reservation)]);
        let mut bounds = Bounds::new(&passes);
        assert!(
            enters(&mut bounds.clone(), &query_first, true).is_some(),
            "too early"
        );
        assert_eq!(enters(&mut bounds, &passes, false), None, "nobody knows");
        assert_eq!(enters(&mut bounds, &passes, true), None);
        assert!(
            enters(&mut bounds.clone(), &query_first, true).is_some(),
            "too early"
        );
        assert_eq!(enters(&mut bounds, &passes, true), None);
        assert!(
            enters(&mut bounds.clone(), &passes, true).is_some(),
            "too often"
        );
        assert_eq!(enters(&mut bounds, &query_first, true), None, "its turn");
        assert!(
            enters(&mut bounds, &query_first, true).is_some(),
            "the count starts again"
        );
    }

    #[test]
    fn a_cancellation_that_is_known_goes_first() {
        for class in [Class::Reservation, Class::Query] {
            let users = scene(class, &[(1, Class::Cancel)]);
            let mut bounds = Bounds::new(&users);
            assert!(
                enters(&mut bounds.clone(), &users, true).is_some(),
                "{class:?}"
            );
            assert_eq!(enters(&mut bounds, &users, false), None, "{class:?}");
        }
    }

    #[test]
    fn lending_a_query_token_is_a_grant() {
        let users = scene(Class::Query, &[(1, Class::Query), (1, Class::Reservation)]);
        let mut bounds = Bounds::new(&users);
        let grant = Grant::Entry(Class::Query.index() as u32);
        assert!(bounds.sent(&users, NodeId(0), grant, &|_| true).is_some());
        assert_eq!(bounds.sent(&users, NodeId(0), grant, &|_| false), None);
        assert_eq!(
            bounds.sent(&users, NodeId(0), Grant::Token, &|_| true),
            None
        );
        assert_eq!(bounds.received(&users, NodeId(1), grant), None);
        assert!(bounds.received(&users, NodeId(0), grant).is_some());
        assert!(bounds.received(&users, NodeId(0), Grant::Token).is_some());
        let cancels = Grant::Entry(Class::Cancel.index() as u32);
        assert!(bounds.received(&users, NodeId(1), cancels).is_some());
        assert_eq!(bounds.received(&users, NodeId(1), Grant::Token), None);
        let entry = bounds.entered(&users, UserId(0), Admission::Granted, &|_| true);
        assert_eq!(entry, None, "its sender was judged");
    }

    #[test]
    fn a_node_waits_for_its_turn_as_long_as_promised() {
        for class in [Class::Cancel, Class::Reservation] {
            let users = scene(class, &[(1, class)]);
            let mut bounds = Bounds::new(&users);
            assert_eq!(enters(&mut bounds, &users, true), None);
            assert!(enters(&mut bounds.clone(), &users, true).is_some());
            let mut theirs = users.clone();
            theirs.swap(0, 1);
            theirs[0].told(Tell::Entered(class)).expect("it waits");
            assert_eq!(enters(&mut bounds, &theirs, true), None, "it has its turn");
            assert_eq!(enters(&mut bounds, &users, true), None);
        }
    }
}
