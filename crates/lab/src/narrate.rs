//! A trace in words, one paragraph a step: what people read before they look at the picture.

use std::fmt::Write;

use testigo_protocol::{NodeId, UserId};
use testigo_sim::Memory;

use crate::trace::{Event, Trace};

/// What is under way, by number: from whom, to whom, what it says.
type Sent<'a> = rustc_hash::FxHashMap<u64, (NodeId, NodeId, &'a str)>;

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
    let mut sent: Sent<'_> = sent.collect();
    let message = |sent: &Sent<'_>, number: &u64| match sent.get(number) {
        Some((from, to, label)) => (name(*from), name(*to), (*label).to_owned()),
        None => ("?", "?", "a copy".to_owned()),
    };
    let mut text = String::new();
    let mut step = 0;
    let mut before: Option<&Event> = None;
    for (_, event) in &trace.events {
        let asked = matches!(before, Some(Event::Ask(..)));
        before = Some(event);
        let line = match event {
            Event::Access(_, what) if asked => {
                let _ = write!(text, "; {}", third_person(what));
                continue;
            }
            Event::Access(actor, what) => format!("{} {}", name(*actor), third_person(what)),
            Event::Start(_) | Event::Set(..) => continue,
            Event::Ask(asker, _, what) => format!("{} asks: {what}", user(*asker)),
            Event::Deliver(number) => {
                let (from, to, label) = message(&sent, number);
                format!("{to} receives {label} from {from}")
            }
            Event::Fire(node, timer) => format!("{}'s timer {timer} fires", name(*node)),
            Event::Crash(node, Memory::Whole) => format!("{} pauses", name(*node)),
            Event::Crash(node, _) => format!("{} crashes", name(*node)),
            Event::Restart(node) => format!("{} is back", name(*node)),
            // Nobody's step: whoever is down receives nothing.
            Event::Lose(number, why) if why == "down" => {
                let (from, to, label) = message(&sent, number);
                let _ = write!(text, "\n      {label} from {from} to {to} is lost (down)");
                continue;
            }
            Event::Lose(number, why) => {
                let (from, to, label) = message(&sent, number);
                format!("{label} from {from} to {to} is lost ({why})")
            }
            Event::Copy(of, copy) => {
                if let Some(same) = sent.get(of).copied() {
                    sent.insert(*copy, same);
                }
                format!("{} is duplicated", message(&sent, of).2)
            }
            Event::Lie(number, label) => {
                if let Some((_, _, said)) = sent.get_mut(number) {
                    *said = label;
                }
                format!("{} lies: {label}", message(&sent, number).0)
            }
            Event::Cut(sides) => format!("the network is cut: {sides}"),
            Event::Heal(_) => "the network is whole again".into(),
            Event::Send { to, label, .. } => {
                let _ = write!(text, "; sends {label} to {}", name(*to));
                continue;
            }
            // A node may tell its user at once what it begins with.
            Event::Tell(hearer, _, what) if step == 0 => {
                let _ = write!(text, "\n      {} begins: told {what}", user(*hearer));
                continue;
            }
            Event::Timer(..) if step == 0 => continue,
            Event::Tell(_, _, what) if trace.header.seats.is_empty() => {
                let _ = write!(text, "; told {what}");
                continue;
            }
            Event::Tell(hearer, _, what) => {
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

/// `read flag = 1` becomes `reads flag = 1`.
fn third_person(what: &str) -> String {
    what.replacen(' ', "s ", 1)
}
