//! Every delivery that goes alone makes the same difference before and after every other step, in every state that is
//! reached without reductions.

use serde::{Deserialize, Serialize};
use testigo_protocol::agreement::{replicated_log, turns};
use testigo_protocol::mutex::{Ask, Mutex, Tell};
use testigo_protocol::{
    Algorithm, Channels, Input, Machine, Message, NodeId, Output, Problem, Profile, Protocol,
    Setup, Shape, agreement, election, erase, multicast, mutex, readers, rooms,
};

use super::super::model::{Bounds, Model, Step};
use super::super::reached;
use super::super::report::{CheckPlan, bounds};
use super::super::state::State;

/// A step by what it does: the place of a message changes with what was delivered before.
fn meaning<Q: Problem>(model: &Model<Q>, state: &State, step: Step) -> (Step, Option<u32>) {
    let Step::Carry {
        from,
        to,
        place,
        fate,
    } = step
    else {
        return (step, None);
    };
    let (view, link) = (model.view(state), model.link(from, to));
    let first = view.messages.partition_point(|[other, _]| *other < link);
    let carried = Step::Carry {
        from,
        to,
        place: 0,
        fate,
    };
    (carried, Some(view.messages[first + place as usize][1]))
}

/// How many pairs of a delivery that goes alone and another step there are, or the first pair that is not the same in
/// both orders.
fn pairs<Q: Problem>(
    profile: &Profile,
    machine: &dyn Machine<Q>,
    setup: &Setup,
) -> Result<usize, String> {
    let plan = CheckPlan {
        reduces: true,
        ..CheckPlan::telling(profile)
    };
    let bounds = bounds(profile, machine, setup, &plan).expect("valid");
    if !bounds.alone {
        return Ok(0);
    }
    let model = Model::new(
        machine,
        Bounds {
            reduced: true,
            renames: false,
            ..bounds
        },
        |_| {},
    );
    let mut pairs = 0;
    for state in reached(&model) {
        let steps = |state: &State| {
            let mut steps = Vec::new();
            model.steps(state, &mut steps);
            steps
        };
        let find = |state: &State, wanted: (Step, Option<u32>)| {
            let mut found = steps(state).into_iter();
            found.find(|step| meaning(&model, state, *step) == wanted)
        };
        let here = steps(&state);
        let alone = here
            .iter()
            .filter(|step| model.goes_alone(&model.view(&state), **step));
        for &alone in alone {
            for &other in here.iter().filter(|other| **other != alone) {
                let what = || {
                    let label = |step| {
                        let (step, message) = meaning(&model, &state, step);
                        let tables = model.tables();
                        let message = message.map(testigo_protocol::MessageId);
                        let label = message.map(|m| tables.explorer.message_label(m));
                        format!("{step:?} {label:?}")
                    };
                    format!("{}: {} and {}", profile.name, label(alone), label(other))
                };
                let after = model.take(&state, other);
                let late = find(&after, meaning(&model, &state, alone));
                let late = late.filter(|late| model.goes_alone(&model.view(&after), *late));
                let before = model.take(&state, alone);
                let then = find(&before, meaning(&model, &state, other));
                let (Some(late), Some(then)) = (late, then) else {
                    return Err(format!("{}: one ends the other", what()));
                };
                let ends = [model.take(&after, late), model.take(&before, then)];
                let [one, two] = ends.map(|end| model.canonical(end));
                if one != two {
                    return Err(what());
                }
                pairs += 1;
            }
        }
    }
    Ok(pairs)
}

fn all_pairs<Q: Problem>(algorithms: &[&[&Algorithm<Q>]]) -> usize {
    let mut sum = 0;
    for algorithm in algorithms.concat() {
        let setup = algorithm.profile.telling_setup();
        let machine = (algorithm.machine)(&setup).expect("valid");
        let pairs = pairs(&algorithm.profile, &*machine, &setup).expect("the same in both orders");
        if pairs > 0 {
            println!("{}: {pairs} pairs", algorithm.profile.name);
        }
        sum += pairs;
    }
    sum
}

#[test]
fn what_goes_alone_makes_the_same_difference_in_any_order() {
    assert!(all_pairs(&[mutex::ALGORITHMS, mutex::specimens::ALGORITHMS]) > 0);
    all_pairs(&[readers::ALGORITHMS, readers::specimens::ALGORITHMS]);
    all_pairs(&[rooms::ALGORITHMS, rooms::OVER, rooms::specimens::ALGORITHMS]);
    all_pairs(&[multicast::ALGORITHMS, multicast::specimens::ALGORITHMS]);
    assert!(all_pairs(&[agreement::ALGORITHMS, agreement::specimens::ALGORITHMS]) > 0);
    all_pairs(&[replicated_log::ALGORITHMS, replicated_log::SPECIMENS]);
    all_pairs(&[turns::ALGORITHMS, turns::SPECIMENS]);
    all_pairs(&[election::ALGORITHMS, election::specimens::ALGORITHMS]);
}

/// A specimen: its server serves whoever comes first, and says that the order makes no difference.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Hasty {
    served: Option<NodeId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Word {
    Request,
    Grant,
}

impl Message for Word {}

const SERVER: NodeId = NodeId(2);

impl Protocol for Hasty {
    type Problem = Mutex;
    type Message = Word;
    type Config = ();

    fn new(_: NodeId, (): &()) -> Self {
        Hasty { served: None }
    }

    fn step(&mut self, input: Input<Self>, (): &(), out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Enter) => out.send(SERVER, Word::Request),
            Input::Message {
                from,
                message: Word::Request,
            } if self.served.is_none() => {
                self.served = Some(from);
                out.send(from, Word::Grant);
            }
            Input::Message {
                message: Word::Grant,
                ..
            } => out.tell(Tell::Entered),
            _ => {}
        }
    }

    fn is_quiet(&self, _: NodeId, _: &Word, (): &()) -> bool {
        true
    }
}

#[test]
fn a_wrong_word_about_order_is_caught() {
    let profile = Profile {
        name: "hasty",
        channels: Channels::AnyOrder,
        ..Profile::PLAIN
    };
    let machine = erase::<Hasty>(Shape::with_extra(2, vec!["server".into()]), ());
    let caught = pairs(&profile, &*machine, &Setup::new(2)).expect_err("the order counts");
    assert!(caught.contains("Request"), "{caught}");
}
