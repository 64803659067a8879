//! Fast Paxos played by hand: a fast round, a collision, and what may have been chosen.

use super::super::alone::Alone;
use super::super::rehearsal::Rehearsal;
use super::*;

fn rehearsal(nodes: usize) -> Rehearsal {
    let setup = Setup::new(nodes);
    Rehearsal::new(&*machine(&setup, Quorums::of(nodes), u32::MAX).expect("valid"))
}

#[test]
fn quorums_are_as_large_as_they_must_be() {
    let sizes = |nodes: usize| {
        let quorums = Quorums::of(nodes);
        let (e, f) = (quorums.fast_faults, quorums.classic_faults);
        assert!(nodes > 2 * f && nodes > 2 * e + f, "{nodes}");
        (nodes - e, nodes - f)
    };
    let sizes = [3, 4, 5, 7].map(sizes);
    assert_eq!(sizes, [(3, 2), (3, 3), (4, 3), (5, 5)]);
    (1..40).for_each(|nodes| assert!(nodes > 2 * Quorums::of(nodes).classic_faults));
}

#[test]
fn a_lone_client_needs_no_leader() {
    let mut run = rehearsal(4);
    run.propose(2);
    run.settle();
    assert!(run.decisions(0).iter().all(|told| *told == Some(Value(3))));
    assert_eq!(run.messages(), 15);
}

#[test]
fn a_collision_is_resolved_by_the_leader() {
    let mut run = rehearsal(4);
    run.propose(1);
    run.propose(2);
    run.deliver(1, 0);
    run.deliver(2, 3);
    run.settle();
    let told = run.decisions(0);
    assert!(told[0].is_some() && told.iter().all(|value| *value == told[0]));
    assert!(run.kinds().iter().any(|(kind, _)| kind == "Prepare"));
}

/// Every pattern of votes of three acceptors with both quorums 2: some view has two values that look chosen (§5.5.3); with
/// quorums that are large enough, none has.
#[test]
fn what_may_have_been_chosen_is_unique() {
    for (nodes, fast, classic, unique) in [
        (3, 3, 2, true),
        (3, 2, 3, true),
        (4, 3, 3, true),
        (5, 4, 3, true),
        (7, 5, 5, true),
        (3, 2, 2, false),
        (5, 3, 3, false),
    ] {
        let quorums = Quorums {
            fast_faults: nodes - fast,
            classic_faults: nodes - classic,
        };
        assert_eq!(
            ambiguous_views(nodes, quorums) == 0,
            unique,
            "{nodes} {fast} {classic}"
        );
    }
    let small = Quorums {
        fast_faults: 1,
        classic_faults: 1,
    };
    assert_eq!(ambiguous_views(3, small), 18);
}

/// Views of a classic quorum, over all votes for two values or none, with two values that a fast quorum may have chosen.
fn ambiguous_views(nodes: usize, quorums: Quorums) -> usize {
    let mut found = 0;
    for pattern in 0..3usize.pow(nodes as u32) {
        let vote = |node: usize| pattern / 3usize.pow(node as u32) % 3;
        for view in 0u32..1 << nodes {
            let inside = |node: &usize| view & 1 << node != 0;
            if view.count_ones() as usize != nodes - quorums.classic_faults {
                continue;
            }
            let votes = |value| {
                (0..nodes)
                    .filter(inside)
                    .filter(|n| vote(*n) == value)
                    .count()
            };
            let needed = view.count_ones() as usize - quorums.fast_faults;
            found += usize::from(votes(1) >= needed && votes(2) >= needed);
        }
    }
    found
}

#[test]
fn a_crashed_leader_is_not_missed() {
    let mut run = rehearsal(4);
    run.crash(0);
    run.propose(1);
    run.propose(2);
    run.deliver(1, 3);
    run.play();
    let told = run.decisions(0);
    assert!(told[1].is_some() && told[1..].iter().all(|value| *value == told[1]));
    assert_eq!((run.violation(), run.unserved()), (None, None));
}

fn alone(id: u32) -> Alone<FastPaxos> {
    let config = Config {
        nodes: 4,
        quorums: Quorums::of(4),
        delay_bound: 1,
    };
    Alone::new(id, config)
}

/// §5.5.3: the fast round is over for whoever has promised a later one.
#[test]
fn an_acceptor_gives_no_fast_vote_after_a_promise() {
    let mut acceptor = alone(1);
    let classic = Ballot::of(1, 2);
    let promise = Talk::Promise(classic, None);
    assert_eq!(acceptor.hear(2, Talk::Prepare(classic)), [promise]);
    assert_eq!(acceptor.hear(3, Talk::Propose(Value(4))), []);
    let accepted = Talk::Accepted(classic, Value(3));
    assert_eq!(
        acceptor.hear(2, Talk::Accept(classic, Value(3))),
        [accepted]
    );
}

#[test]
fn a_number_is_not_used_again_after_a_crash() {
    let mut proposer = alone(2);
    for round in 1..3 {
        proposer.propose(Value(3));
        let prepare = Talk::Prepare(Ballot::of(round, 2));
        assert_eq!(proposer.fire(Timer(round - 1)), [prepare]);
        proposer.crash_and_restart();
    }
}
