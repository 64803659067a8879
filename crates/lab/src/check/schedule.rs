//! Playing a schedule that the checker found: the same steps on a stage, which yields a trace.

use rustc_hash::FxHashMap;
use testigo_protocol::{Machine, NodeId, Problem, Profile, Setup, UserId};
use testigo_sim::Time;

use super::model::Step;
use crate::stage::{Flight, Stage};
use crate::trace::{Clock, Event, Header, Trace};

/// What is played, and what becomes of it.
pub(crate) struct Schedule<'a> {
    pub(crate) steps: &'a [Step],
    /// Repeated for ever after the steps, and who starves.
    pub(crate) cycle: Option<(&'a [Step], UserId)>,
    /// Whether nothing more can happen afterwards.
    pub(crate) ends: bool,
    pub(crate) made_by: String,
}

pub(crate) fn play<Q: Problem>(
    profile: &Profile,
    machine: &dyn Machine<Q>,
    setup: &Setup,
    schedule: &Schedule<'_>,
) -> Trace {
    let shape = machine.shape();
    let mut stage = Stage::new(machine, profile.claims, true);
    let mut links: FxHashMap<(NodeId, NodeId), Vec<Flight>> = FxHashMap::default();
    let collect = |stage: &mut Stage<Q>, links: &mut FxHashMap<(NodeId, NodeId), Vec<Flight>>| {
        for flight in stage.sent.drain(..) {
            links
                .entry((flight.from, flight.to))
                .or_default()
                .push(flight);
        }
    };
    for node in NodeId::all(shape.nodes()) {
        stage.start(Time::ZERO, node);
        collect(&mut stage, &mut links);
    }
    let mut now = 0;
    let cycle = schedule.cycle.map_or(&[][..], |(cycle, _)| cycle);
    let all = schedule.steps.iter().chain(cycle).enumerate();
    for (index, step) in all {
        now += 1;
        if index == schedule.steps.len() {
            stage.record(Time::units(now), || Event::Cycle);
        }
        match *step {
            Step::Ask(user, choice) => {
                stage.ask(Time::units(now), user, choice);
            }
            Step::Deliver { from, to, place } => {
                let flight = links.entry((from, to)).or_default().remove(place as usize);
                stage.deliver(Time::units(now), flight);
            }
            Step::Fire(node, timer) => stage.fire(Time::units(now), node, timer),
        }
        collect(&mut stage, &mut links);
    }
    if let Some((_, victim)) = schedule.cycle {
        stage.repeat(Time::units(now + 1), victim);
    }
    if schedule.ends {
        stage.end(Time::units(now + 1), None);
    }
    Trace {
        header: Header {
            clock: Clock::Steps,
            ..Header::new(profile, shape, setup, schedule.made_by.clone())
        },
        events: stage.into_trace().unwrap_or_default(),
    }
}
