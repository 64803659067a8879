//! Gates whose ownership travels by an algorithm, case by case on three nodes: what is refused, what moves, what is found.

use testigo_core::estate::{BranchWord, Broken, Frame, Out, Tell};
use testigo_core::{
    Answer, Ask, Change, Claim, ClaimEnd, Command, Definition, Fence, Lock, Name, Rule, SessionId,
    Settled, Shard, Travels, Using, Word,
};

use crate::trio::{Trio, client, lock, peer};

fn using(gate: &str, algorithm: Using) -> Trio {
    using_with(gate, algorithm, None)
}

fn using_with(gate: &str, using: Using, broken: Option<Broken>) -> Trio {
    let mut trio = Trio::new(broken);
    create(&mut trio, gate, using);
    for at in 0..3 {
        for connection in 1..=2 {
            let connect = trio.ask(at, client(at, connection), &Command::Connect);
            connect.unwrap();
        }
    }
    trio
}

fn create(trio: &mut Trio, gate: &str, using: Using) {
    let mut definition = Definition::new(Rule::Shared);
    definition.travels.using = using;
    let change = Change::CreateGate {
        gate: Name::new(gate).unwrap(),
        definition,
        number: trio.replicated.gate_number(gate),
    };
    assert!(trio.log(trio.owner(gate), change));
    trio.deliver_all();
}

/// The answers of a session, in order.
fn answers(trio: &mut Trio, session: SessionId) -> Vec<Result<Answer, Word>> {
    trio.deliver_all();
    let told = trio.tells.drain(..);
    let own = told.filter_map(|(_, tell)| match tell {
        Tell::Answered {
            session: of,
            answer,
            ..
        } if of == session => Some(answer.map_err(|refusal| refusal.word)),
        _ => None,
    });
    own.collect()
}

/// Asks for a gate, and gives the fence once everything has arrived.
fn enter(trio: &mut Trio, at: usize, session: SessionId, command: &Command<'_>) -> Option<Fence> {
    let answer = trio.ask(at, session, command);
    let answer = match answer {
        Ok(Answer::Waiting(_)) => answers(trio, session).pop()?,
        answer => answer,
    };
    match answer {
        Ok(Answer::Settled(Settled::Entered(grant))) => Some(grant.fence),
        _ => None,
    }
}

fn leave(trio: &mut Trio, at: usize, session: SessionId, gate: &str) {
    let unlock = Command::Unlock { gate, fence: None };
    trio.ask(at, session, &unlock).unwrap();
    trio.deliver_all();
}

fn reader(gate: &str) -> Command<'_> {
    Command::Lock(Lock {
        gate,
        ask: Ask::Shared,
        ..Lock::default()
    })
}

fn each() -> impl Iterator<Item = Using> {
    Using::ALL.into_iter().skip(1)
}

#[test]
fn fences_rise_from_node_to_node_and_nobody_else_is_let_in() {
    for algorithm in each() {
        let mut trio = using("g", algorithm);
        let mut last = Fence(0);
        for at in [0, 1, 2, 1, 0, 0] {
            let fence = enter(&mut trio, at, client(at, 1), &lock("g")).expect("it is free");
            assert!(fence > last, "{algorithm:?}");
            last = fence;
            let other = (at + 1) % 3;
            let early = enter(&mut trio, other, client(other, 1), &lock("g"));
            assert_eq!(early, None, "{algorithm:?}: somebody is inside");
            leave(&mut trio, at, client(at, 1), "g");
            let next = answers(&mut trio, client(other, 1));
            assert!(
                trio.estates[other]
                    .local()
                    .hold_of(client(other, 1), "g")
                    .is_some(),
                "{algorithm:?}: {next:?}"
            );
            leave(&mut trio, other, client(other, 1), "g");
            last = Fence(last.0 + 1);
        }
    }
}

#[test]
fn only_the_box_office_lets_readers_of_several_nodes_in() {
    for algorithm in each() {
        let mut trio = using("g", algorithm);
        let first = enter(&mut trio, 0, client(0, 1), &reader("g"));
        let same = enter(&mut trio, 0, client(0, 2), &reader("g"));
        let other = enter(&mut trio, 1, client(1, 1), &reader("g"));
        assert!(first.is_some() && same.is_some(), "{algorithm:?}");
        let together = algorithm == Using::BoxOffice;
        assert_eq!(other.is_some(), together, "{algorithm:?}");
        assert_eq!(enter(&mut trio, 2, client(2, 1), &lock("g")), None);
    }
}

/// How many clients a node lets in, one after the other, if another node waits from the first one on.
fn grants_before_it_hands_on(algorithm: Using, broken: Option<Broken>) -> u32 {
    let mut trio = using_with("g", algorithm, broken);
    enter(&mut trio, 0, client(0, 1), &lock("g")).expect("it is free");
    assert_eq!(enter(&mut trio, 1, client(1, 1), &lock("g")), None);
    for connection in 3..20 {
        let session = client(0, connection);
        trio.ask(0, session, &Command::Connect).unwrap();
        assert_eq!(enter(&mut trio, 0, session, &lock("g")), None);
    }
    let is_in = |trio: &Trio, at: usize, session: SessionId| {
        trio.estates[at].local().hold_of(session, "g").is_some()
    };
    let (mut inside, mut grants) = (client(0, 1), 1);
    while !is_in(&trio, 1, client(1, 1)) {
        leave(&mut trio, 0, inside, "g");
        let mut waiting = (3..20).map(|connection| client(0, connection));
        let next = waiting.find(|session| is_in(&trio, 0, *session));
        grants += u32::from(next.is_some());
        inside = next.unwrap_or(inside);
    }
    grants
}

/// With the box office, the algorithm itself counts.
#[test]
fn a_node_hands_on_after_a_burst_of_grants() {
    for algorithm in each().filter(|algorithm| *algorithm != Using::BoxOffice) {
        let grants = grants_before_it_hands_on(algorithm, None);
        assert_eq!(grants, Travels::BURST_DEFAULT, "{algorithm:?}");
    }
    // The first grant of a turn counts, although nobody else waited then.
    let broken = grants_before_it_hands_on(Using::Raymond, Some(Broken::FreshBurst));
    assert_eq!(broken, 1 + Travels::BURST_DEFAULT);
}

/// The most grants that a node makes in one turn while clients of all nodes wait for the gate.
fn grants_in_a_turn(algorithm: Using, command: &Command<'_>) -> usize {
    let mut trio = using("g", algorithm);
    enter(&mut trio, 0, client(0, 1), &lock("g")).expect("it is free");
    let clients: Vec<(usize, SessionId)> = (0..3)
        .flat_map(|at| (3..15).map(move |connection| (at, client(at, connection))))
        .collect();
    for &(at, session) in &clients[..] {
        trio.ask(at, session, &Command::Connect).unwrap();
        trio.ask(at, session, command).unwrap();
    }
    trio.deliver_all();
    leave(&mut trio, 0, client(0, 1), "g");
    // Nobody comes back, so the last turns would be shorter: only those count in which all nodes have clients waiting.
    let (mut left, mut turns) = ([12; 3], vec![]);
    let mut known = std::collections::BTreeSet::new();
    while left.iter().all(|left| *left > 0) {
        trio.deliver_all();
        let holds = |(at, session): &&(usize, SessionId)| {
            trio.estates[*at].local().hold_of(*session, "g").is_some()
        };
        let inside: Vec<(usize, SessionId)> = clients.iter().filter(holds).copied().collect();
        assert!(!inside.is_empty(), "{algorithm:?}: nobody is inside");
        for &(at, session) in &inside {
            if known.insert(session) {
                left[at] -= 1;
                match turns.last_mut() {
                    Some((node, grants)) if *node == at => *grants += 1,
                    _ => turns.push((at, 1)),
                }
            }
        }
        leave(&mut trio, inside[0].0, inside[0].1, "g");
    }
    let most = turns.iter().map(|(_, grants)| *grants).max();
    most.expect("somebody was inside")
}

#[test]
fn a_turn_has_no_more_grants_than_a_burst_while_another_node_waits() {
    let burst = Travels::BURST_DEFAULT as usize;
    for algorithm in each() {
        let writers = grants_in_a_turn(algorithm, &lock("g"));
        assert_eq!(writers, burst, "{algorithm:?}");
    }
    // Readers enter together. With the box office they are in everywhere; and Raymond's token comes before the request that
    // follows it, so whoever has just come in does not know of it.
    let together = [Using::BoxOffice, Using::Raymond];
    for algorithm in each().filter(|algorithm| !together.contains(algorithm)) {
        let readers = grants_in_a_turn(algorithm, &reader("g"));
        assert_eq!(readers, burst, "{algorithm:?}");
    }
}

#[test]
fn a_gate_is_deleted_when_it_was_called_in_and_is_idle() {
    let mut trio = using("g", Using::Raymond);
    let owner = trio.owner("g");
    let other = (owner + 1) % 3;
    enter(&mut trio, other, client(other, 1), &lock("g")).expect("it is free");
    let delete = |trio: &Trio| Change::DeleteGate {
        gate: Name::new("g").unwrap(),
        number: trio.replicated.gate_number("g"),
    };
    let reserve = |trio: &mut Trio| {
        let (change, now) = (delete(trio), trio.now);
        let mut out = Out::default();
        let Trio {
            estates,
            replicated,
            ..
        } = trio;
        let reserved = estates[owner].reserve_name(now, replicated, &change, &mut out);
        trio.collect(owner, out);
        trio.deliver_all();
        reserved.map_err(|refusal| refusal.word)
    };
    // In use it is refused, and nothing changes.
    let title = |trio: &Trio| trio.replicated.ownership().title(Shard::of("g"));
    let (before, recorded) = (title(&trio), trio.estates[owner].recordings("g").count());
    for _ in 0..3 {
        assert_eq!(
            reserve(&mut trio),
            Err(Word::Unavailable),
            "others are asked"
        );
        assert_eq!(reserve(&mut trio), Err(Word::Busy), "somebody is inside");
    }
    assert_eq!(title(&trio), before, "it was not called in");
    assert_eq!(trio.estates[owner].recordings("g").count(), recorded);
    leave(&mut trio, other, client(other, 1), "g");
    enter(&mut trio, owner, client(owner, 1), &lock("g")).expect("it is free");
    assert_eq!(
        reserve(&mut trio),
        Err(Word::Busy),
        "its owner knows at once"
    );
    leave(&mut trio, owner, client(owner, 1), "g");
    for _ in 0..2 {
        assert_eq!(title(&trio), before);
        assert_eq!(
            reserve(&mut trio),
            Err(Word::Unavailable),
            "others are asked, then it is called in"
        );
    }
    assert_ne!(title(&trio), before);
    // Whoever asks meanwhile waits, and is served by what the gate is then.
    assert_eq!(enter(&mut trio, other, client(other, 2), &lock("g")), None);
    assert_eq!(reserve(&mut trio), Ok(()));
    let counts = |trio: &Trio| trio.estates[other].branch("g").counts;
    assert!(counts(&trio).messages > 0);
    let change = delete(&trio);
    assert!(trio.log(owner, change.clone()));
    assert_eq!(counts(&trio).messages, 0, "the next gate counts from 0");
    let (now, mut out) = (trio.now, Out::default());
    trio.estates[owner].release_name(now, &trio.replicated, &change, &mut out);
    trio.collect(owner, out);
    let served = answers(&mut trio, client(other, 2));
    assert!(
        matches!(served[..], [Ok(Answer::Settled(Settled::Entered(_)))]),
        "{served:?}"
    );
}

#[test]
fn a_gate_that_was_called_in_for_nothing_goes_on() {
    let mut trio = using("g", Using::Central);
    let (owner, now) = (trio.owner("g"), trio.now);
    let delete = Change::DeleteGate {
        gate: Name::new("g").unwrap(),
        number: trio.replicated.gate_number("g"),
    };
    let mut out = Out::default();
    for _ in 0..3 {
        let refused = trio.estates[owner].reserve_name(now, &trio.replicated, &delete, &mut out);
        assert_eq!(refused.unwrap_err().word, Word::Unavailable);
        // The others are asked first.
        trio.collect(owner, Out::default());
        trio.deliver_all();
    }
    assert_eq!(out.changes.len(), 1, "one number is enough");
    trio.collect(owner, out);
    trio.deliver_all();
    let other = (owner + 1) % 3;
    assert_eq!(enter(&mut trio, other, client(other, 1), &lock("g")), None);
    trio.pass(2_000);
    let served = answers(&mut trio, client(other, 1));
    assert!(
        matches!(served[..], [Ok(Answer::Settled(Settled::Entered(_)))]),
        "{served:?}"
    );
}

#[test]
fn a_session_keeps_what_it_holds_wherever_it_is_taken_up_again() {
    for algorithm in each() {
        let moves = [(0, 1), (1, 2), (2, 0), (1, 1)].into_iter();
        for ((from, to), claimed) in moves.flat_map(|ends| [(ends, true), (ends, false)]) {
            let mut trio = using("g", algorithm);
            let session = SessionId::opened(7);
            let open = Change::OpenSession {
                session,
                ttl_ms: 60_000,
                label: None,
                user: None,
            };
            assert!(trio.log(from, open));
            let fence = enter(&mut trio, from, session, &lock("g")).expect("it is free");
            let claims = [Claim {
                gate: "g",
                fence,
                ask: Ask::Plain,
                proven: true,
                ..Claim::default()
            }];
            let (now, mut out) = (trio.now, Out::default());
            trio.estates[to]
                .resume(
                    now,
                    &trio.replicated,
                    session,
                    &claims[usize::from(!claimed)..],
                    None,
                    &mut out,
                )
                .expect("the node acts");
            trio.collect(to, out);
            let resumed = answers(&mut trio, session);
            let Some(Ok(Answer::Resumed(resumed))) = resumed.last() else {
                panic!("{algorithm:?} {from} to {to}: {resumed:?}");
            };
            assert_eq!(
                resumed.claims,
                vec![ClaimEnd::Held; usize::from(claimed)],
                "{algorithm:?} {from} to {to}"
            );
            let holds = [(Name::new("g").unwrap(), fence)];
            assert_eq!(resumed.holds, holds, "{algorithm:?} {from} to {to}");
            let third = (to + 1) % 3;
            let early = enter(&mut trio, third, client(third, 1), &lock("g"));
            assert_eq!(early, None, "{algorithm:?}: it is still inside");
            leave(&mut trio, to, session, "g");
            let next = answers(&mut trio, client(third, 1));
            let entered = matches!(next[..], [Ok(Answer::Settled(Settled::Entered(_)))]);
            let inside = trio.estates[third].local().hold_of(client(third, 1), "g");
            assert!(
                entered || inside.is_some(),
                "{algorithm:?} {from} to {to}: {next:?}"
            );
        }
    }
}

#[test]
fn a_try_ends_soon_and_a_writer_that_reads_on_lets_nobody_write() {
    let mut trio = using("g", Using::BoxOffice);
    enter(&mut trio, 0, client(0, 1), &lock("g")).expect("it is free");
    let downgrade = Command::Downgrade { gate: "g" };
    assert!(matches!(
        trio.ask(0, client(0, 1), &downgrade),
        Ok(Answer::Downgraded(_))
    ));
    assert_eq!(enter(&mut trio, 1, client(1, 1), &lock("g")), None);
    let tries = Command::Lock(Lock {
        gate: "g",
        wait_ms: Some(0),
        ..Lock::default()
    });
    assert!(matches!(
        trio.ask(2, client(2, 1), &tries),
        Ok(Answer::Waiting(_))
    ));
    trio.deliver_all();
    trio.pass(200);
    let tried = answers(&mut trio, client(2, 1));
    assert!(
        matches!(tried[..], [Ok(Answer::Settled(Settled::Ended(_)))]),
        "{tried:?}"
    );
}

#[test]
fn a_circle_of_waits_through_gates_of_several_nodes_is_found() {
    for algorithm in each() {
        let mut trio = using("a", algorithm);
        create(&mut trio, "b", algorithm);
        let (one, two) = (client(0, 1), client(1, 1));
        enter(&mut trio, 0, one, &lock("a")).expect("it is free");
        enter(&mut trio, 1, two, &lock("b")).expect("it is free");
        assert_eq!(enter(&mut trio, 0, one, &lock("b")), None);
        assert_eq!(enter(&mut trio, 1, two, &lock("a")), None);
        let mut refused = 0;
        for _ in 0..30 {
            trio.pass(100);
            trio.deliver_all();
            let told = trio.tells.drain(..);
            let knots = told.filter(|(_, tell)| {
                matches!(tell, Tell::Answered { answer: Err(refusal), .. } if refusal.word == Word::Deadlock)
            });
            refused += knots.count();
        }
        assert_eq!(refused, 1, "{algorithm:?}");
    }
}

/// A record begins with its instance, so one that is nearly full ends with it, and the next one is whole again.
#[test]
fn a_gate_whose_record_is_nearly_full_begins_anew() {
    let mut trio = using("g", Using::Lamport);
    let on_record = |trio: &Trio| trio.estates[0].recordings("g").count();
    let before = on_record(&trio);
    let mut entries = 0;
    while on_record(&trio) == before && entries < 500_000 {
        let at = entries % 3;
        enter(&mut trio, at, client(at, 1), &lock("g")).expect("it is free");
        leave(&mut trio, at, client(at, 1), "g");
        entries += 1;
    }
    assert_eq!(on_record(&trio), before + 1, "after {entries} entries");
    let records: Vec<_> = trio.estates[0]
        .recordings("g")
        .map(|recording| recording.record())
        .collect();
    let [.., full, fresh] = &records[..] else {
        panic!("two at least");
    };
    assert!(full.is_whole() && full.over && fresh.is_whole() && !fresh.over);
    assert!(
        full.length() > testigo_protocol::RECORD_BYTES_MAX / 2,
        "{}",
        full.length()
    );
    assert!(fresh.length() < 10_000, "{}", fresh.length());
    // Nobody was kept out meanwhile.
    enter(&mut trio, 1, client(1, 1), &lock("g")).expect("it is free");
}

#[test]
fn those_who_wait_for_the_instance_enter_in_their_order_and_nobody_twice() {
    for algorithm in each() {
        let mut trio = using("g", algorithm);
        let to = (trio.owner("g") + 1) % 3;
        let at = (to + 1) % 3;
        trio.give("g", to);
        for connection in 1..=2 {
            let asked = trio.ask(at, client(at, connection), &lock("g"));
            assert!(matches!(asked, Ok(Answer::Waiting(_))), "{algorithm:?}");
        }
        trio.deliver_all();
        let first = trio.estates[at].local().hold_of(client(at, 1), "g");
        assert!(first.is_some(), "{algorithm:?}: it came first");
        // From now on the hold is in the books of the owner.
        trio.give("g", (to + 2) % 3);
        trio.deliver_all();
        let again = trio.ask(at, client(at, 1), &lock("g"));
        assert!(matches!(again, Err(Word::Held)), "{algorithm:?}: {again:?}");
    }
}

/// How long it takes to be let in is known when the instance has begun, and not before.
#[test]
fn a_try_that_comes_before_the_instance_has_begun_finds_the_gate_free() {
    for algorithm in each() {
        let mut trio = using("g", algorithm);
        let to = (trio.owner("g") + 1) % 3;
        for at in 0..3 {
            trio.give("g", (to + at) % 3);
            let tries = Command::Lock(Lock {
                gate: "g",
                wait_ms: Some(0),
                ..Lock::default()
            });
            let fence = enter(&mut trio, at, client(at, 1), &tries);
            assert!(fence.is_some(), "{algorithm:?}: nobody is inside");
            leave(&mut trio, at, client(at, 1), "g");
        }
    }
}

/// Where the fences of a number are used up, whoever waits does so until there is another number.
#[test]
fn used_up_fences_keep_nobody_busy() {
    for (algorithm, at) in
        each().flat_map(|algorithm| [(algorithm, 0), (algorithm, 1), (algorithm, 2)])
    {
        let mut trio = using("g", algorithm);
        let title = trio.replicated.ownership().title(Shard::of("g")).unwrap();
        let next = u64::from(title.number.0) + 1;
        let frame = Frame::Branch {
            gate: Name::new("g").unwrap(),
            since: title.since,
            last: Fence((next << Fence::COUNT_BITS) - 1),
            word: BranchWord::Wish,
        };
        let (now, mut out) = (trio.now, Out::default());
        let from = peer((at + 1) % 3);
        trio.estates[at].receive(now, &trio.replicated, from, frame, &mut out);
        trio.collect(at, out);
        let fence = enter(&mut trio, at, client(at, 1), &lock("g"));
        let number = fence.map(|fence| fence.number());
        assert!(
            number > Some(title.number),
            "{algorithm:?} at {at}: {number:?}"
        );
    }
}
