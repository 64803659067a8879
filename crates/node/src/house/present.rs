//! Users whose connections must first say who they are: a library that connects again by itself does not, and its program would
//! go on without what the earlier connection had. What comes from within this process, or for another node's client, comes over
//! no such connection.

use testigo_core::{Refusal, SessionId, Word};

use super::client::{ActsFor, Client};
use super::{ClientId, House, Outlet};
use crate::users::User;
use crate::wire::refuse;

impl House {
    /// Whether a connection may work on flows as it is. For users that must present themselves, a connection that has not is
    /// not mistaken for an administrator.
    pub(crate) fn presented_first(&self, id: ClientId) -> Result<(), Refusal> {
        let client = self.connections.client(id);
        let must = client.and_then(|client| client.user_that(User::must_present));
        match must.filter(|_| client.is_some_and(|client| client.presented.is_none())) {
            None => Ok(()),
            Some(user) => Err(refuse(
                Word::Denied,
                format!(
                    "user {} must PRESENT flow process before it works on flows and jobs, by its setting present_first",
                    user.name()
                ),
            )),
        }
    }
}

impl Client {
    /// Whether the connection may hold anything as it is, or be told that all is well. One that listens to channels may be told
    /// that in any case: it holds nothing.
    pub(crate) fn opened_first(&self) -> Result<(), Refusal> {
        let Some(user) = self.user_that(User::must_open) else {
            return Ok(());
        };
        match self.acts_for {
            ActsFor::Opened(_) | ActsFor::Guest(_) => Ok(()),
            ActsFor::Ended(session) => Err(has_ended(session)),
            ActsFor::Nobody | ActsFor::Implicit(_) => Err(refuse(
                Word::Denied,
                format!(
                    "user {} must SESSION OPEN or SESSION RESUME on each connection first, by its setting session_first; \
                     what an earlier connection held may be gone",
                    user.name()
                ),
            )),
        }
    }

    /// Whether it may take jobs as it is: a process that has presented itself may, in whatever session.
    pub(crate) fn may_take_jobs(&self) -> Result<(), Refusal> {
        match self.presented {
            Some(_) => Ok(()),
            None => self.opened_first(),
        }
    }

    /// The user of a connection from outside, if its settings demand something.
    fn user_that(&self, must: fn(&User) -> bool) -> Option<&User> {
        let user = self.user.as_deref().filter(|user| must(user));
        user.filter(|_| matches!(self.outlet, Outlet::Socket(_)))
    }
}

/// A connection, unless it is closed.
pub(crate) fn there(client: Option<&Client>) -> Result<&Client, Refusal> {
    client.ok_or_else(|| refuse(Word::Unavailable, "the connection is closed"))
}

/// The refusal of a session that ended without its connection's doing.
pub(super) fn has_ended(session: SessionId) -> Refusal {
    refuse(
        Word::Stale,
        format!("session {session} has ended; SESSION CLOSE, OPEN or RESUME goes on"),
    )
}
