//! A random run: takes, gives and deliveries in any order, with every kind of fault between them.

use std::collections::BTreeSet;

use testigo_protocol::NodeId;
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{
    Asking, Average, Delivery, Letter, Sharer, SlotsMessage, SlotsPlan, Transaction,
};
use testigo_sim::Generator;

use super::observer::{self, Requests};
use super::{SlotsFault, SlotsStep, SlotsViolation, SlotsWorld};

/// The settings of a random run.
#[derive(Clone, Debug)]
pub struct SlotsSchedule {
    pub plan: SlotsPlan,
    pub seed: u64,
    /// How many steps there are before the last fault.
    pub steps: u32,
    /// One step in this many is a fault.
    pub fault_every: u64,
    /// One step in this many waits until everything is delivered, whoever is out of reach.
    pub pause_every: u64,
    /// Whether users say how many slots they wait for.
    pub wishes: bool,
    /// Whether operators give up stopped machines for good.
    pub retires: bool,
}

/// What a random run did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scheduled {
    pub faults: u64,
    pub takes: u64,
    pub refused: u64,
    pub donations: u64,
    pub multicasts: u64,
    /// Views that came while a newcomer waited for its status.
    pub joins_interrupted: u64,
    /// Views that came while components that had met told each other what they own.
    pub merges_interrupted: u64,
    /// Views that came while a request was open.
    pub cycles_interrupted: u64,
    /// Donations that donors took back because a view came first.
    pub donations_undone: u64,
    /// How many times everything had been delivered and all members were checked.
    pub rests: u64,
    /// How many users were waiting then for want of slots.
    pub waiting: u64,
}

impl SlotsSchedule {
    /// A schedule drawn from a seed: its pool, its options and its faults.
    pub fn drawn(seed: u64, members: usize) -> SlotsSchedule {
        let mut chance = Generator::for_purpose(seed, 17);
        let slots = chance.between(8, 32) as u32;
        let mut plan = SlotsPlan::strict(members, slots, chance.between(1, 3) as u32);
        plan.min_join = chance.below(5) as u32;
        plan.implicit_request = chance.below(4) > 0;
        plan.crossed_requests = chance.below(4) > 0;
        plan.held_nulls = chance.below(4) > 0;
        plan.standing_requests = chance.below(3) == 0;
        plan.directed = !plan.standing_requests && Generator::for_purpose(seed, 19).below(3) == 0;
        if chance.below(4) == 0 {
            plan.average = Average::Component;
        }
        let mut lows = Generator::for_purpose(seed, 21);
        match lows.below(6) {
            0 => plan.own_free_low = (0..members).map(|_| lows.between(1, 4) as u32).collect(),
            1 => plan.free_low_max = Some(lows.between(1, 6) as u32),
            _ => {}
        }
        SlotsSchedule {
            wishes: plan.standing_requests,
            plan,
            seed,
            steps: chance.between(100, 600) as u32,
            fault_every: chance.between(8, 60),
            pause_every: chance.between(50, 400),
            retires: chance.below(4) == 0,
        }
    }
}

impl Scheduled {
    /// Two runs added up.
    #[must_use]
    pub fn and(self, other: &Scheduled) -> Scheduled {
        Scheduled {
            faults: self.faults + other.faults,
            takes: self.takes + other.takes,
            refused: self.refused + other.refused,
            donations: self.donations + other.donations,
            multicasts: self.multicasts + other.multicasts,
            joins_interrupted: self.joins_interrupted + other.joins_interrupted,
            merges_interrupted: self.merges_interrupted + other.merges_interrupted,
            cycles_interrupted: self.cycles_interrupted + other.cycles_interrupted,
            donations_undone: self.donations_undone + other.donations_undone,
            rests: self.rests + other.rests,
            waiting: self.waiting + other.waiting,
        }
    }
}

/// Runs it, and checks all members after every step, whenever everything has been delivered, and at the end, when
/// everybody is back.
///
/// # Errors
///
/// The first violation that the observer sees.
pub fn run_schedule(schedule: &SlotsSchedule) -> Result<Scheduled, SlotsViolation> {
    run_schedule_aloud(schedule, |_| {})
}

/// Like [`run_schedule`], but reports each step before it happens.
///
/// # Errors
///
/// The first violation that the observer sees.
pub fn run_schedule_aloud(
    schedule: &SlotsSchedule,
    say: impl FnMut(&dyn Fn() -> String),
) -> Result<Scheduled, SlotsViolation> {
    let mut run = Run {
        schedule,
        plan: &schedule.plan,
        world: SlotsWorld::started(&schedule.plan),
        chance: Generator::new(schedule.seed),
        requests: Requests::default(),
        retired: NodeSet::EMPTY,
        views: [const { BTreeSet::new() }; 3],
        done: Scheduled::default(),
        say,
    };
    for _ in 0..schedule.steps {
        run.step()?;
    }
    run.finish()?;
    let [joins, merges, cycles] = &run.views;
    run.done.joins_interrupted = joins.len() as u64;
    run.done.merges_interrupted = merges.len() as u64;
    run.done.cycles_interrupted = cycles.len() as u64;
    run.done.donations = run.requests.donations;
    run.done.multicasts = run.world.multicasts;
    Ok(run.done)
}

struct Run<'a, S> {
    schedule: &'a SlotsSchedule,
    plan: &'a SlotsPlan,
    world: SlotsWorld,
    chance: Generator,
    requests: Requests,
    /// Machines that never come back.
    retired: NodeSet,
    /// The views that interrupted joins, merges and cycles.
    views: [BTreeSet<u64>; 3],
    done: Scheduled,
    say: S,
}

impl<S: FnMut(&dyn Fn() -> String)> Run<'_, S> {
    fn happens(&mut self, step: &SlotsStep) -> Vec<Letter> {
        (self.say)(&|| self.world.describe(step));
        self.world.step(step, self.plan)
    }

    fn step(&mut self) -> Result<(), SlotsViolation> {
        let member = self.member();
        if self.chance.below(self.schedule.fault_every) == 0 {
            let fault = self.fault(member);
            if self.may(&fault) {
                self.happens(&SlotsStep::Strike(fault));
                self.done.faults += 1;
            }
        } else if self.chance.below(self.schedule.pause_every) == 0 {
            self.rest()?;
        } else if self.chance.below(3) > 0 {
            self.deliver(member)?;
        } else if self.schedule.retires && self.chance.below(40) == 0 {
            self.retire(member);
        } else {
            self.use_slots(member);
        }
        observer::one_user(&self.world, self.plan)
    }

    fn member(&mut self) -> NodeId {
        NodeId(self.chance.below(self.plan.members as u64) as u32)
    }

    fn may(&self, fault: &SlotsFault) -> bool {
        let gone = matches!(fault, SlotsFault::Join { member, .. } if self.retired.contains(member.index()));
        self.world.may(fault) && !gone
    }

    /// An operator tells a member that a stopped machine is gone for good, and so it is.
    fn retire(&mut self, by: NodeId) {
        let member = self.member();
        let spoken_to = self.world.sharer(by).is_some_and(Sharer::is_initialised);
        if spoken_to && self.world.sharer(member).is_none() {
            self.retired = self.retired.with(member.index());
            self.happens(&SlotsStep::Retire { by, member });
        }
    }

    fn use_slots(&mut self, member: NodeId) {
        let Some(sharer) = self.world.sharer(member) else {
            return;
        };
        let (wanted, free) = (sharer.wanted(), sharer.free().len());
        if self.schedule.wishes && self.chance.below(6) == 0 {
            let wanted = self.chance.below(u64::from(self.plan.slots / 2)) as u32;
            let wanted = if self.chance.below(4) == 0 { 0 } else { wanted };
            self.happens(&SlotsStep::Want { member, wanted });
            return;
        }
        if wanted > 0 && wanted <= free {
            for _ in 0..wanted {
                self.take(member);
            }
            let wanted = 0;
            self.happens(&SlotsStep::Want { member, wanted });
            return;
        }
        let used = u64::from(sharer.used().len());
        // Demand moves from member to member, so slots do, too.
        let eager = u64::from(member.0) % 3 == self.done.takes / 40 % 3;
        if self.chance.chance(if eager { 0.75 } else { 0.3 }) {
            self.take(member);
        } else if used > 0 {
            let nth = self.chance.below(used) as usize;
            let slot = sharer.used().iter().nth(nth).expect("one is used");
            self.happens(&SlotsStep::Give { member, slot });
        }
    }

    fn take(&mut self, member: NodeId) {
        let free = self.world.sharer(member).map_or(0, |by| by.free().len());
        match free {
            0 => self.done.refused += 1,
            _ => self.done.takes += 1,
        }
        self.happens(&SlotsStep::Take { member });
    }

    fn deliver(&mut self, member: NodeId) -> Result<(), SlotsViolation> {
        let (Some(sharer), Some(next)) = (self.world.sharer(member), self.world.next(member))
        else {
            return Ok(());
        };
        let next = next.clone();
        if let Delivery::View { group, .. } = &next {
            let interrupted = [
                sharer.transaction() == Transaction::Join,
                sharer.transaction() == Transaction::Merge,
                !sharer.state().cycles.is_empty() || sharer.asking() != Asking::Idle,
            ];
            for (views, interrupted) in self.views.iter_mut().zip(interrupted) {
                if interrupted {
                    views.insert(group.view);
                }
            }
        }
        if let Delivery::Letter { from, letter } = &next
            && let SlotsMessage::Donate { slots, .. } = &letter.message
            && *from == member
            && letter.view != sharer.group().view
            && !slots.is_empty()
        {
            self.done.donations_undone += 1;
        }
        self.requests.before(&self.world, sharer, &next);
        let before = sharer.clone();
        let sent = self.happens(&SlotsStep::Deliver { member });
        let sharer = self.world.sharer(member).expect("it runs");
        observer::keeps_enough(sharer, &sent, self.plan)?;
        observer::gives_to_all(&before, sharer, Some(&next), &sent)?;
        self.requests.after(sharer)
    }

    fn fault(&mut self, member: NodeId) -> SlotsFault {
        let other = self.member();
        match self.chance.below(9) {
            0 => SlotsFault::Depart { member },
            1 => SlotsFault::Crash {
                member,
                lost: self.chance.below(4) as u32,
            },
            2 | 3 => {
                let component = self.world.component_of(member);
                let away: NodeSet = component
                    .iter()
                    .filter(|_| self.chance.below(2) == 0)
                    .collect();
                let lost = [self.chance.below(5) as u32, self.chance.below(5) as u32];
                SlotsFault::Part { away, lost }
            }
            4 | 5 => SlotsFault::Merge { one: member, other },
            _ => SlotsFault::Join {
                member,
                founder: false,
            },
        }
    }

    /// Everybody comes back and everything is delivered; then all slots are given back.
    fn finish(&mut self) -> Result<(), SlotsViolation> {
        let first = NodeId(0);
        for member in NodeId::all(self.plan.members) {
            let (one, founder) = (first, false);
            for fault in [
                SlotsFault::Merge { one, other: member },
                SlotsFault::Join { member, founder },
            ] {
                if self.may(&fault) {
                    self.happens(&SlotsStep::Strike(fault));
                }
            }
        }
        self.rest()?;
        // A merge may have forgotten what an operator told one component.
        let by = self.world.sharers().find(|sharer| sharer.is_initialised());
        if let Some(by) = by.map(|by| by.id()) {
            for gone in self.retired.iter() {
                let member = NodeId(gone as u32);
                self.happens(&SlotsStep::Retire { by, member });
            }
        }
        self.rest()?;
        for member in NodeId::all(self.plan.members) {
            while let Some(sharer) = self.world.sharer(member)
                && let Some(slot) = sharer.used().first()
            {
                self.happens(&SlotsStep::Give { member, slot });
            }
        }
        self.rest()
    }

    /// Delivers everything to whoever is in reach.
    fn rest(&mut self) -> Result<(), SlotsViolation> {
        for _ in 0..100_000 {
            if self.world.is_quiet() {
                self.done.rests += 1;
                let waits = |sharer: &&Sharer| sharer.wanted() > sharer.free().len();
                self.done.waiting += self.world.sharers().filter(waits).count() as u64;
                return observer::at_rest(&self.world, self.plan);
            }
            for member in NodeId::all(self.plan.members) {
                self.deliver(member)?;
                observer::one_user(&self.world, self.plan)?;
            }
        }
        Err(SlotsViolation::Endless)
    }
}
