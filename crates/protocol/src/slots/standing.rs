//! Standing wishes: slots that users wait for and no answer brought. They form a line. Members with slots to spare serve the
//! oldest wish, and so do members with younger wishes, which then also wish for what they gave.

use super::sharer::Sent;
use super::{Letter, Sharer, SlotsMessage, SlotsPlan, Standing, Transaction};
use crate::NodeId;

impl Sharer {
    /// Gives to the oldest standing wish, if it has slots to spare or only a younger wish. Somebody waits for the oldest one,
    /// so FREE_LOW keeps nothing back.
    pub(super) fn answer_standing(&mut self, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        let Some(first) = self.state.standing.first() else {
            return;
        };
        let (to, wanted) = (first.requester, first.wanted);
        let under_way = self.sent.iter().any(|sent| sent.to == to);
        let (free, wish) = (self.free.len(), self.wish());
        // A member that cannot serve its own users yet does not hold on to a part of what they wait for. And its younger wish
        // comes after the older one, even for slots that it has.
        let spare = match wish > 0 && self.wanted > free {
            true => free,
            false => free.saturating_sub(self.wanted.saturating_sub(wish)),
        };
        let count = spare.min(wanted);
        // Its own request is younger than this wish. If it already has a wish that stands, it may give while asking for more.
        let may_answer = self.may_answer(plan) || wish > 0;
        if to != self.id && !under_way && may_answer && count > 0 {
            self.donate(to, None, count, out);
        }
    }

    /// Withdraws a wish for which nobody waits any more: it would hold up the wishes of others.
    pub(super) fn withdraw_wish(&mut self, out: &mut Vec<Letter>) {
        if self.wish() == 0 {
            self.withdrawn = false;
        } else if self.free.len() >= self.wanted && !self.withdrawn {
            self.withdrawn = true;
            self.multicast(SlotsMessage::Withdraw, out);
        }
    }

    /// A waiting user was served here.
    pub fn served(&mut self) {
        self.had_turn = true;
    }

    /// A member that has had its turn lets others go first. Otherwise its users could serve each other for ever, while its wish
    /// stands before those of others. To be called once everybody who could be served has been.
    pub fn pass_turn(&mut self, out: &mut Vec<Letter>) {
        if !self.is_initialised() || self.transaction != Transaction::None {
            return;
        }
        let standing = &self.state.standing;
        let mut requesters = standing.iter().map(|standing| standing.requester);
        let own = requesters.position(|requester| requester == self.id);
        // The wishes after its own first one.
        let before_others = own.is_some() && requesters.any(|requester| requester != self.id);
        self.had_turn &= own.is_some() || self.wanted > 0;
        if self.had_turn && before_others && !self.passing {
            (self.had_turn, self.passing) = (false, true);
            let wanted = self.wanted.saturating_sub(self.free.len());
            self.multicast(SlotsMessage::Pass { wanted }, out);
        }
    }

    pub(super) fn hear_pass(&mut self, from: NodeId, wanted: u32) {
        if from == self.id {
            self.passing = false;
        }
        let standing = &mut self.state.standing;
        let before = standing.len();
        standing.retain(|standing| standing.requester != from);
        // Unless its wish was served meanwhile.
        if wanted > 0 && standing.len() < before {
            let requester = from;
            standing.push(Standing { requester, wanted });
        }
    }

    /// How many slots its wish grows by when donations of its own to older wishes are delivered. They are wished for already, so
    /// a request for them would leave a wish that nobody has.
    pub(super) fn owed(&self, plan: &SlotsPlan) -> u32 {
        if !plan.standing_requests || self.wish() == 0 {
            return 0;
        }
        let wishes =
            |sent: &&Sent| sent.number.is_none() && sent.label.is_none() && sent.to != self.id;
        let sent = self.sent.iter().filter(wishes);
        sent.map(|sent| sent.slots.len() as u32).sum()
    }

    /// How many slots its standing wishes are for.
    pub(super) fn wish(&self) -> u32 {
        let standing = self.state.standing.iter();
        let own = standing.filter(|standing| standing.requester == self.id);
        own.map(|standing| standing.wanted).sum()
    }
}
