//! Coordination and agreement §5.8, sentence by sentence.

use super::super::by_hand::ByHand;
use super::*;
use crate::{Phase as Standing, Setup, User as _};

const YES: u32 = 0;
const NO: u32 = 1;

/// Everybody votes, by these choices.
fn voting(votes: &[u32]) -> ByHand<Agreement> {
    let mut run = ByHand::new(&ALGORITHM, &Setup::new(votes.len()));
    for (user, &vote) in votes.iter().enumerate() {
        run.choose(user as u32, vote);
    }
    run
}

fn decisions(run: &ByHand<Agreement>) -> Vec<(u32, Value)> {
    let told = run.tells.iter();
    let mut told: Vec<(u32, Value)> = told
        .map(|&(node, Tell::Decided { value, .. })| (node, value))
        .collect();
    told.sort_unstable();
    told.dedup();
    told
}

#[test]
fn a_transaction_costs_four_messages_per_participant() {
    for (votes, value) in [
        (vec![YES; 2], COMMIT),
        (vec![YES; 4], COMMIT),
        (vec![YES, YES, NO, YES], ABORT),
        (vec![NO, YES, YES], ABORT),
        (vec![NO; 5], ABORT),
    ] {
        let mut run = voting(&votes);
        run.deliver_all();
        let n = votes.len() as u64 - 1;
        assert_eq!(run.messages(), 4 * n, "{votes:?}");
        let all: Vec<_> = (0..=n as u32).map(|node| (node, value)).collect();
        assert_eq!(decisions(&run), all, "{votes:?}");
        assert_eq!(run.violation(), None);
    }
}

#[test]
fn a_missing_vote_is_a_no() {
    let mut run = ByHand::new(&ALGORITHM, &Setup::new(3));
    run.ask(0);
    run.ask(1);
    run.deliver_all();
    assert_eq!(decisions(&run), []);
    run.fire(0, UNDECIDED);
    run.deliver_all();
    assert_eq!(decisions(&run), [(0, ABORT), (1, ABORT), (2, ABORT)]);
}

#[test]
fn a_participant_that_is_never_asked_aborts() {
    let mut run = ByHand::new(&ALGORITHM, &Setup::new(3));
    run.ask(2);
    run.fire(2, UNDECIDED);
    run.deliver_all();
    assert_eq!(decisions(&run), [(0, ABORT), (1, ABORT), (2, ABORT)]);
}

#[test]
fn a_participant_that_aborts_alone_insists() {
    let mut run = ByHand::new(&ALGORITHM, &Setup::new(3));
    run.ask(2);
    run.fire(2, UNDECIDED);
    run.lose_all();
    assert_eq!(decisions(&run), [(2, ABORT)]);
    run.fire(2, UNDECIDED);
    run.deliver_all();
    assert_eq!(decisions(&run), [(0, ABORT), (1, ABORT), (2, ABORT)]);
    let before = run.messages();
    run.fire(2, UNDECIDED);
    assert_eq!(run.messages(), before, "the coordinator has answered");
}

/// §5.8: one coordinator, one participant that is ready, and the coordinator crashes.
#[test]
fn a_ready_participant_waits_for_the_coordinator() {
    let mut run = voting(&[YES, YES]);
    run.deliver(0, 1);
    run.silent = vec![0];
    run.deaf = vec![0];
    run.lose_all();
    run.fire(1, UNDECIDED);
    run.deliver_all();
    assert_eq!(run.users[1].phase(), Standing::Waiting);
    assert_eq!(decisions(&run), [], "it may not decide alone");
    run.silent.clear();
    run.deaf.clear();
    run.crash_and_restart(0);
    run.deliver_all();
    assert_eq!(decisions(&run), [(0, ABORT), (1, ABORT)]);
}

#[test]
fn a_logged_commit_survives_the_coordinator() {
    let mut run = voting(&[YES, YES, YES]);
    run.deliver(0, 1);
    run.deliver(0, 2);
    run.deliver(1, 0);
    run.deliver(2, 0);
    assert_eq!(decisions(&run), [(0, COMMIT)]);
    run.lose_all();
    run.crash_and_restart(0);
    run.deliver_all();
    assert_eq!(decisions(&run), [(0, COMMIT), (1, COMMIT), (2, COMMIT)]);
    assert_eq!(run.violation(), None);
}

#[test]
fn a_ready_participant_is_ready_after_a_crash() {
    let mut run = voting(&[YES, YES]);
    run.deliver(0, 1);
    run.lose_all();
    run.crash_and_restart(1);
    run.deliver_all();
    assert_eq!(decisions(&run), [(0, COMMIT), (1, COMMIT)]);
}

/// It does not know after a crash whether the coordinator ever heard of its abort.
#[test]
fn a_participant_that_has_forgotten_the_answer_gets_it_again() {
    let mut run = voting(&[YES, NO, YES]);
    run.deliver_all();
    run.crash_and_restart(1);
    assert_eq!(run.labels(1, 0), ["No"]);
    run.deliver_all();
    let before = run.messages();
    run.fire(1, UNDECIDED);
    assert_eq!(run.messages(), before, "the coordinator has answered");
}

#[test]
fn a_lost_decision_is_sent_again() {
    let mut run = voting(&[YES, YES]);
    run.deliver(0, 1);
    run.deliver(1, 0);
    run.lose_all();
    run.fire(0, UNACKNOWLEDGED);
    run.deliver_all();
    assert_eq!(decisions(&run), [(0, COMMIT), (1, COMMIT)]);
    let before = run.messages();
    run.fire(0, UNACKNOWLEDGED);
    assert_eq!(run.messages(), before, "everybody has acknowledged it");
}

#[test]
fn transactions_follow_each_other() {
    let mut run = voting(&[YES, YES]);
    run.deliver_all();
    run.choose(0, NO);
    run.choose(1, YES);
    run.deliver_all();
    assert_eq!(
        decisions(&run),
        [(0, COMMIT), (0, ABORT), (1, COMMIT), (1, ABORT)]
    );
    assert_eq!(run.messages(), 8);
}
