//! Building blocks and single properties of programs, over all interleavings.

mod explore;

use explore::{State, explore, explore_from};
use testigo_memory::blocks::{
    DOWN, Reflector, STOPPED, Sieve, Splitter, TO_THE_RIGHT, UP, WENT_DOWN,
};
use testigo_memory::mutex::{Tsm, TsmForm};
use testigo_memory::permits::Fife;
use testigo_memory::rooms::{Alone, Contention, OneActor};
use testigo_memory::{CountedMemory, Local, Plan, Program, Region, algorithms};

fn nothing(_: &State, _: &State, _: usize) -> u64 {
    0
}

/// How many got each answer, once all are done.
fn answers(state: &State) -> Option<[usize; 4]> {
    let all = state.inside().count() == state.locals.len();
    all.then(|| {
        let mut counts = [0; 4];
        state
            .locals
            .iter()
            .for_each(|local| counts[local.kept as usize] += 1);
        counts
    })
}

#[test]
fn at_most_one_stops_in_a_splitter_and_not_all_go_one_way() {
    for processes in 1..=4 {
        let mut seen = 0;
        explore(&Splitter { processes }, 1, nothing, |state| {
            if let Some(counts) = answers(state) {
                seen += 1;
                assert!(counts[STOPPED as usize] <= 1);
                assert!(counts[TO_THE_RIGHT as usize] < processes);
                assert!(counts[WENT_DOWN as usize] < processes);
            }
        });
        assert!(seen > 0);
    }
}

#[test]
fn at_most_one_leaves_a_reflector_below() {
    let mut both_up = false;
    explore(&Reflector, 1, nothing, |state| {
        if let Some(counts) = answers(state) {
            assert!(counts[DOWN as usize] <= 1);
            both_up |= counts[UP as usize] == 2;
        }
    });
    assert!(both_up, "two may leave above");
    let alone = State::first(&Reflector, 1);
    let alone = alone
        .step(&Reflector, 0)
        .and_then(|s| s.step(&Reflector, 0));
    assert_eq!(alone.expect("two steps").locals[0].kept, DOWN);
}

/// Whether the sieve is as it should be at rest: every copy that was used is over, and the next is current.
fn at_rest(sieve: &Sieve, state: &State) -> bool {
    let used = |copy: &u8| {
        (0..sieve.processes).any(|process| state.words[sieve.view(*copy, process)] != 0)
    };
    let last = (1..=sieve.copies as u8)
        .take_while(used)
        .last()
        .unwrap_or(0);
    let over = (1..=last).all(|copy| sieve.is_done(&state.words, copy));
    over && state.words[0] == u64::from(last) + 1
}

fn sieve(processes: usize, entries: u32, plain: bool) -> bool {
    let sieve = Sieve {
        processes,
        copies: processes * entries as usize + 1,
        plain,
    };
    let mut right = true;
    explore(&sieve, entries, nothing, |state| {
        let mut rooms = state.inside().map(|(_, local)| local.room);
        let one = rooms.next();
        right &= rooms.all(|room| Some(room) == one);
        let idle = state
            .locals
            .iter()
            .all(|local| local.region == Region::Remainder);
        right &= !idle || at_rest(&sieve, state);
    });
    right
}

#[test]
fn candidates_of_a_sieve_are_in_one_copy_and_every_used_copy_ends() {
    assert!(sieve(2, 3, false));
    assert!(sieve(3, 1, false));
    assert!(!sieve(2, 3, true), "a plain count goes back");
}

fn made(name: &str, processes: usize) -> Box<dyn Program> {
    let found = algorithms().find(|one| one.profile.name == name);
    (found.expect("known").program)(&Plan::new(processes)).expect("valid")
}

/// The most that are inside together when these processes enter so often each, and how many states that takes.
fn worst(program: &dyn Program, present: &[usize], entries: u32) -> (usize, usize) {
    let mut first = State::first(program, 0);
    present
        .iter()
        .for_each(|&process| first.left[process] = entries);
    let mut worst = 0;
    let states = explore_from(first, program, nothing, |state| {
        worst = worst.max(state.inside().count());
    });
    (worst, states)
}

/// Shared memory §4.4 and §5.3: more processes than the laboratory exhausts, of which some never ask.
#[test]
fn trees_exclude_at_the_sizes_of_the_specification() {
    for (name, processes, present, entries) in [
        ("tournament", 4, &[0, 1, 2, 3][..], 1),
        ("tournament", 5, &[2, 3, 4], 2),
        ("tournament", 13, &[11, 12], 3),
        ("tsm", 3, &[0, 1, 2], 3),
        ("tsm", 4, &[0, 1, 2, 3], 2),
        ("tsm", 5, &[2, 3, 4], 2),
        ("tsm", 8, &[0, 4, 5, 6], 1),
        ("tsm", 8, &[2, 4, 5, 6], 1),
        ("tsm", 13, &[11, 12], 3),
    ] {
        let (worst, states) = worst(&*made(name, processes), present, entries);
        println!("{name} {processes} {present:?} x {entries}: {states} states");
        assert_eq!(worst, 1, "{name} {processes} {present:?}");
    }
    for (name, processes, present) in [
        ("tournament-printed", 5, [3, 4]),
        ("tournament-printed", 13, [11, 12]),
        ("tsm-printed", 13, [11, 12]),
    ] {
        let (worst, _) = worst(&*made(name, processes), &present, 1);
        assert_eq!(worst, 2, "{name}");
    }
}

/// The schedule of group exclusion §3.3, defect 3: `ganar` looks at the group in C, not at whom it follows. P0, P1 and
/// P4 want room 0, and P2 wants room 1.
#[test]
fn the_printed_one_actor_lets_a_follower_in_beside_another_room() {
    let program = OneActor::printed(5, 2);
    let mut state = State::first(&program, 1);
    for (process, room) in [(4, 0), (2, 1), (1, 0), (0, 0)] {
        state.locals[process] = Local::asking(room);
        // Until it is inside or waits, which takes it back to where it was.
        let mut seen = std::collections::HashSet::new();
        while seen.insert((state.words.clone(), state.locals[process]))
            && !state.locals[process].is_idle()
        {
            state = state.step(&program, process).expect("it can step");
        }
    }
    let inside = |state: &State| {
        state
            .inside()
            .map(|(process, _)| process)
            .collect::<Vec<_>>()
    };
    assert_eq!(inside(&state), [0, 4], "P0 has followed P1, which waits");
    state = state.step(&program, 4).expect("P4 leaves");
    while state.locals[4].region != Region::Remainder {
        state = state.step(&program, 4).expect("it can step");
    }
    while state.locals[2].region == Region::Trying {
        state = state.step(&program, 2).expect("it can step");
    }
    let rooms: Vec<u8> = state.inside().map(|(_, local)| local.room).collect();
    assert_eq!(rooms, [0, 1], "P0 and P2 are inside together");
}

/// The automaton of the thesis, whose actions touch several registers at once: taken literally, it is safe.
#[test]
fn the_automaton_of_tsm_is_safe_and_its_single_steps_are_not() {
    let worst = |form| {
        let mut worst = 0;
        let tsm = Tsm::new(3, form);
        explore(&tsm, 2, nothing, |state| {
            worst = worst.max(state.inside().count());
        });
        worst
    };
    assert_eq!(worst(TsmForm::Automaton), 1);
    assert_eq!(worst(TsmForm::Repaired), 1);
    assert_eq!(worst(TsmForm::Frozen), 2);
}

/// If a process left its doorway before another entered it, and that one is inside, then it enters by itself in a
/// bounded number of its own steps.
#[test]
fn first_in_is_first_enabled() {
    let fife = Fife {
        processes: 3,
        permits: 2,
    };
    let waits = |state: &State, process: usize| {
        let local = &state.locals[process];
        local.region == Region::Trying && Fife::is_past_doorway(local)
    };
    // Bit 3·i + j: i had left its doorway when j entered its own.
    let note = |before: &State, after: &State, moved: usize| {
        let mut note = after.note;
        if before.locals[moved].region == Region::Remainder {
            for one in 0..3 {
                note &= !(1 << (3 * one + moved) | 1 << (3 * moved + one));
                note |= u64::from(waits(before, one)) << (3 * one + moved);
            }
        }
        note
    };
    let mut situations = 0;
    explore(&fife, 1, note, |state| {
        for (inside, _) in state.inside() {
            for first in (0..3).filter(|first| waits(state, *first)) {
                if state.note >> (3 * first + inside) & 1 == 0 {
                    continue;
                }
                situations += 1;
                let mut alone = state.clone();
                for _ in 0..20 {
                    if alone.locals[first].region == Region::Trying {
                        alone = alone.step(&fife, first).expect("it can step");
                    }
                }
                assert_eq!(alone.locals[first].region, Region::Inside, "{state:?}");
            }
        }
    });
    assert!(situations > 500, "{situations} situations");
}

/// The contention of the groups by itself, more of them than together with processes.
#[test]
fn groups_exclude_each_other_without_processes() {
    for (form, groups) in [
        (Contention::Tournament, 4),
        (Contention::Adaptive, 4),
        (Contention::Adaptive, 5),
        (Contention::Local, 3),
    ] {
        let alone = Alone::new(groups, form);
        let mut worst = 0;
        let states = explore(&alone, 1, nothing, |state| {
            worst = worst.max(state.inside().count());
        });
        assert_eq!(worst, 1, "{form:?}, {states} states");
    }
}

/// Remote accesses of the printed local-spin group with a rival at every level: 6 + 8(log m − 1).
#[test]
fn equation_5_3_is_what_the_printed_groups_access() {
    for (groups, published) in [(2, 6), (4, 14), (8, 22), (16, 30), (32, 38), (64, 46)] {
        let alone = Alone::new(groups, Contention::LocalPrinted);
        assert_eq!(
            alone.remote_accesses_at_worst(),
            published,
            "{groups} groups"
        );
    }
}

/// The accesses of a process that enters and leaves with nobody else there, each turn of its wait for a group counted
/// once.
fn lone_accesses(program: &dyn Program, memory: &mut CountedMemory, me: usize, room: u8) -> usize {
    let mut groups = vec![Local::SERVING; program.others().len()];
    let mut count = 0;
    let mut run = |local: &mut Local| {
        while !local.is_idle() {
            memory.accesses.clear();
            let before = *local;
            program.step(me, local, memory);
            if before != *local {
                count += memory.accesses.len();
            }
            for (group, serving) in groups.iter_mut().enumerate() {
                program.step(program.processes() + group, serving, memory);
            }
        }
    };
    let mut local = Local::asking(room);
    run(&mut local);
    local.leave();
    run(&mut local);
    // The groups end their round.
    for _ in 0..1_000 {
        for (group, serving) in groups.iter_mut().enumerate() {
            program.step(program.processes() + group, serving, memory);
        }
    }
    count
}

/// What a profile says of accesses and registers is what its program does, whoever enters which room, and both ends of
/// its range are reached.
#[test]
fn profiles_tell_the_accesses_of_a_lone_entry_and_the_registers() {
    let right = || algorithms().filter(|one| one.profile.specimen.is_none());
    assert_eq!(right().count(), 16);
    for algorithm in right() {
        let name = algorithm.profile.name;
        let lone = algorithm.profile.lone.expect(name);
        let registers = algorithm.profile.registers.expect(name);
        let mut made = 0;
        for processes in [2, 3, 4, 5, 8, 13] {
            for rooms in [1, 2, 3, 5] {
                let plan = Plan {
                    rooms,
                    ..Plan::new(processes)
                };
                let Ok(program) = (algorithm.program)(&plan) else {
                    continue;
                };
                made += 1;
                let all = program.registers();
                assert_eq!((registers.range)(&plan), [all.len(); 2], "{name} {plan:?}");
                let mut memory = CountedMemory::new(&all);
                let mut counts = Vec::new();
                for me in (0..processes).rev().chain(0..processes) {
                    let room = me % program.rooms();
                    counts.push(lone_accesses(&*program, &mut memory, me, room as u8));
                }
                let [least, most] = (lone.range)(&plan);
                let found = [counts.iter().min(), counts.iter().max()];
                assert_eq!(
                    found,
                    [Some(&least), Some(&most)],
                    "{name} {plan:?}: {counts:?}"
                );
            }
        }
        assert!(made > 0, "{name}");
    }
}
