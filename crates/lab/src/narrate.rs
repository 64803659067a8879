//! A trace in words, one paragraph a step: what people read before they look at the picture.

use std::fmt::Write;

use testigo_protocol::{NodeId, UserId};
use testigo_sim::Memory;

use crate::trace::{Event, Trace};

/// The steps of a trace, numbered; at most `steps_max` of them.
pub fn narrate(trace: &Trace, steps_max: usize) -> String {
    let name = |node: NodeId| trace.header.names[node.index()].as_str();
    let user = |user: UserId| match trace.header.seats.is_empty() {
        true => name(NodeId(user.0)).to_owned(),
        false => format!("p{user} at {}", name(trace.header.home(user))),
    };
    let sent = trace.events.iter().filter_map(|(_, event)| match event {
        Event::Send {
            number,
            from,
            to,
            label,
            ..
        }
        | Event::Heard {
            number,
            from,
            to,
            label,
            ..
        } => Some((*number, (*from, *to, label.as_str()))),
        _ => None,
    });
    let sent: rustc_hash::FxHashMap<u64, (NodeId, NodeId, &str)> = sent.collect();
    let message = |number: &u64| match sent.get(number) {
        Some((from, to, label)) => (name(*from), name(*to), *label),
        None => ("?", "?", "a copy"),
    };
    let mut text = String::new();
    let mut step = 0;
    for (_, event) in &trace.events {
        let line = match event {
            Event::Start(_) => continue,
            Event::Ask(asker, what) => format!("{} asks: {what}", user(*asker)),
            Event::Deliver(number) => {
                let (from, to, label) = message(number);
                format!("{to} receives {label} from {from}")
            }
            Event::Fire(node, timer) => format!("{}'s timer {timer} fires", name(*node)),
            Event::Crash(node, Memory::Whole) => format!("{} pauses", name(*node)),
            Event::Crash(node, _) => format!("{} crashes", name(*node)),
            Event::Restart(node) => format!("{} is back", name(*node)),
            Event::Lose(number, why) => {
                let (from, to, label) = message(number);
                format!("{label} from {from} to {to} is lost ({why})")
            }
            Event::Copy(of, _) => format!("{} is duplicated", message(of).2),
            Event::Lie(number, label) => format!("{} lies: {label}", message(number).0),
            Event::Cut(sides) => format!("the network is cut: {sides}"),
            Event::Heal(_) => "the network is whole again".into(),
            Event::Send { to, label, .. } => {
                let _ = write!(text, "; sends {label} to {}", name(*to));
                continue;
            }
            Event::Tell(_, what) if trace.header.seats.is_empty() => {
                let _ = write!(text, "; told {what}");
                continue;
            }
            Event::Tell(hearer, what) => {
                let _ = write!(text, "; p{hearer} is told {what}");
                continue;
            }
            Event::Timer(_, timer) => {
                let _ = write!(text, "; sets timer {timer}");
                continue;
            }
            Event::Cycle => {
                text.push_str("\n   -- from here it repeats for ever --");
                continue;
            }
            Event::Repeat(_) | Event::End(_) | Event::Heard { .. } => continue,
            Event::Stop(why) => {
                let _ = write!(text, "\n   -- {why} --");
                continue;
            }
            Event::Violation(kind, what) => {
                let _ = write!(text, "\n   => {kind}: {what}");
                continue;
            }
        };
        step += 1;
        if step > steps_max {
            let _ = write!(text, "\n   … and so on; the trace has all of it");
            break;
        }
        let _ = write!(text, "\n{step:>4}. {line}");
    }
    text.trim_start_matches('\n').to_owned()
}
