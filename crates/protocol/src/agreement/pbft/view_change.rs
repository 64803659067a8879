//! Changing the view: replicas that wait in vain stop and say what they have prepared; the next primary takes up what a
//! quorum of them says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::execution::StateDigest;
use super::{Config, Digest, Pbft, Signed, VIEW};
use crate::{NodeId, Output};

/// A replica's word that it gives up all views before this one, with all that it has prepared above its stable
/// checkpoint. Checkpoint and certificates are proved by the signatures of a quorum.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct ViewChange {
    pub(super) view: u32,
    pub(super) stable: u32,
    pub(super) stable_digest: StateDigest,
    /// By number: the view that prepared it last, and what.
    pub(super) prepared: BTreeMap<u32, (u32, Digest)>,
}

impl Pbft {
    /// The timer of the view fired: gives the view up if it has achieved nothing since the timer was set.
    pub(super) fn lose_patience(&mut self, config: &Config, out: &mut Output<Self>) {
        let before = self.timer.take();
        if self.waits(config) && before == Some(self.achieved()) {
            self.change_view(self.view + 1, config, out);
        }
    }

    pub(super) fn set_timer(&mut self, config: &Config, out: &mut Output<Self>) {
        if self.timer.is_none() && self.waits(config) {
            self.timer = Some(self.achieved());
            out.after(self.patience(self.given_up, config), VIEW);
        }
    }

    fn achieved(&self) -> (u32, bool, usize) {
        (self.view, self.active, self.executed.len())
    }

    /// A backup waits for requests to be executed; whoever gave up a view waits for the next, once a quorum does.
    fn waits(&self, config: &Config) -> bool {
        match self.active {
            true => !self.requests.is_empty() && config.primary(self.view) != self.id,
            false => self.changes_to(self.view).count() >= config.quorum,
        }
    }

    fn changes_to(&self, view: u32) -> impl Iterator<Item = (&NodeId, &ViewChange)> {
        self.changes
            .iter()
            .filter(move |(_, change)| change.view == view)
    }

    fn change_view(&mut self, view: u32, config: &Config, out: &mut Output<Self>) {
        self.view = view;
        self.active = false;
        self.given_up += 1;
        self.slots.retain(|(of, _), _| *of >= view);
        let change = ViewChange {
            view,
            stable: self.low,
            stable_digest: self.low_digest,
            prepared: self.prepared.clone(),
        };
        out.send_all(config.all(), &Signed::ViewChange(change));
    }

    pub(super) fn hear_change(
        &mut self,
        from: NodeId,
        change: &ViewChange,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let newer = |known: &ViewChange| known.view < change.view;
        if change.view < self.view || !self.changes.get(&from).is_none_or(newer) {
            return;
        }
        self.changes.insert(from, change.clone());
        // f+1 have given up this view, so one that does not lie has: no need to wait for the timer.
        let ahead = self.changes.values().map(|change| change.view);
        let ahead: Vec<u32> = ahead.filter(|view| *view > self.view).collect();
        if ahead.len() > config.f
            && let Some(&view) = ahead.iter().min()
        {
            self.change_view(view, config, out);
        }
        let (view, is_primary) = (self.view, config.primary(self.view) == self.id);
        if !self.active && is_primary && self.changes_to(view).count() >= config.quorum {
            let changes = self.changes_to(view);
            let changes = changes.map(|(from, change)| (*from, change.clone()));
            let changes = changes.collect();
            out.send_all(config.all(), &Signed::NewView { view, changes });
        }
    }

    pub(super) fn hear_new_view(
        &mut self,
        view: u32,
        changes: &BTreeMap<NodeId, ViewChange>,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let valid = changes.len() >= config.quorum
            && changes
                .iter()
                .all(|(from, change)| config.is_replica(*from) && change.view == view);
        if !valid || view < self.view || view == self.view && self.active {
            return;
        }
        self.view = view;
        self.active = true;
        self.slots.retain(|(of, _), _| *of >= view);
        self.changes.retain(|_, change| change.view > view);
        let Some(stable) = changes.values().max_by_key(|change| change.stable) else {
            return;
        };
        self.stabilise(stable.stable, stable.stable_digest, config, out);
        let proposals = proposals(stable.stable, changes);
        let last = proposals.keys().max().copied().unwrap_or(stable.stable);
        self.seq = last.max(self.low);
        for (n, digest) in proposals {
            if let Some(slot) = self.slot(view, n) {
                slot.pre_prepare = Some(digest);
            }
        }
        // What came early is accepted now, but for what the new view has settled.
        let numbers: Vec<u32> = self
            .slots
            .keys()
            .filter(|(of, _)| *of == view)
            .map(|(_, n)| *n)
            .collect();
        for n in numbers {
            self.accept(n, view, config, out);
        }
        self.propose(config, out);
    }
}

/// What the new view must propose again: for every number from the newest stable checkpoint to the last that anybody
/// has prepared, what the latest view prepared, or nothing.
fn proposals(stable: u32, changes: &BTreeMap<NodeId, ViewChange>) -> BTreeMap<u32, Digest> {
    let certificates = || changes.values().flat_map(|change| &change.prepared);
    let last = certificates().map(|(n, _)| *n).max().unwrap_or(stable);
    let proposal = |n: u32| {
        let of_n = certificates().filter(|(number, _)| **number == n);
        let latest = of_n.map(|(_, certificate)| *certificate).max();
        (n, latest.and_then(|(_, digest)| digest))
    };
    (stable + 1..=last).map(proposal).collect()
}
