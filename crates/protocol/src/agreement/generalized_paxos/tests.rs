//! Generalized Paxos played by hand: commands that commute, and commands that conflict.

use super::super::alone::Alone;
use super::super::rehearsal::Rehearsal;
use super::*;

const WRITE_0: u32 = 0;
const WRITE_1: u32 = 2;

fn rehearsal(conflict: Conflict) -> Rehearsal {
    Rehearsal::new(&*machine(&Setup::new(4), conflict).expect("valid"))
}

/// p0 and p1 propose these, which reach p2 and p3 in different orders.
fn two_commands(choices: [u32; 2], conflict: Conflict) -> Rehearsal {
    let mut run = rehearsal(conflict);
    run.propose_choice(0, choices[0]);
    run.propose_choice(1, choices[1]);
    run.deliver(0, 2);
    run.deliver(1, 3);
    run
}

fn recovers(run: &Rehearsal) -> bool {
    run.kinds().iter().any(|(kind, _)| kind == "Prepare")
}

/// §5.5.4: N = 4, fast quorum 3; two writes to different keys are learned in the fast round.
#[test]
fn writes_to_different_keys_need_no_recovery() {
    let mut run = two_commands([WRITE_0, WRITE_1], conflict);
    run.settle();
    assert!(run.users.iter().all(|user| user.decided.len() == 2));
    assert!(!recovers(&run));
    let orders: Vec<_> = run.users.iter().map(|user| user.decided.clone()).collect();
    assert!(
        orders.windows(2).any(|pair| pair[0] != pair[1]),
        "{orders:?}"
    );
    assert_eq!((run.violation(), run.unserved()), (None, None));
}

/// §5.5.4: two writes to the same key force recovery.
#[test]
fn writes_to_the_same_key_force_recovery() {
    let mut run = two_commands([WRITE_0, WRITE_0], conflict);
    run.settle();
    assert!(run.users.iter().all(|user| user.decided.is_empty()));
    run.play();
    assert!(recovers(&run));
    assert!(run.users.iter().all(|user| user.decided.len() == 2));
    assert_eq!((run.violation(), run.unserved()), (None, None));
}

#[test]
fn who_sees_no_conflict_learns_in_different_orders() {
    let mut run = two_commands([WRITE_0, WRITE_0], |_, _| false);
    run.settle();
    let what = run.violation().expect("incompatible");
    assert!(what.contains("conflict"), "{what}");
}

#[test]
fn a_crash_is_survived() {
    let mut run = two_commands([WRITE_0, WRITE_0], conflict);
    run.crash(3);
    run.play();
    assert!(run.users[..3].iter().all(|user| user.decided.len() == 2));
    assert_eq!((run.violation(), run.unserved()), (None, None));
    run.restart(3);
    run.propose_choice(3, WRITE_0);
    run.play();
    assert_eq!(run.violation(), None);
    assert!(
        run.users.iter().all(|user| user.decided.len() == 3),
        "{:?}",
        run.users
    );
}

fn config() -> Config {
    Config {
        nodes: 4,
        quorums: Quorums::of(4),
        delay_bound: 1,
        conflict,
    }
}

/// Writes to the same key.
const WRITES: [Value; 2] = [Value(1), Value(1 + COMMANDS)];

/// §5.5.4: a history that was reported does not grow until the next ballot begins.
#[test]
fn an_acceptor_appends_nothing_after_a_promise() {
    let mut acceptor: Alone<GeneralizedPaxos> = Alone::new(1, config());
    let [first, second] = WRITES;
    acceptor.hear(0, Talk::Propose(first));
    let next = Ballot::of(1, 2);
    let reported = History(vec![first]);
    let promise = Talk::Promise(next, FIRST, reported.clone());
    assert_eq!(acceptor.hear(2, Talk::Prepare(next)), [promise]);
    assert_eq!(acceptor.hear(3, Talk::Propose(second)), []);
    assert_eq!(acceptor.node.acceptor.history, reported);
    let both = Talk::Accepted(next, History(vec![first, second]));
    assert_eq!(acceptor.hear(2, Talk::Accept(next, reported)), [both]);
}

/// §5.5.4: two of a classic quorum and the acceptor outside of it are a fast quorum, which may have learned their order.
#[test]
fn what_a_fast_quorum_may_have_learned_is_safe_in_spite_of_a_dissenter() {
    let [first, second] = WRITES;
    let order = History(vec![first, second]);
    let other = History(vec![second, first]);
    for dissenter in 0..3 {
        let history = |node: NodeId| match node.0 == dissenter {
            true => other.clone(),
            false => order.clone(),
        };
        let promises = NodeId::all(3).map(|node| (node, (FIRST, history(node))));
        assert_eq!(proved_safe(&promises.collect(), &config()), order);
    }
}
