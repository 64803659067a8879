//! Cheap Paxos played by hand: idle auxiliary acceptors, a removed main one, a halt, and a change that counts too early.

use super::super::alone::Alone;
use super::super::rehearsal::Rehearsal;
use super::*;

fn rehearsal(nodes: usize, flaw: Option<Flaw>) -> Rehearsal {
    Rehearsal::new(&*machine(&Setup::new(nodes), flaw).expect("valid"))
}

fn count(run: &Rehearsal, kind: &str) -> u64 {
    let kinds = run.kinds();
    let found = kinds.iter().find(|(name, _)| name == kind);
    found.map_or(0, |(_, count)| *count)
}

/// §5.5.2: the normal quorum is all main acceptors, and no auxiliary one is asked anything.
#[test]
fn auxiliary_acceptors_are_idle() {
    let mut run = rehearsal(3, None);
    run.propose(0);
    run.settle();
    assert_eq!(run.messages(), 1 + 1 + 1 + 2 * 2, "p0, p1 and learners");
    for _ in 0..5 {
        let before = run.messages();
        run.propose(0);
        run.settle();
        assert_eq!(run.messages() - before, 1 + 2 * 2);
    }
    assert_eq!((run.violation(), run.unserved()), (None, None));
}

/// §5.5.2: pending slots are completed with the auxiliary ones, then the silent one is removed, and α slots later they are idle again.
#[test]
fn a_silent_main_acceptor_is_removed() {
    let mut run = rehearsal(3, None);
    run.propose(0);
    run.settle();
    run.crash(1);
    run.propose(0);
    run.play();
    assert!(run.decisions(1)[0].is_some_and(|value| value.removed().is_none()));
    assert_eq!(run.decisions(2)[0], Some(Value::without(NodeId(1))));
    let filled = [run.decisions(3)[0], run.decisions(4)[0]];
    assert_eq!(filled, [Some(Value::DEFAULT); 2], "α is 3");
    let (accepts, before) = (count(&run, "Accept"), run.messages());
    run.propose(0);
    run.settle();
    assert!(run.decisions(5)[0].is_some());
    assert_eq!(count(&run, "Accept"), accepts, "p0 is alone");
    assert_eq!(run.messages() - before, 2);
    assert_eq!(run.violation(), None);
}

/// §5.5.2: it halts if too many fail before the change, until enough of them are back.
#[test]
fn it_halts_and_goes_on() {
    let mut run = rehearsal(3, None);
    run.crash(1);
    run.crash(2);
    run.propose(0);
    for _ in 0..20 {
        run.settle();
        run.fire();
    }
    assert_eq!(run.decisions(0)[0], None);
    run.restart(2);
    for _ in 0..20 {
        run.settle();
        run.fire();
    }
    assert!(run.decisions(0)[0].is_some());
    assert_eq!(run.violation(), None);
}

/// p1 removes p0 with the help of p2 and goes on; p0 has heard nothing of it, and leads with the help of p2.
fn removed_behind_its_back(flaw: Option<Flaw>) -> Rehearsal {
    let cut = |run: &mut Rehearsal, node: u32| {
        for other in [0, 1, 2] {
            run.lose_all(node, other);
            run.lose_all(other, node);
        }
    };
    let until = |run: &mut Rehearsal, from, words: &str| {
        while !run.deliver(from, 2).starts_with(words) {}
    };
    let mut run = rehearsal(3, flaw);
    run.propose(1);
    cut(&mut run, 0);
    run.fire();
    cut(&mut run, 0);
    run.deliver_all(1, 2);
    run.deliver_all(2, 1);
    cut(&mut run, 0);
    until(&mut run, 1, "Accept(0.1, 1, without p0");
    run.lose_all(1, 2);
    run.deliver_all(2, 1);
    assert_eq!(run.decisions(1)[1], Some(Value::without(NodeId(0))));
    cut(&mut run, 1);
    cut(&mut run, 0);
    run.propose(0);
    cut(&mut run, 1);
    for _ in 0..50 {
        if run
            .labels(0, 2)
            .iter()
            .any(|label| label.starts_with("Accept("))
        {
            break;
        }
        run.deliver_all(0, 2);
        cut(&mut run, 1);
        run.deliver_all(2, 0);
        cut(&mut run, 1);
        if run.labels(0, 2).is_empty() {
            run.fire();
            cut(&mut run, 1);
        }
    }
    // p2's vote for slot 2 comes before its votes for the change.
    until(&mut run, 0, "Accept(1.0, 1, without p0");
    run.lose_all(2, 0);
    until(&mut run, 0, "Accept(1.0, 2, v1");
    run.deliver_all(2, 0);
    for _ in 0..6 {
        cut(&mut run, 1);
        run.fire();
        cut(&mut run, 1);
        run.deliver_all(0, 2);
        run.deliver_all(2, 0);
    }
    assert_eq!(run.decisions(2)[0], Some(Value(1)));
    run
}

/// §5.5.2: what slots up to s have chosen decides the acceptors of slot s + α. If it decided those of the next slot, who does
/// not know of it yet would ask others.
#[test]
fn a_change_takes_effect_when_everybody_can_know_of_it() {
    let run = removed_behind_its_back(None);
    assert_eq!((run.violation(), run.decisions(2)[1]), (None, None));
    let what = removed_behind_its_back(Some(Flaw::AtOnce)).violation();
    let what = what.expect("two values for slot 2");
    assert!(what.contains("instance 2 decided"), "{what}");
}

#[test]
fn too_few_nodes_are_refused() {
    let setup = Setup {
        faulty: Some(2),
        ..Setup::new(4)
    };
    let error = machine(&setup, None).err().expect("refused").0;
    assert!(error.contains("--faulty from 0 to 1"), "{error}");
}

/// One of five nodes, three of them main acceptors.
fn alone(id: u32) -> Alone<CheapPaxos> {
    let config = Config {
        nodes: 5,
        f: 2,
        delay_bound: 1,
        flaw: None,
    };
    Alone::new(id, config)
}

/// §5.5.2: what is chosen in slot s decides the acceptors of slot s + α, and of none before.
#[test]
fn a_change_takes_effect_exactly_alpha_slots_later() {
    let mut leader = alone(0);
    leader.node.chosen.insert(0, Value::without(NodeId(1)));
    leader.node.applied = 1;
    let main = |slot| leader.node.acceptors(slot, &leader.config).main;
    let all = NodeId::all(3).collect();
    assert!((0..ALPHA).all(|slot| main(slot) == all));
    assert_eq!(main(ALPHA), [NodeId(0), NodeId(2)].into_iter().collect());
}

#[test]
fn the_report_with_the_largest_number_is_proposed_again() {
    let [older, newer] = [
        (0, Ballot::of(1, 3), Value(4)),
        (0, Ballot::of(2, 1), Value(2)),
    ];
    for reports in [[older, newer], [newer, older]] {
        let mut leader = alone(0);
        leader.node.round = Some(2);
        leader.propose(Value(1));
        let ballot = Ballot::of(3, 0);
        let promise = |report| Talk::Promise(ballot, Vec::new(), vec![report]);
        assert_eq!(leader.hear(1, promise(reports[0])), []);
        let said = leader.hear(2, promise(reports[1]));
        assert_eq!(said[0], Talk::Accept(ballot, 0, Value(2)), "{reports:?}");
    }
}

#[test]
fn a_number_is_not_used_again_after_a_crash() {
    let mut leader = alone(0);
    for round in 0..2 {
        let prepare = Talk::Prepare(Ballot::of(round, 0), 0);
        assert_eq!(leader.propose(Value(1)), [prepare]);
        leader.crash_and_restart();
    }
}
