//! Jobs in the hands of guests, played move by move.

use testigo_core::estate::{Broken, Out, Tell};
use testigo_core::{
    Answer, Body, Change, Command, Fence, JobChange, QueueId, Settled, Take, Taken,
};

use crate::trio::{Trio, client, peer};
use crate::workers::{flow, queue_shard};

/// Three nodes of which the first owns the queue of a flow, with one job in it.
fn stage(broken: Option<Broken>) -> (Trio, QueueId) {
    let mut trio = Trio::new(broken);
    assert!(trio.log(0, flow(1)));
    trio.give_shard(queue_shard(0), 0);
    trio.deliver_all();
    let queue = trio.replicated.queue_named("shop/q0", None).unwrap();
    let create = JobChange::Create {
        queue,
        name: None,
        class: 0,
        body: Body::from(&b""[..]),
        by: "test".into(),
    };
    assert!(trio.log(0, Change::Jobs(vec![create])));
    for at in 0..3 {
        trio.ask(at, client(at, 1), &Command::Connect).unwrap();
    }
    (trio, queue)
}

fn take(queue: QueueId) -> Command<'static> {
    Command::Take(Take {
        queues: vec![queue].into(),
        name: None,
        wait_ms: None,
    })
}

/// A job command of a client of another node, at the owner.
fn as_guest(trio: &mut Trio, home: usize, owner: usize, command: &Command<'_>) -> Answer {
    let mut out = Out::default();
    let Trio {
        estates,
        replicated,
        now,
        ..
    } = trio;
    let session = client(home, 1);
    let owner_estate = &mut estates[owner];
    let answer =
        owner_estate.ask_as_guest(*now, replicated, peer(home), session, command, &mut out);
    trio.collect(owner, out);
    answer.expect("it is not refused")
}

fn taken(answer: Answer) -> Option<Taken> {
    match answer {
        Answer::Settled(Settled::Taken(taken)) => Some(taken),
        _ => None,
    }
}

#[test]
fn a_take_that_its_home_reports_stays_in_its_hands() {
    let (mut trio, queue) = stage(None);
    let first = taken(as_guest(&mut trio, 1, 0, &take(queue))).expect("a job waits");
    trio.deliver_all();
    assert!(trio.estates[1].tell_take(client(1, 1), first));
    trio.give_shard(queue_shard(0), 2);
    trio.deliver_all();
    let none = trio.ask(2, client(2, 1), &take(queue)).unwrap();
    assert_eq!(taken(none), None, "it is in somebody's hands");
    let settles = as_guest(&mut trio, 1, 2, &Command::Settle(first));
    assert!(
        matches!(settles, Answer::Settling { .. }),
        "the same attempt"
    );
}

#[test]
fn a_take_that_nobody_reports_waits_again_under_a_higher_attempt() {
    let (mut trio, queue) = stage(None);
    let first = taken(as_guest(&mut trio, 1, 0, &take(queue))).expect("a job waits");
    // The owner's word is overtaken by the new title.
    trio.give_shard(queue_shard(0), 2);
    trio.deliver_all();
    assert!(!trio.estates[1].tell_take(client(1, 1), first), "too late");
    let next = trio.ask(2, client(2, 1), &take(queue)).unwrap();
    let next = taken(next).expect("it waits again");
    assert!(next.job == first.job && next.attempt > first.attempt);
}

#[test]
fn what_a_guest_dies_with_is_logged_once_by_the_owner() {
    let (mut trio, queue) = stage(None);
    let first = taken(as_guest(&mut trio, 1, 0, &take(queue))).expect("a job waits");
    trio.deliver_all();
    trio.tells.clear();
    trio.ask(1, client(1, 1), &Command::Disconnect).unwrap();
    trio.deliver_all();
    let deaths: Vec<_> = trio.tells.iter().collect();
    let [(0, Tell::Died { jobs })] = deaths[..] else {
        panic!("{deaths:?}");
    };
    let (jobs, by) = (jobs.clone(), "test".into());
    assert_eq!((jobs[0].job, jobs[0].attempt), (first.job, first.attempt));
    assert!(trio.log(0, Change::Jobs(vec![JobChange::Lose { jobs, by }])));
    assert_eq!(trio.replicated.job(first.job).unwrap().deaths, 1);
    let next = trio.ask(0, client(0, 1), &take(queue)).unwrap();
    assert!(taken(next).is_some_and(|next| next.attempt > first.attempt));
}

/// Who has a job in hand when the pass of a guest commits whose home was left out meanwhile.
fn in_hand_when_passed(broken: Option<Broken>) -> Option<Fence> {
    let (mut trio, queue) = stage(broken);
    let first = taken(as_guest(&mut trio, 1, 0, &take(queue))).expect("a job waits");
    trio.deliver_all();
    as_guest(&mut trio, 1, 0, &Command::Settle(first));
    let pass = JobChange::Pass {
        job: first.job,
        attempt: first.attempt,
        number: trio.replicated.job_number(first.job),
        queue,
        body: None,
        held_ms: 0,
        by: "test".into(),
    };
    let view = Change::View {
        before: trio.replicated.view().index,
        members: vec![peer(0), peer(2)],
        generation: 0,
    };
    assert!(trio.log(2, view));
    trio.deliver_all();
    let next = trio.ask(0, client(0, 1), &take(queue)).unwrap();
    assert!(
        trio.log(0, Change::Jobs(vec![pass])),
        "it rests on what is so"
    );
    taken(next).map(|next| next.attempt)
}

/// Case R, giving up: a view without the home frees the job, and then the change commits.
#[test]
fn a_job_on_its_way_is_not_freed_by_a_view() {
    assert_eq!(in_hand_when_passed(None), None);
    assert!(in_hand_when_passed(Some(Broken::FreedByView)).is_some());
}

#[test]
fn a_failure_that_comes_too_late_is_void() {
    let (mut trio, queue) = stage(None);
    let first = taken(as_guest(&mut trio, 1, 0, &take(queue))).expect("a job waits");
    trio.deliver_all();
    as_guest(&mut trio, 1, 0, &Command::Settle(first));
    let lost = testigo_core::Lost {
        job: first.job,
        attempt: first.attempt,
        number: trio.replicated.job_number(first.job),
        held_ms: 0,
    };
    trio.give_shard(queue_shard(0), 2);
    let lose = JobChange::Lose {
        jobs: vec![lost],
        by: "test".into(),
    };
    assert!(
        !trio.log(0, Change::Jobs(vec![lose])),
        "another owns the queue"
    );
    trio.deliver_all();
    let settles = as_guest(&mut trio, 1, 2, &Command::Settle(first));
    assert!(
        matches!(settles, Answer::Settling { .. }),
        "it was reported"
    );
}
