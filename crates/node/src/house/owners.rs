//! Whose a session is, and who sees it.

use testigo_core::{SessionId, SessionView};

use super::{House, Seat};
use crate::users::{Deed, User};

impl House {
    /// The user that a session belongs to; nothing if there is no such session.
    pub(crate) fn owner(&self, session: SessionId) -> Option<&str> {
        if let Some(record) = self.replicated.session(session) {
            return Some(record.user.as_deref().unwrap_or(User::DEFAULT));
        }
        match self.seat(session)? {
            Seat::Client(id) => Some(self.clients.get(id)?.user.as_ref()?.name()),
            Seat::Embedded(_) => Some(User::DEFAULT),
        }
    }

    /// Whether a user may take up or end a session: its own, or everybody's as an administrator. What does not exist is
    /// refused elsewhere.
    pub(crate) fn commands(&self, user: &User, session: SessionId) -> bool {
        let owner = self.owner(session);
        owner.is_none_or(|owner| owner == user.name()) || user.may(Deed::Admin, "")
    }

    /// The sessions that a user sees: its own, or all if it may see all names. Names that it may not see are left out.
    pub(crate) fn sessions_for(&self, user: &User) -> Vec<SessionView> {
        let mut views = self.local.sessions();
        if user.may(Deed::Show, "") {
            return views;
        }
        views.retain(|view| self.owner(view.session) == Some(user.name()));
        for view in &mut views {
            view.holds.retain(|name| user.may(Deed::Show, name));
            view.waits.retain(|name| user.may(Deed::Show, name));
        }
        views
    }
}
