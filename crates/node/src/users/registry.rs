//! All users of a node, and what is known of passwords that were right before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ring::hmac;

use super::secret::{PASSWORD_BYTES_MAX, Secret};
use super::user::User;

/// The users of a node. They do not change while it runs.
#[derive(Debug)]
pub(crate) struct Users {
    known: BTreeMap<Box<str>, Known>,
    /// Whom everybody is who says nothing, if nobody needs to say anything.
    anybody: Option<Arc<User>>,
    /// The program that the node is embedded in.
    program: Arc<User>,
    /// One at a time: guessing must not take all processors.
    working: Mutex<()>,
    /// Drawn anew with every start, so that what is remembered is of no use elsewhere.
    key: hmac::Key,
}

#[derive(Debug)]
struct Known {
    user: Arc<User>,
    /// The mark of the password that was right last; a hash need not be worked out again for it.
    right: Mutex<Option<hmac::Tag>>,
}

/// What a name and a password come to.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// The password is right.
    User(Arc<User>),
    /// It is not, or there is no such user.
    Wrong,
    /// Only work can tell: see [`Users::work`].
    Unsure,
}

impl Users {
    pub(crate) fn new(password: Option<&Secret>, users: &[User]) -> Users {
        let open = password.is_none() && users.is_empty();
        let mut all: Vec<User> = users.to_vec();
        all.extend(password.map(|secret| User::default_user(Some(secret.clone()))));
        let known = all.into_iter().map(|user| {
            let name = user.name().into();
            let user = Arc::new(user);
            let right = Mutex::new(None);
            (name, Known { user, right })
        });
        let program = Arc::new(User::default_user(None));
        let mut key = [0; 32];
        // Without randomness marks could be made elsewhere, but nobody ever sees one.
        let _ = getrandom::fill(&mut key);
        Users {
            known: known.collect(),
            anybody: open.then(|| Arc::clone(&program)),
            program,
            working: Mutex::new(()),
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
        }
    }

    /// Who a connection is that has said nothing yet.
    pub(crate) fn anybody(&self) -> Option<Arc<User>> {
        self.anybody.clone()
    }

    /// Whether a password is all that is asked for.
    pub(crate) fn only_default(&self) -> bool {
        self.known.len() == 1 && self.known.contains_key(User::DEFAULT)
    }

    pub(crate) fn program(&self) -> Arc<User> {
        Arc::clone(&self.program)
    }

    /// Whether some password is kept as a hash.
    pub(crate) fn take_work(&self) -> bool {
        self.known.values().any(Known::takes_work)
    }

    /// Looks a user up without taking time.
    pub(crate) fn find(&self, name: &str, password: &str) -> Found {
        if password.len() > PASSWORD_BYTES_MAX {
            return Found::Wrong;
        }
        let Some(known) = self.known.get(name) else {
            // A stranger is made to wait as a user with a wrong password is, so that nobody learns who is known.
            return match self.take_work() {
                true => Found::Unsure,
                false => Found::Wrong,
            };
        };
        let Some(secret) = &known.user.secret else {
            return Found::Wrong;
        };
        match known.remembers(&self.key, password) || secret.is_quick() && secret.is(password) {
            true => Found::User(Arc::clone(&known.user)),
            false if secret.is_quick() => Found::Wrong,
            false => Found::Unsure,
        }
    }

    /// Works out whether a password is right; it may take a good part of a second.
    pub(crate) fn work(&self, name: &str, password: &str) -> Option<Arc<User>> {
        let (known, real) = match self.known.get(name) {
            Some(known) => (known, true),
            None => (self.known.values().find(|known| known.takes_work())?, false),
        };
        let secret = known.user.secret.as_ref()?;
        let _one = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        // Many connections of one user come at once after a start; the first has done the work for all.
        if real && known.remembers(&self.key, password) {
            return Some(Arc::clone(&known.user));
        }
        if !secret.is(password) || !real {
            return None;
        }
        let tag = hmac::sign(&self.key, password.as_bytes());
        *known.right.lock().unwrap_or_else(PoisonError::into_inner) = Some(tag);
        Some(Arc::clone(&known.user))
    }
}

impl Known {
    /// Whether this password was right before.
    fn remembers(&self, key: &hmac::Key, password: &str) -> bool {
        let right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        let right = right.as_ref();
        right.is_some_and(|tag| hmac::verify(key, password.as_bytes(), tag.as_ref()).is_ok())
    }

    fn takes_work(&self) -> bool {
        let secret = self.user.secret.as_ref();
        secret.is_some_and(|secret| !secret.is_quick())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::Rights;

    fn users() -> Users {
        let alice = User::new("alice", Secret::hash("secret").unwrap(), Rights::all());
        let password = Secret::read("root").unwrap();
        Users::new(Some(&password), &[alice.unwrap()])
    }

    #[test]
    fn a_right_password_is_worked_out_once() {
        let users = users();
        assert!(matches!(users.find("alice", "secret"), Found::Unsure));
        assert!(users.work("alice", "wrong").is_none());
        assert!(matches!(users.find("alice", "secret"), Found::Unsure));
        assert!(users.work("alice", "secret").is_some());
        assert!(matches!(users.find("alice", "secret"), Found::User(_)));
        assert!(matches!(users.find("alice", "wrong"), Found::Unsure));
    }

    #[test]
    fn a_stranger_is_not_told_apart() {
        let users = users();
        assert!(matches!(users.find("mallory", "secret"), Found::Unsure));
        assert!(users.work("mallory", "secret").is_none());
        assert!(matches!(users.find("default", "root"), Found::User(_)));
        assert!(matches!(users.find("default", "rooz"), Found::Wrong));
    }

    #[test]
    fn without_users_everybody_may_do_everything() {
        let open = Users::new(None, &[]);
        assert!(open.anybody().is_some());
        assert!(matches!(open.find("default", ""), Found::Wrong));
        assert!(users().anybody().is_none());
    }
}
