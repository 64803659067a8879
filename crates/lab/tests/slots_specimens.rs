//! The rules of SLOTS as they are printed, one wrong rule at a time: each is refuted by a short story and by
//! random schedules, and the strict rule holds in the same story.

mod slots_group;

use slots_group::{Group, gifts, p};
use testigo_lab::slots::{SlotsSchedule, SlotsViolation, run_schedule};
use testigo_protocol::slots::{Asking, Flaws, SlotsPlan};

struct Specimen {
    name: &'static str,
    flaws: Flaws,
    story: fn(Flaws) -> Result<(), SlotsViolation>,
    /// What the rule does, and nothing else that may be wrong at the same time.
    refuted: fn(&SlotsViolation) -> bool,
    /// In so many random schedules at least one finds it.
    schedules: u64,
}

fn four(flaws: Flaws) -> SlotsPlan {
    let mut plan = SlotsPlan::strict(4, 16, 1);
    plan.min_join = 3;
    plan.flaws = flaws;
    plan
}

/// Everybody has one slot, and keeps it.
fn one_each(flaws: Flaws) -> Group {
    let mut plan = SlotsPlan::strict(4, 4, 1);
    plan.flaws = flaws;
    Group::started(plan)
}

/// Two ask at once, and the others have nothing to give.
fn crossed_requests(flaws: Flaws) -> Result<(), SlotsViolation> {
    let mut group = one_each(flaws);
    group.take(0);
    group.take(1);
    let verdict = group.verdict();
    if verdict == Err(SlotsViolation::Open { member: p(0) }) {
        // It is the request that stays open, and at every member.
        assert_eq!(group.sharer(0).asking(), Asking::Open);
        for member in 0..4 {
            let cycles = &group.sharer(member).state().cycles;
            let open: Vec<u32> = cycles.iter().map(|cycle| cycle.requester.0).collect();
            assert_eq!(open, [0], "at {member}");
        }
    }
    verdict
}

/// A machine restarts out of everybody's reach.
fn isolated_restart(flaws: Flaws) -> Result<(), SlotsViolation> {
    let mut group = Group::started(four(flaws));
    group.crash(3, 0);
    group.calm();
    group.join(3);
    group.calm();
    group.merge(0, 3);
    group.verdict()
}

/// A donation is sent before a newcomer is seen, and delivered between its status and the snapshot for it.
fn stale_snapshot(flaws: Flaws) -> Result<(), SlotsViolation> {
    let mut group = Group::empty(four(flaws));
    group.found(0);
    for newcomer in [1, 2] {
        group.join(newcomer);
        group.calm();
    }
    group.take_all(1);
    group.join(3);
    assert!(!gifts(&group.hear(2)).is_empty(), "2 has slots to spare");
    for member in 0..4 {
        while !group.sharer(member).state().initialised.contains(3) && !group.world.is_quiet() {
            group.hear(member);
        }
    }
    // Everybody has heard as far as the status. Later the newcomer's request stays open, too, which the observer would
    // report first.
    let same = group.sharer(0).table() == group.sharer(3).table();
    let verdict = group.verdict();
    match same {
        true => verdict,
        false => Err(SlotsViolation::Disagree {
            members: [p(0), p(3)],
        }),
    }
}

/// A machine restarts where nobody knows whom it gave its slots to.
fn restart_on_the_wrong_side(flaws: Flaws) -> Result<(), SlotsViolation> {
    let mut group = Group::started(four(flaws));
    group.part(&[2, 3], [0, 0]);
    group.take_all(3);
    group.calm();
    group.take_all(3);
    group.crash(2, 0);
    group.merge(2, 0);
    group.join(2);
    group.verdict()
}

/// The donor's side has heard of a donation, and the requester's has not.
fn half_heard_donation(flaws: Flaws) -> Result<(), SlotsViolation> {
    let mut plan = SlotsPlan::strict(2, 8, 1);
    plan.flaws = flaws;
    let mut group = Group::started(plan);
    group.take(1);
    assert!(!gifts(&group.hear(0)).is_empty(), "0 has slots to spare");
    group.hear(1);
    group.part(&[1], [1, 0]);
    group.calm();
    group.merge(0, 1);
    group.verdict()
}

/// The primary ends when two newcomers wait for their status.
fn two_newcomers(flaws: Flaws) -> Result<(), SlotsViolation> {
    let mut group = Group::empty(four(flaws));
    group.found(0);
    group.join(1);
    group.calm();
    group.join(2);
    group.join(3);
    group.depart(0);
    group.verdict()
}

/// A newcomer loses everybody before it is sent a status.
fn lost_newcomer(flaws: Flaws) -> Result<(), SlotsViolation> {
    let mut group = Group::empty(four(flaws));
    group.found(0);
    group.join(1);
    group.calm();
    group.join(2);
    group.part(&[2], [0, 0]);
    group.calm();
    group.merge(0, 2);
    group.verdict()
}

/// Everybody is short.
fn nothing_anywhere(flaws: Flaws) -> Result<(), SlotsViolation> {
    let mut group = one_each(flaws);
    for member in 0..4 {
        group.take(member);
    }
    group.verdict()
}

/// 2 donates to 3 while 0 is out of reach; then 0 and 1 meet without them.
fn partial_merge(flaws: Flaws) -> Result<(), SlotsViolation> {
    let mut group = Group::started(four(flaws));
    group.part(&[0], [0, 0]);
    group.calm();
    let owned = group.owned(1);
    group.take_all(3);
    group.calm();
    assert!(group.owned(1)[3] > owned[3], "3 got slots");
    group.part(&[1], [0, 0]);
    group.calm();
    group.merge(0, 1);
    group.verdict()
}

/// Two lose each other.
fn partition(flaws: Flaws) -> Result<(), SlotsViolation> {
    let mut group = Group::started(four(flaws));
    group.part(&[3], [0, 0]);
    group.verdict()
}

fn specimens() -> [Specimen; 10] {
    use SlotsViolation as Wrong;
    let none = Flaws::NONE;
    [
        Specimen {
            name: "A1 fixed successor",
            flaws: Flaws {
                fixed_successor: true,
                ..none
            },
            story: crossed_requests,
            refuted: |wrong| matches!(wrong, Wrong::Open { .. }),
            schedules: 300,
        },
        Specimen {
            name: "A2 lone start",
            flaws: Flaws {
                lone_start: true,
                ..none
            },
            story: isolated_restart,
            refuted: |wrong| matches!(wrong, Wrong::TwoUsers { .. }),
            schedules: 300,
        },
        Specimen {
            name: "A3 stale snapshot",
            flaws: Flaws {
                any_view: true,
                ..none
            },
            story: stale_snapshot,
            refuted: |wrong| matches!(wrong, Wrong::Disagree { .. }),
            schedules: 300,
        },
        Specimen {
            name: "A4 restarted member",
            flaws: Flaws {
                restart_frees: true,
                ..none
            },
            story: restart_on_the_wrong_side,
            refuted: |wrong| matches!(wrong, Wrong::TwoUsers { .. }),
            schedules: 300,
        },
        Specimen {
            name: "A6 orphan slot",
            flaws: Flaws {
                unclaimed_as_recorded: true,
                ..none
            },
            story: half_heard_donation,
            refuted: |wrong| matches!(wrong, Wrong::Lost { .. }),
            schedules: 300,
        },
        Specimen {
            name: "A11 a status each",
            flaws: Flaws {
                status_each: true,
                ..none
            },
            story: two_newcomers,
            refuted: |wrong| matches!(wrong, Wrong::Disagree { .. }),
            schedules: 300,
        },
        Specimen {
            name: "A12 silent newcomers",
            flaws: Flaws {
                silent_newcomers: true,
                ..none
            },
            story: lost_newcomer,
            refuted: |wrong| matches!(wrong, Wrong::Open { .. }),
            schedules: 300,
        },
        Specimen {
            name: "A13 busy requests",
            flaws: Flaws {
                asks_at_once: true,
                ..none
            },
            story: nothing_anywhere,
            refuted: |wrong| matches!(wrong, Wrong::Endless),
            schedules: 30,
        },
        Specimen {
            name: "A14 partial merge",
            flaws: Flaws {
                unclaimed_as_recorded: true,
                ..none
            },
            story: partial_merge,
            refuted: |wrong| matches!(wrong, Wrong::Disagree { .. }),
            schedules: 300,
        },
        Specimen {
            name: "the optimistic rule",
            flaws: Flaws {
                reuses_unreachable: true,
                ..none
            },
            story: partition,
            refuted: |wrong| matches!(wrong, Wrong::TwoUsers { .. }),
            schedules: 300,
        },
    ]
}

/// The printed rules, in which this one can be seen.
fn as_printed(flaws: Flaws) -> Flaws {
    Flaws {
        // A13 hides A1: members that ask again at once never come to rest.
        asks_at_once: !flaws.fixed_successor,
        reuses_unreachable: flaws.reuses_unreachable,
        ..Flaws::PAPER
    }
}

/// The first rules without those that are in the second.
fn without(all: Flaws, some: Flaws) -> Flaws {
    Flaws {
        fixed_successor: all.fixed_successor && !some.fixed_successor,
        lone_start: all.lone_start && !some.lone_start,
        any_view: all.any_view && !some.any_view,
        restart_frees: all.restart_frees && !some.restart_frees,
        unclaimed_as_recorded: all.unclaimed_as_recorded && !some.unclaimed_as_recorded,
        status_each: all.status_each && !some.status_each,
        silent_newcomers: all.silent_newcomers && !some.silent_newcomers,
        asks_at_once: all.asks_at_once && !some.asks_at_once,
        reuses_unreachable: all.reuses_unreachable && !some.reuses_unreachable,
        deaf: all.deaf && !some.deaf,
        keeps_nothing: all.keeps_nothing && !some.keeps_nothing,
    }
}

#[test]
fn every_printed_rule_is_refuted_and_its_strict_form_holds() {
    for Specimen {
        name,
        flaws,
        story,
        refuted,
        ..
    } in specimens()
    {
        assert_eq!(story(Flaws::NONE), Ok(()), "{name}, strict");
        let alone = story(flaws);
        assert!(alone.as_ref().is_err_and(refuted), "{name}: {alone:?}");
        let printed = as_printed(flaws);
        let paper = story(printed);
        println!("{name}: {alone:?}, and as printed: {paper:?}");
        assert!(
            paper.as_ref().is_err_and(refuted),
            "{name}, as printed: {paper:?}"
        );
        let repaired = story(without(printed, flaws));
        println!("{name}, only this one repaired: {repaired:?}");
        assert!(
            !repaired.as_ref().is_err_and(refuted),
            "{name}, only this one repaired: {repaired:?}"
        );
    }
}

#[test]
fn random_schedules_find_every_printed_rule() {
    for specimen in specimens() {
        let Specimen {
            name,
            flaws,
            refuted,
            schedules,
            ..
        } = specimen;
        let run = |flaws: Flaws, seed: u64| {
            let mut schedule = SlotsSchedule::drawn(seed, 2 + (seed % 7) as usize);
            schedule.plan.flaws = flaws;
            run_schedule(&schedule)
        };
        let found =
            (1..=schedules).filter(|&seed| run(flaws, seed).is_err_and(|wrong| refuted(&wrong)));
        let found = found.count();
        println!("{name}: {found} of {schedules}");
        assert!(found > 0, "{name}");
    }
}

/// The property as it is printed: whoever needs a slot gets one if there is a free one anywhere.
fn nobody_is_refused_while_a_slot_is_free(group: &Group, asked: u32) -> bool {
    let others = group
        .members()
        .into_iter()
        .filter(|&member| member != asked);
    group.free(asked) > 0 || others.map(|member| group.free(member)).sum::<u32>() == 0
}

#[test]
fn a05_nobody_starves_is_refuted_as_printed_and_holds_as_restated() {
    for flaws in [Flaws::NONE, Flaws::PAPER] {
        // Everybody keeps what it has: no rule of the algorithm gives 0 a second slot.
        let mut group = one_each(flaws);
        group.take(0);
        assert_eq!(group.take(0), None);
        group.calm();
        assert_eq!(group.free(0), 0);
        assert!(!nobody_is_refused_while_a_slot_is_free(&group, 0));
    }
    // One more than somebody keeps is enough.
    let mut plan = SlotsPlan::strict(4, 5, 1);
    plan.min_join = 1;
    let mut group = Group::started(plan);
    assert_eq!(group.owned(0), [2, 1, 1, 1]);
    group.take(3);
    assert_eq!(group.take(3), None);
    assert_eq!(group.verdict(), Ok(()));
    assert_eq!(group.free(3), 1);
    assert!(nobody_is_refused_while_a_slot_is_free(&group, 3));
}
