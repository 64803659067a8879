//! The two-actor pattern as a combinator: rooms over any mutex of the library. Processes ask the group of
//! their room; groups are extra nodes that run the mutex among themselves.
//!
//! Source: group exclusion §4. A process costs three messages (ask, come, done), a round what the mutex costs.
//! Links must be FIFO, whatever the mutex needs: a process that leaves and asks again must not be overtaken
//! by its own question, or it is inside and its group does not know.

use std::sync::Arc;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::hall::{Flaw, Hall, HallTask};
use super::{Ask, Door, Rooms, Tell, User};
use crate::mutex::{self, Mutex};
use crate::{
    Algorithm, Cost, Input, Machine, Message, NodeId, Output, Profile, Protocol, Range, Setup,
    SetupError, Shape, Telling, erase_for,
};

/// What rooms need to know besides the mutex of their groups.
#[derive(Debug)]
pub struct Plan {
    pub(crate) processes: usize,
    pub(crate) groups: usize,
    pub(crate) door: Door,
    /// How many rounds of other rooms may pass a user, where that is promised.
    pub(crate) rounds_max: Option<u32>,
    pub(super) flaw: Option<Flaw>,
}

impl Plan {
    /// More rooms than anybody keeps.
    const GROUPS_MAX: usize = 1_000;

    pub(super) fn new(setup: &Setup, groups: usize) -> Result<Plan, SetupError> {
        let groups = setup.groups.unwrap_or(groups);
        if !(2..=Self::GROUPS_MAX).contains(&groups) {
            let most = Self::GROUPS_MAX;
            return Err(SetupError(format!(
                "{groups} groups: there must be 2 to {most}"
            )));
        }
        Ok(Plan {
            processes: setup.at_least(1)?,
            groups,
            door: setup.door,
            rounds_max: None,
            flaw: None,
        })
    }

    /// The setup of the mutex among the groups.
    pub(super) fn among_groups(&self, setup: &Setup) -> Setup {
        Setup {
            users: self.groups,
            ..setup.clone()
        }
    }
}

/// The groups of `rooms-over`, unless others are chosen.
const GROUPS_DEFAULT: usize = 3;

/// Rooms over an algorithm of the mutex family.
pub(super) fn over(
    algorithm: &Algorithm<Mutex>,
    setup: &Setup,
    flaw: Option<Flaw>,
) -> Result<Box<dyn Machine<Rooms>>, SetupError> {
    let plan = Plan {
        flaw,
        ..Plan::new(setup, GROUPS_DEFAULT)?
    };
    let mutex = (algorithm.machine)(&plan.among_groups(setup))?;
    let rooms = mutex.rooms(plan);
    rooms.ok_or_else(|| {
        SetupError(format!(
            "there are no rooms over {}",
            algorithm.profile.name
        ))
    })
}

/// What is published for the mutex, for each round; a round is for one process, or for all of them.
fn cost(costs: &[Cost], setup: &Setup) -> Range {
    let groups = setup.groups.unwrap_or(GROUPS_DEFAULT);
    let inner = Setup {
        users: groups,
        ..setup.clone()
    };
    let told = match setup.door {
        Door::Leader => 0.0,
        Door::OpenWhileUncontended => 2.0 * (groups as f64 - 1.0),
    };
    let of_mutex = costs.first().map(|cost| (cost.range)(&inner));
    let Range { min, max } = of_mutex.unwrap_or(Range::exactly(0));
    Range::new(3.0 + min / setup.users as f64, 3.0 + max + told)
}

macro_rules! over {
    ($($file:ident: $name:literal, $groups:literal groups),+ $(,)?) => {
        /// Rooms over every algorithm of the mutex family.
        pub static OVER: &[&Algorithm<Rooms>] = &[$(&Algorithm {
            profile: Profile {
                name: concat!("rooms-over:", $name),
                title: concat!("Rooms over ", $name),
                source: "group exclusion §4",
                needs_delay_bound: mutex::$file::ALGORITHM.profile.needs_delay_bound,
                idle_traffic: mutex::$file::ALGORITHM.profile.idle_traffic,
                // A ring that sends while nobody wants anything has no cost a round.
                costs: match mutex::$file::ALGORITHM.profile.idle_traffic {
                    true => &[],
                    false => &[Cost::messages("3, and the mutex's for each round", |setup| {
                        cost(mutex::$file::ALGORITHM.profile.costs, setup)
                    })],
                },
                telling: Telling {
                    nodes: 5 - $groups,
                    entries: 1,
                },
                telling_groups: Some($groups),
                ..Profile::PLAIN
            },
            machine: |setup| over(&mutex::$file::ALGORITHM, setup, None),
        }),+];
    };
}

// The telling configuration has 3 processes and 2 groups; cohorts need 3.
over! {
    central: "central", 2 groups,
    token_ring: "token-ring", 2 groups,
    lamport: "lamport", 2 groups,
    ricart_agrawala: "ricart-agrawala", 2 groups,
    maekawa: "maekawa", 2 groups,
    sanders: "sanders", 2 groups,
    raymond: "raymond", 2 groups,
    chang: "chang", 2 groups,
    tree_quorum: "tree-quorum", 2 groups,
    cohort_quorum: "cohort-quorum", 3 groups,
    agrawal_jalote: "agrawal-jalote", 2 groups,
}

/// Rooms over a configured mutex: what a machine of the mutex family offers.
pub(crate) fn rooms_over<P: Protocol<Problem = Mutex>>(
    shape: &Shape,
    mutex: Arc<P::Config>,
    plan: Plan,
) -> Box<dyn Machine<Rooms>> {
    let behind = NodeId::all(shape.nodes()).map(|node| match node.index() < plan.groups {
        true => format!("g{node}"),
        false => shape.name(node),
    });
    let user = User::new(plan.groups as u32, plan.door, plan.rounds_max);
    let shape = Shape::with_extra(plan.processes, behind.collect());
    erase_for::<Actor<P>>(shape, |_| user, Config { plan, mutex })
}

pub(super) struct Config<P: Protocol> {
    plan: Plan,
    mutex: Arc<P::Config>,
}

/// A process, a group, or a node that the mutex has besides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Actor<P> {
    Process { room: u32 },
    Group { id: NodeId, hall: Hall, mutex: P },
    Behind { id: NodeId, mutex: P },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "M: Serialize", deserialize = "M: DeserializeOwned"))]
pub(super) enum Talk<M> {
    /// A process to its group, and back, and when it has left.
    Ask,
    Come {
        leads: bool,
    },
    Done,
    /// A group to the others, where doors are open while nobody competes.
    Competes(bool),
    /// Of the mutex among the groups.
    Groups(M),
}

impl<M: Message> Message for Talk<M> {
    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        if let Talk::Groups(message) = self {
            message.clocks(visit);
        }
    }
}

impl<P: Protocol<Problem = Mutex>> Protocol for Actor<P> {
    type Problem = Rooms;
    type Message = Talk<P::Message>;
    type Config = Config<P>;

    fn new(id: NodeId, config: &Config<P>) -> Self {
        let Some(place) = id.index().checked_sub(config.plan.processes) else {
            return Actor::Process { room: 0 };
        };
        let mutex = P::new(NodeId(place as u32), &config.mutex);
        match place < config.plan.groups {
            true => Actor::Group {
                id,
                hall: Hall::new(),
                mutex,
            },
            false => Actor::Behind { id, mutex },
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config<P>, out: &mut Output<Self>) {
        let processes = config.plan.processes as u32;
        match (self, input) {
            (Actor::Process { room }, Input::Ask(ask)) => {
                let talk = match ask {
                    Ask::Enter(wanted) => {
                        *room = wanted;
                        Talk::Ask
                    }
                    Ask::Leave => Talk::Done,
                };
                out.send(NodeId(processes + *room), talk);
            }
            (Actor::Process { .. }, Input::Message { message, .. }) => {
                if let Talk::Come { leads } = message {
                    out.tell(Tell::Entered { leads });
                }
            }
            (Actor::Process { .. }, _) | (_, Input::Ask(_)) => {}
            (Actor::Group { id, hall, mutex }, input) => {
                let mut group = Group {
                    id: *id,
                    hall,
                    mutex,
                    config,
                    tasks: Vec::new(),
                };
                group.take(input, out);
            }
            (Actor::Behind { id, mutex }, input) => {
                if let Some(input) = for_mutex(input, processes) {
                    run_mutex(*id, mutex, input, config, out);
                }
            }
        }
    }

    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        if let Actor::Group { mutex, .. } | Actor::Behind { mutex, .. } = self {
            mutex.clocks(visit);
        }
    }
}

/// An input as the mutex has it, where it is one for the mutex: nodes are numbered from the first group on.
fn for_mutex<P: Protocol<Problem = Mutex>>(
    input: Input<Actor<P>>,
    processes: u32,
) -> Option<Input<P>> {
    match input {
        Input::Start => Some(Input::Start),
        Input::Timer(timer) => Some(Input::Timer(timer)),
        Input::Message {
            from,
            message: Talk::Groups(message),
        } => Some(Input::Message {
            from: NodeId(from.0 - processes),
            message,
        }),
        Input::Message { .. } | Input::Ask(_) => None,
    }
}

/// One step of the mutex; says whether the group has entered by it.
fn run_mutex<P: Protocol<Problem = Mutex>>(
    id: NodeId,
    mutex: &mut P,
    input: Input<P>,
    config: &Config<P>,
    out: &mut Output<Actor<P>>,
) -> bool {
    let processes = config.plan.processes as u32;
    let mut inner = Output::new();
    inner.run(NodeId(id.0 - processes), mutex, input, &config.mutex);
    for (to, message) in inner.sends {
        out.send(NodeId(to.0 + processes), Talk::Groups(message));
    }
    for (span, timer) in inner.timers {
        out.after(span, timer);
    }
    inner.tells.contains(&mutex::Tell::Entered)
}

/// A group in one step: its hall, its part of the mutex, and what is still to be done.
struct Group<'a, P: Protocol> {
    id: NodeId,
    hall: &'a mut Hall,
    mutex: &'a mut P,
    config: &'a Config<P>,
    tasks: Vec<HallTask>,
}

impl<P: Protocol<Problem = Mutex>> Group<'_, P> {
    fn take(&mut self, input: Input<Actor<P>>, out: &mut Output<Actor<P>>) {
        let Plan { door, flaw, .. } = self.config.plan;
        let processes = self.config.plan.processes as u32;
        match input {
            Input::Message {
                from,
                message: Talk::Ask,
            } => {
                self.hall.select(from, door, flaw, &mut self.tasks);
            }
            Input::Message {
                from,
                message: Talk::Done,
            } => self.hall.done(from, &mut self.tasks),
            Input::Message {
                from,
                message: Talk::Competes(competes),
            } => {
                self.hall.rival(from, competes, &mut self.tasks);
            }
            input => {
                let input = for_mutex(input, processes);
                if input.is_some_and(|input| self.run(input, out)) {
                    self.tell_others(false, out);
                    self.hall.won(&mut self.tasks);
                }
            }
        }
        while !self.tasks.is_empty() {
            let task = self.tasks.remove(0);
            self.carry_out(task, out);
        }
    }

    fn carry_out(&mut self, task: HallTask, out: &mut Output<Actor<P>>) {
        match task {
            HallTask::Admit { process, leads } => out.send(process, Talk::Come { leads }),
            // The others need not hear of a group that enters at once.
            HallTask::Compete => match self.run(Input::Ask(mutex::Ask::Enter), out) {
                true => self.hall.won(&mut self.tasks),
                false => self.tell_others(true, out),
            },
            HallTask::Release => {
                self.run(Input::Ask(mutex::Ask::Leave), out);
            }
        }
    }

    fn run(&mut self, input: Input<P>, out: &mut Output<Actor<P>>) -> bool {
        run_mutex(self.id, self.mutex, input, self.config, out)
    }

    fn tell_others(&self, competes: bool, out: &mut Output<Actor<P>>) {
        let Plan {
            processes,
            groups,
            door,
            ..
        } = self.config.plan;
        if door == Door::OpenWhileUncontended {
            let (first, me) = (processes as u32, self.id);
            let others = (first..first + groups as u32)
                .map(NodeId)
                .filter(|&group| group != me);
            out.send_all(others, &Talk::Competes(competes));
        }
    }
}
