//! A queue is owned by one node an epoch, and what is taken from it is taken under that title.

use testigo_core::*;

use crate::stage::Stage;

/// Shows the monitor the title under which a job was handed out.
fn show(monitor: &mut OneOwner, node: &Replicated, taken: Taken) -> Result<(), String> {
    let queue = Thing::Queue(QueueId(1));
    let title = node.ownership().title(&queue).unwrap();
    assert_eq!(
        taken.attempt.epoch(),
        title.epoch,
        "an attempt is its owner's"
    );
    monitor.saw(queue, title)
}

#[test]
fn a_job_is_taken_under_the_title_of_its_queues_owner() {
    let mut monitor = OneOwner::default();
    let mut stage = Stage::new(QueueRule::default());
    assert_eq!(stage.queue("orders"), QueueId(1));
    for job in ["a", "b"] {
        stage.create("orders", job).unwrap();
    }
    for epoch in 1..4 {
        let worker = stage.session(epoch);
        for _ in 0..2 {
            let taken = stage.take(worker, "orders").unwrap();
            assert_eq!(taken.attempt.epoch(), Epoch(epoch));
            show(&mut monitor, &stage.replicated, taken).unwrap();
        }
        stage.crash(0);
    }
}

/// The specimen: a node that reigns without having read the other's log hands out jobs of the same queue in the same
/// epoch.
#[test]
fn two_nodes_that_hand_out_jobs_of_a_queue_in_one_epoch_are_seen() {
    let mut monitor = OneOwner::default();
    let mut one = Stage::new(QueueRule::default());
    let mut two = Stage::of(NodeId(2), QueueRule::default());
    for (nth, stage) in [&mut one, &mut two].into_iter().enumerate() {
        stage.create("orders", "a").unwrap();
        let worker = stage.session(1);
        let taken = stage.take(worker, "orders").unwrap();
        let shown = show(&mut monitor, &stage.replicated, taken);
        assert_eq!(shown.is_err(), nth == 1, "{shown:?}");
    }
}
