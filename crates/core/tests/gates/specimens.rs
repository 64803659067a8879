//! Specimens: the naive model with one flaw each. Every monitor must find the flaw that it is for, and none of them may
//! complain about the model without one.

use super::model::random::Random;
use super::model::{Flaw, Leg, Model, Said, Waiter, id, name};
use testigo_core::monitor::{
    BoundedOvertaking, CompatibleInside, FencesGrow, SetsAtOnce, nobody_waits_needlessly,
};
use testigo_core::*;

/// What each monitor says about one schedule.
#[derive(Debug, Default)]
struct Found {
    inside: Option<String>,
    fences: Option<String>,
    overtakes: Option<String>,
    sets: Option<String>,
    wakeups: Option<String>,
}

#[test]
fn a_sound_model_is_not_accused() {
    for seed in 0..1_000 {
        let found = run(seed, Flaw::None);
        let silent = [
            &found.inside,
            &found.fences,
            &found.overtakes,
            &found.sets,
            &found.wakeups,
        ];
        assert!(
            silent.iter().all(|said| said.is_none()),
            "seed {seed}: {found:?}"
        );
    }
}

#[test]
fn one_too_many_inside_is_found() {
    assert!(found(Flaw::AdmitsOneTooMany, |found| found.inside.is_some()) > 50);
}

#[test]
fn a_repeated_fence_is_found() {
    assert!(found(Flaw::RepeatsFences, |found| found.fences.is_some()) > 50);
}

#[test]
fn unbounded_overtaking_is_found() {
    let count = found(Flaw::ForgetsOvertakes, |found| found.overtakes.is_some());
    assert!(count > 10, "in {count}");
}

#[test]
fn half_a_set_is_found() {
    assert!(found(Flaw::SplitsSets, |found| found.sets.is_some()) > 50);
}

#[test]
fn a_lost_wake_up_is_found() {
    assert!(found(Flaw::LosesWakeups, |found| found.wakeups.is_some()) > 50);
}

/// In how many of 200 schedules a flaw shows.
fn found(flaw: Flaw, shows: impl Fn(&Found) -> bool) -> usize {
    (0..200).filter(|seed| shows(&run(*seed, flaw))).count()
}

fn run(seed: u64, flaw: Flaw) -> Found {
    let mut random = Random::new(seed);
    let definitions: Vec<Definition> = (0..1 + random.below(3))
        .map(|_| Definition {
            lease_ms: None,
            stay_ms: None,
            ..random.definition()
        })
        .collect();
    let mut model = Model::new(definitions, flaw);
    let mut found = Found::default();
    let (mut inside, mut fences) = (CompatibleInside::default(), FencesGrow::default());
    let (mut overtakes, mut sets) = (BoundedOvertaking::default(), SetsAtOnce);
    for _ in 0..120 {
        step(&mut model, &mut random);
        let events = std::mem::take(&mut model.events);
        let definition = |gate: &Name| model.gates[number(gate)].clone();
        for event in &events {
            note(&mut found.inside, inside.saw(event, definition));
            note(&mut found.fences, fences.saw(event, definition));
        }
        note(&mut found.overtakes, overtakes.saw(&events, definition));
        note(&mut found.sets, sets.saw(&events));
        note(
            &mut found.wakeups,
            nobody_waits_needlessly(&views(&model), 0),
        );
    }
    found
}

fn note(found: &mut Option<String>, said: Result<(), String>) {
    if let Err(broken) = said {
        found.get_or_insert(broken);
    }
}

fn step(model: &mut Model, random: &mut Random) {
    let session = random.below(16) as usize;
    let gate = random.below(model.gates.len() as u64) as usize;
    if random.one_in(2) {
        if let Some(holder) = model.holders.first() {
            let (session, gate) = (holder.session, holder.gate);
            assert_eq!(model.unlock(session, gate), Said::Done);
        }
        return;
    }
    if model.blocked(session) {
        return;
    }
    let set = model.gates.len() > 1 && random.one_in(3);
    let gates: Vec<usize> = match set {
        true => (0..model.gates.len()).collect(),
        false => vec![gate],
    };
    let legs = gates.into_iter().map(|gate| {
        let definition = &model.gates[gate];
        let mode = match definition.rule {
            Rule::Mutex => Mode::Exclusive,
            Rule::Election => unreachable!("elections have a model of their own"),
            Rule::Shared if random.one_in(2) => Mode::Exclusive,
            Rule::Shared => Mode::Shared,
            Rule::Permits(k) => Mode::Permits(1 + random.below(u64::from(k)) as u32),
            Rule::Rooms => Mode::Room(Name::new(random.pick(&["red", "blue"])).unwrap()),
        };
        let class = match set {
            true => definition.class_default(),
            false => random.below(u64::from(definition.classes)) as u32,
        };
        Leg {
            gate,
            mode,
            class,
            overtaken: 0,
        }
    });
    let request = Waiter {
        session,
        arrival: 0,
        legs: legs.collect(),
        set,
        needs_ms: None,
        deadline: 0,
        asynchronous: false,
    };
    model.request(request, 1_000);
}

fn views(model: &Model) -> Vec<GateView> {
    let gates = model.gates.iter().enumerate();
    gates
        .map(|(gate, definition)| GateView {
            name: name(gate),
            definition: definition.clone(),
            implicit: false,
            inside: model.inside(gate).count(),
            waiting: model.order(gate).len(),
            awaits: Vec::new(),
            holders: model
                .inside(gate)
                .map(|h| HolderView {
                    session: id(h.session),
                    label: None,
                    mode: h.mode.clone(),
                    fence: Fence(h.fence),
                    since: 0,
                    until: None,
                    reason: None,
                    told: false,
                    leads: h.leads,
                    proven: true,
                    reserved: false,
                })
                .collect(),
            waiters: model
                .order(gate)
                .into_iter()
                .map(|w| WaiterView {
                    session: id(w.session),
                    label: None,
                    ticket: Ticket(w.arrival),
                    mode: w.leg(gate).unwrap().mode.clone(),
                    class: 0,
                    since: 0,
                    until: 0,
                    reason: None,
                    overtaken: 0,
                    set: w.legs.iter().map(|leg| name(leg.gate)).collect(),
                    kept: false,
                    needs_ms: None,
                })
                .collect(),
        })
        .collect()
}

fn number(name: &Name) -> usize {
    name[1..].parse().unwrap()
}
