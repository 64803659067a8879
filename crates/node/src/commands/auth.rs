//! Authentication: `AUTH`, and the same within `HELLO`. A password that must be hashed, and one that was wrong, block the
//! connection for a while; nobody else notices.

use std::sync::Arc;

use testigo_core::{Refusal, Word};

use super::hello::Hello;
use super::table::{Answered, Outcome};
use crate::house::{ActsFor, Blocked, ClientId, House};
use crate::users::{Claim, Deed, Found, Origin, User};
use crate::wire::{Reply, Words, refuse};

/// How to answer a connection once its user is known.
#[derive(Clone, Debug)]
pub(crate) enum Afterwards {
    Auth,
    Hello(Hello),
}

/// A password that is not checked yet.
#[derive(Debug)]
pub(crate) struct Attempt {
    user: Box<str>,
    password: Box<str>,
    afterwards: Afterwards,
}

const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";

impl House {
    /// `AUTH [user] password`.
    pub(super) fn auth(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let user = match words.left() {
            1 => None,
            _ => Some(words.text("the user")?),
        };
        let password = words.text("the password")?;
        words.end()?;
        if self.users().anybody().is_some() && user.is_none() {
            let error = "BADARG AUTH was given, and this node has no password";
            return Ok(Answered::Now(Reply::Error(error.into())));
        }
        let user = user.unwrap_or(User::DEFAULT);
        self.authenticate(id, user, password, Afterwards::Auth)
    }

    pub(super) fn authenticate(
        &mut self,
        id: ClientId,
        user: &str,
        password: &str,
        afterwards: Afterwards,
    ) -> Outcome {
        // On a node without users any name is accepted, and everybody may do everything.
        if let Some(anybody) = self.users().anybody() {
            return Ok(Answered::Now(self.become_user(id, anybody, afterwards)));
        }
        let due = self.password_due(self.origin(id), user);
        if due > self.now() {
            let attempt = Attempt {
                user: user.into(),
                password: password.into(),
                afterwards,
            };
            self.block_on_password(id);
            self.attempt_later(due, id, attempt);
            return Ok(Answered::Later);
        }
        match self.users().find(user, password) {
            Found::User(user) => Ok(Answered::Now(self.become_user(id, user, afterwards))),
            Found::Wrong => Ok(self.wrong_password(id, user)),
            Found::Unsure => {
                let claim = Claim {
                    client: id,
                    user: user.to_owned(),
                    password: password.to_owned(),
                    afterwards,
                };
                let taken = self.check_apart(claim);
                if !taken {
                    let most = self.connections.wire().password_queue;
                    let why =
                        format!("{most} passwords wait to be checked, the limit password_queue");
                    return Err(refuse(Word::Limit, why));
                }
                self.block_on_password(id);
                Ok(Answered::Later)
            }
        }
    }

    /// The time of a held-back password has come.
    pub(crate) fn attempt(&mut self, id: ClientId, attempt: Attempt) {
        let Attempt {
            user,
            password,
            afterwards,
        } = attempt;
        match self.authenticate(id, &user, &password, afterwards) {
            Ok(Answered::Now(reply)) => self.connections.unblock(id, reply),
            Ok(Answered::Later) => {}
            Err(refusal) => self.connections.unblock(id, refusal.into()),
        }
    }

    fn origin(&self, id: ClientId) -> Origin {
        let client = self.connections.client(id);
        Origin::read(client.map_or("", |client| &client.address))
    }

    /// When the next password for a user from an origin is checked.
    pub(crate) fn password_due(&self, origin: Origin, user: &str) -> u64 {
        self.guesses().due(self.now(), origin, user)
    }

    /// A password from an origin was right or wrong; returns when to answer.
    pub(crate) fn password_checked(&mut self, origin: Origin, user: &str, right: bool) -> u64 {
        if right {
            self.guesses_mut().right(origin, user);
            return self.now();
        }
        let (delay_ms, longest_ms) = (
            self.connections.wire().password_delay_ms,
            self.connections.wire().password_wait_ms,
        );
        let (now, most) = (self.now(), self.connections.wire().password_pairs);
        self.guesses_mut()
            .wrong(now, (origin, user), delay_ms, longest_ms, most);
        now + delay_ms
    }

    /// A hashed password was checked.
    pub(crate) fn claim_checked(&mut self, claim: Claim, user: Option<Arc<User>>) {
        let id = claim.client;
        // A reload may have changed it meanwhile.
        let user = user.and_then(|user| self.users().current(&user));
        let answered = match user {
            Some(user) => Answered::Now(self.become_user(id, user, claim.afterwards)),
            None => self.wrong_password(id, &claim.user),
        };
        if let Answered::Now(reply) = answered {
            self.connections.unblock(id, reply);
        }
    }

    /// A connection is a user from now on.
    fn become_user(&mut self, id: ClientId, user: Arc<User>, afterwards: Afterwards) -> Reply {
        self.password_checked(self.origin(id), user.name(), true);
        let Some(client) = self.connections.client_mut(id) else {
            return Reply::Null;
        };
        let other = client
            .user
            .as_ref()
            .is_some_and(|now| now.name() != user.name());
        if other && (client.acts_for != ActsFor::Nobody || client.subscriptions() > 0) {
            let error = "BUSY this connection acts for another user, with a session or channels of its own; \
                         SESSION CLOSE and UNSUBSCRIBE first, or RESET";
            return Reply::Error(error.into());
        }
        client.user = Some(user);
        client.wrong_passwords = 0;
        match afterwards {
            Afterwards::Auth => Reply::Ok,
            Afterwards::Hello(hello) => self.greet(id, hello),
        }
    }

    /// A client that guesses waits between guesses, and has few of them per connection.
    fn wrong_password(&mut self, id: ClientId, user: &str) -> Answered {
        let tries = self.connections.wire().password_tries;
        let due = self.password_checked(self.origin(id), user, false);
        let Some(client) = self.connections.client_mut(id) else {
            return Answered::Later;
        };
        client.wrong_passwords += 1;
        let last = client.wrong_passwords >= tries;
        let shown: String = user.chars().take(64).collect();
        log::warn!(
            "a wrong password for user {shown:?} from {}",
            client.address
        );
        if due == self.now() && !last {
            return Answered::Now(Reply::Error(WRONG.into()));
        }
        self.block_on_password(id);
        self.answer_later(due, id, Reply::Error(WRONG.into()), last);
        Answered::Later
    }

    fn block_on_password(&mut self, id: ClientId) {
        if let Some(client) = self.connections.client_mut(id) {
            client.blocked = Some(Blocked::Password);
        }
    }

    /// Whether a connection's user may do a deed to a name; the node as a whole is the empty name.
    pub(super) fn allow(&self, id: ClientId, deed: Deed, name: &str) -> Result<(), Refusal> {
        self.user(id)?.check(deed, name)
    }

    /// The user of a connection.
    pub(crate) fn user(&self, id: ClientId) -> Result<&Arc<User>, Refusal> {
        let user = self
            .connections
            .client(id)
            .and_then(|client| client.user.as_ref());
        user.ok_or_else(|| refuse(Word::Unavailable, "the connection is closed"))
    }
}
