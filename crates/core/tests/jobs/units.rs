//! Units of work: changes of several jobs in one entry of the log.

use testigo_core::*;

use crate::stage::{Stage, word};

#[test]
fn a_unit_of_work_is_done_whole_or_not_at_all() {
    let mut stage = Stage::new(QueueRule::default());
    stage.create("orders", "a").unwrap();
    let records = stage.replicated.records().clone();
    let create = |stage: &Stage, job| match stage.create_change("orders", job) {
        Change::Jobs(mut changes) => changes.remove(0),
        other => panic!("{other:?}"),
    };
    let unit = vec![
        create(&stage, "b"),
        create(&stage, "c"),
        create(&stage, "a"),
    ];
    let refusal = stage.change(Change::Jobs(unit)).unwrap_err();
    assert_eq!(refusal.word, Word::Duplicate);
    assert!(refusal.sentence.starts_with("command 3"), "{refusal}");
    assert!(stage.replicated.records().are_as(&records));
    assert!(stage.replicated.job_named("shop", "b").is_none());
    let unit = vec![create(&stage, "b"), create(&stage, "c")];
    stage.change(Change::Jobs(unit)).unwrap();
    assert_eq!(stage.waiting("orders"), ["a", "b", "c"]);
}

#[test]
fn a_refused_unit_of_work_gives_back_the_names_that_it_deleted() {
    let mut stage = Stage::new(QueueRule::default());
    for job in ["a", "b"] {
        stage.create("orders", job).unwrap();
    }
    let worker = stage.session(1);
    let (a, b) = (stage.take(worker, "orders"), stage.take(worker, "orders"));
    let (a, b) = (a.unwrap(), b.unwrap());
    stage.submit_delete(worker, a).unwrap();
    stage.submit_pass(worker, b, "priced").unwrap();
    let changes = |stage: &mut Stage| match stage.queued.pop_front().unwrap().0 {
        Change::Jobs(changes) => changes,
        other => panic!("{other:?}"),
    };
    let mut unit = changes(&mut stage);
    unit.extend(changes(&mut stage));
    let duplicate = stage.create_change("orders", "b");
    let records = stage.replicated.records().clone();
    let Change::Jobs(mut refused) = duplicate else {
        panic!()
    };
    refused.splice(0..0, unit.clone());
    stage
        .queued
        .push_back((Change::Jobs(refused), vec![a.job, b.job]));
    assert_eq!(word(stage.flush_one()), Word::Duplicate);
    assert!(stage.replicated.records().are_as(&records));
    assert_eq!(stage.replicated.job_named("shop", "a"), Some(a.job));
    // Both are held as before, and the unit without its last command is done.
    stage.submit_delete(worker, a).unwrap();
    stage.submit_pass(worker, b, "priced").unwrap();
    stage.queued.clear();
    stage.change(Change::Jobs(unit)).unwrap();
    assert_eq!(stage.replicated.job_named("shop", "a"), None);
    assert_eq!(stage.waiting("priced"), ["b"]);
}

#[test]
fn a_job_given_back_in_a_unit_of_work_keeps_its_place() {
    let mut stage = Stage::new(QueueRule::default());
    for job in ["a", "b"] {
        stage.create("orders", job).unwrap();
    }
    let worker = stage.session(1);
    let taken = stage.take(worker, "orders").unwrap();
    stage.submit_delete(worker, taken).unwrap();
    stage.queued.clear();
    let job = taken.job;
    let number = stage.replicated.job_number(job);
    let back = JobChange::Back { job, number };
    let Change::Jobs(mut unit) = stage.create_change("priced", "c") else {
        panic!()
    };
    unit.push(back.clone());
    stage.change(Change::Jobs(unit)).unwrap();
    assert_eq!(stage.waiting("orders"), ["a", "b"]);
    assert_eq!(stage.waiting("priced"), ["c"]);
    assert_eq!(stage.local.held_job(job), None);
    stage.crash(0);
    let stale = stage.change(Change::Jobs(vec![back]));
    assert_eq!(word(stale), Word::Stale);
    assert_eq!(stage.waiting("orders"), ["a", "b"]);
}
