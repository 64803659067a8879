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
        stage
            .local
            .narrow_take(ticket, left.into(), &mut stage.events);
    };
    narrow(&mut stage, &[priced]);
    assert_eq!(stage.local.take_queues(ticket), Some(&[priced][..]));
    stage.create("orders", "a").unwrap();
    assert_eq!(stage.waiting("orders"), ["a"]);
    stage.create("priced", "b").unwrap();
    assert_eq!(taken(&stage.events), 1);
    // It is over; once more is nothing.
    narrow(&mut stage, &[]);

    let answer = stage.take_from(worker, &["priced"], None, Some(1000));
    let Ok(Answer::Waiting(ticket)) = answer else {
        panic!("{answer:?}")
    };
    stage
        .local
        .narrow_take(ticket, Box::default(), &mut stage.events);
    assert_eq!(stage.local.take_queues(ticket), None);
    stage.create("priced", "c").unwrap();
    assert_eq!(stage.waiting("priced"), ["c"]);
}
