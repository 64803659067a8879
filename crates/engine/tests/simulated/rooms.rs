//! Disks that run out of room while nothing else goes wrong.

use super::{Event, Machine, Time, Violation, World};
use testigo_engine::Specimen;

/// A leader that is short, and has heard who has room, leads no longer than this, in milliseconds.
const HANDED_OVER_WITHIN: u64 = 1_500;

/// Nobody waits longer than this for an answer when no disk has room.
const ANSWERED_WITHIN: u64 = 4_000;

/// Everything else may take so long.
const DONE_WITHIN: u64 = 10_000;

impl World {
    /// Three machines lead and submit in peace.
    fn at_peace(seed: u64, specimen: Option<Specimen>) -> Result<World, Violation> {
        let mut world = World::new(seed, 3, specimen);
        world.links.faults.clear();
        world.links.loss = Default::default();
        (world.damage, world.room) = (0.0, None);
        for nth in 0..3 {
            world.boot(nth)?;
        }
        world.plan(1, Event::Submit);
        world.plan(1, Event::Operate);
        let is_whole = |world: &World| {
            let mut leading = world.machines.iter().filter_map(Machine::leading);
            leading.any(|running| running.standing.members.voters.len() == 3)
        };
        world.until(DONE_WITHIN, "there is a group", is_whole)?;
        Ok(world)
    }

    fn until(
        &mut self,
        milliseconds: u64,
        what: &str,
        is_so: impl Fn(&World) -> bool,
    ) -> Result<(), Violation> {
        let limit = self.agenda.now() + Time::units(milliseconds);
        while !is_so(self) {
            match self.agenda.pop() {
                Some((now, event)) if now <= limit => self.happens(event)?,
                _ => return Err(format!("{milliseconds} ms are over before {what}")),
            }
        }
        Ok(())
    }

    /// The machine that was last elected.
    fn leader(&self) -> Option<u64> {
        let leading = self.machines.iter().filter(|it| it.leading().is_some());
        let term = |it: &&Machine| it.leading().map(|running| running.standing.term);
        leading.max_by_key(term).map(Machine::node)
    }

    /// The leader's disk has this much room left. Another must lead, everybody's submissions must go on, and when there is
    /// room again all must be well.
    pub(crate) fn leader_runs_short(
        seed: u64,
        bytes: u64,
        specimen: Option<Specimen>,
    ) -> Result<(), Violation> {
        let mut world = World::at_peace(seed, specimen)?;
        let short = world.leader().ok_or("nobody leads")?;
        world.machine(short).disk.set_room(Some(bytes));
        let another = |world: &World| world.leader().is_some_and(|leader| leader != short);
        world.until(HANDED_OVER_WITHIN, "another leads", another)?;
        let before = world.monitor.len();
        let goes_on = |world: &World| world.monitor.len() > before + 50;
        world.until(DONE_WITHIN, "submissions go on", goes_on)?;
        world.machine(short).disk.set_room(None);
        world.heal()?;
        let is_well = |world: &World| world.lacking().is_none();
        world.until(DONE_WITHIN, "all is well", is_well)
    }

    /// No disk has room for anything. Nobody may wait, and when there is room again all must be well.
    pub(crate) fn all_run_out(seed: u64, specimen: Option<Specimen>) -> Result<(), Violation> {
        let mut world = World::at_peace(seed, specimen)?;
        for machine in &world.machines {
            machine.disk.set_room(Some(1 << 20));
        }
        let refused = world.monitor.without_room;
        let refuses = |world: &World| world.monitor.without_room > refused + 20;
        world.until(DONE_WITHIN, "submissions are refused", refuses)?;
        let (before, refused) = (world.monitor.len(), world.monitor.without_room);
        let all_wait = world.monitor.waiting();
        let answered = |world: &World| world.monitor.waiting().is_disjoint(&all_wait);
        world.until(ANSWERED_WITHIN, "everybody is answered", answered)?;
        if world.monitor.len() != before || world.monitor.without_room == refused {
            return Err("something was written without room".into());
        }
        world.heal()?;
        let is_well = |world: &World| world.lacking().is_none();
        world.until(DONE_WITHIN, "all is well", is_well)
    }
}
