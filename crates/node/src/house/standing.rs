//! The node's standing in its cluster.

use testigo_core::{Change, Ownership, Shard};

use super::{Entry, House};
use crate::cluster::{Moves, Standing, Wait};

impl House {
    /// What the node knows of its group beyond what the log says.
    pub(crate) fn standing(&self) -> Standing {
        let alone = Standing {
            node: self.own.0,
            start: self.start(),
            applied: self.snapshots.applied,
            ..Standing::default()
        };
        let (Some(member), Some(estate)) = (self.member(), self.services.estate()) else {
            return alone;
        };
        let standing = member.standing();
        Standing {
            member: true,
            leader: standing.leader,
            last_leader: member.last_leader(),
            term: standing.term,
            voters: standing.members.voters.clone(),
            learners: standing.members.learners.clone(),
            lease_left_ms: Some(estate.lease_until().saturating_sub(self.now)),
            lease_ms: Some(member.lease_ms()),
            applied: member.delivered(),
            links: member.links(),
            ..alone
        }
    }

    /// Whether a name's shard grants, as far as this node knows. Only its owner is sure.
    pub(crate) fn is_open(&self, name: &str) -> bool {
        match self.services.estate() {
            None => !self.local().recovering_everywhere(),
            Some(estate) => estate.is_open(Shard::of(name)),
        }
    }

    /// The titles before a change, if the change may affect them.
    pub(super) fn owners_before(&self, change: &Change) -> Option<Ownership> {
        let moves = matches!(
            change,
            Change::View { .. } | Change::ViewInTerm { .. } | Change::Titles { .. }
        );
        moves.then(|| self.replicated().ownership().clone())
    }

    /// Remembers which shards have changed hands.
    pub(super) fn note_moves(&mut self, entry: &Entry, before: Option<Ownership>) {
        if let Some(before) = before {
            let now = self.services.replicated().ownership();
            self.moves.note(entry.at, &entry.change, &before, now);
            if let (Some(member), Some(estate)) = (&mut self.member, self.services.estate()) {
                let replicated = self.services.replicated();
                member.times.follow(self.now, replicated, estate);
            }
        }
    }

    /// How ownership has moved since this node started.
    pub(crate) fn moves(&self) -> &Moves {
        &self.moves
    }

    /// What waits here for other members, or for sessions without a home.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        let waits = self.member().zip(self.services.estate());
        waits.map_or_else(Vec::new, |(member, estate)| {
            member.times.waits(self.now, self.replicated(), estate)
        })
    }
}
