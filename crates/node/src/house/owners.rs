//! To whom a session belongs, and who may see it.

use std::collections::BTreeSet;

use testigo_core::{GateView, QueueId, Refusal, SessionId, SessionView, Shard};

use super::{House, Seat, Slice};
use crate::users::{Deed, User};

impl House {
    /// The user to whom a session belongs; `None` if there is no such session.
    pub(crate) fn owner(&self, session: SessionId) -> Option<&str> {
        if let Some(record) = self.replicated().session(session) {
            return Some(record.user.as_deref().unwrap_or(User::DEFAULT));
        }
        match self.seat(session)? {
            Seat::Client(id) => Some(self.connections.client(*id)?.user.as_ref()?.name()),
            Seat::Embedded(_) => Some(User::DEFAULT),
        }
    }

    /// Whether a user may resume or end a session: its own, or anybody's as an administrator. A session that does not exist
    /// is refused elsewhere.
    pub(crate) fn commands(&self, user: &User, session: SessionId) -> bool {
        let owner = self.owner(session);
        owner.is_none_or(|owner| owner == user.name()) || user.may(Deed::Admin, "")
    }

    /// Whether a user may see a session: its own, or all if it may see all names.
    fn sees_session(&self, user: &User, session: SessionId) -> bool {
        user.may(Deed::Show, "") || self.owner(session) == Some(user.name())
    }

    /// Whether this node owns a queue.
    pub(crate) fn owns_queue(&self, queue: QueueId) -> bool {
        let queue = self.replicated().queue(queue);
        queue.is_some_and(|queue| self.services.owns(queue.shard()))
    }

    /// Whether this node owns a name.
    pub(crate) fn owns_name(&self, name: &str) -> bool {
        self.services.estate().is_none() || self.services.owns(Shard::of(name))
    }

    /// Whether each node may know a part of a gate, because an algorithm moves its ownership.
    pub(crate) fn is_spread(&self, gate: &str) -> bool {
        let estate = self.services.estate();
        estate.is_some_and(|estate| estate.is_spread(self.replicated(), gate))
    }

    /// Whether this node can show anything of a gate: it owns the gate, or knows a part of it.
    pub(crate) fn shows_gate(&self, gate: &str) -> bool {
        self.owns_name(gate) || self.is_spread(gate)
    }

    /// The number of this member; `None` alone.
    pub(crate) fn member_number(&self) -> Option<u64> {
        self.services.estate().map(|_| self.own.0.0)
    }

    /// The number of the member that owns a shard; `None` alone.
    pub(crate) fn owner_number(&self, shard: Shard) -> Option<u64> {
        self.services.estate()?;
        let title = self.replicated().ownership().title(shard)?;
        Some(title.owner.0)
    }

    /// The numbers of the other members.
    pub(crate) fn other_members(&self) -> Vec<u64> {
        let members = self.replicated().view().members.iter();
        let others = members.map(|member| member.node.0);
        others.filter(|node| *node != self.own.0.0).collect()
    }

    /// A gate of this node, with labels.
    pub(crate) fn gate_view(&self, name: &str, people_max: usize) -> Result<GateView, Refusal> {
        let mut view = match self.services.estate() {
            Some(estate) => estate.gate_view(self.replicated(), name, people_max)?,
            None => self.local().gate_with(name, people_max)?,
        };
        self.label_people(&mut view);
        Ok(view)
    }

    /// Labels the sessions at a gate as the log does: its owner's books have no labels of sessions that live elsewhere.
    pub(crate) fn label_people(&self, gate: &mut GateView) {
        for holder in &mut gate.holders {
            self.label(holder.session, &mut holder.label);
        }
        for waiter in &mut gate.waiters {
            self.label(waiter.session, &mut waiter.label);
        }
    }

    /// The same for one session.
    pub(crate) fn label(&self, session: SessionId, label: &mut Option<String>) {
        if label.is_none() && self.services.estate().is_some() {
            let record = self.replicated().session(session);
            *label = record.and_then(|record| record.label.clone());
        }
    }

    /// Whether a session's home is here. Alone, every session's is.
    fn hosts(&self, session: SessionId) -> bool {
        self.services.estate().is_none() || self.home_of(session) == Some(self.own)
    }

    /// A session, without the names that the user may not see.
    pub(crate) fn session_for(&self, user: &User, session: SessionId) -> Option<SessionView> {
        let mut view = self.services.session_view(session)?;
        if !user.may(Deed::Show, "") {
            view.holds.retain(|name| user.may(Deed::Show, name));
            view.waits.retain(|name| user.may(Deed::Show, name));
        }
        Some(view)
    }
}

/// The sessions that a user may see, searched one slice at a time.
#[derive(Debug, Default)]
pub(crate) struct SeenSessions {
    pub(crate) ids: BTreeSet<SessionId>,
    /// How many sessions have their home here, seen or not.
    pub(crate) hosted: usize,
    at: usize,
}

impl SeenSessions {
    /// Searches on; true when all were looked at.
    pub(crate) fn look(&mut self, house: &House, user: &User, slice: &mut Slice) -> bool {
        let end = house.local().session_places();
        let places = slice.places(&mut self.at, end);
        let sessions = house.local().sessions_in(places);
        for session in sessions.filter(|session| house.hosts(*session)) {
            self.hosted += 1;
            if house.sees_session(user, session) {
                self.ids.insert(session);
            }
        }
        self.at >= end
    }
}
