//! Refusals that say what is in the way by its name.

use testigo_core::*;

use crate::stage::{Stage, name, scheme};

#[test]
fn a_flow_that_would_strand_jobs_is_refused_with_every_queue_and_the_first_names() {
    let mut stage = Stage::new(QueueRule::default());
    for job in 1..=7 {
        stage.create("orders", &format!("o-{job}")).unwrap();
    }
    stage.create("priced", "p-1").unwrap();
    let delete = Change::DeleteFlow { flow: name("shop") };
    let refusal = stage.change(delete).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "BUSY jobs would be stranded: 7 in queue orders (o-1, o-2, o-3, o-4, o-5 and 2 more), 1 in queue priced (p-1); \
         move or finish them, then delete the flow"
    );
}

#[test]
fn a_flow_is_applied_over_what_its_author_saw_and_over_nothing_else() {
    let mut node = Replicated::new(Limits::default());
    let mut apply = |text: &str, over: Option<&str>| {
        let change = Change::ApplyFlowOver {
            flow: name("shop"),
            text: text.into(),
            scheme: Box::new(scheme(QueueRule::default())),
            over: over.map(FlowMark::of),
        };
        let applied = node.apply(0, &change).map(Applied::into_outcome);
        let flow = node.flow("shop").map(|flow| flow.text.to_string());
        (applied.map_err(|refusal| refusal.word).err(), flow.ok())
    };
    let runs = |text: &str| Some(text.to_owned());
    assert_eq!(apply("a", Some("gone")), (Some(Word::Stale), None));
    assert_eq!(apply("a", None), (None, runs("a")));
    // Both authors saw "a": the second one changes nothing.
    assert_eq!(apply("b", Some("a")), (None, runs("b")));
    assert_eq!(apply("c", Some("a")), (Some(Word::Stale), runs("b")));
    assert_eq!(apply("c", None), (Some(Word::Stale), runs("b")));
    // Who does not know whether it was applied asks again.
    assert_eq!(apply("b", Some("a")), (None, runs("b")));
    assert_eq!(apply("c", Some("b")), (None, runs("c")));
}

#[test]
fn a_job_beyond_the_limit_is_refused_by_the_limits_name() {
    let mut node = Replicated::new(Limits {
        jobs: 1,
        ..Limits::default()
    });
    let apply = Change::ApplyFlow {
        flow: name("shop"),
        text: "".into(),
        scheme: Box::new(scheme(QueueRule::default())),
    };
    let _ = node.apply(0, &apply).unwrap();
    let create = Change::Jobs(vec![JobChange::Create {
        queue: QueueId(1),
        name: None,
        class: 1,
        body: Body::from(&b""[..]),
        by: "test".into(),
    }]);
    let _ = node.apply(0, &create).unwrap();
    let refusal = node.apply(0, &create).unwrap_err().to_string();
    assert_eq!(refusal, "LIMIT 1 jobs exist, and the limit jobs is 1");
}
