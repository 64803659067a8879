//! Wishes that stand: what users wait for and no answer brought. They are a line: whoever has slots to spare serves the
//! oldest one, and so do those with younger wishes, which keep their places for what they gave.

use super::{Letter, Sharer, SlotsMessage, SlotsPlan, Standing, Transaction};
use crate::NodeId;

impl Sharer {
    /// The oldest wish that stands is served by whoever has slots to spare, and by those with younger wishes:
    /// somebody waits for it, so they keep nothing back.
    pub(super) fn answer_standing(&mut self, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        let Some(first) = self.state.standing.first() else {
            return;
        };
        let (to, wanted) = (first.requester, first.wanted);
        let under_way = self.sent.iter().any(|sent| sent.to == to);
        let (free, wish) = (self.free.len(), self.wish());
        // Who cannot serve its own users yet does not sit on a part of what they wait for. And what they wish for comes
        // after what is wished for longer, even where it is there.
        let spare = match wish > 0 && self.wanted > free {
            true => free,
            false => free.saturating_sub(self.wanted.saturating_sub(wish)),
        };
        let count = spare.min(wanted);
        // Its own request is younger than this wish, and while it asks for more its older wish stands.
        let may_answer = self.may_answer(plan) || wish > 0;
        if to != self.id && !under_way && may_answer && count > 0 {
            self.donate(to, None, count, out);
        }
    }

    /// A wish of its own that stands though nobody waits any more would keep others from theirs.
    pub(super) fn withdraw_wish(&mut self, out: &mut Vec<Letter>) {
        if self.wish() == 0 {
            self.withdrawn = false;
        } else if self.free.len() >= self.wanted && !self.withdrawn {
            self.withdrawn = true;
            self.multicast(SlotsMessage::Withdraw, out);
        }
    }

    /// A user who waited was served here.
    pub fn served(&mut self) {
        self.had_turn = true;
    }

    /// Whoever has had its turn lets others go first: its users would else be served by one another for ever, while its wish
    /// stands before those of others. To be asked for when all were served who could be.
    pub fn pass_turn(&mut self, out: &mut Vec<Letter>) {
        if !self.is_initialised() || self.transaction != Transaction::None {
            return;
        }
        let standing = &self.state.standing;
        let mut requesters = standing.iter().map(|standing| standing.requester);
        let own = requesters.position(|requester| requester == self.id);
        // The rest of them, behind its own first one.
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
        // Unless it was served meanwhile.
        if wanted > 0 && standing.len() < before {
            let requester = from;
            standing.push(Standing { requester, wanted });
        }
    }

    /// What its requests left to be wished for.
    pub(super) fn wish(&self) -> u32 {
        let standing = self.state.standing.iter();
        let own = standing.filter(|standing| standing.requester == self.id);
        own.map(|standing| standing.wanted).sum()
    }
}
