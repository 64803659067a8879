//! Takes that wait while the flow around them changes.

use testigo_core::*;

use crate::stage::{Stage, name};

fn taken(events: &[Event]) -> usize {
    let taken = |event: &&Event| {
        matches!(
            event,
            Event::Settled {
                settled: Settled::Taken(_),
                ..
            }
        )
    };
    events.iter().filter(taken).count()
}

#[test]
fn a_take_of_a_queue_that_is_deleted_ends() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    let answer = stage.take_from(worker, &["orders"], None, Some(1000));
    assert!(matches!(answer.unwrap(), Answer::Waiting(_)));
    let delete = Change::DeleteFlow { flow: name("shop") };
    stage.change(delete).unwrap();
    let ended = stage.events.iter().any(|event| {
        matches!(
            event,
            Event::Settled {
                settled: Settled::Ended(WaitEnd::Cancelled),
                ..
            }
        )
    });
    assert!(ended);
}

#[test]
fn a_take_that_loses_a_queue_waits_for_the_others_only() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    let answer = stage.take_from(worker, &["orders", "priced"], None, Some(1000));
    let Ok(Answer::Waiting(ticket)) = answer else {
        panic!("{answer:?}")
    };
    let priced = stage.queue("priced");
    let narrow = |stage: &mut Stage, left: &[QueueId]| {
        let queues = left.into();
        let narrow = Command::Narrow { ticket, queues };
        stage.ask(worker, &narrow).map_err(|refusal| refusal.word)
    };
    assert_eq!(narrow(&mut stage, &[priced]), Ok(Answer::Done));
    assert_eq!(stage.local.take_queues(ticket), Some(&[priced][..]));
    stage.create("orders", "a").unwrap();
    assert_eq!(stage.waiting("orders"), ["a"]);
    stage.create("priced", "b").unwrap();
    assert_eq!(taken(&stage.events), 1);
    // It is over; once more is nothing.
    assert_eq!(narrow(&mut stage, &[]), Err(Word::BadArg));

    let answer = stage.take_from(worker, &["priced"], None, Some(1000));
    let Ok(Answer::Waiting(ticket)) = answer else {
        panic!("{answer:?}")
    };
    let queues = [].as_slice().into();
    stage
        .ask(worker, &Command::Narrow { ticket, queues })
        .unwrap();
    assert_eq!(stage.local.take_queues(ticket), None);
    stage.create("priced", "c").unwrap();
    assert_eq!(stage.waiting("priced"), ["c"]);
}

/// The names of the jobs that were handed to those who waited, in order.
fn handed(stage: &Stage) -> Vec<String> {
    let taken = stage.events.iter().filter_map(|event| match event {
        Event::Settled {
            settled: Settled::Taken(taken),
            ..
        } => Some(stage.replicated.job(taken.job).unwrap().name.to_string()),
        _ => None,
    });
    taken.collect()
}

fn create(stage: &Stage, queue: &str, job: &str, with: u32) -> JobChange {
    let Change::Jobs(mut changes) = stage.create_change(queue, job) else {
        panic!("no create")
    };
    if let JobChange::Create { class, .. } = &mut changes[0] {
        *class = with;
    }
    changes.remove(0)
}

#[test]
fn what_comes_together_is_in_line_before_anybody_is_served() {
    let by_class = QueueRule {
        order: QueueOrder::Priority,
        ..QueueRule::default()
    };
    let mut stage = Stage::new(by_class);
    let worker = stage.session(1);
    let wait = |stage: &mut Stage, queues: &[&str]| {
        let answer = stage.take_from(worker, queues, None, Some(1000));
        assert!(matches!(answer.unwrap(), Answer::Waiting(_)));
    };
    wait(&mut stage, &["orders"]);
    let unit = [("low", 5), ("high", 0)].map(|(job, class)| create(&stage, "orders", job, class));
    stage.change(Change::Jobs(unit.into())).unwrap();
    assert_eq!(handed(&stage), ["high"]);
    assert_eq!(stage.waiting("orders"), ["low"]);

    // The first of its queues that has a job, whatever came first.
    assert!(stage.take(worker, "orders").is_some());
    stage.events.clear();
    wait(&mut stage, &["orders", "priced"]);
    wait(&mut stage, &["priced"]);
    let unit = [("late", "priced"), ("early", "orders")];
    let unit = unit.map(|(job, queue)| create(&stage, queue, job, 1));
    stage.change(Change::Jobs(unit.into())).unwrap();
    assert_eq!(handed(&stage), ["early", "late"]);
}

#[test]
fn what_comes_back_together_is_taken_in_its_order() {
    let by_key = QueueRule {
        order: QueueOrder::Key,
        ..QueueRule::default()
    };
    for in_good_order in [true, false] {
        let mut stage = Stage::new(by_key.clone());
        let (worker, other) = (stage.session(1), stage.session(2));
        for job in ["k2", "k1"] {
            stage.create("orders", job).unwrap();
            assert!(stage.take(worker, "orders").is_some());
        }
        let answer = stage.take_from(other, &["orders"], None, Some(1000));
        assert!(matches!(answer.unwrap(), Answer::Waiting(_)));
        match in_good_order {
            true => drop(stage.ask(worker, &Command::GiveBackAll).unwrap()),
            false => {
                stage.kill(worker);
                stage.flush_all();
            }
        }
        assert_eq!(handed(&stage), ["k1"]);
        assert_eq!(stage.waiting("orders"), ["k2"]);
    }
}

#[test]
fn a_named_take_gets_its_job_and_the_others_what_is_left() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    for named in [Some("b"), None] {
        let answer = stage.take_from(worker, &["orders"], named, Some(1000));
        assert!(matches!(answer.unwrap(), Answer::Waiting(_)));
    }
    let unit = ["a", "b", "c"].map(|job| create(&stage, "orders", job, 1));
    stage.change(Change::Jobs(unit.into())).unwrap();
    assert_eq!(handed(&stage), ["b", "a"]);
    assert_eq!(stage.waiting("orders"), ["c"]);
}

#[test]
fn jobs_in_hands_and_takes_that_wait_are_counted() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    for job in ["a", "b"] {
        stage.create("orders", job).unwrap();
        assert!(stage.take(worker, "orders").is_some());
    }
    assert_eq!(stage.local.hand_sizes(), (2, 0));
    let answer = stage.take_from(worker, &["orders"], None, Some(1000));
    assert!(matches!(answer.unwrap(), Answer::Waiting(_)));
    assert_eq!(stage.local.hand_sizes(), (2, 1));
}

#[test]
fn a_take_may_wait_as_long_as_the_limit() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    let most = Limits::default().wait_ms_max;
    let refused = stage.take_from(worker, &["orders"], None, Some(most + 1));
    assert_eq!(refused.unwrap_err().word, Word::BadArg);
    let answer = stage.take_from(worker, &["orders"], None, Some(most));
    assert!(matches!(answer.unwrap(), Answer::Waiting(_)));
}

#[test]
fn a_worker_that_went_while_the_log_refused_its_change_has_died() {
    let mut stage = Stage::new(crate::stage::rejecting(0));
    stage.create("orders", "a").unwrap();
    let worker = stage.session(1);
    let taken = stage.take(worker, "orders").unwrap();
    stage.submit_delete(worker, taken).unwrap();
    let doubled = stage.create_change("orders", "a");
    if let (Some((Change::Jobs(unit), _)), Change::Jobs(create)) =
        (stage.queued.back_mut(), doubled)
    {
        unit.splice(0..0, create);
    }
    stage.kill(worker);
    assert_eq!(stage.flush_one().unwrap_err().word, Word::Duplicate);
    assert_eq!(stage.waiting("orders"), [""; 0]);
    stage.flush_all();
    assert_eq!(stage.waiting("rejected"), ["a"]);
    assert_eq!(stage.replicated.job(taken.job).unwrap().deaths, 1);
}
