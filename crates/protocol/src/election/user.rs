//! The words of election, its user, and its property (coordination and agreement §3.1).

use crate::{Counted, Next, NodeId, Phase, Problem, User, UserId};

/// The problem of election.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Election;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ask {
    /// Hold an election.
    Call,
    /// Hold an election: the user has noticed that this process has crashed.
    CallWithout(NodeId),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tell {
    /// The node takes part in an election; e := ⊥.
    Participates,
    /// e := this one.
    Elected(NodeId),
}

impl Problem for Election {
    const NAME: &'static str = "election";
    const COUNTED: Counted = Counted::ELECTIONS;
    type Ask = Ask;
    type Tell = Tell;
    type User = Candidate;
    type Monitor = ();

    /// Where only the largest can ever be elected, nobody may be told of another, not even for a while.
    fn violation(users: &[Candidate]) -> Option<String> {
        let wrong = |user: &&Candidate| user.claims_always && is_wrong(users, user);
        told_wrongly(users, users.iter().find(wrong)?)
    }

    /// E1: nobody who lives takes a process for elected that lives and is not the largest that does. An elected
    /// process whose crash nobody has noticed is not judged.
    fn violation_at_rest(users: &[Candidate]) -> Option<String> {
        told_wrongly(users, users.iter().find(|user| is_wrong(users, user))?)
    }

    /// E2: whoever takes part learns who was elected, and so does everybody else.
    fn unserved(users: &[Candidate]) -> Option<String> {
        let live = || users.iter().filter(|user| !user.down);
        let knows = |user: &Candidate| user.elected.is_some_and(|e| !users[e.index()].down);
        let elected = live().any(knows);
        let misses = |user: &&Candidate| user.elected.is_none() && (user.participates || elected);
        let user = live().find(misses)?;
        Some(format!("p{} never learns who is elected", user.me))
    }
}

fn is_wrong(users: &[Candidate], user: &Candidate) -> bool {
    let lives = |elected: &NodeId| users.get(elected.index()).is_some_and(|e| !e.down);
    let elected = user.elected.filter(lives);
    !user.down && elected.is_some_and(|elected| Some(elected) != largest(users))
}

fn largest(users: &[Candidate]) -> Option<NodeId> {
    let live = users.iter().filter(|user| !user.down);
    live.map(|user| NodeId(user.me)).max()
}

fn told_wrongly(users: &[Candidate], user: &Candidate) -> Option<String> {
    let (elected, largest) = (user.elected?, largest(users)?);
    Some(format!(
        "p{} takes p{elected} for elected, and p{largest} lives",
        user.me
    ))
}

/// A user of an election: it calls one, and knows what its process knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Candidate {
    me: u32,
    /// Whether nobody is ever told of another than the largest, by this algorithm.
    claims_always: bool,
    waits: bool,
    down: bool,
    participates: bool,
    /// e, as its process last told it.
    elected: Option<NodeId>,
}

impl Candidate {
    /// Makes users; `claims_always` where only the largest can ever be elected.
    pub(super) fn of(claims_always: bool) -> impl Fn(UserId) -> Candidate {
        move |user| Candidate {
            me: user.0,
            claims_always,
            ..Candidate::default()
        }
    }

    /// Who is elected, as far as it knows.
    pub fn elected(&self) -> Option<NodeId> {
        self.elected
    }
}

impl User<Election> for Candidate {
    fn next(&self) -> Next<Ask> {
        match self.waits || self.down {
            true => Next::Nothing,
            false => Next::May(Ask::Call),
        }
    }

    fn asked(&mut self, _: Ask) {
        self.waits = true;
    }

    fn told(&mut self, tell: Tell) -> Result<(), String> {
        match tell {
            Tell::Participates => (self.participates, self.elected) = (true, None),
            Tell::Elected(elected) => {
                (self.participates, self.elected) = (false, Some(elected));
                self.waits = false;
            }
        }
        Ok(())
    }

    fn phase(&self) -> Phase {
        match self.waits {
            true => Phase::Waiting,
            false => Phase::Idle,
        }
    }

    fn crashed(&self, first: &Candidate) -> Candidate {
        Candidate {
            down: true,
            ..*first
        }
    }

    fn restarted(&mut self) {
        self.down = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Vec<Candidate> {
        let of = Candidate::of(false);
        UserId::all(3).map(of).collect()
    }

    #[test]
    fn a_smaller_one_that_lives_is_wrong_at_rest() {
        let mut users = three();
        users[0]
            .told(Tell::Elected(NodeId(1)))
            .expect("well-formed");
        assert_eq!(Election::violation(&users), None, "it may still change");
        let what = Election::violation_at_rest(&users).expect("wrong");
        assert_eq!(what, "p0 takes p1 for elected, and p2 lives");
        users[2] = users[2].crashed(&three()[2]);
        assert_eq!(Election::violation_at_rest(&users), None);
        users[2].restarted();
        assert!(Election::violation_at_rest(&users).is_some());
    }

    #[test]
    fn everybody_must_learn_it() {
        let mut users = three();
        assert_eq!(Election::unserved(&users), None, "nobody has called");
        users[1].told(Tell::Participates).expect("well-formed");
        let what = Election::unserved(&users).expect("missing");
        assert_eq!(what, "p1 never learns who is elected");
        for user in &mut users[1..] {
            user.told(Tell::Elected(NodeId(2))).expect("well-formed");
        }
        let what = Election::unserved(&users).expect("missing");
        assert_eq!(what, "p0 never learns who is elected");
    }
}
