//! Coordination and agreement §5.7, sentence by sentence.

use super::super::by_hand::ByHand;
use super::*;
use crate::{Phase, User as _};

fn replicas_of(nodes: usize) -> ByHand<ReplicatedLog> {
    ByHand::new(&ALGORITHM, &Setup::new(nodes))
}

fn executed(run: &ByHand<ReplicatedLog>, replica: u32) -> Vec<Digest> {
    let told = run.tells.iter().filter(|(node, _)| *node == replica);
    told.filter_map(|(_, tell)| match tell {
        Tell::Applied { entry, .. } => Some(entry.command),
        _ => None,
    })
    .collect()
}

fn command(client: u32, number: u32) -> Command {
    Command {
        client: NodeId(client),
        number,
    }
}

/// The timer of a client's n-th command.
fn answer_of(number: u32) -> Timer {
    answer(command(0, number))
}

/// Figures of §5.7: 2N²-N+1 messages for the request of a client that is no replica.
#[test]
fn a_request_costs_29_92_and_191_messages() {
    for (nodes, expected) in [(5, 29), (8, 92), (11, 191)] {
        let mut run = replicas_of(nodes);
        let client = nodes as u32 - 1;
        run.ask(client);
        run.deliver_all();
        assert_eq!(run.messages(), expected, "{} replicas", nodes - 1);
        assert_eq!(run.users[client as usize].phase(), Phase::Idle);
        for replica in 0..client {
            assert_eq!(executed(&run, replica), [Some(command(client, 1))]);
        }
        let n = u64::from(client);
        let kinds = [
            ("Request", 1),
            ("PrePrepare", n - 1),
            ("Prepare", (n - 1) * (n - 1)),
            ("Commit", n * (n - 1)),
            ("Reply", n),
        ];
        let kinds = kinds.map(|(kind, count)| (kind.to_owned(), count));
        assert_eq!(run.kinds(), kinds.into());
    }
}

#[test]
fn nodes_beyond_3f_plus_1_are_clients() {
    let mut run = replicas_of(6);
    for client in [4, 5, 0] {
        run.ask(client);
        run.deliver_all();
        assert_eq!(run.users[client as usize].phase(), Phase::Idle);
    }
    assert_eq!(executed(&run, 4), []);
    assert_eq!(executed(&run, 3).len(), 3);
}

#[test]
fn a_silent_backup_stops_nobody() {
    let mut run = replicas_of(4);
    run.silent = vec![2];
    run.ask(1);
    run.deliver_all();
    assert_eq!(run.users[1].phase(), Phase::Idle);
    let kinds = run.kinds();
    assert!(!kinds.contains_key("ViewChange"), "{kinds:?}");
}

#[test]
fn a_silent_primary_is_replaced() {
    let mut run = replicas_of(4);
    run.silent = vec![0];
    run.ask(3);
    run.deliver_all();
    run.fire(3, answer_of(1));
    run.deliver_all();
    assert_eq!(run.users[3].phase(), Phase::Waiting);
    for backup in [1, 2] {
        run.fire(backup, VIEW);
    }
    run.deliver_all();
    assert_eq!(run.users[3].phase(), Phase::Idle, "p1 leads now");
    assert_eq!(executed(&run, 2), [Some(command(3, 1))]);
    assert_eq!(run.violation(), None);
}

#[test]
fn two_silent_primaries_of_seven_are_replaced_one_after_the_other() {
    let mut run = replicas_of(7);
    run.silent = vec![0, 1];
    run.ask(5);
    run.fire(5, answer_of(1));
    run.deliver_all();
    for _ in 0..2 {
        for backup in 2..7 {
            run.fire(backup, VIEW);
        }
        run.deliver_all();
    }
    assert_eq!(run.users[5].phase(), Phase::Idle);
    assert_eq!(executed(&run, 4), [Some(command(5, 1))]);
}

/// §5.7: with an equivocating primary no digest prepares, and the view changes.
#[test]
fn an_equivocating_primary_is_replaced() {
    let mut run = replicas_of(4);
    run.ask(3);
    run.deliver(3, 0);
    run.lie(0, 2, "PrePrepare(view 0, 1: p0#0)");
    run.lie(0, 3, "PrePrepare(view 0, 2: p3#1)");
    run.deliver_all();
    let prepared = |(_, tell): &(u32, Tell)| matches!(tell, Tell::Prepared { .. });
    assert!(!run.tells.iter().any(prepared));
    for backup in [1, 2, 3] {
        run.fire(backup, VIEW);
    }
    run.deliver_all();
    assert_eq!(run.users[3].phase(), Phase::Idle);
    assert_eq!(run.violation(), None);
}

/// §5.7: what was committed survives into every later view.
#[test]
fn what_one_replica_has_executed_survives_a_view_change() {
    let mut run = replicas_of(4);
    run.ask(0);
    for backup in [1, 2] {
        run.deliver(0, backup);
    }
    run.deliver(1, 2);
    run.deliver(2, 1);
    run.deliver(1, 0);
    run.deliver(2, 0);
    assert_eq!(executed(&run, 1), [], "p0's own vote is under way");
    assert_eq!(executed(&run, 0), [Some(command(0, 1))]);
    run.lose_all();
    run.silent = vec![0];
    run.ask(3);
    run.fire(3, answer_of(1));
    run.deliver_all();
    for backup in [1, 2, 3] {
        run.fire(backup, VIEW);
    }
    run.deliver_all();
    assert_eq!(executed(&run, 3)[0], Some(command(0, 1)));
    assert_eq!(executed(&run, 3)[1], Some(command(3, 1)));
    assert_eq!(run.violation(), None);
}

/// §5.7: a checkpoint every K makes room in the log.
#[test]
fn checkpoints_make_room_for_more_requests_than_the_log_holds() {
    let mut run = replicas_of(4);
    let requests = Config::LOG_MAX + 3;
    for _ in 0..requests {
        run.ask(1);
        run.deliver_all();
    }
    assert_eq!(executed(&run, 2).len(), requests as usize);
    assert_eq!(run.kinds()["Checkpoint"], 2 * 4 * 3);
}

#[test]
fn without_a_stable_checkpoint_the_log_fills_up() {
    let mut run = replicas_of(5);
    run.deaf = vec![2, 3];
    for _ in 0..2 {
        run.ask(4);
        run.deliver_all();
        assert_eq!(run.users[4].phase(), Phase::Waiting, "no quorum");
        run.users[4] = run.users[4].crashed(&User::default());
    }
    assert_eq!(executed(&run, 0), []);
    assert_eq!(run.kinds().get("Checkpoint"), None);
}

#[test]
fn a_replica_that_missed_a_checkpoint_fetches_what_was_executed() {
    let mut run = replicas_of(4);
    run.deaf = vec![3];
    for _ in 0..Config::CHECKPOINT_EVERY {
        run.ask(1);
        run.deliver_all();
    }
    assert_eq!(executed(&run, 3), []);
    run.deaf.clear();
    for _ in 0..Config::CHECKPOINT_EVERY {
        run.ask(1);
        run.deliver_all();
    }
    let all = 2 * Config::CHECKPOINT_EVERY as usize;
    assert_eq!(executed(&run, 3).len(), all);
    assert_eq!(executed(&run, 3), executed(&run, 0));
}

#[test]
fn a_client_that_asks_again_is_answered_from_what_was_executed() {
    let mut run = replicas_of(5);
    run.deaf = vec![4];
    run.ask(4);
    run.deliver_all();
    assert_eq!(run.users[4].phase(), Phase::Waiting, "the replies are lost");
    run.deaf.clear();
    run.fire(4, answer_of(1));
    run.deliver_all();
    assert_eq!(run.users[4].phase(), Phase::Idle);
    assert_eq!(executed(&run, 0).len(), 1);
}

#[test]
fn too_few_nodes_are_refused() {
    let refused = |setup: &Setup| (ALGORITHM.machine)(setup).err().expect("refused").0;
    assert!(refused(&Setup::new(3)).contains("at least 4"));
    let two_of_six = Setup {
        faulty: Some(2),
        ..Setup::new(6)
    };
    assert_eq!(
        refused(&two_of_six),
        "6 nodes do not stand 2 liars: use --faulty up to 1"
    );
    let none_of_seven = Setup {
        faulty: Some(0),
        ..Setup::new(7)
    };
    let why = "it is made for at least 1 liar: use --faulty 1 or more";
    assert_eq!(refused(&none_of_seven), why);
}

/// §5.7: with N = 3 and quorums of two, two quorums share only the liar.
#[test]
fn three_replicas_commit_two_digests() {
    let mut run = ByHand::new(&specimens::THREE, &Setup::new(3));
    run.ask(0);
    run.lie(0, 2, "PrePrepare(view 0, 1: p0#0)");
    run.deliver(0, 1);
    run.deliver(0, 2);
    run.deliver(1, 0);
    run.lie(0, 2, "Commit(view 0, 1: p0#0)");
    run.deliver(0, 1);
    run.deliver(0, 2);
    assert_eq!(executed(&run, 1), [Some(command(0, 1))]);
    assert_eq!(executed(&run, 2), [Some(command(0, 0))]);
    let what = run.violation().expect("two digests");
    assert!(
        what.starts_with("p1 applied p0#1@0 at 1, and p2 p0#0@0"),
        "{what}"
    );
}

/// §5.7: without the commit phase, a prepared request is lost in a view change.
#[test]
fn without_the_commit_phase_an_executed_request_is_lost() {
    let mut run = ByHand::new(&specimens::NO_COMMIT, &Setup::new(4));
    run.silent = vec![0];
    run.deaf = vec![0];
    for backup in [1, 2] {
        run.fire(backup, VIEW);
    }
    run.ask(1);
    run.deliver_all();
    assert_eq!(executed(&run, 0), [Some(command(3, 0))]);
    assert_eq!(executed(&run, 2)[0], Some(command(1, 1)));
    let what = run.violation().expect("two digests");
    assert!(
        what.contains("p0 applied p3#0@0 at 1, and p1 p1#1@0"),
        "{what}"
    );
}
