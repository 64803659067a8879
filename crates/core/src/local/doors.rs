//! Gates whose ownership an algorithm moves. Their doors say whether this node may let anybody in; the code that runs the
//! algorithm looks at who is inside and who waits, and opens and shuts them.

use super::request::WantedGate;
use super::{Departure, Local};
use crate::event::{Event, Turn};
use crate::fence::Fence;
use crate::gate::{Door, GateKey, Keeper, Kind, QueuedLeg};
use crate::name::Name;
use crate::ownership::Shard;
use crate::wait::WaitKey;

/// Who is at a gate with a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Census {
    /// How many are inside.
    pub(crate) inside: u32,
    /// Whether the one inside is there exclusively.
    pub(crate) exclusive: bool,
    /// How many wait, by kind.
    pub(crate) waiting: [u32; 3],
    /// How many more may enter, where that is limited.
    pub(crate) left: Option<u32>,
}

impl Local {
    /// Whether a request for a gate could be granted at once.
    pub(super) fn granting_at(&self, gate: &WantedGate) -> bool {
        let lets_in = match gate {
            WantedGate::Found(g) => self.gates[*g].lets_in(),
            WantedGate::Implicit(..) => true,
        };
        lets_in && self.granting(self.shard_of(gate))
    }

    /// Whether a gate's door lets anybody in.
    pub(crate) fn lets_in(&self, gate: &str) -> bool {
        let gate = self.names.get(gate);
        gate.is_some_and(|g| self.gates[*g].lets_in())
    }

    /// Gives a gate a door and lets in every waiter whose turn has come; or removes the door before the books are closed.
    pub(crate) fn set_door(&mut self, gate: &str, door: Option<Door>, out: &mut Vec<Event>) {
        let Some(&g) = self.names.get(gate) else {
            return;
        };
        let present = self.gates[g].keeper.as_ref();
        let present = present.map(|keeper| (keeper.granted, keeper.waiting));
        let keeper = door.map(|door| {
            let (granted, waiting) = present.unwrap_or_else(|| (0, self.count_queue(g)));
            Box::new(Keeper {
                door,
                // A turn ends when the door is shut.
                granted: if door == Door::Shut { 0 } else { granted },
                waiting,
            })
        });
        self.gates[g].keeper = keeper;
        if door.is_some() && self.gates[g].lets_in() {
            self.advance(self.now, g, out);
        }
    }

    fn count_queue(&self, g: GateKey) -> [u32; 3] {
        let mut waiting = [0; 3];
        for queued in self.gates[g].queue.iter() {
            let leg = &self.waits[queued.wait].legs[queued.leg as usize];
            waiting[Kind::of(&leg.mode, leg.class) as usize] += 1;
        }
        waiting
    }

    /// Who is at a gate with a door.
    pub(crate) fn census(&self, gate: &str) -> Option<Census> {
        let gate = &self.gates[*self.names.get(gate)?];
        let keeper = gate.keeper.as_ref()?;
        Some(Census {
            inside: gate.inside.len(),
            exclusive: gate.exclusive,
            waiting: keeper.waiting,
            left: keeper.left(),
        })
    }

    /// Lets in the first waiter of a kind, whoever else waits, because the gate's algorithm says so. False if there was none.
    pub(crate) fn admit(&mut self, gate: &str, kind: Kind, out: &mut Vec<Event>) -> bool {
        let Some(&g) = self.names.get(gate) else {
            return false;
        };
        let now = self.now;
        let is_first = |queued: &&QueuedLeg| {
            let leg = &self.waits[queued.wait].legs[queued.leg as usize];
            Kind::of(&leg.mode, leg.class) == kind
        };
        let first = self.gates[g].queue.iter().find(is_first).copied();
        let Some(QueuedLeg { wait: w, leg, .. }) = first else {
            return false;
        };
        let mode = self.waits[w].legs[leg as usize].mode.clone();
        if !self.granting(self.gates[g].shard) || !self.fits(now, g, &mode, None) {
            return false;
        }
        let (wait, settled) = self.enter(now, w, Some(Turn::Algorithm), out);
        self.settle(wait, settled, out);
        true
    }

    /// Tells the holders of a gate, once each, that another node waits for it.
    pub(crate) fn tell_wanted(&mut self, gate: &str, out: &mut Vec<Event>) {
        let Some(&g) = self.names.get(gate) else {
            return;
        };
        let inside = self.gates[g].inside.inside(&self.holds);
        let untold = inside.filter(|(_, hold)| !hold.told).map(|(h, _)| h);
        let untold: Vec<_> = untold.collect();
        for h in untold {
            let hold = &mut self.holds[h];
            hold.told = true;
            out.push(Event::Wanted {
                session: self.sessions[hold.session].id,
                gate: self.gates[g].name.clone(),
                fence: hold.fence,
            });
        }
        self.gates[g].untold = 0;
    }

    /// The gates with doors at which something has happened since the last call.
    pub(crate) fn take_stirred(&mut self) -> Vec<Name> {
        let mut names = Vec::new();
        for g in std::mem::take(&mut self.stirred) {
            if let Some(gate) = self.gates.find(g)
                && !names.contains(&gate.name)
            {
                names.push(gate.name.clone());
            }
        }
        names
    }

    /// From now on departures are kept until they are taken.
    pub(crate) fn keep_departures(&mut self) {
        self.departures = Some(Vec::new());
    }

    /// The stays that have ended since the last call.
    pub(crate) fn take_departures(&mut self) -> Vec<Departure> {
        self.departures
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// The last fence of a shard.
    pub(crate) fn last_fence(&self, shard: Shard) -> Fence {
        self.fences.last(shard)
    }

    /// Whether there are fences left under a shard's number.
    pub(crate) fn has_fences(&self, shard: Shard) -> bool {
        self.fences.suffices(shard, self.limits.set_size)
    }

    /// Another node has granted fences up to this one.
    pub(crate) fn lift_fence(&mut self, shard: Shard, above: Fence, out: &mut Vec<Event>) {
        if self.fences.lift(shard, above.number(), above) {
            out.push(Event::FencesLow { shard });
        }
    }

    pub(super) fn stir(&mut self, g: GateKey) {
        if self.gates[g].keeper.is_some() {
            self.stirred.push(g);
        }
    }

    pub(super) fn count_at_door(&mut self, g: GateKey) {
        if let Some(keeper) = &mut self.gates[g].keeper {
            keeper.count();
            self.stirred.push(g);
        }
    }

    /// A wait begins, or ends.
    pub(super) fn count_wait(&mut self, w: WaitKey, begins: bool) {
        for leg in self.waits[w].legs.iter() {
            let Some(keeper) = &mut self.gates[leg.gate].keeper else {
                continue;
            };
            let waiting = &mut keeper.waiting[Kind::of(&leg.mode, leg.class) as usize];
            match begins {
                true => *waiting += 1,
                false => *waiting -= 1,
            }
            self.stirred.push(leg.gate);
        }
    }
}
