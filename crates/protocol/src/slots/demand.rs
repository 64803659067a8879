//! FREE_LOW by demand. A member keeps free slots for its own users while a request of its own is under way, so it keeps as many as
//! users came for the last time, and one more, because it asks when it is one short. Demand that falls is believed slowly.

use super::{Asking, Sharer, SlotsPlan};

impl Sharer {
    /// A user comes for a slot, and may or may not get one.
    pub(super) fn count_demand(&mut self, plan: &SlotsPlan) {
        if plan.free_low_max.is_some() && self.asking != Asking::Idle {
            self.demand += 1;
        }
    }

    /// A request of its own has been answered.
    pub(super) fn follow_demand(&mut self, plan: &SlotsPlan) {
        let came = std::mem::take(&mut self.demand);
        if let Some(most) = plan.free_low_max {
            let less = self.free_low.saturating_sub(1);
            self.free_low = less.max(came + 1).min(most);
        }
    }
}
