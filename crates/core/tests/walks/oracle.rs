//! Who is deadlocked, worked out from the books of all owners and from what all clients know of themselves, and from nothing
//! that the nodes believe of each other. Whatever is on its way counts as progress.

use std::collections::BTreeSet;

use testigo_core::{GateView, Mode, Rule, SessionId};

use crate::town::Town;

/// The sessions that nobody but a clock could help.
pub(crate) fn deadlocked(town: &Town) -> BTreeSet<SessionId> {
    let gates: Vec<GateView> = town
        .gates
        .iter()
        .filter_map(|gate| town.gate(gate))
        .collect();
    let people = town.people.iter();
    let blocked = people.filter(|person| {
        person.waits_for().is_some_and(|name| {
            let at = gates.iter().find(|gate| *gate.name == *name);
            at.is_some_and(|gate| gate.waiters.iter().any(|w| w.session == person.session))
        })
    });
    let mut stuck: BTreeSet<SessionId> = blocked.map(|person| person.session).collect();
    loop {
        let freed = gates.iter().find_map(|gate| let_in(town, gate, &stuck));
        match freed {
            Some(session) => stuck.remove(&session),
            None => return stuck,
        };
    }
}

/// Somebody who gets into a gate once everybody but the stuck has left it.
fn let_in(town: &Town, gate: &GateView, stuck: &BTreeSet<SessionId>) -> Option<SessionId> {
    let inside = gate.holders.iter().filter(|holder| {
        stuck.contains(&holder.session) && town.knows(holder.session, &gate.name, holder)
    });
    let inside: Vec<_> = inside.collect();
    let mut waiting = gate.waiters.iter().filter(|waiter| {
        let person = town.person(waiter.session);
        stuck.contains(&waiter.session) && person.waits_for() == Some(&*gate.name)
    });
    let units = |mode: &Mode| match mode {
        Mode::Permits(units) => *units,
        _ => 1,
    };
    let taken: u32 = inside.iter().map(|holder| units(&holder.mode)).sum();
    if let (Rule::Rooms, Some(first)) = (gate.definition.rule, inside.first()) {
        let same = |mode: &Mode| *mode == first.mode;
        let led = inside.iter().any(|holder| holder.leads);
        let waiting: Vec<_> = waiting.collect();
        let door = led || waiting.iter().all(|waiter| same(&waiter.mode));
        let mut joining = waiting.iter().filter(|waiter| door && same(&waiter.mode));
        return joining.next().map(|waiter| waiter.session);
    }
    // The first one that does not fit closes the gate for all behind it.
    let first = waiting.next()?;
    let fits = match (gate.definition.rule, &first.mode) {
        (Rule::Permits(most), mode) => taken + units(mode) <= most,
        (_, Mode::Shared) => inside.iter().all(|holder| holder.mode == Mode::Shared),
        _ => inside.is_empty(),
    };
    fits.then_some(first.session)
}
