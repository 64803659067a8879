//! The words of mutual exclusion, its user, and its property.

use std::sync::Arc;

use crate::rooms::{Plan, Rooms, rooms_over};
use crate::{Machine, Next, Phase, Problem, Protocol, Shape, Tally};

/// The problem of mutual exclusion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mutex;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ask {
    Enter,
    Leave,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tell {
    Entered,
    /// To a holder: somebody else waits, as far as this node can know.
    Wanted,
}

impl Problem for Mutex {
    const NAME: &'static str = "mutex";
    type Ask = Ask;
    type Tell = Tell;
    type User = User;
    type Monitor = ();

    fn violation(users: &[User]) -> Option<String> {
        let inside = || {
            users
                .iter()
                .enumerate()
                .filter(|(_, user)| user.phase == Phase::Inside)
        };
        if inside().count() < 2 {
            return None;
        }
        let names: Vec<String> = inside().map(|(node, _)| format!("p{node}")).collect();
        Some(format!("{} are inside together", names.join(" and ")))
    }

    fn may_violate(tally: &Tally) -> bool {
        tally.inside() > 1
    }

    fn may_violate_at_rest(_: &Tally) -> bool {
        false
    }

    fn rooms<P: Protocol<Problem = Mutex>>(
        shape: &Shape,
        config: &Arc<P::Config>,
        plan: Plan,
    ) -> Option<Box<dyn Machine<Rooms>>> {
        Some(rooms_over::<P>(shape, Arc::clone(config), plan))
    }
}

/// A user of a mutex: idle, then waiting, then inside, then idle again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct User {
    phase: Phase,
}

impl Default for User {
    fn default() -> Self {
        User { phase: Phase::Idle }
    }
}

impl crate::User<Mutex> for User {
    fn next(&self) -> Next<Ask> {
        match self.phase {
            Phase::Idle => Next::May(Ask::Enter),
            Phase::Waiting => Next::Nothing,
            Phase::Inside => Next::Must(Ask::Leave),
        }
    }

    fn asked(&mut self, ask: Ask) {
        self.phase = match ask {
            Ask::Enter => Phase::Waiting,
            Ask::Leave => Phase::Idle,
        };
    }

    fn told(&mut self, tell: Tell) -> Result<(), String> {
        match (tell, self.phase) {
            (Tell::Entered, Phase::Waiting) => {
                self.phase = Phase::Inside;
                Ok(())
            }
            (Tell::Wanted, Phase::Inside) => Ok(()),
            (Tell::Entered, _) => Err("told Entered without having asked".into()),
            (Tell::Wanted, _) => Err("told Wanted without being inside".into()),
        }
    }

    fn phase(&self) -> Phase {
        self.phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User as _;

    #[test]
    fn two_inside_are_a_violation_and_one_is_not() {
        let mut users = [User::default(), User::default()];
        for user in &mut users {
            user.asked(Ask::Enter);
        }
        users[0].told(Tell::Entered).expect("asked");
        assert_eq!(Mutex::violation(&users), None);
        users[1].told(Tell::Entered).expect("asked");
        assert_eq!(
            Mutex::violation(&users),
            Some("p0 and p1 are inside together".into())
        );
    }

    #[test]
    fn entering_unasked_is_not_well_formed() {
        let mut user = User::default();
        assert!(user.told(Tell::Entered).is_err());
        assert!(user.told(Tell::Wanted).is_err());
    }
}
