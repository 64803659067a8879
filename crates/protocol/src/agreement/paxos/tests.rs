//! Paxos by hand: the schedules of its section.

use super::super::alone::Alone;
use super::super::rehearsal::Rehearsal;
use super::*;

fn rehearsal(nodes: usize, flaw: Option<Flaw>) -> Rehearsal {
    let setup = Setup::new(nodes);
    let config = Config {
        flaw,
        ..Config::new(&setup).expect("valid")
    };
    Rehearsal::new(&*machine(&setup, config).expect("valid"))
}

#[test]
fn a_lone_proposer_decides() {
    for nodes in [1, 3, 4, 7] {
        let mut run = rehearsal(nodes, None);
        run.propose(0);
        run.settle();
        assert!(run.decisions(0).iter().all(|told| *told == Some(Value(1))));
        let others = nodes as u64 - 1;
        assert_eq!(run.messages(), 3 * others + others * nodes as u64);
    }
}

/// A value that a quorum may have accepted is proposed again, by whoever comes later.
#[test]
fn what_was_accepted_binds_the_next_ballot() {
    let mut run = rehearsal(3, None);
    run.propose(0);
    run.deliver_all(0, 1);
    run.deliver_all(1, 0);
    // p0 has the promise of p1; its own acceptor and p1 accept.
    assert!(run.deliver(0, 1).starts_with("Accept("));
    run.crash(0);
    run.propose(2);
    run.play();
    assert_eq!(run.decisions(0)[1..], [Some(Value(1)); 2]);
    assert_eq!((run.violation(), run.unserved()), (None, None));
}

#[test]
fn a_refused_proposer_tries_again() {
    let mut run = rehearsal(3, None);
    run.propose(0);
    run.propose(1);
    run.deliver_all(1, 2);
    assert!(run.deliver(0, 2).starts_with("Prepare("));
    assert!(run.deliver(2, 0).starts_with("Nack(0.0, 0.1"));
    run.play();
    let told = run.decisions(0);
    assert!(
        told.iter().all(|told| *told == told_first(&run)),
        "{told:?}"
    );
}

fn told_first(run: &Rehearsal) -> Option<Value> {
    let first = run.decisions(0)[0];
    assert!(first.is_some());
    first
}

/// Ambiguity A: a0 accepts (1, v1); a1 and a2 accept (2, v2), which is chosen; ballot 3 reads a0 and a1.
#[test]
fn a_promise_without_its_number_is_not_enough() {
    for (flaw, broken) in [(None, false), (Some(Flaw::AnyAccepted), true)] {
        let mut run = rehearsal(3, flaw);
        run.propose(0);
        run.deliver_all(0, 1);
        run.deliver_all(1, 0);
        // Ballot 0.0 is accepted by a0 alone; ballot 0.1 by a1 and a2.
        run.propose(1);
        run.deliver_all(1, 2);
        run.deliver_all(2, 1);
        run.deliver_all(1, 2);
        run.deliver_all(2, 1);
        assert_eq!(run.decisions(0)[1], Some(Value(2)));
        // Ballot 1.0, by the timer of p0, reads a0 and a1.
        run.lose_all(0, 1);
        run.lose_all(0, 2);
        run.lose_all(1, 0);
        run.lose_all(2, 0);
        run.fire();
        run.deliver_all(0, 1);
        run.deliver_all(1, 0);
        run.deliver_all(0, 1);
        run.deliver_all(1, 0);
        assert_eq!(run.violation().is_some(), broken, "{:?}", run.users);
    }
}

/// The acceptor's state is on stable storage: an amnesiac votes twice.
#[test]
fn an_acceptor_that_forgets_breaks_agreement() {
    for (flaw, broken) in [(None, false), (Some(Flaw::Forgetful), true)] {
        let mut run = rehearsal(3, flaw);
        run.propose(0);
        run.lose_all(0, 2);
        run.deliver_all(0, 1);
        run.deliver_all(1, 0);
        run.deliver_all(0, 1);
        run.deliver_all(1, 0);
        assert_eq!(run.decisions(0)[0], Some(Value(1)));
        run.lose_all(0, 2);
        run.lose_all(1, 2);
        run.crash(1);
        run.restart(1);
        run.crash(0);
        run.propose(2);
        run.play();
        assert_eq!(run.violation().is_some(), broken, "{:?}", run.users);
    }
}

/// Each user begins the next instance when it knows how the last one ended.
#[test]
fn many_decisions_are_many_instances() {
    let mut run = rehearsal(4, None);
    for instance in 0..3 {
        for user in 0..4 {
            run.propose(user);
        }
        run.play();
        let told = run.decisions(instance);
        assert!(
            told.iter()
                .all(|value| value.is_some() && *value == told[0])
        );
    }
    assert_eq!((run.violation(), run.unserved()), (None, None));
    let kinds: Vec<String> = run.kinds().into_iter().map(|(kind, _)| kind).collect();
    assert!(kinds.contains(&"Prepare".into()) && kinds.contains(&"Accepted".into()));
}

fn alone(id: u32) -> Alone<Paxos> {
    Alone::new(id, Config::new(&Setup::new(3)).expect("valid"))
}

#[test]
fn a_late_promise_of_an_older_ballot_does_not_count() {
    let mut proposer = alone(0);
    proposer.propose(Value(1));
    proposer.fire(TRY_AGAIN);
    let [older, newer] = [0, 1].map(|round| Ballot::of(round, 0));
    assert_eq!(proposer.hear(1, Talk::Promise(older, None)), []);
    let said = proposer.hear(2, Talk::Promise(newer, None));
    assert_eq!(said[0], Talk::Accept(newer, Value(1)));
}

#[test]
fn a_number_is_not_used_again_after_a_crash() {
    let mut proposer = alone(0);
    for round in 0..2 {
        let prepare = Talk::Prepare(Ballot::of(round, 0));
        assert_eq!(proposer.propose(Value(1)), [prepare]);
        proposer.crash_and_restart();
    }
}
