//! What another node needs to know about a gate to tell whether somebody there can still get in.

use super::Local;
use crate::fence::Fence;
use crate::gate::{Definition, Mode};
use crate::name::Name;
use crate::session::SessionId;
use crate::wait::Ticket;

/// Those inside a gate and those who wait, in order.
pub(crate) struct Standing {
    pub(crate) definition: Definition,
    /// The room inside, and what remains of its stay.
    pub(crate) room: Option<(Name, Option<u64>)>,
    /// The session, its fence and mode, and whether it leads its room.
    pub(crate) inside: Vec<(SessionId, Fence, Mode, bool)>,
    /// The session, its ticket and mode, and how long it needs the room.
    pub(crate) queue: Vec<(SessionId, Ticket, Mode, Option<u64>)>,
}

impl Local {
    /// Up to `people` of those inside a gate and of those who wait there, always including `of`.
    pub(crate) fn standing(&self, gate: &str, of: SessionId, people: usize) -> Option<Standing> {
        let gate = &self.gates[*self.names.get(gate)?];
        let leader = gate.round.as_ref().and_then(|round| round.leader);
        let inside = gate.inside.inside(&self.holds).take(people);
        let inside = inside.map(|(h, hold)| {
            let session = self.sessions[hold.session].id;
            (session, hold.fence, hold.mode.clone(), leader == Some(h))
        });
        let queue = gate.queue.iter().enumerate().filter_map(|(at, queued)| {
            let wait = &self.waits[queued.wait];
            let session = self.sessions[wait.session].id;
            let mode = &wait.legs[queued.leg as usize].mode;
            let shown = at < people || session == of;
            shown.then(|| (session, wait.ticket, mode.clone(), wait.needs_ms))
        });
        let room = gate.round.as_ref().map(|round| {
            let stay = gate.definition.stay_ms;
            let left = stay.map(|stay| (round.since.saturating_add(stay)).saturating_sub(self.now));
            (round.room.clone(), left)
        });
        Some(Standing {
            definition: gate.definition.clone(),
            room,
            inside: inside.collect(),
            queue: queue.collect(),
        })
    }

    /// Whether a session is inside anything here.
    pub(crate) fn holds_anything(&self, id: SessionId) -> bool {
        let s = self.session_ids.get(&id);
        s.is_some_and(|s| self.sessions[*s].holds.len() > 0)
    }

    /// Counts a wait that was refused because nobody could have ended it.
    pub(crate) fn count_deadlock(&mut self) {
        self.counters.deadlocks += 1;
    }
}
