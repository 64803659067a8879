//! Nobody waits who could enter: no wake-up is lost. This monitor looks at states, not at events.

use super::inside::together;
use crate::gate::{Mode, Rule};
use crate::local::{GateView, WaiterView};

/// Checks all gates of a node that has fences. A gate that awaits somebody after a crash lets nobody in. At other gates the
/// first waiter, unless it is a set that waits elsewhere, must be incompatible with those inside; and nobody may wait before
/// the open door of its own room.
pub fn nobody_waits_needlessly(gates: &[GateView], now: u64) -> Result<(), String> {
    for gate in gates.iter().filter(|gate| gate.awaits.is_empty()) {
        for (at, waiter) in gate.waiters.iter().enumerate() {
            let free = match at {
                0 => waiter.set.iter().all(|name| {
                    let mut meant = gates.iter().filter(|gate| gate.name == *name);
                    meant.any(|gate| may_be_next(gate, waiter, now))
                }),
                _ => waiter.set.len() == 1 && through_the_door(gate, waiter, now),
            };
            if free {
                return Err(format!(
                    "session {} waits at gate {} and could enter",
                    waiter.session, gate.name
                ));
            }
        }
    }
    Ok(())
}

fn may_be_next(gate: &GateView, waiter: &WaiterView, now: u64) -> bool {
    if !gate.awaits.is_empty() {
        return false;
    }
    let Some(at) = gate
        .waiters
        .iter()
        .position(|other| other.ticket == waiter.ticket)
    else {
        return false;
    };
    if gate.definition.rule == Rule::Rooms && !gate.holders.is_empty() {
        return through_the_door(gate, &gate.waiters[at], now);
    }
    let mut modes: Vec<&Mode> = gate.holders.iter().map(|holder| &holder.mode).collect();
    modes.push(&gate.waiters[at].mode);
    at == 0 && together(&gate.definition, &modes)
}

fn through_the_door(gate: &GateView, waiter: &WaiterView, now: u64) -> bool {
    let Some(first) = gate
        .holders
        .first()
        .filter(|_| gate.definition.rule == Rule::Rooms)
    else {
        return false;
    };
    let open = gate.holders.iter().any(|holder| holder.leads)
        || gate.waiters.iter().all(|other| other.mode == first.mode);
    // Members of the room that stand ahead and also wait elsewhere have a place kept for them.
    let ahead = gate
        .waiters
        .iter()
        .take_while(|other| other.ticket != waiter.ticket);
    let places = gate.holders.len() + ahead.filter(|other| other.mode == first.mode).count();
    let room_left = gate
        .definition
        .capacity
        .is_none_or(|most| places < most as usize);
    let ends = gate.holders.iter().filter_map(|holder| holder.until).min();
    let needs_ms = waiter.needs_ms.unwrap_or(1);
    let time_left = match (gate.definition.stay_ms, ends) {
        (Some(_), Some(ends)) => now.saturating_add(needs_ms) <= ends,
        _ => true,
    };
    waiter.mode == first.mode && open && room_left && time_left
}
