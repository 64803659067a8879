//! Whose a session is, and who sees it.

use std::collections::BTreeSet;

use testigo_core::{QueueId, SessionId, SessionView};

use super::{House, Seat, Slice};
use crate::users::{Deed, User};

impl House {
    /// The user that a session belongs to; nothing if there is no such session.
    pub(crate) fn owner(&self, session: SessionId) -> Option<&str> {
        if let Some(record) = self.replicated().session(session) {
            return Some(record.user.as_deref().unwrap_or(User::DEFAULT));
        }
        match self.seat(session)? {
            Seat::Client(id) => Some(self.connections.client(*id)?.user.as_ref()?.name()),
            Seat::Embedded(_) => Some(User::DEFAULT),
        }
    }

    /// Whether a user may take up or end a session: its own, or everybody's as an administrator. What does not exist is
    /// refused elsewhere.
    pub(crate) fn commands(&self, user: &User, session: SessionId) -> bool {
        let owner = self.owner(session);
        owner.is_none_or(|owner| owner == user.name()) || user.may(Deed::Admin, "")
    }

    /// Whether a user sees a session: its own, or all if it may see all names.
    fn sees_session(&self, user: &User, session: SessionId) -> bool {
        user.may(Deed::Show, "") || self.owner(session) == Some(user.name())
    }

    /// Whether a queue belongs to this node.
    pub(crate) fn owns_queue(&self, queue: QueueId) -> bool {
        let queue = self.replicated().queue(queue);
        queue.is_some_and(|queue| self.services.owns(queue.shard()))
    }

    /// Whether a session is at home here. Alone all are.
    fn hosts(&self, session: SessionId) -> bool {
        self.services.estate().is_none() || self.home_of(session) == Some(self.own)
    }

    /// A session that a user sees. Names that it may not see are left out.
    pub(crate) fn session_for(&self, user: &User, session: SessionId) -> Option<SessionView> {
        let mut view = self.services.session_view(session)?;
        if !user.may(Deed::Show, "") {
            view.holds.retain(|name| user.may(Deed::Show, name));
            view.waits.retain(|name| user.may(Deed::Show, name));
        }
        Some(view)
    }
}

/// The sessions that a user sees, looked for a slice at a time.
#[derive(Debug, Default)]
pub(crate) struct SeenSessions {
    pub(crate) ids: BTreeSet<SessionId>,
    at: usize,
}

impl SeenSessions {
    /// Looks on; true when all were looked at.
    pub(crate) fn look(&mut self, house: &House, user: &User, slice: &mut Slice) -> bool {
        let end = house.local().session_places();
        let places = slice.places(&mut self.at, end);
        let sessions = house.local().sessions_in(places);
        self.ids.extend(
            sessions.filter(|session| house.hosts(*session) && house.sees_session(user, *session)),
        );
        self.at >= end
    }
}
