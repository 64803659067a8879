//! What sessions are told of their claims when their home and the owner of their gates are lost together.

use testigo_core::estate::{Broken, Frame, Peer, Tell};
use testigo_core::{
    Answer, Ask, Change, Claim, ClaimEnd, Command, Definition, Fence, Lock, Name, NodeId, Resumed,
    Rule, SessionId, Shard,
};

use crate::cases::{GATE, SESSION, Stage};

/// What a session is told that resumes elsewhere when its home is lost, while another one of that home has not been heard of.
fn resumed_beside_an_orphan(proven: bool) -> Option<Vec<ClaimEnd>> {
    let mut loss = Loss::of(&[GATE]);
    loss.lose();
    let claim = Claim {
        gate: GATE,
        fence: Fence(1),
        proven,
        ..Claim::default()
    };
    loss.resume(0, &[claim])
}

#[test]
fn only_a_claim_without_proof_waits_for_others() {
    assert_eq!(resumed_beside_an_orphan(true), Some(vec![ClaimEnd::Held]));
    // Another one may have the gate.
    assert_eq!(resumed_beside_an_orphan(false), None);
}

/// The first node, which owns some gates and is the home of three sessions, is lost; the second one owns its gates then.
struct Loss {
    stage: Stage,
    sessions: [SessionId; 3],
}

impl Loss {
    fn of(gates: &[&str]) -> Loss {
        Loss::with(gates, None, None)
    }

    fn with(gates: &[&str], permits: Option<u32>, broken: Option<Broken>) -> Loss {
        let mut stage = Stage::new(broken);
        for gate in gates {
            stage.give(gate, 0);
        }
        if let Some(permits) = permits {
            let gate = Name::new(gates[0]).expect("a name");
            let number = stage.replicated.gate_number(&gate);
            let definition = Definition::new(Rule::Permits(permits));
            let create = Change::CreateGate {
                gate,
                definition,
                number,
            };
            stage.log(0, create);
        }
        let sessions = [1, 2, 3].map(|at| SessionId::opened(SESSION + at));
        for session in sessions {
            stage.open(0, session);
        }
        Loss { stage, sessions }
    }

    /// The view without the first node. Nothing that it makes the others say has arrived.
    fn lose(&mut self) {
        self.stage.frames.clear();
        self.stage.tells.clear();
        self.stage.leave_out_the_first();
    }

    /// What a session is told that resumes at the second node, if it is told.
    fn resume(&mut self, which: usize, claims: &[Claim<'_>]) -> Option<Vec<ClaimEnd>> {
        self.stage.tells.clear();
        self.stage.try_resume(1, self.sessions[which], claims)
    }

    fn has_lost(&self, which: usize) -> bool {
        let lost = |tell: &Tell| matches!(tell, Tell::Lost { session, .. } if *session == self.sessions[which]);
        self.stage.tells.iter().any(lost)
    }
}

fn proven(fence: u64, ask: Ask<'_>) -> Claim<'_> {
    Claim {
        gate: GATE,
        fence: Fence(fence),
        ask,
        proven: true,
        ..Claim::default()
    }
}

/// A receipt outlives the hold that it was given for. Its owner had left before another session entered; that one loses nothing.
#[test]
fn an_old_receipt_gives_way_to_a_later_orphan() {
    let mut loss = Loss::of(&[GATE]);
    loss.lose();
    assert_eq!(
        loss.resume(0, &[proven(5, Ask::Plain)]),
        Some(vec![ClaimEnd::Held])
    );
    assert_eq!(
        loss.resume(1, &[proven(6, Ask::Plain)]),
        Some(vec![ClaimEnd::Held])
    );
    assert!(loss.has_lost(0));
    assert_eq!(
        loss.resume(2, &[proven(4, Ask::Plain)]),
        Some(vec![ClaimEnd::Lost])
    );
}

/// It claims to be a writer though it has become a reader since, and others have joined it.
#[test]
fn a_downgraded_writer_that_claims_as_a_writer_loses_to_the_readers() {
    let mut loss = Loss::of(&[GATE]);
    loss.lose();
    assert_eq!(
        loss.resume(0, &[proven(5, Ask::Plain)]),
        Some(vec![ClaimEnd::Held])
    );
    let reader = loss.resume(1, &[proven(6, Ask::Shared)]);
    assert_eq!(reader, Some(vec![ClaimEnd::Held]));
    assert!(loss.has_lost(0));
}

/// Fences do not say which of two holds of permits is over, so nobody is told more while others may still come.
#[test]
fn claims_of_permits_that_do_not_fit_wait_for_the_orphans() {
    let mut loss = Loss::with(&[GATE], Some(3), None);
    loss.lose();
    assert_eq!(
        loss.resume(0, &[proven(5, Ask::Permits(2))]),
        Some(vec![ClaimEnd::Held])
    );
    assert_eq!(loss.resume(1, &[proven(6, Ask::Permits(2))]), None);
    let home = loss.stage.replicated.session(loss.sessions[2]);
    let home = home.expect("it is open").home.index;
    let session = loss.sessions[2];
    loss.stage.log(1, Change::CloseSession { session, home });
    loss.stage.deliver_all();
    let held = loss.stage.tells.iter().any(|tell| {
        matches!(tell, Tell::Answered { answer: Ok(Answer::Resumed(Resumed { claims, .. })), .. } if *claims == [ClaimEnd::Held])
    });
    assert!(held, "{:?}", loss.stage.tells);
}

/// What a session is told before all members have reported, and after. It has gone from the third node to the second; the
/// third, which knows what it holds, has not reported yet.
fn told_before_a_report(broken: Option<Broken>) -> Option<Vec<ClaimEnd>> {
    let session = SessionId::opened(SESSION);
    let mut stage = Stage::new(broken);
    stage.give(GATE, 0);
    stage.open(2, session);
    let fence = stage.lock(2, session, GATE);
    stage.leave_out_the_first();
    let owner = stage.replicated.ownership().title(Shard::of(GATE));
    assert_eq!(
        owner.expect("a view gave it").owner,
        NodeId(2),
        "the case needs another gate"
    );
    // The report stays on its link.
    let report = |frame: &(Peer, Peer, Frame)| matches!(frame.2, Frame::Report { .. });
    let late: Vec<_> = stage
        .frames
        .iter()
        .filter(|frame| report(frame))
        .cloned()
        .collect();
    stage.frames.retain(|frame| !report(frame));
    stage.tells.clear();
    let claims = [proven(fence.0, Ask::Plain)];
    let early = stage.try_resume(1, session, &claims);
    for frame in late {
        stage.deliver(frame);
    }
    stage.deliver_all();
    early
}

#[test]
fn nobody_is_told_what_it_has_before_all_have_reported() {
    assert_eq!(told_before_a_report(None), None);
    let early = told_before_a_report(Some(Broken::AnswerBeforeReports));
    assert_eq!(early, Some(vec![ClaimEnd::Lost]), "it does hold it");
}

/// A hold that has ended by itself is over, whatever its receipt proves, and a present one ends at its time.
#[test]
fn a_claim_is_over_when_its_hold_was_to_end() {
    let mut loss = Loss::of(&[GATE, "other"]);
    loss.lose();
    let until = |gate, until| Claim {
        gate,
        until: Some(until),
        ..proven(5, Ask::Plain)
    };
    let ends = loss.resume(0, &[until(GATE, 2_000), until("other", 2_001)]);
    assert_eq!(ends, Some(vec![ClaimEnd::Lost, ClaimEnd::Held]));
    let held = loss.stage.estates[1].local().gate("other").unwrap();
    assert_eq!(held.holders[0].until, Some(2_001));
}

/// What people are shown of a hold is what it was granted with, whether its home or its client says so.
#[test]
fn reason_and_time_of_a_hold_survive_its_owner() {
    let session = SessionId::opened(SESSION);
    let mut loss = Loss::of(&[GATE]);
    loss.stage.open(1, session);
    let reported = Command::Lock(Lock {
        gate: GATE,
        reason: Some("release 7"),
        ..Lock::default()
    });
    loss.stage.ask(1, session, &reported);
    loss.stage.deliver_all();
    let before = loss.stage.estates[0].local().gate(GATE).unwrap();
    loss.lose();
    let claim = Claim {
        gate: "other",
        since: Some(1_500),
        reason: Some("release 8"),
        ..proven(5, Ask::Plain)
    };
    assert_eq!(loss.resume(0, &[claim]), Some(vec![ClaimEnd::Held]));
    let shown = |gate| {
        let view = loss.stage.estates[1].local().gate(gate).unwrap();
        (view.holders[0].since, view.holders[0].reason.clone())
    };
    assert_eq!(before.holders[0].reason.as_deref(), Some("release 7"));
    assert_eq!(
        shown(GATE),
        (before.holders[0].since, Some("release 7".into()))
    );
    assert_eq!(shown("other"), (1_500, Some("release 8".into())));
}

/// Who waits at a gate is shown while its new owner does not know yet who is inside, and has waited since it asked.
#[test]
fn who_waits_is_shown_before_the_gate_is_open_and_has_waited_since_it_asked() {
    let session = SessionId::opened(SESSION);
    let mut loss = Loss::of(&[GATE]);
    loss.stage.open(1, session);
    let lock = |reason| {
        Command::Lock(Lock {
            gate: GATE,
            reason,
            ..Lock::default()
        })
    };
    let holder = loss.sessions[0];
    loss.stage.ask(0, holder, &lock(None));
    loss.stage.ask(1, session, &lock(Some("next")));
    loss.stage.deliver_all();
    loss.lose();
    loss.stage.now += 500;
    loss.stage.deliver_all();
    let Stage {
        estates,
        replicated,
        ..
    } = &loss.stage;
    let view = estates[1].gate_view(replicated, GATE, 10).unwrap();
    assert_eq!(view.awaits, loss.sessions);
    let [waiter] = &view.waiters[..] else {
        panic!("{view:?}");
    };
    assert_eq!((waiter.session, waiter.since), (session, 2_000));
    assert_eq!(waiter.reason.as_deref(), Some("next"));
    assert_eq!(view.waiting, 1);
    // Two orphans end; the third one is inside, and the waiter goes on waiting in the books.
    let claim = [proven(5, Ask::Plain)];
    assert_eq!(loss.resume(0, &claim), Some(vec![ClaimEnd::Held]));
    for which in 1..3 {
        let session = loss.sessions[which];
        let record = loss.stage.replicated.session(session);
        let home = record.expect("it is open").home.index;
        loss.stage.log(1, Change::CloseSession { session, home });
    }
    loss.stage.deliver_all();
    let shown = loss.stage.estates[1].local().gate(GATE).unwrap();
    assert_eq!((shown.holders.len(), shown.waiters.len()), (1, 1));
    assert_eq!(shown.waiters[0].since, 2_000);
}
