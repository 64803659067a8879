//! Our own way to donate: a request names the donors that it asks.
//!
//! Every letter says how many free slots its sender has, and a member that becomes rich, or stops being rich,
//! says so; thus members have an idea of who has slots to spare. A request names the richest, usually one, and only they
//! answer: two multicasts instead of one from every member. If they give nothing, or nobody is known to be rich,
//! the request is to everybody without another message: whoever has slots to spare gives some at once, the
//! others say nothing, and the wish stands until it is served. While wishes stand, slots are scarce, and
//! members ask only when they have few left.

use super::{Cycle, Letter, Sharer, SlotsMessage, SlotsPlan};
use crate::NodeId;
use crate::quorum::NodeSet;

/// Most donors that a request names.
const DONORS_MAX: usize = 2;
/// After this many uses of its own, a member trusts half of what it heard.
const HALVED_AFTER: u32 = 32;
/// How many slots at once serve a standing wish for at least as many.
const SERVING: u32 = 2;

/// How many free slots a member had when it was last heard of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Known {
    free: u32,
    /// When that was, by the clock of the member that knows it: how many uses began or ended there.
    at: u32,
}

impl Known {
    /// What it may have now: the older the news, the closer to the average.
    fn now(self, average: u32, now: u32) -> u32 {
        let age = now.wrapping_sub(self.at) / HALVED_AFTER;
        let (free, average) = (i64::from(self.free), i64::from(average));
        (average + ((free - average) >> age.min(31))).max(0) as u32
    }
}

impl Sharer {
    /// Advances its clock, if donors are named.
    pub(super) fn tick(&mut self) {
        if !self.known.is_empty() {
            self.uses = self.uses.wrapping_add(1);
        }
    }

    /// Remembers what a letter says about free slots.
    pub(super) fn learn(&mut self, from: NodeId, letter: &Letter) {
        let at = self.uses;
        let Some(known) = self.known.get_mut(from.index()) else {
            return;
        };
        *known = Known {
            free: letter.free,
            at,
        };
        match &letter.message {
            SlotsMessage::Donate { to, slots, .. } => {
                if let Some(known) = self.known.get_mut(to.index()) {
                    known.free += slots.len() as u32;
                }
            }
            SlotsMessage::Request {
                wanted,
                donors: Some(donors),
                ..
            } => {
                // They will give that much, and say so later.
                let part = wanted.div_ceil((donors.len() as u32).max(1));
                for donor in donors.iter() {
                    if let Some(known) = self.known.get_mut(donor) {
                        known.free = known.free.saturating_sub(part);
                    }
                }
            }
            _ => {}
        }
    }

    /// A member with this many slots to spare is rich.
    fn rich(&self) -> u32 {
        self.low() + self.low().div_ceil(2)
    }

    /// Tells the others when it has become rich, and when it no longer is though they think so.
    pub(super) fn tell(&mut self, out: &mut Vec<Letter>) {
        let (low, free) = (self.low(), self.free.len());
        let rich = low + self.rich();
        let calm = self.may_ask() && self.state.standing.is_empty();
        let Some(told) = self.known.get_mut(self.id.index()).filter(|_| calm) else {
            return;
        };
        let became = told.free < rich && free >= rich;
        let was = told.free >= 2 * low && free <= low + 1 && free < told.free;
        if became || was {
            told.free = free;
            self.multicast(SlotsMessage::Tell, out);
        }
    }

    /// Whether slots are scarce, and it has enough not to ask for now.
    pub(super) fn makes_do(&self, plan: &SlotsPlan) -> bool {
        let few = self.low().div_ceil(2);
        plan.directed && !self.state.standing.is_empty() && self.free.len() >= few.max(self.wanted)
    }

    /// Whether this member is known to have no free slot left.
    fn has_none(&self, member: NodeId) -> bool {
        self.known[member.index()].free == 0
    }

    /// Whether it has no free slot left and the others do not know: then it says so, though its wish stands.
    pub(super) fn is_worse_off(&self, plan: &SlotsPlan) -> bool {
        plan.directed && self.free.is_empty() && !self.has_none(self.id)
    }

    /// How many slots to ask for: enough to have as many free as members have on average, and at least one
    /// more than it wants to have.
    pub(super) fn directed_wish(&self) -> u32 {
        let enough = self.average_free().max(self.low() + 1);
        enough.saturating_sub(self.free.len())
    }

    /// How many free slots members have on average, as far as it knows.
    fn average_free(&self) -> u32 {
        let others = self.state.initialised.without(self.id.index());
        let known: u32 = others.iter().map(|member| self.known[member].free).sum();
        (known + self.free.len()) / self.state.initialised.len().max(1) as u32
    }

    /// Whom to ask: the richest that it knows, until they have enough together; nobody if none is known to
    /// be rich.
    pub(super) fn donors(&self, wanted: u32) -> NodeSet {
        let cycles = self.state.cycles.iter();
        let asking = cycles.fold(NodeSet::single(self.id.index()), |all, cycle| {
            all.with(cycle.requester.index())
        });
        let mut rest = self.state.initialised.minus(asking);
        let average = self.average_free();
        let spare = |member: usize| {
            let now = self.known[member].now(average, self.uses);
            now.saturating_sub(self.low())
        };
        let members = self.known.len();
        let after = |member: usize| (member + members - self.id.index()) % members;
        // Among the rich, each member asks the next one after itself, so that not all ask the same one.
        let rich = self.rich();
        let rank = |&member: &usize| (spare(member).min(rich), members - after(member));
        let (mut donors, mut found) = (NodeSet::EMPTY, 0);
        while found < wanted
            && donors.len() < DONORS_MAX
            && let Some(richest) = rest.iter().max_by_key(rank)
            && spare(richest) >= (self.low() + self.low() / 4).max(1)
        {
            found += spare(richest);
            donors = donors.with(richest);
            rest = rest.without(richest);
        }
        donors
    }

    /// What a named donor gives: what was asked for, but no more than half of what it has to spare.
    pub(super) fn directed_share(&self, cycle: &Cycle, plan: &SlotsPlan) -> u32 {
        let spare = self.free.len().saturating_sub(self.keeps(plan));
        spare.div_ceil(2).min(cycle.wanted)
    }

    /// Serves standing wishes. Every member with slots to spare gives its part to a new wish; later, members
    /// that have several serve different wishes.
    pub(super) fn serve_wishes(&mut self, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        let new = std::mem::take(&mut self.new_wishes);
        for requester in new.iter() {
            self.serve(NodeId(requester as u32), true, plan, out);
        }
        let standing = self.state.standing.iter();
        let others = || standing.clone().filter(|wish| wish.requester != self.id);
        let place = self.id.index() % others().count().max(1);
        if let Some(wish) = others().nth(place) {
            self.serve(wish.requester, false, plan, out);
        }
    }

    fn serve(&mut self, to: NodeId, new: bool, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        let mut standing = self.state.standing.iter();
        let Some(wanted) = standing
            .find(|wish| wish.requester == to)
            .map(|wish| wish.wanted)
        else {
            return;
        };
        let others = (self.state.initialised.len() as u32).max(2) - 1;
        let spare = self.free.len().saturating_sub(self.keeps(plan));
        let count = match new {
            true if plan.flaws.deaf => 0,
            true => spare.min(wanted.div_ceil(others)),
            false if spare >= SERVING || self.has_none(to) => spare.min(SERVING).min(wanted),
            // A member with free slots left waits for donors that have several to spare, or all that it wants.
            false if spare >= wanted => wanted,
            false => 0,
        };
        if to != self.id && !self.donates_to(to) && self.may_answer(plan) && count > 0 {
            self.donate(to, None, count, out);
        }
    }
}
