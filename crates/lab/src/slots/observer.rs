//! An observer that sees all members at once, which no member can.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use testigo_protocol::NodeId;
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{
    Asking, Delivery, Letter, Sharer, SlotsMessage, SlotsPlan, Transaction,
};

use super::SlotsWorld;

/// What must never be seen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SlotsViolation {
    /// π1: two members could use one slot at the same time.
    TwoUsers { slot: u32, members: [NodeId; 2] },
    /// Two components claimed the same slot in a merge.
    ClaimedTwice { slot: u32, at: NodeId },
    /// π2: members of one component record different states, at rest.
    Disagree { members: [NodeId; 2] },
    /// π2: all members are in and at rest, and a slot has no owner, or its owner does not have it.
    Lost { slot: u32 },
    /// π2: at rest, a member may use a slot that its own table gives to another, or may not use one that it gives to itself.
    NotAsWritten { member: NodeId, slot: u32 },
    /// π4: everything has been delivered, and this member's transaction or request is still open.
    Open { member: NodeId },
    /// π4: messages went on for ever though nobody took or gave anything.
    Endless,
    /// π5: a member had slots to spare when the request reached it, and the requester got none.
    Starved { requester: NodeId },
    /// At rest, somebody waits for slots that another member has to spare.
    Waits { member: NodeId, donor: NodeId },
    /// At rest, somebody waits for more slots than the group knows of.
    Forgotten { member: NodeId },
    /// π10: a donation left its donor with fewer free slots than it keeps for itself.
    TooGenerous { donor: NodeId },
}

impl fmt::Display for SlotsViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotsViolation::TwoUsers {
                slot,
                members: [a, b],
            } => {
                write!(f, "slot {slot} can be used at p{a} and at p{b}")
            }
            SlotsViolation::ClaimedTwice { slot, at } => {
                write!(
                    f,
                    "slot {slot} was claimed twice in the merge that p{at} saw"
                )
            }
            SlotsViolation::Disagree { members: [a, b] } => {
                write!(f, "p{a} and p{b} are at rest in one component and disagree")
            }
            SlotsViolation::Lost { slot } => write!(f, "slot {slot} is lost"),
            SlotsViolation::NotAsWritten { member, slot } => {
                write!(f, "p{member} and its own table disagree about slot {slot}")
            }
            SlotsViolation::Open { member } => {
                write!(f, "p{member} waits for ever: everything was delivered")
            }
            SlotsViolation::Endless => f.write_str("messages go on for ever"),
            SlotsViolation::Starved { requester } => {
                write!(
                    f,
                    "p{requester} got nothing though others had slots to spare"
                )
            }
            SlotsViolation::Waits { member, donor } => {
                write!(f, "p{member} waits for slots that p{donor} has to spare")
            }
            SlotsViolation::Forgotten { member } => {
                write!(f, "p{member} waits for slots that nobody knows it wants")
            }
            SlotsViolation::TooGenerous { donor } => {
                write!(f, "p{donor} donated slots that it keeps for itself")
            }
        }
    }
}

impl SlotsWorld {
    /// Checks all members at once: no slot can be used at two of them.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn check(&self, plan: &SlotsPlan) -> Result<(), SlotsViolation> {
        one_user(self, plan)
    }

    /// Checks all members when everything has been delivered.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn check_at_rest(&self, plan: &SlotsPlan) -> Result<(), SlotsViolation> {
        one_user(self, plan)?;
        at_rest(self, plan)
    }
}

/// Who could use each slot: never two members.
pub(super) fn one_user(world: &SlotsWorld, plan: &SlotsPlan) -> Result<(), SlotsViolation> {
    let mut users: Vec<Option<NodeId>> = vec![None; plan.slots as usize];
    for sharer in world.sharers() {
        if let Some(&slot) = sharer.alarms().first() {
            let at = sharer.id();
            return Err(SlotsViolation::ClaimedTwice { slot, at });
        }
        for slot in sharer.usable() {
            if let Some(other) = users[slot as usize].replace(sharer.id()) {
                let members = [other, sharer.id()];
                return Err(SlotsViolation::TwoUsers { slot, members });
            }
        }
    }
    Ok(())
}

/// What must hold once everything has been delivered.
pub(super) fn at_rest(world: &SlotsWorld, plan: &SlotsPlan) -> Result<(), SlotsViolation> {
    for &component in &world.components {
        let members: Vec<&Sharer> = world
            .sharers()
            .filter(|sharer| component.contains(sharer.id().index()))
            .collect();
        // Newcomers wait, rightly, if nobody knows the state.
        if let Some(first) = members.iter().find(|sharer| sharer.is_initialised()) {
            for sharer in &members {
                settled(sharer, first, plan)?;
            }
            nothing_lost(&members, first, plan)?;
            nobody_waits(&members, first, plan)?;
        }
    }
    Ok(())
}

/// Compares one member of a component with another that knows the state.
fn settled(sharer: &Sharer, first: &Sharer, plan: &SlotsPlan) -> Result<(), SlotsViolation> {
    let member = sharer.id();
    let open = !sharer.is_initialised()
        || sharer.transaction() != Transaction::None
        || sharer.asking() != Asking::Idle
        || !sharer.state().cycles.is_empty();
    if open {
        return Err(SlotsViolation::Open { member });
    }
    if first.state() != sharer.state() {
        let members = [first.id(), member];
        return Err(SlotsViolation::Disagree { members });
    }
    let usable: BTreeSet<u32> = sharer.usable().collect();
    let owns = |slot: u32| sharer.table().owner(slot) == Some(member);
    let differs = |slot: &u32| usable.contains(slot) != owns(*slot);
    match (0..plan.slots).find(differs) {
        Some(slot) => Err(SlotsViolation::NotAsWritten { member, slot }),
        None => Ok(()),
    }
}

/// If every member that may own a slot is in reach, every slot has an owner.
fn nothing_lost(
    members: &[&Sharer],
    first: &Sharer,
    plan: &SlotsPlan,
) -> Result<(), SlotsViolation> {
    let here: NodeSet = members.iter().map(|sharer| sharer.id().index()).collect();
    let owned = |slot: &u32| {
        let owner = first.table().owner(*slot);
        owner.is_some_and(|owner| here.contains(owner.index()))
    };
    let lost = (0..plan.slots).find(|slot| !owned(slot));
    match lost.filter(|_| first.state().provisioned.is_within(here)) {
        Some(slot) => Err(SlotsViolation::Lost { slot }),
        None => Ok(()),
    }
}

/// If requests stand, nobody keeps what an older wish asks for.
fn nobody_waits(
    members: &[&Sharer],
    first: &Sharer,
    plan: &SlotsPlan,
) -> Result<(), SlotsViolation> {
    if !plan.standing_requests || members.len() < 2 {
        return Ok(());
    }
    let standing = &first.state().standing;
    let place = |member: NodeId| standing.iter().position(|wish| wish.requester == member);
    let waits = |sharer: &Sharer| sharer.wanted() > sharer.free().len();
    for sharer in members.iter().filter(|sharer| waits(sharer)) {
        let member = sharer.id();
        let own = standing.iter().filter(|wish| wish.requester == member);
        let known: u32 = own.map(|wish| wish.wanted).sum();
        if sharer.free().len() + known < sharer.wanted() {
            return Err(SlotsViolation::Forgotten { member });
        }
        let keeps = |donor: &&&Sharer| {
            let (free, low) = (donor.free().len(), donor.free_low());
            match waits(donor) {
                true => free > low && place(donor.id()) > place(member),
                false => free > low.max(donor.wanted()),
            }
        };
        if let Some(donor) = members.iter().find(keeps) {
            let donor = donor.id();
            return Err(SlotsViolation::Waits { member, donor });
        }
    }
    Ok(())
}

/// Follows requests from delivery to end.
#[derive(Clone, Default, Debug)]
pub(super) struct Requests {
    /// By requester: its number, whether a member with slots to spare has heard it, and what it brought.
    open: BTreeMap<NodeId, Followed>,
    pub(super) donations: u64,
}

#[derive(Clone, Debug)]
struct Followed {
    number: u32,
    expects: bool,
    brought: usize,
    /// Whether the requester itself has heard it.
    open: bool,
}

impl Requests {
    /// Looks at what is about to be delivered to a member.
    pub(super) fn before(&mut self, world: &SlotsWorld, sharer: &Sharer, delivery: &Delivery) {
        let Delivery::Letter { from, letter } = delivery else {
            self.open.remove(&sharer.id());
            return;
        };
        if letter.view != sharer.group().view {
            return;
        }
        match &letter.message {
            // A requester that has seen another view is promised nothing.
            SlotsMessage::Request { number, donors, .. }
                if world
                    .sharer(*from)
                    .is_some_and(|requester| requester.group().view == letter.view) =>
            {
                let asked = donors.is_none_or(|donors| donors.contains(sharer.id().index()));
                self.heard(sharer, *from, *number, asked);
            }
            SlotsMessage::Donate {
                to, number, slots, ..
            } if *to == sharer.id() => {
                self.donations += 1;
                if let Some(followed) = self.open.get_mut(to)
                    && Some(followed.number) == *number
                {
                    followed.brought += slots.len();
                }
            }
            _ => {}
        }
    }

    fn heard(&mut self, sharer: &Sharer, from: NodeId, number: u32, asked: bool) {
        let spare = asked
            && sharer.id() != from
            && sharer.is_initialised()
            && sharer.asking() == Asking::Idle
            && sharer.transaction() == Transaction::None
            && sharer.free().len() > sharer.free_low().max(sharer.wanted());
        let followed = self.open.entry(from).or_insert(Followed {
            number,
            expects: false,
            brought: 0,
            open: false,
        });
        if followed.number != number {
            *followed = Followed {
                number,
                expects: false,
                brought: 0,
                open: false,
            };
        }
        followed.expects |= spare;
        followed.open |= sharer.id() == from;
    }

    /// Looks at a member after a delivery.
    pub(super) fn after(&mut self, sharer: &Sharer) -> Result<(), SlotsViolation> {
        let requester = sharer.id();
        let over = |followed: &Followed| followed.open && sharer.asking() != Asking::Open;
        if !self.open.get(&requester).is_some_and(over) {
            return Ok(());
        }
        match self.open.remove(&requester) {
            Some(followed) if followed.expects && followed.brought == 0 => {
                Err(SlotsViolation::Starved { requester })
            }
            _ => Ok(()),
        }
    }
}

/// π5 where donors are named: when a request ends with nothing, every member with slots to spare gives some at once, unless it
/// has a request of its own.
pub(super) fn gives_to_all(
    before: &Sharer,
    after: &Sharer,
    heard: Option<&Delivery>,
    sent: &[Letter],
) -> Result<(), SlotsViolation> {
    let Some(Delivery::Letter { from, letter }) = heard else {
        return Ok(());
    };
    let idle = after.asking() == Asking::Idle && after.transaction() == Transaction::None;
    let spare = after.free().len() > after.free_low().max(after.wanted());
    if letter.view != before.group().view || !after.is_initialised() || !idle || !spare {
        return Ok(());
    }
    let named = |requester| {
        let mut cycles = before.state().cycles.iter();
        let new = match letter.message {
            SlotsMessage::Request { ref donors, .. } => donors.is_some() && requester == *from,
            _ => false,
        };
        new || cycles.any(|cycle| cycle.requester == requester && cycle.named)
    };
    let ended = |requester| {
        let mut cycles = after.state().cycles.iter();
        cycles.all(|cycle| cycle.requester != requester)
    };
    let gives = |requester| {
        let to_it = |letter: &Letter| match &letter.message {
            SlotsMessage::Donate { to, slots, .. } => *to == requester && !slots.is_empty(),
            _ => false,
        };
        requester == after.id() || before.donates_to(requester) || sent.iter().any(to_it)
    };
    let standing = after.state().standing.iter();
    let mut requesters = standing.map(|wish| wish.requester);
    match requesters.find(|&of| named(of) && ended(of) && !gives(of)) {
        Some(requester) => Err(SlotsViolation::Starved { requester }),
        None => Ok(()),
    }
}

/// π10: nobody gives away what it keeps for itself, except to waiting users where requests stand.
pub(super) fn keeps_enough(
    sharer: &Sharer,
    sent: &[Letter],
    plan: &SlotsPlan,
) -> Result<(), SlotsViolation> {
    let (mut answers, mut free) = (0, sharer.free().len());
    for letter in sent {
        if let SlotsMessage::Donate { number, slots, .. } = &letter.message {
            match number {
                None if plan.standing_requests => free += slots.len() as u32,
                Some(_) | None => answers += slots.len(),
            }
        }
    }
    match answers > 0 && free < sharer.free_low() {
        true => Err(SlotsViolation::TooGenerous { donor: sharer.id() }),
        false => Ok(()),
    }
}
