//! The checker with faults, on the toys: what is right passes, and every flaw is caught by the fault that shows it.

use testigo_protocol::{Faults, Setup};

use super::news::{self, Flaw};
use super::{PROFILE, Quiz};
use crate::check::{CheckPlan, Checked, Timing, Verdict, check};
use crate::trace::{Event, Trace, replay};
use crate::world::World;

fn plan(faults: Faults) -> CheckPlan {
    CheckPlan {
        faults: Some(faults),
        timing: Some(Timing::Synchronous),
        ..CheckPlan::new(1)
    }
}

fn news(flaw: Flaw, plan: &CheckPlan) -> Checked {
    let machine = news::machine(2, 1, flaw);
    let checked = check(&news::PROFILE, &*machine, &Setup::new(2), plan).expect("valid");
    if let Some(found) = &checked.counterexample {
        let text = found.trace.to_string();
        let trace = Trace::parse(&text).expect("a trace that was written");
        let replayed = replay(&*machine, &trace, &news::PROFILE).expect("as written");
        assert!(!replayed.violations.is_empty(), "{text}");
    }
    checked
}

fn holds(flaw: Flaw, plan: &CheckPlan) {
    let checked = news(flaw, plan);
    let verdicts = (checked.safety, checked.deadlock_freedom);
    let found = &checked.counterexample;
    assert_eq!(
        verdicts,
        (Verdict::Holds, Verdict::Holds),
        "{flaw:?} {found:?}"
    );
    assert!(checked.complete);
}

fn shows(flaw: Flaw, plan: &CheckPlan, what: &str) -> Trace {
    let found = news(flaw, plan).counterexample;
    let found = found.expect("a counterexample");
    assert!(found.what.contains(what), "{}", found.what);
    found.trace
}

const LOSS: Faults = Faults {
    losses: 1,
    ..Faults::NONE
};
const COPY: Faults = Faults {
    copies: 1,
    ..Faults::NONE
};
const RESTART: Faults = Faults {
    crashes: 1,
    restarts: 1,
    ..Faults::NONE
};

#[test]
fn a_lost_message_is_missed_where_nobody_sends_it_again() {
    holds(Flaw::None, &plan(LOSS));
    holds(Flaw::NoRetry, &plan(Faults::NONE));
    let trace = shows(Flaw::NoRetry, &plan(LOSS), "never hears");
    assert!(trace.to_string().contains("channel"), "{trace}");
}

#[test]
fn a_duplicate_is_heard_twice_where_nobody_remembers() {
    holds(Flaw::None, &plan(COPY));
    holds(Flaw::NoMemory, &plan(Faults::NONE));
    let trace = shows(Flaw::NoMemory, &plan(COPY), "heard something twice");
    let copies = |(_, event): &(_, Event)| matches!(event, Event::Copy(..));
    assert!(trace.events.iter().any(copies), "{trace}");
}

#[test]
fn a_crash_is_waited_for_by_who_needs_everybody() {
    holds(Flaw::None, &plan(Faults::crashes(1)));
    holds(Flaw::WaitsForAll, &plan(Faults::NONE));
    shows(Flaw::WaitsForAll, &plan(Faults::crashes(1)), "deadlock");
}

#[test]
fn a_node_that_comes_back_remembers_what_is_on_stable_storage() {
    holds(Flaw::None, &plan(RESTART));
    holds(Flaw::Forgets, &plan(Faults::crashes(1)));
    shows(Flaw::Forgets, &plan(RESTART), "heard something twice");
    let forget = CheckPlan {
        forget: true,
        ..plan(RESTART)
    };
    shows(Flaw::None, &forget, "heard something twice");
}

#[test]
fn a_timer_fires_early_where_time_does_not_count() {
    let early = CheckPlan {
        timing: Some(Timing::Asynchronous),
        ..plan(Faults::NONE)
    };
    holds(Flaw::NoMemory, &plan(Faults::NONE));
    shows(Flaw::NoMemory, &early, "heard something twice");
}

#[test]
fn a_lie_deceives_who_believes_one_answer() {
    let machine = super::machine(2, &World::default());
    let checked = |faults| {
        let plan = plan(faults);
        check::<Quiz>(&PROFILE, &*machine, &Setup::new(2), &plan).expect("valid")
    };
    assert_eq!(checked(Faults::NONE).safety, Verdict::Holds);
    let refuted = checked(Faults::liars(1));
    assert_eq!(refuted.safety, Verdict::Refuted);
    let trace = refuted.counterexample.expect("a lie").trace;
    let lies = |(_, event): &(_, Event)| matches!(event, Event::Lie(..));
    assert!(trace.events.iter().any(lies), "{trace}");
    let replayed = replay(&*machine, &trace, &PROFILE).expect("as written");
    assert_eq!(replayed.violations, ["safety: somebody was deceived"]);
}

#[test]
fn what_only_a_later_timer_mends_is_not_covered() {
    let machine = super::machine(2, &World::default());
    let silent = CheckPlan {
        timeouts: Some(0),
        ..plan(LOSS)
    };
    let checked = check::<Quiz>(&PROFILE, &*machine, &Setup::new(2), &silent).expect("valid");
    assert_eq!(
        checked.deadlock_freedom,
        Verdict::NotCovered,
        "only a timer helps"
    );
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let refused = |faults| {
        let machine = news::machine(2, 1, Flaw::None);
        let checked = check(&news::PROFILE, &*machine, &Setup::new(2), &plan(faults));
        checked.expect_err("refused").to_string()
    };
    assert!(refused(Faults::liars(1)).contains("not meant to stand liars"));
    let restarts = Faults {
        restarts: 1,
        ..Faults::NONE
    };
    assert!(refused(restarts).contains("--restarts needs --crashes"));
}
