//! A small group in which a test says who does what. Whatever happens, no two members may use a slot.

use std::collections::HashSet;

use testigo_lab::slots::{SlotsFault, SlotsStep, SlotsViolation, SlotsWorld};
use testigo_protocol::NodeId;
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{Letter, Sharer, SlotsMessage, SlotsPlan};

pub(crate) fn p(member: u32) -> NodeId {
    NodeId(member)
}

#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) plan: SlotsPlan,
    pub(crate) world: SlotsWorld,
    /// The first violation that was seen.
    pub(crate) wrong: Option<SlotsViolation>,
}

#[allow(dead_code, reason = "not every test file uses every method")]
impl Group {
    /// Nobody runs.
    pub(crate) fn empty(plan: SlotsPlan) -> Group {
        Group {
            world: SlotsWorld::new(&plan),
            plan,
            wrong: None,
        }
    }

    /// Everybody has joined, member 0 first, and was given its first slots.
    pub(crate) fn started(plan: SlotsPlan) -> Group {
        let mut group = Group::empty(plan);
        group.found(0);
        for member in 1..group.plan.members as u32 {
            group.join(member);
            group.calm();
        }
        group
    }

    pub(crate) fn sharer(&self, member: u32) -> &Sharer {
        self.world.sharer(p(member)).expect("it runs")
    }

    fn step(&mut self, step: &SlotsStep) -> Vec<Letter> {
        let sent = self.world.step(step, &self.plan);
        let found = self.world.check(&self.plan).err();
        self.wrong = self.wrong.take().or(found);
        sent
    }

    pub(crate) fn strike(&mut self, fault: SlotsFault) {
        assert!(self.world.may(&fault), "{fault:?}");
        self.step(&SlotsStep::Strike(fault));
    }

    pub(crate) fn found(&mut self, member: u32) {
        let (member, founder) = (p(member), true);
        self.strike(SlotsFault::Join { member, founder });
        self.calm();
    }

    pub(crate) fn join(&mut self, member: u32) {
        let (member, founder) = (p(member), false);
        self.strike(SlotsFault::Join { member, founder });
    }

    pub(crate) fn depart(&mut self, member: u32) {
        self.strike(SlotsFault::Depart { member: p(member) });
    }

    pub(crate) fn crash(&mut self, member: u32, lost: u32) {
        let member = p(member);
        self.strike(SlotsFault::Crash { member, lost });
    }

    /// These lose the others; `lost` is what each side misses, these first.
    pub(crate) fn part(&mut self, away: &[usize], lost: [u32; 2]) {
        let away: NodeSet = away.iter().copied().collect();
        self.strike(SlotsFault::Part { away, lost });
    }

    pub(crate) fn merge(&mut self, one: u32, other: u32) {
        let (one, other) = (p(one), p(other));
        self.strike(SlotsFault::Merge { one, other });
    }

    pub(crate) fn want(&mut self, member: u32, wanted: u32) {
        let member = p(member);
        self.step(&SlotsStep::Want { member, wanted });
    }

    pub(crate) fn retire(&mut self, by: u32, member: u32) {
        let (by, member) = (p(by), p(member));
        self.step(&SlotsStep::Retire { by, member });
    }

    /// Takes a slot; which one.
    pub(crate) fn take(&mut self, member: u32) -> Option<u32> {
        let slot = self.sharer(member).free().first();
        self.step(&SlotsStep::Take { member: p(member) });
        slot
    }

    pub(crate) fn take_all(&mut self, member: u32) {
        while self.take(member).is_some() {}
    }

    pub(crate) fn give(&mut self, member: u32, slot: u32) {
        let member = p(member);
        self.step(&SlotsStep::Give { member, slot });
    }

    pub(crate) fn give_all(&mut self, member: u32) {
        while let Some(slot) = self.sharer(member).used().first() {
            self.give(member, slot);
        }
    }

    /// A member takes in one thing; what it multicasts then.
    pub(crate) fn hear(&mut self, member: u32) -> Vec<Letter> {
        let sent = self.step(&SlotsStep::Deliver { member: p(member) });
        let sharer = self.sharer(member);
        assert!(
            gifts(&sent).is_empty() || sharer.free().len() >= sharer.free_low(),
            "{member} keeps FREE_LOW"
        );
        sent
    }

    /// Everybody takes in everything, in turns; whether that ended.
    pub(crate) fn calm(&mut self) -> bool {
        for _ in 0..3_000 {
            for member in self.members() {
                self.hear(member);
            }
            if self.world.is_quiet() {
                return true;
            }
        }
        false
    }

    pub(crate) fn members(&self) -> Vec<u32> {
        self.world.sharers().map(|sharer| sharer.id().0).collect()
    }

    /// Waits until all is calm; what the observer has found by then.
    pub(crate) fn verdict(&mut self) -> Result<(), SlotsViolation> {
        let ended = self.calm();
        match self.wrong.take() {
            Some(wrong) => Err(wrong),
            None if !ended => Err(SlotsViolation::Endless),
            None => self.world.check_at_rest(&self.plan),
        }
    }

    /// How many slots every member owns, as `member` has it written down.
    pub(crate) fn owned(&self, member: u32) -> Vec<u32> {
        let table = self.sharer(member).table();
        NodeId::all(self.plan.members)
            .map(|owner| table.of(owner).count() as u32)
            .collect()
    }

    pub(crate) fn frozen(&self, member: u32) -> usize {
        let lines = self.sharer(member).table().lines();
        lines.filter(|(_, owned)| owned.owner.is_none()).count()
    }

    pub(crate) fn free(&self, member: u32) -> u32 {
        self.sharer(member).free().len()
    }
}

/// The slots that letters give away.
pub(crate) fn gifts(letters: &[Letter]) -> Vec<u32> {
    let slots = |letter: &Letter| match &letter.message {
        SlotsMessage::Donate { slots, .. } => slots.to_vec(),
        _ => Vec::new(),
    };
    letters.iter().flat_map(slots).collect()
}

/// Lets everybody take in everything in every order; calls `end` with each end and the answers on the way to
/// it, as donor and number of slots. How many situations there were.
#[allow(dead_code, reason = "not every test file uses it")]
pub(crate) fn every_order(start: &Group, mut end: impl FnMut(&Group, &[(u32, usize)])) -> usize {
    let mut seen = HashSet::new();
    let mut open = vec![(start.world.clone(), Vec::new())];
    while let Some((world, answers)) = open.pop() {
        if !seen.insert((world.clone(), answers.clone())) {
            continue;
        }
        if world.is_quiet() {
            let group = Group {
                world,
                ..start.clone()
            };
            end(&group, &answers);
            continue;
        }
        for member in start.members() {
            if world.next(p(member)).is_none() {
                continue;
            }
            let mut group = Group {
                world: world.clone(),
                ..start.clone()
            };
            let mut answers = answers.clone();
            for letter in group.hear(member) {
                if let SlotsMessage::Donate { slots, .. } = &letter.message {
                    answers.push((member, slots.len()));
                }
            }
            assert_eq!(group.wrong, None);
            open.push((group.world, answers));
        }
    }
    seen.len()
}
