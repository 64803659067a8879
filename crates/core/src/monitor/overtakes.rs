//! Nobody is overtaken by later, more urgent requests more often than the gate allows, and never by later requests that are
//! equally or less urgent. Two ways past a waiter do not count: through the open door of the room inside, since other rooms
//! have to wait for it anyway, and past a set that could still join the one that passed.

use std::collections::BTreeMap;

use super::inside::together;
use crate::event::{Event, Turn};
use crate::gate::{Definition, GateOrder, Mode};
use crate::name::Name;
use crate::session::SessionId;
use crate::wait::Ticket;

#[derive(Clone, Debug)]
struct Waiting {
    ticket: Ticket,
    mode: Mode,
    class: u32,
    set: bool,
    passed: u32,
}

/// Watches the queues of all gates, each in order of arrival.
#[derive(Clone, Debug, Default)]
pub struct BoundedOvertaking {
    queues: BTreeMap<Name, Vec<Waiting>>,
    inside: BTreeMap<Name, Vec<(SessionId, Mode)>>,
}

impl BoundedOvertaking {
    /// Shows all events of one step. A request that enters in the same step was not kept waiting by it.
    pub fn saw(
        &mut self,
        step: &[Event],
        definition: impl Fn(&Name) -> Definition,
    ) -> Result<(), String> {
        let entering: Vec<Ticket> = step
            .iter()
            .filter_map(|event| match event {
                Event::Entered { ticket, .. } => *ticket,
                _ => None,
            })
            .collect();
        step.iter()
            .try_for_each(|event| self.saw_one(event, &entering, &definition))
    }

    fn saw_one(
        &mut self,
        event: &Event,
        entering: &[Ticket],
        definition: impl Fn(&Name) -> Definition,
    ) -> Result<(), String> {
        match event {
            Event::Waits {
                ticket,
                gate,
                mode,
                class,
                set,
                ..
            } => {
                self.queues.entry(gate.clone()).or_default().push(Waiting {
                    ticket: *ticket,
                    mode: mode.clone(),
                    class: *class,
                    set: *set,
                    passed: 0,
                });
            }
            Event::Gone { ticket, .. } => {
                for queue in self.queues.values_mut() {
                    queue.retain(|waiting| waiting.ticket != *ticket);
                }
            }
            Event::Entered {
                session,
                gate,
                mode,
                class,
                turn,
                ticket,
                together: gates,
                ..
            } => {
                let inside = self.inside.entry(gate.clone()).or_default();
                inside.push((*session, mode.clone()));
                let queue = self.queues.entry(gate.clone()).or_default();
                let at = queue
                    .iter()
                    .position(|waiting| Some(waiting.ticket) == *ticket);
                let set = match at {
                    Some(at) => queue[at].set,
                    None => *gates > 1,
                };
                let earlier = at.unwrap_or(queue.len());
                if *turn == Turn::Order {
                    let definition = definition(gate);
                    let urgency = urgency(&definition, mode, *class, set);
                    let modes: Vec<&Mode> = inside.iter().map(|(_, mode)| mode).collect();
                    let kept = |passed: &&mut Waiting| !entering.contains(&passed.ticket);
                    for passed in queue[..earlier].iter_mut().filter(kept) {
                        passed.check(gate, &definition, urgency, &modes)?;
                    }
                }
                if let Some(at) = at {
                    queue.remove(at);
                }
            }
            Event::Left { session, gate, .. } => {
                let inside = self.inside.entry(gate.clone()).or_default();
                inside.retain(|(holder, _)| holder != session);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Waiting {
    /// A request of this urgency, which came later, went first and is now inside.
    fn check(
        &mut self,
        gate: &Name,
        definition: &Definition,
        entered: (bool, u64),
        inside: &[&Mode],
    ) -> Result<(), String> {
        let beside: Vec<&Mode> = inside.iter().copied().chain([&self.mode]).collect();
        if self.set && together(definition, &beside) {
            return Ok(());
        }
        if entered >= urgency(definition, &self.mode, self.class, self.set) {
            return Err(format!(
                "wait {} at gate {gate} was passed by a later one that is not more urgent",
                self.ticket
            ));
        }
        self.passed += 1;
        if self.passed > definition.overtakes {
            return Err(format!(
                "wait {} at gate {gate} was overtaken {} times, of {} allowed",
                self.ticket, self.passed, definition.overtakes
            ));
        }
        Ok(())
    }
}

/// What counts before arrival in a gate's order; less is more urgent.
fn urgency(definition: &Definition, mode: &Mode, class: u32, set: bool) -> (bool, u64) {
    let class = class.into();
    match definition.order {
        GateOrder::Arrival => (false, 0),
        GateOrder::Class => (false, class),
        GateOrder::Readers => (set || *mode != Mode::Shared, class),
        GateOrder::Writers => (set || *mode != Mode::Exclusive, class),
        GateOrder::Rank => {
            let rank = mode.candidacy().map_or(0, |candidacy| candidacy.rank);
            (false, u64::MAX - rank.abs_diff(i64::MIN))
        }
    }
}
