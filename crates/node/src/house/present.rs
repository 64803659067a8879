//! Users whose connections work on flows only as a process.

use testigo_core::{Refusal, Word};

use super::{ClientId, House, Outlet};
use crate::wire::refuse;

impl House {
    /// Whether a connection may work on flows as it is. A library that reconnects by itself forgets `PRESENT`; for users that
    /// must present themselves, it is then not mistaken for an administrator. Requests from within this process, for example
    /// over HTTP, come over no such connection.
    pub(crate) fn presented_first(&self, id: ClientId) -> Result<(), Refusal> {
        let Some(client) = self.connections.client(id) else {
            return Ok(());
        };
        let user = client.user.as_ref().filter(|user| user.must_present());
        let socket = matches!(client.outlet, Outlet::Socket(_));
        match user.filter(|_| socket && client.presented.is_none()) {
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
