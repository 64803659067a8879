//! The thread that checks hashed passwords, so that nobody else waits for that.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;

use super::registry::Users;
use crate::commands::Afterwards;
use crate::house::ClientId;
use crate::shared::Shared;

/// A client's claim to be a user, which only hashing can check.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) client: ClientId,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) afterwards: Afterwards,
}

/// Takes claims, few at a time. The thread ends with it.
#[derive(Debug)]
pub(crate) struct Checker(SyncSender<Claim>);

impl Checker {
    pub(crate) fn start(
        users: Arc<Users>,
        shared: Weak<Shared>,
        most: usize,
    ) -> io::Result<Checker> {
        let (claims, received) = sync_channel(most);
        thread::Builder::new()
            .name("testigo-passwords".into())
            .spawn(move || run(&users, &shared, &received))?;
        Ok(Checker(claims))
    }

    /// Queues a claim; false if there was no room for it.
    pub(crate) fn take(&self, claim: Claim) -> bool {
        self.0.try_send(claim).is_ok()
    }
}

fn run(users: &Users, shared: &Weak<Shared>, claims: &Receiver<Claim>) {
    while let Ok(claim) = claims.recv() {
        let user = users.work(&claim.user, &claim.password);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.enter(|house| house.claim_checked(claim, user));
    }
}
