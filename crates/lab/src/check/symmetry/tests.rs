//! Whatever happens in a state happens in the renamed state to the nodes of the new names.

use serde::{Deserialize, Serialize};
use testigo_protocol::mutex::{Ask, Mutex, Tell};
use testigo_protocol::{
    Algorithm, Input, Machine, Message, NodeId, Output, Problem, Profile, Protocol, Setup, Shape,
    agreement, erase, mutex,
};

use super::super::model::{Bounds, Model, Step};
use super::super::reached;
use super::super::report::{CheckPlan, bounds};
use super::super::state::State;
use super::{Renamings, before_renaming};

/// Where the message of a step is among all.
fn place_among_all<Q: Problem>(model: &Model<Q>, state: &State, step: Step) -> Option<usize> {
    let Step::Carry {
        from, to, place, ..
    } = step
    else {
        return None;
    };
    let messages = model.view(state).messages;
    let link = model.link(from, to);
    Some(messages.partition_point(|[other, _]| *other < link) + place as usize)
}

/// The step without the place.
fn anywhere(step: Step) -> Step {
    match step {
        Step::Carry { from, to, fate, .. } => Step::Carry {
            from,
            to,
            place: 0,
            fate,
        },
        other => other,
    }
}

/// How many steps were taken in states and renamed ones, or the first that differs.
fn renamed_steps<Q: Problem>(
    profile: &Profile,
    machine: &dyn Machine<Q>,
    setup: &Setup,
) -> Result<usize, String> {
    let plan = CheckPlan {
        reduces: true,
        ..CheckPlan::telling(profile)
    };
    let bounds = bounds(profile, machine, setup, &plan).expect("valid");
    let whole = Bounds {
        renames: false,
        alone: false,
        ..bounds
    };
    let model = Model::new(machine, whole, |_| {});
    let equal = model.tables().explorer.equal_nodes();
    let Some(renamings) = Renamings::new(machine.shape(), equal).filter(|_| bounds.renames) else {
        return Ok(0);
    };
    let steps_of = |state: &State| {
        let mut steps = Vec::new();
        model.steps(state, &mut steps);
        steps
    };
    let mut count = 0;
    for state in reached(&model) {
        let steps = steps_of(&state);
        for (number, names) in renamings.all.iter().enumerate() {
            let rename = |state: &State| {
                let tables = &mut *model.tables();
                model.renamed(tables, state, number as u32, names)
            };
            let (renamed, places) = rename(&state);
            let wrong = |state: &State| {
                let (wrong, stuck) = (model.violation(state), model.stuck(state));
                (wrong.is_some(), stuck.is_some())
            };
            if wrong(&state) != wrong(&renamed) {
                return Err(format!("{}: {names:?} makes it right", profile.name));
            }
            for &step in &steps {
                let same = |other: &&Step| {
                    let old = before_renaming(names, **other);
                    let place = place_among_all(&model, &renamed, **other);
                    anywhere(old) == anywhere(step)
                        && place.map(|place| places[place]) == place_among_all(&model, &state, step)
                };
                let there = steps_of(&renamed);
                let Some(&other) = there.iter().find(same) else {
                    return Err(format!("{}: {step:?} with {names:?}", profile.name));
                };
                let one = rename(&model.take(&state, step)).0;
                let two = model.take(&renamed, other);
                if model.canonical(one) != model.canonical(two) {
                    return Err(format!("{}: after {step:?}, {names:?}", profile.name));
                }
                count += 1;
            }
        }
    }
    Ok(count)
}

fn holds<Q: Problem>(algorithm: &Algorithm<Q>, setup: &Setup) -> usize {
    let machine = (algorithm.machine)(setup).expect("valid");
    let steps = renamed_steps(&algorithm.profile, &*machine, setup).expect("equal");
    if steps > 0 {
        println!("{}: {steps} steps", algorithm.profile.name);
    }
    steps
}

#[test]
fn equal_nodes_are_equal() {
    let mut renamed = Vec::new();
    for algorithm in [mutex::ALGORITHMS, mutex::specimens::ALGORITHMS].concat() {
        if holds(algorithm, &algorithm.profile.telling_setup()) > 0 {
            renamed.push(algorithm.profile.name);
        }
    }
    for algorithm in [agreement::ALGORITHMS, agreement::specimens::ALGORITHMS].concat() {
        let telling = algorithm.profile.telling_setup();
        // With one node more there are two acceptors that do not propose, and two participants.
        let setup = Setup {
            users: telling.users + 1,
            ..telling
        };
        if holds(algorithm, &setup) > 0 {
            renamed.push(algorithm.profile.name);
        }
    }
    for name in ["central", "om", "sm", "paxos", "two-phase-commit"] {
        assert!(renamed.contains(&name), "{name} of {renamed:?}");
    }
}

/// A specimen: its server serves node 0 alone, and says that all are equal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Partial;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Word {
    Request,
    Grant,
}

impl Message for Word {}

impl Protocol for Partial {
    type Problem = Mutex;
    type Message = Word;
    type Config = ();

    fn new(_: NodeId, (): &()) -> Self {
        Partial
    }

    fn step(&mut self, input: Input<Self>, (): &(), out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Enter) => out.send(NodeId(2), Word::Request),
            Input::Message {
                from: NodeId(0),
                message: Word::Request,
            } => out.send(NodeId(0), Word::Grant),
            Input::Message {
                message: Word::Grant,
                ..
            } => out.tell(Tell::Entered),
            _ => {}
        }
    }

    fn equal_nodes((): &()) -> std::ops::Range<u32> {
        0..2
    }
}

#[test]
fn a_wrong_word_about_equal_nodes_is_caught() {
    let profile = Profile {
        name: "partial",
        ..Profile::PLAIN
    };
    let machine = erase::<Partial>(Shape::with_extra(2, vec!["server".into()]), ());
    let caught = renamed_steps(&profile, &*machine, &Setup::new(2));
    assert!(caught.is_err(), "{caught:?}");
}
