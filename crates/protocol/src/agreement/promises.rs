//! What an algorithm promises its users, and the judgement of their histories by it.

use super::history::{History, conflict};
use super::user::{Instance, User, Value, commander};

/// What an algorithm promises, and what its users propose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Promises {
    pub decisions: Decisions,
    pub validity: Validity,
    /// Whether what was told to a user whose node crashed later binds the others, too.
    pub uniform: bool,
    /// How many of the users propose: the first ones. The others listen.
    pub proposers: u32,
    /// How many decisions a user takes part in, where it does not go on for ever.
    pub instances: u32,
    /// Among how many values a user chooses.
    pub choices: u32,
}

impl Promises {
    /// One decision for each instance, of a value that was proposed; everybody proposes its own.
    pub const CONSENSUS: Promises = Promises {
        decisions: Decisions::Single,
        validity: Validity::Proposed,
        uniform: true,
        proposers: u32::MAX,
        instances: u32::MAX,
        choices: 1,
    };

    /// What the user proposes for an instance.
    pub(super) fn value(&self, id: u32, users: u32, instance: Instance, choice: u32) -> Value {
        Value(match (self.decisions, self.validity) {
            (_, Validity::Commander) => 1 + (instance / users + choice) % ORDERS,
            (_, Validity::Unanimous) => 1 + choice,
            (Decisions::Single, Validity::Proposed) => 1 + id * self.choices + choice,
            // No two commands are equal.
            (Decisions::Log | Decisions::Commands, Validity::Proposed) => {
                1 + (instance * users + id) * self.choices + choice
            }
        })
    }
}

impl Default for Promises {
    fn default() -> Self {
        Promises::CONSENSUS
    }
}

/// How many orders there are besides the default: with three, a lying commander of four can tell everybody another.
pub const ORDERS: u32 = 3;

/// What is decided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Decisions {
    /// One value for each instance. Whoever proposes is served when it knows which.
    Single,
    /// The places of a log, in order and without a gap. Whoever proposes is served when it finds its value there.
    Log,
    /// Commands, each user in an order of its own that may differ where commands commute.
    Commands,
}

/// Which values may be decided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Validity {
    /// One that somebody proposed, for this instance where there are instances. A log may have
    /// [`Value::DEFAULT`] where nothing was proposed, and changes that the algorithm proposes to itself.
    Proposed,
    /// That of the commander, where it is loyal (§5.2, IC2).
    Commander,
    /// 1 (yes, commit) only if every user proposed it; 2 (no, abort) only if somebody did not, a node has failed, or a timer
    /// has fired.
    Unanimous,
}

/// Agreement (§5.1; IC1 in §5.2): two users were told different things.
pub(super) fn disagreement(users: &[User]) -> Option<String> {
    let bound = || users.iter().filter(|user| user.is_bound());
    for one in bound() {
        for other in bound().filter(|other| other.id > one.id) {
            let differs = match one.promises.decisions {
                Decisions::Single | Decisions::Log => difference(one, other),
                Decisions::Commands => clash(one, other).or_else(|| clash(other, one)),
            };
            if differs.is_some() {
                return differs;
            }
        }
    }
    None
}

fn difference(one: &User, other: &User) -> Option<String> {
    let differs = |(instance, value): &&(Instance, Value)| {
        other.decision(*instance).is_some_and(|told| told != *value)
    };
    let (instance, value) = one.decided.iter().find(differs)?;
    let told = other.decision(*instance)?;
    Some(format!(
        "instance {instance} decided {value:?} for p{} and {told:?} for p{}",
        one.id, other.id
    ))
}

/// What users learned has a common continuation (§5.5.4).
fn clash(one: &User, other: &User) -> Option<String> {
    let learned = |user: &User| History(user.decided.iter().map(|(_, value)| *value).collect());
    let (earlier, later) = learned(one).clash(&learned(other), conflict)?;
    Some(format!(
        "{earlier:?} and {later:?} conflict: p{} learned them in this order, and p{} learned {later:?} without {earlier:?} before it",
        one.id, other.id
    ))
}

/// Validity: a user was told of a decision that is none.
pub(super) fn unproposed(users: &[User]) -> Option<String> {
    let bound = users.iter().filter(|user| user.is_bound());
    for user in bound {
        for &(instance, value) in &user.decided {
            let wrong = match user.promises.validity {
                Validity::Proposed => not_proposed(users, user, instance, value),
                Validity::Commander => not_ordered(users, instance, value),
                Validity::Unanimous => not_unanimous(users, instance, value),
            };
            if let Some(why) = wrong {
                return Some(format!(
                    "instance {instance} decided {value:?} for p{}, {why}",
                    user.id
                ));
            }
        }
    }
    None
}

fn not_proposed(users: &[User], told: &User, instance: Instance, value: Value) -> Option<String> {
    let single = told.promises.decisions == Decisions::Single;
    if !single && (value == Value::DEFAULT || value.removed().is_some()) {
        return None;
    }
    let mine = |&(i, v): &(Instance, Value)| v == value && (!single || i == instance);
    // A liar's user proposes whatever its node says that it does.
    let proposed = |user: &User| user.lies || user.proposed.iter().any(mine);
    (!users.iter().any(proposed)).then(|| "which nobody proposed".into())
}

fn not_ordered(users: &[User], instance: Instance, value: Value) -> Option<String> {
    let commander = &users[commander(instance, users.len()) as usize];
    if !commander.is_correct() {
        return None;
    }
    let order = commander.proposed.iter().find(|(i, _)| *i == instance);
    match order {
        Some((_, order)) if *order == value => None,
        Some((_, order)) => Some(format!("and its loyal commander ordered {order:?}")),
        None => Some("and its loyal commander has not ordered anything".into()),
    }
}

fn not_unanimous(users: &[User], instance: Instance, value: Value) -> Option<String> {
    let yes = |user: &&User| user.proposed.contains(&(instance, Value(1)));
    match users.iter().find(|user| !yes(user)) {
        Some(against) => (value == Value(1)).then(|| format!("without the yes of p{}", against.id)),
        None => {
            let undisturbed = |user: &User| user.is_correct() && !user.timed_out;
            (value != Value(1) && users.iter().all(undisturbed))
                .then(|| "although everybody voted yes, no node failed and no timer fired".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::user::{Agreement, Ask, Tell};
    use super::*;
    use crate::{Next, Phase, Problem, User as _, UserId};

    fn users(promises: Promises) -> Vec<User> {
        UserId::all(3)
            .map(|id| User::new(id, 3, promises))
            .collect()
    }

    fn propose(user: &mut User) -> Value {
        let Next::May(ask) = user.next() else {
            panic!("{user:?} does not propose");
        };
        user.asked(ask);
        let Ask::Propose { value, .. } = ask;
        value
    }

    fn tell(user: &mut User, instance: Instance, value: Value) {
        user.told(Tell::Decided { instance, value })
            .expect("well-formed");
    }

    #[test]
    fn different_decisions_violate_agreement() {
        let mut users = users(Promises::CONSENSUS);
        let (one, two) = (propose(&mut users[0]), propose(&mut users[1]));
        tell(&mut users[0], 0, one);
        assert_eq!(users[0].phase(), Phase::Idle);
        tell(&mut users[2], 0, one);
        assert_eq!(Agreement::violation(&users), None);
        tell(&mut users[1], 0, two);
        let what = Agreement::violation(&users).expect("two decisions");
        assert!(what.contains("v1 for p0 and v2 for p1"), "{what}");
    }

    #[test]
    fn a_crash_frees_from_agreement_unless_it_is_uniform() {
        for uniform in [false, true] {
            let mut users = users(Promises {
                uniform,
                ..Promises::CONSENSUS
            });
            let (one, two) = (propose(&mut users[0]), propose(&mut users[1]));
            tell(&mut users[0], 0, one);
            users[0] = users[0].crashed(&users[0]);
            tell(&mut users[1], 0, two);
            assert_eq!(Agreement::violation(&users).is_some(), uniform);
        }
    }

    #[test]
    fn what_nobody_proposed_violates_validity() {
        let mut users = users(Promises::CONSENSUS);
        propose(&mut users[0]);
        tell(&mut users[2], 0, Value(3));
        let what = Agreement::violation(&users).expect("not proposed");
        assert!(what.contains("which nobody proposed"), "{what}");
    }

    #[test]
    fn a_loyal_commander_is_obeyed() {
        let mut users = users(Promises {
            validity: Validity::Commander,
            ..Promises::CONSENSUS
        });
        let order = propose(&mut users[1]);
        tell(&mut users[0], 1, order);
        assert_eq!(Agreement::violation(&users), None);
        tell(&mut users[2], 1, Value::DEFAULT);
        let mut lying = users.clone();
        lying[1].lies = true;
        lying[0].lies = true;
        assert_eq!(Agreement::violation(&lying), None, "its commander lies");
        users[0].lies = true;
        let what = Agreement::violation(&users).expect("disobeyed");
        assert!(what.contains("loyal commander ordered v1"), "{what}");
    }

    #[test]
    fn a_commit_needs_every_yes() {
        let promises = Promises {
            validity: Validity::Unanimous,
            choices: 2,
            ..Promises::CONSENSUS
        };
        let mut users = users(promises);
        for (user, choice) in [(0, 0), (1, 0), (2, 1)] {
            let Next::May(ask) = users[user].choose(choice) else {
                panic!("a user may vote");
            };
            users[user].asked(ask);
        }
        tell(&mut users[0], 0, Value(2));
        assert_eq!(Agreement::violation(&users), None);
        users[1].decided.clear();
        tell(&mut users[1], 0, Value(1));
        users[0].decided.clear();
        let what = Agreement::violation(&users).expect("p2 voted no");
        assert!(what.contains("without the yes of p2"), "{what}");
    }

    #[test]
    fn an_abort_needs_a_no_or_a_disturbance() {
        let promises = Promises {
            validity: Validity::Unanimous,
            choices: 2,
            ..Promises::CONSENSUS
        };
        let mut users = users(promises);
        for user in &mut users {
            propose(user);
        }
        tell(&mut users[0], 0, Value(2));
        let what = Agreement::violation(&users).expect("everybody voted yes");
        assert!(what.contains("although everybody voted yes"), "{what}");
        let mut late = users.clone();
        late[1].timed_out();
        assert_eq!(Agreement::violation(&late), None);
        users[2] = users[2].crashed(&users[2]);
        assert_eq!(Agreement::violation(&users), None);
    }

    #[test]
    fn a_log_has_no_gaps_and_serves_by_value() {
        let mut users = users(Promises {
            decisions: Decisions::Log,
            ..Promises::CONSENSUS
        });
        let (one, two) = (propose(&mut users[0]), propose(&mut users[1]));
        let skipped = Tell::Decided {
            instance: 1,
            value: one,
        };
        assert!(users[0].told(skipped).is_err());
        tell(&mut users[0], 0, two);
        assert_eq!(users[0].phase(), Phase::Waiting);
        tell(&mut users[0], 1, one);
        assert_eq!(users[0].phase(), Phase::Idle);
        let changed = Tell::Decided {
            instance: 0,
            value: one,
        };
        assert!(users[0].told(changed).is_err(), "decided is decided");
        let missing = Agreement::unserved(&users).expect("p1 knows nothing");
        assert!(missing.contains("p1 never"), "{missing}");
    }

    #[test]
    fn the_next_instance_is_the_first_of_unknown_end() {
        let mut user = users(Promises::CONSENSUS).remove(0);
        tell(&mut user, 1, Value(1));
        propose(&mut user);
        assert_eq!(user.proposed, [(0, Value(1))]);
        tell(&mut user, 0, Value(1));
        propose(&mut user);
        assert_eq!(user.proposed[1].0, 2);
    }
}
