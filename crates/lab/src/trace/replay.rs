//! Running a trace again: everything that was done is done again, and everything that followed must
//! follow again, to the letter.

use std::fmt;

use rustc_hash::FxHashMap;
use testigo_protocol::{Claim, Machine, NodeId, Problem, Timer};
use testigo_sim::{Memory, Time};

use super::{Event, Trace};
use crate::stage::{Flight, Stage};

/// A trace that ran as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    pub events: usize,
    pub entries: u64,
    /// The violations that the trace shows, and that were seen again.
    pub violations: Vec<String>,
}

/// The first place where a replay did something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which event of the trace, from 1.
    pub event: usize,
    pub expected: String,
    pub happened: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "event {} differs: the trace has `{}`, the replay has `{}`",
            self.event, self.expected, self.happened
        )
    }
}

pub(crate) fn replay<Q: Problem>(
    machine: &dyn Machine<Q>,
    trace: &Trace,
    claims: &[Claim],
) -> Result<Replayed, Difference> {
    let mut stage = Stage::new(machine, claims, true);
    let mut under_way = FxHashMap::default();
    let mut down = FxHashMap::default();
    let mut next = 0;
    while let Some((at, event)) = trace.events.get(next) {
        let expected = || event.to_string();
        let difference = |happened: &str| Difference {
            event: next + 1,
            expected: expected(),
            happened: happened.into(),
        };
        if !event.is_input() {
            return Err(difference("nothing more"));
        }
        act(&mut stage, *at, event, &mut under_way, &mut down).map_err(difference)?;
        for flight in &stage.sent {
            under_way.insert(flight.number, *flight);
        }
        stage.sent.clear();
        next = compare(trace, stage.events(), next)?;
    }
    let violations = stage.witness.violations.iter();
    Ok(Replayed {
        events: next,
        entries: stage.witness.measures.entries,
        violations: violations
            .map(|v| format!("{}: {}", v.kind.word(), v.what))
            .collect(),
    })
}

/// Does to the stage what the trace says was done.
fn act<Q: Problem>(
    stage: &mut Stage<Q>,
    at: Time,
    event: &Event,
    under_way: &mut FxHashMap<u64, Flight>,
    down: &mut FxHashMap<NodeId, Memory>,
) -> Result<(), &'static str> {
    const NOT_UNDER_WAY: &str = "no such message under way";
    match event {
        Event::Start(node) => stage.start(at, *node),
        Event::Ask(user, label) => {
            if !stage.ask_as(at, *user, label) {
                return Err("a user that has nothing to ask");
            }
        }
        Event::Deliver(number) => {
            stage.deliver(at, under_way.remove(number).ok_or(NOT_UNDER_WAY)?);
        }
        Event::Lose(number, why) => {
            stage.lose(at, under_way.remove(number).ok_or(NOT_UNDER_WAY)?, why);
        }
        Event::Copy(of, _) => {
            let copy = stage.copy(at, *under_way.get(of).ok_or(NOT_UNDER_WAY)?);
            under_way.insert(copy.number, copy);
        }
        Event::Lie(number, label) => {
            // The trace says what was told instead, not by which choice: find it.
            let flight = *under_way.get(number).ok_or(NOT_UNDER_WAY)?;
            stage.lie_as(at, flight, label)?;
        }
        Event::Fire(node, timer) => stage.fire(at, *node, Timer(*timer)),
        Event::Crash(node, memory) => {
            down.insert(*node, *memory);
            stage.crash(at, *node, *memory);
        }
        Event::Restart(node) => {
            let memory = down.remove(node).ok_or("a node that is not down")?;
            stage.restart(at, *node, memory);
        }
        Event::End(why) => stage.end(at, (!why.is_empty()).then_some(why)),
        Event::Repeat(victim) => stage.repeat(at, *victim),
        Event::Cut(_) | Event::Heal(_) | Event::Cycle => stage.record(at, || event.clone()),
        Event::Send { .. } | Event::Tell(..) | Event::Timer(..) | Event::Violation(..) => {}
    }
    Ok(())
}

/// Compares what has happened since `from` with the trace; returns how far they agree.
fn compare(trace: &Trace, happened: &[(Time, Event)], from: usize) -> Result<usize, Difference> {
    for (index, (at, event)) in happened.iter().enumerate().skip(from) {
        let expected = trace.events.get(index);
        if expected != Some(&(*at, event.clone())) {
            return Err(Difference {
                event: index + 1,
                expected: expected
                    .map_or("nothing more".into(), |(at, event)| format!("{at} {event}")),
                happened: format!("{at} {event}"),
            });
        }
    }
    Ok(happened.len())
}
