//! A queue is owned by one node under a number, what is taken from it is taken under that title, and what settles a job rests
//! on it.

use testigo_core::*;

use crate::stage::{Stage, rejecting, word};

/// Shows the monitor the title under which a job was handed out.
fn show(monitor: &mut OneOwner, stage: &Stage, taken: Taken) -> Result<(), String> {
    let (shard, title) = stage.title("orders");
    let number = taken.attempt.number();
    assert_eq!(number, title.number, "an attempt is its owner's");
    monitor.saw(shard, title)
}

#[test]
fn a_job_is_taken_under_the_title_of_its_queues_owner() {
    let mut monitor = OneOwner::default();
    let mut stage = Stage::new(QueueRule::default());
    for job in ["a", "b"] {
        stage.create("orders", job).unwrap();
    }
    for start in 0..3 {
        let worker = stage.session(start);
        for _ in 0..2 {
            let taken = stage.take(worker, "orders").unwrap();
            let number = Number(Number::FIRST.0 + start as u32);
            assert_eq!(taken.attempt.number(), number);
            show(&mut monitor, &stage, taken).unwrap();
        }
        stage.crash(0);
    }
}

/// The specimen: a node that has not read the other's log hands out jobs of the same queue under the same number.
#[test]
fn two_nodes_that_hand_out_jobs_of_a_queue_under_one_number_are_seen() {
    let mut monitor = OneOwner::default();
    let mut one = Stage::new(QueueRule::default());
    let mut two = Stage::of(NodeId(2), QueueRule::default());
    for (nth, stage) in [&mut one, &mut two].into_iter().enumerate() {
        stage.create("orders", "a").unwrap();
        let worker = stage.session(1);
        let taken = stage.take(worker, "orders").unwrap();
        let shown = show(&mut monitor, stage, taken);
        assert_eq!(shown.is_err(), nth == 1, "{shown:?}");
    }
}

#[test]
fn a_change_of_an_earlier_start_is_stale_in_the_log_itself() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    stage.create("orders", "a").unwrap();
    let taken = stage.take(worker, "orders").unwrap();
    stage.submit_pass(worker, taken, "priced").unwrap();
    let late = stage.queued.pop_front().unwrap();
    stage.change(stage.next_view()).unwrap();
    stage.queued.push_back(late);
    assert_eq!(word(stage.flush_one()), Word::Stale);
    let job = stage.replicated.job(taken.job).unwrap();
    assert_eq!(job.queue, stage.queue("orders"));
}

/// Case Q, late pass: the queue gets a new title, the job is given back and taken again, and then the pass commits.
#[test]
fn a_late_pass_is_stale_once_the_queue_has_another_owner() {
    let mut stage = Stage::new(QueueRule::default());
    let worker = stage.session(1);
    stage.create("orders", "a").unwrap();
    let taken = stage.take(worker, "orders").unwrap();
    stage.submit_pass(worker, taken, "priced").unwrap();
    let late = stage.queued.pop_front().unwrap();
    let both = Change::View {
        before: stage.replicated.view().index,
        members: vec![(NodeId(1), Start(1)), (NodeId(2), Start(1))],
        generation: 0,
    };
    stage.change(both).unwrap();
    stage.hand_over("orders", NodeId(2), Start(1)).unwrap();
    stage.queued.push_back(late);
    assert_eq!(word(stage.flush_one()), Word::Stale);
    let job = stage.replicated.job(taken.job).unwrap();
    assert_eq!(job.queue, stage.queue("orders"));
}

#[test]
fn a_pass_on_its_way_is_done_although_the_owner_hands_the_queue_to_itself() {
    let mut stage = Stage::new(rejecting(0));
    let workers = [stage.session(1), stage.session(2)];
    for job in ["a", "b"] {
        stage.create("orders", job).unwrap();
    }
    let [a, b] = workers.map(|worker| stage.take(worker, "orders").unwrap());
    stage.submit_pass(workers[0], a, "priced").unwrap();
    // The other dies meanwhile, and the log is about to hear of it.
    stage.kill(workers[1]);
    let late: Vec<_> = stage.queued.drain(..).collect();
    stage.hand_over("orders", NodeId(1), Start(1)).unwrap();
    stage.queued.extend(late);
    stage.flush_all();
    assert_eq!(stage.waiting("priced"), ["a"]);
    assert_eq!(stage.waiting("rejected"), ["b"]);
    assert!(stage.local.held_job(b.job).is_none());
}

#[test]
fn a_taker_that_is_gone_gets_nothing() {
    let mut stage = Stage::new(QueueRule::default());
    let (_, before) = stage.title("orders");
    for (taker, start) in [(NodeId(2), Start(1)), (NodeId(1), Start(2))] {
        let refused = stage.hand_over("orders", taker, start);
        assert_eq!(word(refused), Word::Stale, "case E");
    }
    assert_eq!(stage.title("orders").1, before);
}

/// Case B, late title: by the time it commits the giver was left out, and somebody else owns the shard.
#[test]
fn a_late_title_is_stale() {
    let mut stage = Stage::new(QueueRule::default());
    let (shard, title) = stage.title("orders");
    let late = Change::Titles {
        shards: vec![Span::of(shard, title.number)],
        taker: NodeId(1),
        start: Start(2),
    };
    stage.change(stage.next_view()).unwrap();
    assert_eq!(word(stage.change(late)), Word::Stale);
}

#[test]
fn attempts_at_a_job_grow_whichever_queues_it_passes_through() {
    let mut stage = Stage::new(rejecting(0));
    let worker = stage.session(1);
    // The first queue is far ahead of the others, by its count and then by its number.
    for _ in 0..5 {
        stage.create("orders", "x").unwrap();
        let taken = stage.take(worker, "orders").unwrap();
        stage.delete(worker, taken).unwrap();
    }
    let mut last = Fence(0);
    let mut grown = |taken: Taken| {
        assert!(taken.attempt > last, "{} after {last}", taken.attempt);
        last = taken.attempt;
    };
    for _ in 0..3 {
        stage.create("orders", "a").unwrap();
        let taken = stage.take(worker, "orders").unwrap();
        grown(taken);
        stage.pass(worker, taken, "priced").unwrap();
        let taken = stage.take(worker, "priced").unwrap();
        grown(taken);
        stage.pass(worker, taken, "orders").unwrap();
        // Back where it began; its worker dies, and it is rejected.
        let dying = stage.session(2);
        grown(stage.take(dying, "orders").unwrap());
        stage.kill(dying);
        stage.flush_all();
        let taken = stage.take(worker, "rejected").unwrap();
        grown(taken);
        stage.delete(worker, taken).unwrap();
        stage.hand_over("orders", NodeId(1), Start(1)).unwrap();
    }
}
