//! Running a trace of threads again: every step is taken again and must do the same.

use testigo_memory::Program;
use testigo_protocol::Profile;
use testigo_sim::Time;

use super::stage::ThreadStage;
use crate::trace::{Difference, Event, Replayed, Trace};

/// Every step is announced by its first event: an ask, or an access of an actor that does not ask.
pub(crate) fn replay(
    program: &dyn Program,
    trace: &Trace,
    _profile: &Profile,
) -> Result<Replayed, Difference> {
    let mut stage = ThreadStage::new(program, true);
    let mut next = 0;
    let mut last = Time::ZERO;
    while let Some((at, event)) = trace.events.get(next) {
        let difference = |happened: &str| Difference {
            event: next + 1,
            expected: format!("{at} {event}"),
            happened: happened.into(),
            wrong: None,
        };
        if *at < last {
            return Err(difference("time that runs forward"));
        }
        last = *at;
        act(&mut stage, *at, event).map_err(difference)?;
        for index in next.. {
            let Some(happened) = stage.events().get(index) else {
                next = index;
                break;
            };
            let expected = trace.events.get(index);
            if expected != Some(happened) {
                let said = |(at, event): &(Time, Event)| format!("{at} {event}");
                return Err(Difference {
                    event: index + 1,
                    expected: expected.map_or("nothing more".into(), said),
                    happened: said(happened),
                    wrong: None,
                });
            }
        }
    }
    let violations = stage.observer.violations.iter();
    Ok(Replayed {
        events: next,
        entries: stage.observer.measures.entries,
        violations: violations
            .map(|v| format!("{}: {}", v.kind.word(), v.what))
            .collect(),
    })
}

fn act(stage: &mut ThreadStage<'_>, at: Time, event: &Event) -> Result<(), &'static str> {
    let asks = |stage: &ThreadStage<'_>, actor: usize| {
        let local = &stage.locals[actor];
        actor < stage.shape.users && local.is_idle()
    };
    match event {
        Event::Set(name, value) if stage.events().iter().all(|(_, e)| is_set(e)) => {
            let mut registers = stage.registers.iter();
            let found = registers.position(|one| one.name == *name && one.first.contains(value));
            let register = found.ok_or("a register that holds this at first")?;
            stage.set(register, *value);
        }
        Event::Ask(user, _, what) => {
            let room = match what.split_once('(') {
                None => Some(0),
                Some((_, room)) => room.trim_end_matches(')').parse::<u8>().ok(),
            };
            let room = room.filter(|&room| usize::from(room) < stage.program.rooms());
            let room = room.ok_or("a room that there is")?;
            if !asks(stage, user.index()) {
                return Err("a process that has nothing to ask");
            }
            stage.step(at, user.index(), room);
        }
        Event::Access(actor, _) => {
            let actor = actor.index();
            if actor >= stage.locals.len() || asks(stage, actor) {
                return Err("a process that asks before it steps");
            }
            if stage.program.is_delayed(actor, &stage.locals) {
                return Err("a process whose delay is over");
            }
            stage.step(at, actor, 0);
        }
        Event::Crash(node, memory) => {
            let (node, memory) = (*node, *memory);
            stage.record(at, || Event::Crash(node, memory));
        }
        Event::Restart(node) => {
            let node = *node;
            stage.record(at, || Event::Restart(node));
        }
        Event::Cycle => stage.record(at, || Event::Cycle),
        Event::Repeat(victim) => stage.repeat(at, *victim),
        Event::End(why) => stage.end(at, (!why.is_empty()).then_some(why)),
        _ => return Err("something that threads do"),
    }
    Ok(())
}

fn is_set(event: &Event) -> bool {
    matches!(event, Event::Set(..))
}
