//! One test a sentence of the source and of its acceptance checks, as far as the services alone can show them.

use testigo_core::*;

use crate::stage::{Stage, name, rejecting, scheme, word};

fn taken_of(events: &[Event]) -> Vec<Taken> {
    let settled = events.iter().filter_map(|event| match event {
        Event::Settled {
            settled: Settled::Taken(taken),
            ..
        } => Some(*taken),
        _ => None,
    });
    settled.collect()
}

#[test]
fn with_one_consumer_jobs_leave_in_order_of_arrival() {
    let mut stage = Stage::new(QueueRule::default());
    for job in ["a", "b", "c"] {
        stage.create("orders", job).unwrap();
    }
    let worker = stage.session(1);
    for job in ["a", "b", "c"] {
        let taken = stage.take(worker, "orders").unwrap();
        assert_eq!(&*stage.replicated.job(taken.job).unwrap().name, job);
        stage.delete(worker, taken).unwrap();
    }
    assert!(stage.take(worker, "orders").is_none());
}

#[test]
fn a_queue_can_be_ordered_by_priority_or_by_key() {
    for (order, expected) in [
        (QueueOrder::Priority, ["c", "b", "a"]),
        (QueueOrder::Key, ["a", "b", "c"]),
    ] {
        let mut stage = Stage::new(QueueRule {
            order,
            ..QueueRule::default()
        });
        for (job, class) in [("b", 1), ("a", 2), ("c", 0)] {
            let create = JobChange::Create {
                queue: stage.queue("orders"),
                name: Some(name(job)),
                class,
                body: Body::default(),
                by: "".into(),
            };
            stage.change(Change::Jobs(vec![create])).unwrap();
        }
        assert_eq!(stage.waiting("orders"), expected);
    }
}

#[test]
fn two_clients_take_from_a_queue_of_one_job_and_one_waits() {
    let mut stage = Stage::new(QueueRule::default());
    stage.create("orders", "a").unwrap();
    let (one, two) = (stage.session(1), stage.session(2));
    assert!(stage.take(one, "orders").is_some());
    let waits = stage.take_from(two, &["orders"], None, Some(1000)).unwrap();
    assert!(matches!(waits, Answer::Waiting(_)));
    // A seek is answered at once, also while a take waits on the same queue.
    assert!(stage.take(one, "orders").is_none());
    stage.events.clear();
    let b = stage.create("orders", "b").unwrap();
    assert_eq!(taken_of(&stage.events)[0].job, b);
}

#[test]
fn a_waiting_take_is_woken_by_create_pass_and_the_return_of_a_dead_clients_job() {
    let mut stage = Stage::new(QueueRule::default());
    let (one, two) = (stage.session(1), stage.session(2));
    let wait = |stage: &mut Stage, queue| {
        stage.events.clear();
        let answer = stage.take_from(two, &[queue], None, Some(1000)).unwrap();
        assert!(matches!(answer, Answer::Waiting(_)), "{answer:?}");
    };
    wait(&mut stage, "orders");
    stage.create("orders", "a").unwrap();
    let a = taken_of(&stage.events)[0];
    wait(&mut stage, "priced");
    stage.create("orders", "b").unwrap();
    let b = stage.take(one, "orders").unwrap();
    stage.pass(one, b, "priced").unwrap();
    assert_eq!(taken_of(&stage.events)[0].job, b.job);
    stage.create("orders", "c").unwrap();
    let c = stage.take(one, "orders").unwrap();
    wait(&mut stage, "orders");
    stage.kill(one);
    stage.flush_all();
    assert_eq!(taken_of(&stage.events)[0].job, c.job);
    assert!(stage.delete(two, a).is_ok());
}

#[test]
fn a_take_of_several_queues_prefers_the_first_and_ends_at_its_time() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    stage.create("priced", "b").unwrap();
    let queues = ["orders", "priced"];
    let answer = stage.take_from(worker, &queues, None, Some(50)).unwrap();
    assert!(matches!(answer, Answer::Settled(Settled::Taken(_))));
    let Answer::Waiting(ticket) = stage.take_from(worker, &queues, None, Some(50)).unwrap() else {
        panic!("both are empty");
    };
    stage.local.tick(50, &mut stage.events);
    let ended = Event::Settled {
        session: worker,
        ticket,
        settled: Settled::Ended(WaitEnd::TimedOut),
    };
    assert!(stage.events.contains(&ended));
    stage.create("orders", "a").unwrap();
    assert_eq!(stage.waiting("orders"), ["a"]);
}

#[test]
fn a_take_by_name_gets_that_job_or_nothing_at_once() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    for job in ["a", "b", "c"] {
        stage.create("orders", job).unwrap();
    }
    let mut seek = |name| {
        stage
            .take_from(worker, &["orders"], Some(name), None)
            .unwrap()
    };
    assert!(matches!(seek("b"), Answer::Settled(Settled::Taken(_))));
    let missing = Answer::Settled(Settled::Ended(WaitEnd::TimedOut));
    assert_eq!((seek("b"), seek("x")), (missing.clone(), missing));
    assert_eq!(stage.waiting("orders"), ["a", "c"]);
}

#[test]
fn a_waiting_take_by_name_lets_others_pass() {
    let mut stage = Stage::new(QueueRule::default());
    let (one, two) = (stage.session(1), stage.session(2));
    let answer = stage.take_from(one, &["orders"], Some("b"), Some(1000));
    assert!(matches!(answer.unwrap(), Answer::Waiting(_)));
    let answer = stage.take_from(two, &["orders"], None, Some(1000));
    assert!(matches!(answer.unwrap(), Answer::Waiting(_)));
    let a = stage.create("orders", "a").unwrap();
    let b = stage.create("orders", "b").unwrap();
    let jobs: Vec<JobId> = taken_of(&stage.events).iter().map(|t| t.job).collect();
    assert_eq!(jobs, [a, b]);
    assert_eq!(stage.local.jobs_of(one)[0].job, b);
}

#[test]
fn a_pass_or_delete_of_a_job_not_held_is_refused_and_changes_nothing() {
    let mut stage = Stage::new(QueueRule::default());
    let (one, two) = (stage.session(1), stage.session(2));
    let a = stage.create("orders", "a").unwrap();
    let never = Taken {
        job: a,
        attempt: Fence(1 << 32),
    };
    assert_eq!(word(stage.pass(one, never, "priced")), Word::NotYours);
    let taken = stage.take(one, "orders").unwrap();
    assert_eq!(word(stage.pass(two, taken, "priced")), Word::NotYours);
    assert_eq!(word(stage.delete(two, taken)), Word::NotYours);
    let old = Taken {
        attempt: Fence(taken.attempt.0 - 1),
        ..taken
    };
    assert_eq!(word(stage.delete(one, old)), Word::Stale);
    let early = Taken {
        attempt: Fence(taken.attempt.0 + 1),
        ..taken
    };
    let refusal = stage.delete(one, early).unwrap_err();
    assert_eq!(refusal.word, Word::NotYours);
    assert!(refusal.sentence.contains("was never given"), "{refusal}");
    stage.submit_pass(one, taken, "priced").unwrap();
    assert_eq!(word(stage.submit_delete(one, taken)), Word::Busy);
    stage.flush_all();
    assert_eq!(stage.waiting("priced"), ["a"]);
}

#[test]
fn a_name_is_used_again_only_after_its_job_is_deleted() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    stage.create("orders", "a").unwrap();
    assert_eq!(word(stage.create("priced", "a")), Word::Duplicate);
    let taken = stage.take(worker, "orders").unwrap();
    assert_eq!(word(stage.create("orders", "a")), Word::Duplicate);
    stage.delete(worker, taken).unwrap();
    stage.create("orders", "a").unwrap();
}

#[test]
fn a_full_queue_pushes_back_on_creators_and_passers() {
    let mut stage = Stage::new(QueueRule {
        limit: Some(2),
        ..QueueRule::default()
    });
    let worker = stage.session(1);
    stage.create("orders", "a").unwrap();
    stage.create("orders", "b").unwrap();
    assert_eq!(word(stage.create("orders", "c")), Word::Full);
    // A job in hand still lies in its queue.
    let taken = stage.take(worker, "orders").unwrap();
    assert_eq!(word(stage.create("orders", "c")), Word::Full);
    stage.create("priced", "d").unwrap();
    let d = stage.take(worker, "priced").unwrap();
    assert_eq!(word(stage.pass(worker, d, "orders")), Word::Full);
    // The refused pass left it in the passer's hands.
    stage.delete(worker, taken).unwrap();
    stage.pass(worker, d, "orders").unwrap();
    assert_eq!(stage.waiting("orders"), ["b", "d"]);
}

#[test]
fn a_pass_to_the_same_queue_goes_to_its_end_even_if_it_is_full() {
    let limit = Some(2);
    let mut stage = Stage::new(QueueRule {
        limit,
        ..QueueRule::default()
    });
    for job in ["a", "b"] {
        stage.create("orders", job).unwrap();
    }
    let worker = stage.session(1);
    let taken = stage.take(worker, "orders").unwrap();
    stage.pass(worker, taken, "orders").unwrap();
    assert_eq!(stage.waiting("orders"), ["b", "a"]);
    // Who repeats a create hears that it was done, and not that there is no room.
    assert_eq!(word(stage.create("orders", "a")), Word::Duplicate);
    assert_eq!(word(stage.create("orders", "c")), Word::Full);
}

#[test]
fn a_dead_clients_jobs_come_back_to_the_head_of_their_queues() {
    let mut stage = Stage::new(rejecting(3));
    let worker = stage.session(1);
    for job in ["a", "b", "c"] {
        stage.create("orders", job).unwrap();
    }
    stage.create("priced", "p").unwrap();
    stage.take(worker, "orders").unwrap();
    let b = stage.take(worker, "orders").unwrap();
    stage.take(worker, "priced").unwrap();
    stage.kill(worker);
    // Nobody gets them before the log knows of the death.
    assert_eq!(stage.waiting("orders"), ["c"]);
    stage.flush_all();
    assert_eq!(stage.waiting("orders"), ["a", "b", "c"]);
    assert_eq!(stage.waiting("priced"), ["p"]);
    // The dead client's number is refused, even to its successor.
    let next = stage.session(2);
    assert_eq!(word(stage.pass(next, b, "priced")), Word::NotYours);
}

#[test]
fn a_job_that_kills_more_clients_than_its_retries_is_rejected_and_stays_so() {
    let mut stage = Stage::new(rejecting(2));
    stage.create("orders", "poison").unwrap();
    stage.create("orders", "good").unwrap();
    for death in 1..=3 {
        let worker = stage.session(death);
        let taken = stage.take_from(worker, &["orders"], Some("poison"), None);
        assert!(matches!(taken.unwrap(), Answer::Settled(Settled::Taken(_))));
        stage.kill(worker);
        stage.flush_all();
        // After the second death it holds up nobody.
        let expected: &[&str] = match death {
            1 => &["poison", "good"],
            2 => &["good", "poison"],
            _ => &["good"],
        };
        assert_eq!(stage.waiting("orders"), expected, "death {death}");
    }
    assert_eq!(stage.waiting("rejected"), ["poison"]);
    stage.crash(0);
    assert_eq!(stage.waiting("rejected"), ["poison"]);
    let job = stage.replicated.job_named("shop", "poison").unwrap();
    let job = stage.replicated.job(job).unwrap();
    assert_eq!(job.rejected_from, Some(stage.queue("orders")));
}

#[test]
fn without_a_reject_queue_a_job_always_comes_back() {
    let mut stage = Stage::new(QueueRule::default());
    stage.create("orders", "a").unwrap();
    for death in 1..=9 {
        let worker = stage.session(death);
        stage.take(worker, "orders").unwrap();
        stage.kill(worker);
        stage.flush_all();
    }
    assert_eq!(stage.waiting("orders"), ["a"]);
}

#[test]
fn a_job_given_back_keeps_its_place_and_counts_no_death() {
    let mut stage = Stage::new(rejecting(0));
    let worker = stage.session(1);
    for job in ["a", "b"] {
        stage.create("orders", job).unwrap();
    }
    let taken = stage.take(worker, "orders").unwrap();
    stage.ask(worker, &Command::GiveBack(taken)).unwrap();
    assert_eq!(stage.waiting("orders"), ["a", "b"]);
    let taken = stage.take(worker, "orders").unwrap();
    stage.ask(worker, &Command::Fail(taken)).unwrap();
    stage.queue_deaths();
    stage.flush_all();
    assert_eq!(stage.waiting("rejected"), ["a"], "a failure counts");
}

#[test]
fn jobs_held_at_a_crash_wait_again_and_old_numbers_are_refused() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    for job in ["a", "b", "c"] {
        stage.create("orders", job).unwrap();
    }
    let taken = stage.take(worker, "orders").unwrap();
    stage.crash(0);
    assert_eq!(stage.waiting("orders"), ["a", "b", "c"]);
    let worker = stage.session(1);
    assert_eq!(word(stage.delete(worker, taken)), Word::NotYours);
    let again = stage.take(worker, "orders").unwrap();
    assert!(again.attempt > taken.attempt && again.job == taken.job);
    assert_eq!(word(stage.delete(worker, taken)), Word::Stale);
}

#[test]
fn a_pass_that_was_logged_before_the_crash_has_happened_and_one_that_was_not_has_not() {
    for durable in [0, 1] {
        let mut stage = Stage::new(QueueRule::default());
        let worker = stage.session(1);
        stage.create("orders", "a").unwrap();
        let taken = stage.take(worker, "orders").unwrap();
        stage.submit_pass(worker, taken, "priced").unwrap();
        stage.crash(durable);
        let [orders, priced] = ["orders", "priced"].map(|queue| stage.waiting(queue).len());
        assert_eq!((orders, priced), (1 - durable, durable));
    }
}

#[test]
fn a_client_that_dies_while_its_pass_is_under_way_has_passed() {
    let mut stage = Stage::new(rejecting(0));
    let worker = stage.session(1);
    stage.create("orders", "a").unwrap();
    let taken = stage.take(worker, "orders").unwrap();
    stage.submit_pass(worker, taken, "priced").unwrap();
    stage.kill(worker);
    stage.flush_all();
    assert_eq!(stage.waiting("priced"), ["a"]);
}

#[test]
fn opposite_passes_both_finish() {
    let mut stage = Stage::new(QueueRule::default());
    let (one, two) = (stage.session(1), stage.session(2));
    stage.create("orders", "a").unwrap();
    stage.create("priced", "b").unwrap();
    for _ in 0..1000 {
        let a = stage.take(one, "orders").unwrap();
        let b = stage.take(two, "priced").unwrap();
        stage.submit_pass(one, a, "priced").unwrap();
        stage.submit_pass(two, b, "orders").unwrap();
        stage.flush_all();
        assert_eq!(
            (stage.waiting("orders").len(), stage.waiting("priced").len()),
            (1, 1)
        );
    }
}

#[test]
fn a_flow_that_would_strand_a_job_is_refused_and_a_queue_that_stays_keeps_its_jobs() {
    let mut stage = Stage::new(QueueRule::default());
    stage.create("orders", "a").unwrap();
    for job in ["b", "c"] {
        stage.create("priced", job).unwrap();
    }
    let apply = |scheme: Scheme| Change::ApplyFlow {
        flow: name("shop"),
        text: "".into(),
        scheme: Box::new(scheme),
    };
    let mut without = scheme(QueueRule::default());
    without.queues.remove("priced");
    for role in without.processes.values_mut() {
        for queues in [&mut role.takes, &mut role.passes, &mut role.deletes] {
            queues.remove("priced");
        }
    }
    let refusal = stage.change(apply(without.clone())).unwrap_err();
    assert_eq!(refusal.word, Word::Busy);
    let named = "jobs would be stranded: 2 in queue priced (b, c); ";
    assert!(refusal.sentence.starts_with(named), "{refusal}");
    // Jobs in somebody's hands are named as well.
    let worker = stage.session(1);
    let b = stage.take(worker, "priced").unwrap();
    assert_eq!(stage.change(apply(without.clone())).unwrap_err(), refusal);
    let c = stage.take(worker, "priced").unwrap();
    stage.delete(worker, b).unwrap();
    stage.delete(worker, c).unwrap();
    stage.change(apply(without)).unwrap();
    assert_eq!(stage.waiting("orders"), ["a"]);
    assert!(stage.replicated.queue_named("shop/priced", None).is_err());
}

#[test]
fn a_bare_queue_name_is_the_presented_flows_or_the_only_one() {
    let mut stage = Stage::new(QueueRule::default());
    let named = |stage: &Stage, text, flow| stage.replicated.queue_named(text, flow);
    assert!(named(&stage, "orders", None).is_ok());
    let second = Change::ApplyFlow {
        flow: name("mill"),
        text: "".into(),
        scheme: Box::new(scheme(QueueRule::default())),
    };
    stage.change(second).unwrap();
    assert_eq!(word(named(&stage, "orders", None)), Word::BadArg);
    assert!(named(&stage, "orders", Some("mill")).is_ok());
    assert!(named(&stage, "mill/orders", Some("shop")).is_ok());
    assert_eq!(word(named(&stage, "x/orders", None)), Word::NoFlow);
    assert_eq!(word(named(&stage, "orderz", None)), Word::NoQueue);
}

#[test]
fn deaths_are_counted_in_each_queue_anew_where_they_count() {
    let mut scheme = scheme(rejecting(1));
    let rejected = QueueRule {
        retries: 1,
        reject: Some(name("priced")),
        ..QueueRule::default()
    };
    scheme.queues.insert(name("rejected"), rejected);
    let mut stage = Stage::new(QueueRule::default());
    let apply = Change::ApplyFlow {
        flow: name("shop"),
        text: "".into(),
        scheme: Box::new(scheme),
    };
    stage.change(apply).unwrap();
    let job = stage.create("orders", "a").unwrap();
    let found = ["orders", "orders", "rejected", "rejected"].map(|queue| {
        let worker = stage.session(stage.now);
        assert!(stage.take(worker, queue).is_some());
        stage.kill(worker);
        stage.flush_all();
        stage.now += 1;
        stage.replicated.job(job).unwrap().deaths
    });
    // The last queue rejects nothing, and there it can be seen.
    assert_eq!(found, [1, 0, 1, 2]);
    assert_eq!(stage.waiting("priced"), ["a"]);
}
