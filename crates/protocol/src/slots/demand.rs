//! FREE_LOW by demand. Free slots must serve a member's own users while its request is under way. So it keeps as many as users
//! came for during the last request, and one more, because it asks when it is one short. It follows falling demand slowly.

use super::{Asking, Sharer, SlotsPlan};

impl Sharer {
    /// A user comes for a slot, whether it gets one or not.
    pub(super) fn count_demand(&mut self, plan: &SlotsPlan) {
        if plan.free_low_max.is_some() && self.asking != Asking::Idle {
            self.demand += 1;
        }
    }

    /// Its own request has been answered.
    pub(super) fn follow_demand(&mut self, plan: &SlotsPlan) {
        let came = std::mem::take(&mut self.demand);
        if let Some(most) = plan.free_low_max {
            let less = self.free_low.saturating_sub(1);
            self.free_low = less.max(came + 1).min(most);
        }
    }
}
