//! Who may enter now. A gate's queue is shown to its rule head first. A set that could enter here but has to wait elsewhere
//! counts as inside, so that nobody takes its place; requests compatible with it go on.

use super::Local;
use crate::event::Turn;
use crate::gate::{GateKey, Mode, Occupancy, PresentRoom, QueuedLeg, Rule};
use crate::wait::WaitKey;

impl Local {
    /// Those inside a gate, as its rule sees them.
    pub(super) fn occupancy(&self, now: u64, g: GateKey) -> Occupancy<'_> {
        let gate = &self.gates[g];
        let room = gate.round.as_ref().map(|round| PresentRoom {
            name: &round.room,
            door_open: round.leader.is_some() || !self.other_room_waits(g, &round.room),
            left_ms: gate
                .definition
                .stay_ms
                .map(|stay| round.since.saturating_add(stay).saturating_sub(now)),
        });
        Occupancy::inside(
            &gate.definition,
            gate.inside.len(),
            gate.units,
            gate.exclusive,
            room,
        )
    }

    fn other_room_waits(&self, g: GateKey, room: &str) -> bool {
        let mut queue = self.gates[g].queue.iter();
        queue.any(|queued| !matches!(self.mode(queued), Mode::Room(r) if **r == *room))
    }

    pub(super) fn mode(&self, queued: &QueuedLeg) -> &Mode {
        &self.waits[queued.wait].legs[queued.leg as usize].mode
    }

    /// Whether a waiter's turn has come at one of its gates.
    pub(super) fn turn_at(&self, now: u64, g: GateKey, wait: WaitKey) -> bool {
        if self.awaited.shuts(self.gates[g].shard) {
            return false;
        }
        let mut occupancy = self.occupancy(now, g);
        for queued in self.gates[g].queue.iter() {
            let admitted = occupancy.admit(self.mode(queued), self.waits[queued.wait].needs_ms);
            if queued.wait == wait {
                return admitted;
            }
            if occupancy.closed() {
                return false;
            }
        }
        false
    }

    /// Whether a wait's turn has come at all of its gates.
    pub(super) fn turn_everywhere(&self, now: u64, wait: WaitKey) -> bool {
        let mut legs = self.waits[wait].legs.iter();
        legs.all(|leg| self.turn_at(now, leg.gate, wait))
    }

    /// Whether those inside this gate, or ahead in its queue, keep anybody waiting.
    pub(super) fn somebody_is_blocked(&self, now: u64, g: GateKey) -> bool {
        let mut occupancy = self.occupancy(now, g);
        let mut queue = self.gates[g].queue.iter();
        queue.any(|queued| !occupancy.admit(self.mode(queued), self.waits[queued.wait].needs_ms))
    }

    /// Whether a request could join those inside, ignoring the queue.
    pub(super) fn fits(&self, now: u64, g: GateKey, mode: &Mode, needs_ms: Option<u64>) -> bool {
        self.occupancy(now, g).admit(mode, needs_ms)
    }

    /// What entitles a waiter whose turn has come to enter this gate.
    pub(super) fn right_of(&self, g: GateKey) -> Turn {
        let gate = &self.gates[g];
        match gate.definition.rule {
            Rule::Rooms if gate.round.is_some() => Turn::Door,
            _ => Turn::Order,
        }
    }

    /// The waiters of a gate that enter now without changing one another's turn. As long as somebody could be overtaken, here
    /// or at another gate of a set, that is one at a time, because an entry may change the order; and the leader of a room
    /// comes before the others, who go through its door.
    pub(super) fn entering(&self, now: u64, g: GateKey) -> Vec<WaitKey> {
        let gate = &self.gates[g];
        let overtakes = !gate.queue.by_arrival() || gate.definition.rule == Rule::Rooms;
        let one_by_one = overtakes && self.right_of(g) == Turn::Order;
        let mut entering = Vec::new();
        let mut occupancy = self.occupancy(now, g);
        for queued in gate.queue.iter() {
            let wait = &self.waits[queued.wait];
            let mode = &wait.legs[queued.leg as usize].mode;
            if occupancy.admit(mode, wait.needs_ms) {
                let mut elsewhere = wait.legs.iter().filter(|leg| leg.gate != g);
                if elsewhere.all(|leg| {
                    self.granting(self.gates[leg.gate].shard)
                        && self.gates[leg.gate].lets_in()
                        && self.turn_at(now, leg.gate, queued.wait)
                }) {
                    entering.push(queued.wait);
                    if one_by_one || wait.set() || gate.keeper.is_some() {
                        break;
                    }
                }
            }
            if occupancy.closed() {
                break;
            }
        }
        entering
    }
}
