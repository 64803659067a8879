//! Running a trace again: everything that was done must have been possible then and is done again, and
//! everything that followed must follow again, to the letter.

use std::fmt;

use testigo_protocol::{Machine, Phase, Problem, Profile, Timer, User, UserId};
use testigo_sim::Time;

use super::referee::Referee;
use super::{Clock, Event, Trace};
use crate::stage::Stage;

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
    /// The violation that was seen, where that is the difference.
    pub(crate) wrong: Option<Box<(Time, Event)>>,
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
    profile: &Profile,
) -> Result<Replayed, Difference> {
    let mut stage = Stage::new(machine, profile.claims, true);
    stage.shows_bytes = trace.header.clock == Clock::Milliseconds;
    let mut referee = Referee::new(&trace.header, profile);
    let mut next = 0;
    let difference = |index: usize, happened: String| Difference {
        event: index + 1,
        expected: trace
            .events
            .get(index)
            .map_or("nothing more".into(), |(at, event)| format!("{at} {event}")),
        happened,
        wrong: None,
    };
    while let Some((at, event)) = trace.events.get(next) {
        if !event.is_input() {
            return Err(difference(next, "nothing more".into()));
        }
        let act = |stage: &mut Stage<Q>, referee: &mut Referee<'_>| {
            referee.allow(*at, event)?;
            if let Event::End(why) = event {
                let busy = |phase| {
                    stage
                        .users
                        .iter()
                        .enumerate()
                        .filter(move |(_, user)| user.phase() == phase)
                };
                let home = |(user, _)| stage.shape.home(UserId(user as u32));
                referee.allow_end(
                    why,
                    busy(Phase::Inside).map(home),
                    busy(Phase::Waiting).next().is_some(),
                )?;
            }
            act(stage, *at, event, referee)
        };
        act(&mut stage, &mut referee).map_err(|why| difference(next, why))?;
        referee.saw(*at, &stage.sent, &stage.timers);
        stage.sent.clear();
        stage.timers.clear();
        next = compare(trace, stage.events(), next)?;
    }
    let shows_wrong = matches!(trace.events.last(), Some((_, Event::Violation(..))));
    referee
        .finish(shows_wrong)
        .map_err(|why| difference(next, why))?;
    let violations = stage.observer.violations.iter();
    Ok(Replayed {
        events: next,
        entries: stage.observer.measures.entries,
        violations: violations
            .map(|v| format!("{}: {}", v.kind.word(), v.what))
            .collect(),
    })
}

/// Does to the stage what the trace says was done, and what the referee has allowed.
fn act<Q: Problem>(
    stage: &mut Stage<Q>,
    at: Time,
    event: &Event,
    referee: &mut Referee<'_>,
) -> Result<(), String> {
    match event {
        Event::Start(node) => stage.start(at, *node),
        Event::Ask(user, _, label) => {
            if !stage.ask_as(at, *user, label) {
                return Err("a user that has nothing to ask".into());
            }
        }
        Event::Deliver(number) => stage.deliver(at, referee.under_way.take(*number)?),
        Event::Lose(number, why) => stage.lose(at, referee.under_way.take(*number)?, why),
        Event::Copy(of, _) => {
            let copy = stage.copy(at, referee.under_way.flight(*of)?);
            referee.under_way.copied(*of, copy);
        }
        Event::Lie(number, label) => {
            // The trace says what was told instead, not by which choice: find it.
            stage.lie_as(at, referee.under_way.flight(*number)?, label)?;
        }
        Event::Fire(node, timer) => stage.fire(at, *node, Timer(*timer)),
        Event::Crash(node, memory) => stage.crash(at, *node, *memory),
        Event::Restart(node) => {
            let memory = referee.restarted(*node).ok_or("a node that is not down")?;
            stage.restart(at, *node, memory);
        }
        Event::Heard {
            from, to, message, ..
        } => {
            let heard = stage.hear(at, *from, *to, message);
            heard.map_err(|error| error.to_string())?;
        }
        Event::Set(..) | Event::Access(..) => return Err("nodes that share no memory".into()),
        Event::Stop(_) => stage.record(at, || event.clone()),
        Event::End(why) => stage.end(at, (!why.is_empty()).then_some(why)),
        Event::Repeat(victim) => stage.repeat(at, *victim),
        Event::Cut(_) | Event::Heal(_) | Event::Cycle => stage.record(at, || event.clone()),
        Event::Send { .. } | Event::Tell(..) | Event::Timer(..) | Event::Violation(..) => {}
    }
    Ok(())
}

/// Records of nodes and traces of the first format have the text of an ask or a tell, and its kind is read from that.
fn is_same(trace: &Trace, expected: &Event, happened: &Event) -> bool {
    let untyped = trace.header.is_old || trace.header.clock == Clock::Milliseconds;
    match (expected, happened) {
        (Event::Ask(user, _, what), Event::Ask(other, _, said)) if untyped => {
            (user, what) == (other, said)
        }
        (Event::Tell(user, _, what), Event::Tell(other, _, said)) if untyped => {
            (user, what) == (other, said)
        }
        _ => expected == happened,
    }
}

/// Compares what has happened since `from` with the trace; returns how far they agree.
fn compare(trace: &Trace, happened: &[(Time, Event)], from: usize) -> Result<usize, Difference> {
    for (index, (at, event)) in happened.iter().enumerate().skip(from) {
        let expected = trace.events.get(index);
        let same = |(then, other): &(Time, Event)| then == at && is_same(trace, other, event);
        if !expected.is_some_and(same) {
            return Err(Difference {
                event: index + 1,
                expected: expected
                    .map_or("nothing more".into(), |(at, event)| format!("{at} {event}")),
                happened: format!("{at} {event}"),
                wrong: matches!(event, Event::Violation(..))
                    .then(|| Box::new((*at, event.clone()))),
            });
        }
    }
    Ok(happened.len())
}
