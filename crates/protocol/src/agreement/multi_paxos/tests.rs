//! Multi-Paxos played by hand: a stable leader, and a new one that takes up what may be chosen.

use super::super::alone::Alone;
use super::super::rehearsal::Rehearsal;
use super::*;

fn rehearsal(nodes: usize, flaw: Option<Flaw>) -> Rehearsal {
    Rehearsal::new(&*machine(&Setup::new(nodes), flaw).expect("valid"))
}

/// §5.5.1: phase 1 is dropped after the first command of a stable leader.
#[test]
fn phase_1_is_done_once() {
    let mut run = rehearsal(4, None);
    run.propose(0);
    run.settle();
    let first = run.messages();
    assert_eq!(first, 3 + 3 + 15);
    for _ in 0..5 {
        let before = run.messages();
        run.propose(0);
        run.settle();
        assert_eq!(run.messages() - before, 15);
    }
    run.propose(2);
    run.settle();
    assert_eq!(
        run.messages(),
        first + 6 * 15 + 1,
        "a follower sends its command"
    );
    assert_eq!((run.violation(), run.unserved()), (None, None));
}

#[test]
fn a_new_leader_proposes_again_what_may_be_chosen() {
    for (flaw, broken) in [(None, false), (Some(Flaw::ForgetsReports), true)] {
        let mut run = rehearsal(3, flaw);
        run.propose(0);
        run.lose_all(0, 2);
        run.deliver_all(0, 1);
        run.deliver_all(1, 0);
        run.lose_all(0, 2);
        run.deliver_all(0, 1);
        run.deliver_all(1, 0);
        assert!(run.decisions(0)[0].is_some(), "p0 and p1 accepted");
        run.lose_all(0, 2);
        run.lose_all(1, 2);
        run.crash(0);
        run.propose(2);
        run.play();
        assert_eq!(run.violation().is_some(), broken, "{:?}", run.users);
    }
}

#[test]
fn gaps_are_filled_with_no_ops() {
    let mut run = rehearsal(3, None);
    run.propose(0);
    run.settle();
    // Of two more commands, nobody but the leader hears of the first.
    run.propose(0);
    run.lose_all(0, 1);
    run.lose_all(0, 2);
    run.propose(1);
    run.deliver(1, 0);
    run.lose_all(0, 1);
    assert!(run.deliver(0, 2).contains("Accept"));
    run.crash(0);
    run.play();
    assert_eq!(run.decisions(1)[2], Some(Value::DEFAULT), "{:?}", run.users);
    assert_eq!(run.decisions(2)[1..], [Some(Value(2)); 2]);
    assert_eq!((run.violation(), run.unserved()), (None, None));
}

#[test]
fn who_comes_back_learns_the_log_again() {
    let mut run = rehearsal(3, None);
    run.propose(0);
    run.settle();
    run.crash(2);
    run.propose(1);
    run.settle();
    run.restart(2);
    run.propose(2);
    run.play();
    assert!(
        (0..3).all(|slot| run.decisions(slot)[2].is_some()),
        "{:?}",
        run.users
    );
    assert_eq!(run.violation(), None);
}

/// One of so many nodes.
fn alone(id: u32, nodes: usize) -> Alone<MultiPaxos> {
    let config = Config {
        nodes,
        delay_bound: 1,
        flaw: None,
    };
    Alone::new(id, config)
}

/// §5.5.1: of several reports for a slot, only that of the largest number may be chosen.
#[test]
fn the_report_with_the_largest_number_is_proposed_again() {
    let [older, newer] = [
        (0, Ballot::of(1, 3), Value(4)),
        (0, Ballot::of(2, 1), Value(2)),
    ];
    for reports in [[older, newer], [newer, older]] {
        let mut leader = alone(0, 5);
        leader.node.round = Some(2);
        leader.propose(Value(1));
        let ballot = Ballot::of(3, 0);
        assert_eq!(leader.hear(1, Talk::Promise(ballot, vec![reports[0]])), []);
        let said = leader.hear(2, Talk::Promise(ballot, vec![reports[1]]));
        assert_eq!(said[0], Talk::Accept(ballot, 0, Value(2)), "{reports:?}");
    }
}

#[test]
fn a_number_is_not_used_again_after_a_crash() {
    let mut leader = alone(0, 3);
    for round in 0..2 {
        let prepare = Talk::Prepare(Ballot::of(round, 0), 0);
        assert_eq!(leader.propose(Value(1)), [prepare]);
        leader.crash_and_restart();
    }
}
