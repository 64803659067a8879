//! A toy problem for what the mutex family has no use for: timers, lies and stable storage. A node
//! asks the next one a question until it has an answer, which must be true.

use serde::{Deserialize, Serialize};
use testigo_protocol::{
    Channels, Claim, Faults, Input, Machine, Message, Next, NodeId, Output, Phase, Problem,
    Profile, Protocol, Setup, Shape, Telling, Timer, User, erase,
};

mod faults;
mod news;

use crate::check::{CheckPlan, Verdict, check};
use crate::run::{Report, Run, run};
use crate::world::World;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Quiz;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Ask {
    Enter,
    Leave,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Tell {
    Entered(bool),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Pupil {
    phase: Phase,
    deceived: bool,
}

impl Default for Pupil {
    fn default() -> Self {
        Pupil {
            phase: Phase::Idle,
            deceived: false,
        }
    }
}

impl Problem for Quiz {
    const NAME: &'static str = "quiz";
    type Ask = Ask;
    type Tell = Tell;
    type User = Pupil;
    type Monitor = ();

    fn violation(users: &[Pupil]) -> Option<String> {
        users
            .iter()
            .any(|user| user.deceived)
            .then(|| "somebody was deceived".into())
    }
}

impl User<Quiz> for Pupil {
    fn next(&self) -> Next<Ask> {
        match self.phase {
            Phase::Idle => Next::May(Ask::Enter),
            Phase::Waiting => Next::Nothing,
            Phase::Inside => Next::Must(Ask::Leave),
        }
    }

    fn asked(&mut self, ask: Ask) {
        self.phase = if ask == Ask::Enter {
            Phase::Waiting
        } else {
            Phase::Idle
        };
    }

    fn told(&mut self, Tell::Entered(truth): Tell) -> Result<(), String> {
        (self.phase, self.deceived) = (Phase::Inside, !truth);
        Ok(())
    }

    fn phase(&self) -> Phase {
        self.phase
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Node {
    id: NodeId,
    asking: bool,
    /// How often it has been started: kept on stable storage.
    starts: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Talk {
    Question,
    Answer(bool),
}

impl Message for Talk {}

struct Config {
    nodes: usize,
    delay_bound: u64,
}

const RETRY: Timer = Timer(1);

impl Protocol for Node {
    type Problem = Quiz;
    type Message = Talk;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        Node {
            id,
            asking: false,
            starts: 0,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Start => self.starts += 1,
            Input::Ask(Ask::Enter) => {
                self.asking = true;
                self.question(config, out);
            }
            Input::Timer(RETRY) if self.asking => self.question(config, out),
            Input::Message {
                from,
                message: Talk::Question,
            } => out.send(from, Talk::Answer(true)),
            Input::Message {
                message: Talk::Answer(truth),
                ..
            } if self.asking => {
                self.asking = false;
                out.tell(Tell::Entered(truth));
            }
            _ => {}
        }
    }

    fn restart(&self, id: NodeId, _: &Config) -> Self {
        Node {
            id,
            asking: false,
            starts: self.starts,
        }
    }

    fn lies(message: &Talk, _: &Config) -> Vec<Talk> {
        match message {
            Talk::Answer(truth) => vec![Talk::Answer(!truth)],
            Talk::Question => Vec::new(),
        }
    }
}

impl Node {
    fn question(&self, config: &Config, out: &mut Output<Self>) {
        out.send(self.id.next(config.nodes), Talk::Question);
        let span = 2 * config.delay_bound.max(1);
        out.after(span..2 * span, RETRY);
    }
}

static PROFILE: Profile = Profile {
    name: "quiz",
    title: "A quiz",
    source: "none",
    specimen: None,
    channels: Channels::AnyOrder,
    survives_crashes: true,
    needs_delay_bound: true,
    survives_lies: true,
    tolerates: |_| Faults::NONE,
    keeps_storage: true,
    idle_traffic: false,
    claims: &[Claim::Safety],
    costs: &[],
    figures: &[],
    telling: Telling {
        nodes: 2,
        entries: 1,
    },
    telling_groups: None,
    telling_proposers: None,
    telling_timeouts: None,
};

fn machine(nodes: usize, world: &World) -> Box<dyn Machine<Quiz>> {
    let config = Config {
        nodes,
        delay_bound: world.delay_bound().0,
    };
    erase::<Node>(Shape::users(nodes), config)
}

fn play(world: &World) -> Run {
    let machine = machine(3, world);
    run(&PROFILE, &*machine, &Setup::new(3), world, true, |_| {}).expect("a valid world")
}

fn report(fault: &str) -> Report {
    let faults = vec![fault.parse().expect("valid")];
    play(&World {
        entries: 30,
        faults,
        ..World::default()
    })
    .report
}

#[test]
fn timers_make_up_for_lost_messages() {
    let world = World {
        entries: 30,
        loss: "0.5".parse().expect("valid"),
        ..World::default()
    };
    let Run { report, .. } = play(&world);
    assert!(report.is_good(), "{:?}", report.violations);
    assert_eq!(report.entries, 30);
    assert!(report.messages > 60, "some questions were asked again");
}

#[test]
fn a_liar_is_found_out_by_the_property() {
    assert!(report("wrong:2:0").is_good());
    assert!(!report("wrong:2:1").safe);
    assert!(!report("arbitrary:2:1").safe);
}

#[test]
fn a_lie_is_replayed() {
    let faults = vec!["wrong:2:0.5".parse().expect("valid")];
    let world = World {
        entries: 6,
        faults,
        ..World::default()
    };
    let trace = play(&world).trace.expect("kept");
    assert!(
        trace
            .events
            .iter()
            .any(|(_, event)| matches!(event, crate::trace::Event::Lie(..)))
    );
    let replayed =
        crate::trace::replay(&*machine(3, &world), &trace, &PROFILE).expect("as written");
    assert!(!replayed.violations.is_empty());
}

#[test]
fn a_crash_ends_the_timers_of_before() {
    let report = report("crash:1@1..8");
    assert!(report.safe && report.live, "{:?}", report.violations);
}

#[test]
fn timers_are_steps_of_the_checker_and_cycles_with_them_are_not_covered() {
    let machine = machine(2, &World::default());
    let plan = CheckPlan::new(1);
    let checked = check(&PROFILE, &*machine, &Setup::new(2), &plan).expect("valid");
    assert!(checked.complete);
    assert_eq!(checked.safety, Verdict::Holds);
    assert_eq!(checked.lockout_freedom, Verdict::NotCovered);
    let silent = CheckPlan {
        timeouts: Some(0),
        ..plan
    };
    let fewer = check(&PROFILE, &*machine, &Setup::new(2), &silent).expect("valid");
    assert!(
        fewer.states < checked.states,
        "timers that fire make states"
    );
}
