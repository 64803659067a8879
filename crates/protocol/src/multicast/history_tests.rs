//! Each monitor sees what it is there for, in histories written by hand, and nothing in those that are right.

use super::user::Event;
use super::*;
use crate::{Problem, User as _, UserId};

const NONE: Promises = Promises {
    integrity: false,
    validity: false,
    agreement: false,
    uniform: false,
    fifo: false,
    causal: false,
    total: false,
};

/// `s0` multicasts to group 0, `d1.2` delivers the second multicast of node 1; `s@1` is for group 1.
fn users(groups: usize, promises: Promises, histories: &[&str]) -> Vec<User> {
    let groups = Groups::new(histories.len(), Some(groups)).expect("valid");
    let mut users: Vec<User> = UserId::all(histories.len())
        .map(|user| User::new(user, groups, promises))
        .collect();
    for (user, history) in users.iter_mut().zip(histories) {
        for word in history.split_whitespace() {
            let (word, group) = word.split_once('@').unwrap_or((word, "0"));
            let group = Group(group.parse().expect("a group"));
            match word.strip_prefix('d').and_then(|cast| cast.split_once('.')) {
                None => user.asked(Ask::Multicast(group)),
                Some((sender, number)) => {
                    let cast = Cast {
                        sender: crate::NodeId(sender.parse().expect("a sender")),
                        number: number.parse().expect("a number"),
                        group,
                    };
                    user.told(Tell::Delivered(cast)).expect("well-formed");
                }
            }
        }
    }
    users
}

fn violation(promises: Promises, histories: &[&str]) -> Option<String> {
    Multicast::violation(&users(1, promises, histories))
}

#[test]
fn integrity() {
    let promises = Promises {
        integrity: true,
        ..NONE
    };
    assert_eq!(violation(promises, &["s d0.1", "d0.1"]), None);
    let twice = violation(promises, &["s d0.1", "d0.1 d0.1"]);
    assert_eq!(twice.as_deref(), Some("p1 delivers p0.1 twice"));
    let unsent = violation(promises, &["s d0.1", "d0.2"]);
    assert_eq!(
        unsent.as_deref(),
        Some("p1 delivers p0.2, which nobody multicast")
    );
    let zero = violation(promises, &["s", "d0.0"]);
    assert_eq!(
        zero.as_deref(),
        Some("p1 delivers p0.0, which nobody multicast")
    );
    let elsewhere = Multicast::violation(&users(3, promises, &["s@2", "d0.1@2", "d0.1@2"]));
    assert_eq!(
        elsewhere.as_deref(),
        Some("p2 delivers p0.1@2 and is not in its group")
    );
    assert_eq!(
        violation(NONE, &["s d0.1", "d0.1 d0.1"]),
        None,
        "not claimed"
    );
}

#[test]
fn fifo() {
    let promises = Promises { fifo: true, ..NONE };
    assert_eq!(violation(promises, &["s s d0.1 d0.2", "d0.1 d0.2"]), None);
    let early = violation(promises, &["s s d0.1", "d0.2 d0.1"]);
    let what = "p1 delivers p0.2 before p0.1, which its sender multicast first";
    assert_eq!(early.as_deref(), Some(what));
    assert!(
        violation(promises, &["s s", "d0.2"]).is_some(),
        "one is left out"
    );
    // Only what is meant for a member counts, but over all its groups.
    let skips = ["s@1 s@2", "d0.2@2", ""];
    assert_eq!(Multicast::violation(&users(3, promises, &skips)), None);
    let across = ["s@1 s@2", "", "", "d0.2@2 d0.1@1"];
    assert!(Multicast::violation(&users(3, promises, &across)).is_some());
}

#[test]
fn causal() {
    let promises = Promises {
        causal: true,
        ..NONE
    };
    assert_eq!(
        violation(promises, &["s d0.1", "d0.1 s d1.1", "d0.1 d1.1"]),
        None
    );
    let early = violation(promises, &["s d0.1", "d0.1 s d1.1", "d1.1 d0.1"]);
    let what = "p2 delivers p1.1 before p0.1, which was multicast before it";
    assert_eq!(early.as_deref(), Some(what));
    let concurrent = ["s d0.1 d1.1", "s d1.1 d0.1"];
    assert_eq!(violation(promises, &concurrent), None);
    // Through a group that the last member is not in.
    let round = ["d1.2@2 s@1", "s@0 s@2", "d0.1@1 d1.1@0"];
    let what = "p2 delivers p0.1@1 before p1.1, which was multicast before it";
    let found = Multicast::violation(&users(3, promises, &round));
    assert_eq!(found.as_deref(), Some(what));
}

#[test]
fn total() {
    let promises = Promises {
        total: true,
        ..NONE
    };
    let senders = ["s d0.1 d1.1", "s d0.1", ""];
    assert_eq!(
        violation(promises, &senders),
        None,
        "who is behind is not wrong"
    );
    let swapped = violation(promises, &["s d0.1 d1.1", "s d1.1 d0.1"]);
    assert_eq!(
        swapped.as_deref(),
        Some("p0 delivers p0.1 where p1 delivers p1.1")
    );
    assert!(
        violation(promises, &["s d0.1 d1.1", "s d1.1"]).is_some(),
        "one is left out"
    );
    // Every pair of members agrees, and all together go round in a circle.
    let circle = ["s@1 s@2 d0.1@1 d0.2@2", "s@0 d0.2@2 d1.1", "d1.1 d0.1@1"];
    let found = Multicast::violation(&users(3, promises, &circle)).expect("a circle");
    assert!(found.contains("no one order"), "{found}");
}

#[test]
fn what_is_missing_in_the_end() {
    let histories = ["s d0.1", "d0.1", ""];
    let claims = |promises| Multicast::unserved(&users(1, promises, &histories));
    let validity = claims(Promises {
        validity: true,
        ..NONE
    });
    assert_eq!(
        validity.as_deref(),
        Some("p2 never delivers p0.1, whose sender is correct")
    );
    let crash = |promises, crashed: &[usize]| {
        let mut users = users(1, promises, &histories);
        for &node in crashed {
            users[node] = users[node].crashed(&User::default());
        }
        Multicast::unserved(&users)
    };
    let agreement = Promises {
        agreement: true,
        ..NONE
    };
    let uniform = Promises {
        uniform: true,
        ..NONE
    };
    let validity = Promises {
        validity: true,
        ..NONE
    };
    assert!(crash(validity, &[0]).is_none(), "the sender is not correct");
    assert!(crash(agreement, &[0]).is_some(), "p1 has it");
    assert!(
        crash(agreement, &[0, 1]).is_none(),
        "only crashed members have it"
    );
    assert!(crash(uniform, &[0, 1]).is_some());
    assert!(
        crash(uniform, &[2]).is_none(),
        "who has crashed is owed nothing"
    );
    assert_eq!(claims(NONE), None);
}

/// Who waits is served by its own multicast, and nothing that a node says after a crash counts.
#[test]
fn a_user_waits_for_its_own_multicast() {
    let mut user = users(1, NONE, &["s", "s d1.1"]);
    assert_eq!(user[0].phase(), crate::Phase::Waiting);
    assert_eq!(user[1].phase(), crate::Phase::Idle);
    let mut gone = user.swap_remove(0).crashed(&User::default());
    let cast = Cast {
        sender: crate::NodeId(0),
        number: 1,
        group: Group(0),
    };
    gone.told(Tell::Delivered(cast)).expect("ignored");
    assert_eq!(gone.phase(), crate::Phase::Idle);
    assert_eq!(gone.next(), crate::Next::Nothing);
    assert_eq!(gone.history, [Event::Sent(cast)]);
}
