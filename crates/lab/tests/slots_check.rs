//! Every order of steps of small groups, with one fault at any point.

use testigo_lab::Verdict;
use testigo_lab::slots::{SlotsCheckPlan, SlotsChecked, SlotsTrouble, SlotsViolation, check_slots};
use testigo_protocol::slots::{Flaws, SlotsPlan};

fn search(members: usize, trouble: SlotsTrouble, flaws: Flaws, uses: u32) -> SlotsCheckPlan {
    let mut plan = SlotsPlan::strict(members, 4, 1);
    plan.flaws = flaws;
    search_plan(plan, trouble, uses)
}

fn search_plan(plan: SlotsPlan, trouble: SlotsTrouble, uses: u32) -> SlotsCheckPlan {
    SlotsCheckPlan {
        plan,
        trouble,
        uses,
        states_max: 1_000_000,
        progress: |_| {},
    }
}

fn run(search: &SlotsCheckPlan) -> SlotsChecked {
    let checked = check_slots(search);
    println!(
        "{} members, {}: {} states ({} generated), depth {}, complete: {}",
        search.plan.members,
        search.trouble,
        checked.states,
        checked.generated,
        checked.depth,
        checked.complete
    );
    for step in checked.counterexample.iter().flat_map(|found| &found.steps) {
        println!("  {step}");
    }
    checked
}

fn holds_in_all(members: usize, trouble: SlotsTrouble, uses: u32, states: usize) {
    holds(&search(members, trouble, Flaws::NONE, uses), states);
}

fn directed_holds_in_all(members: usize, trouble: SlotsTrouble, uses: u32, states: usize) {
    let plan = SlotsPlan::directed(members, 4, 1);
    holds(&search_plan(plan, trouble, uses), states);
}

fn holds(search: &SlotsCheckPlan, states: usize) {
    let checked = run(search);
    assert_eq!(checked.counterexample, None);
    assert_eq!((checked.complete, checked.states), (true, states));
    let verdicts = (checked.safety, checked.rest);
    assert_eq!(verdicts, (Verdict::Holds, Verdict::Holds));
}

#[test]
fn two_members_keep_all_promises_in_every_order() {
    holds_in_all(2, SlotsTrouble::None, 2, 125);
    holds_in_all(2, SlotsTrouble::Part, 2, 5_388);
    holds_in_all(2, SlotsTrouble::Crash, 2, 9_741);
    holds_in_all(2, SlotsTrouble::Depart, 2, 2_745);
    holds_in_all(2, SlotsTrouble::Join, 2, 383);
}

#[test]
fn three_members_keep_all_promises_in_every_order() {
    holds_in_all(3, SlotsTrouble::None, 2, 8_715);
    holds_in_all(3, SlotsTrouble::Depart, 1, 53_074);
    holds_in_all(3, SlotsTrouble::Join, 2, 55_673);
}

#[test]
fn three_members_that_part_keep_all_promises_in_every_order() {
    holds_in_all(3, SlotsTrouble::Part, 1, 165_766);
}

#[test]
fn three_members_of_which_one_crashes_keep_all_promises_in_every_order() {
    holds_in_all(3, SlotsTrouble::Crash, 1, 267_691);
}

#[test]
fn members_that_name_donors_keep_all_promises_in_every_order() {
    directed_holds_in_all(2, SlotsTrouble::None, 2, 1_014);
    directed_holds_in_all(2, SlotsTrouble::Part, 2, 103_235);
    directed_holds_in_all(2, SlotsTrouble::Crash, 2, 85_128);
    directed_holds_in_all(2, SlotsTrouble::Depart, 2, 21_166);
    directed_holds_in_all(2, SlotsTrouble::Join, 2, 2_946);
    directed_holds_in_all(3, SlotsTrouble::None, 1, 149);
    directed_holds_in_all(3, SlotsTrouble::Join, 1, 6461);
    directed_holds_in_all(3, SlotsTrouble::None, 2, 15_627);
    directed_holds_in_all(3, SlotsTrouble::Depart, 1, 66_487);
    directed_holds_in_all(3, SlotsTrouble::Join, 2, 281_191);
}

#[test]
fn three_members_that_name_donors_and_part_keep_all_promises_in_every_order() {
    directed_holds_in_all(3, SlotsTrouble::Part, 1, 128_225);
}

#[test]
fn three_members_that_name_donors_of_which_one_crashes_keep_all_promises_in_every_order() {
    directed_holds_in_all(3, SlotsTrouble::Crash, 1, 303_873);
}

#[test]
fn a_donor_that_keeps_nothing_is_refuted_in_every_mode() {
    let greedy = Flaws {
        keeps_nothing: true,
        ..Flaws::NONE
    };
    for mut plan in [SlotsPlan::strict(3, 4, 1), SlotsPlan::directed(3, 4, 1)] {
        plan.flaws = greedy;
        let checked = run(&search_plan(plan, SlotsTrouble::None, 3));
        let what = checked.counterexample.expect("a promise is broken").what;
        assert!(matches!(what, SlotsViolation::TooGenerous { .. }), "{what}");
    }
}

#[test]
fn nothing_is_said_of_what_was_not_reached() {
    let mut search = search(3, SlotsTrouble::Part, Flaws::NONE, 2);
    search.states_max = 20_000;
    let checked = run(&search);
    assert_eq!((checked.counterexample, checked.complete), (None, false));
    let verdicts = (checked.safety, checked.rest);
    assert_eq!(verdicts, (Verdict::NotCovered, Verdict::NotCovered));
}

#[test]
fn the_printed_rules_are_refuted_by_a_shortest_story() {
    let paper = |members, trouble| {
        let checked = run(&search(members, trouble, Flaws::PAPER, 2));
        let verdicts = (checked.safety, checked.rest);
        let found = checked.counterexample.expect("the rules are wrong");
        (found.what, found.steps, verdicts)
    };
    let (what, steps, verdicts) = paper(3, SlotsTrouble::Crash);
    assert!(matches!(what, SlotsViolation::TwoUsers { .. }), "{what}");
    assert_eq!(verdicts, (Verdict::Refuted, Verdict::NotCovered));
    let alone = [
        "p0's machine stops: {1,2} stays",
        "p0 starts",
        "p0 sees {0}: p0 has joined",
    ];
    assert_eq!(steps, alone);

    let (what, steps, _) = paper(2, SlotsTrouble::Part);
    assert!(matches!(what, SlotsViolation::TwoUsers { .. }), "{what}");
    let late = "p1 hears that p0 donates [1] to p1, sent in another view";
    assert_eq!(steps.last().map(String::as_str), Some(late));

    for trouble in [
        SlotsTrouble::None,
        SlotsTrouble::Part,
        SlotsTrouble::Depart,
        SlotsTrouble::Join,
    ] {
        let (what, _, verdicts) = paper(3, trouble);
        assert!(matches!(what, SlotsViolation::Open { .. }), "{what}");
        assert_eq!(verdicts, (Verdict::NotCovered, Verdict::Refuted));
    }
}

#[test]
fn reusing_what_is_out_of_reach_is_refuted_in_two_steps() {
    let optimist = Flaws {
        reuses_unreachable: true,
        ..Flaws::NONE
    };
    let checked = run(&search(2, SlotsTrouble::Part, optimist, 1));
    let found = checked.counterexample.expect("both use one slot");
    assert!(matches!(found.what, SlotsViolation::TwoUsers { .. }));
    assert_eq!(found.steps.len(), 2);
}
