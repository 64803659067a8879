//! All users of a node, and what is known about passwords that were right before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use ring::hmac;

use super::secret::{PASSWORD_BYTES_MAX, Secret};
use super::user::User;

/// The users of a node. A reload replaces them for everybody who asks here.
#[derive(Debug)]
pub(crate) struct Users {
    list: RwLock<List>,
    /// The program that embeds the node.
    program: Arc<User>,
    /// One at a time: guessing must not take all processors.
    working: Mutex<()>,
    /// Drawn anew at every start, so that what is remembered is useless elsewhere.
    key: hmac::Key,
}

/// Who may come in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guests<'a> {
    /// The password of the default user.
    pub(crate) password: Option<&'a Secret>,
    /// All others.
    pub(crate) users: &'a [User],
    /// Whether the default user, or everybody if there are no users, must `PRESENT` before working on flows.
    pub(crate) present_first: bool,
    /// Whether the same must open a session before they hold anything.
    pub(crate) session_first: bool,
}

#[derive(Debug)]
struct List {
    known: BTreeMap<Box<str>, Known>,
    /// The user of a connection that has not authenticated, if it need not.
    anybody: Option<Arc<User>>,
}

#[derive(Debug)]
struct Known {
    user: Arc<User>,
    /// The mark of the last password that was right, so that it need not be hashed again.
    right: Mutex<Option<hmac::Tag>>,
}

/// The result of looking up a name and a password.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// The password is right.
    User(Arc<User>),
    /// It is wrong, or there is no such user.
    Wrong,
    /// Only hashing can tell: see [`Users::work`].
    Unsure,
}

impl Users {
    pub(crate) fn new(guests: &Guests<'_>) -> Users {
        let mut key = [0; 32];
        // Without randomness marks could be made elsewhere, but nobody ever sees one.
        let _ = getrandom::fill(&mut key);
        Users {
            list: RwLock::new(List::new(guests)),
            program: Arc::new(User::default_user(None)),
            working: Mutex::new(()),
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
        }
    }

    /// Replaces the users. A password that stays need not be hashed again.
    pub(crate) fn replace(&self, guests: &Guests<'_>) {
        let new = List::new(guests);
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        for (name, known) in &new.known {
            if let Some(before) = list.known.get(name)
                && before.user.secret == known.user.secret
            {
                *lock(&known.right) = *lock(&before.right);
            }
        }
        *list = new;
    }

    /// The same user after reloads; `None` if it is gone, or has another password.
    pub(crate) fn current(&self, user: &Arc<User>) -> Option<Arc<User>> {
        if Arc::ptr_eq(user, &self.program) {
            return Some(Arc::clone(user));
        }
        let list = self.list();
        if user.secret.is_none() {
            return list.anybody.clone();
        }
        let now = &list.known.get(user.name())?.user;
        (now.secret == user.secret).then(|| Arc::clone(now))
    }

    fn list(&self) -> RwLockReadGuard<'_, List> {
        self.list.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user of a connection that has not authenticated.
    pub(crate) fn anybody(&self) -> Option<Arc<User>> {
        self.list().anybody.clone()
    }

    /// Whether there is only a password and no other user.
    pub(crate) fn only_default(&self) -> bool {
        let known = &self.list().known;
        known.len() == 1 && known.contains_key(User::DEFAULT)
    }

    pub(crate) fn program(&self) -> Arc<User> {
        Arc::clone(&self.program)
    }

    /// Whether some password is stored as a hash.
    pub(crate) fn take_work(&self) -> bool {
        self.list().take_work()
    }

    /// The user with this name, for another node that has authenticated it.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<User>> {
        let list = self.list();
        match list.known.get(name) {
            Some(known) => Some(Arc::clone(&known.user)),
            None => list.anybody.clone().filter(|user| user.name() == name),
        }
    }

    /// Looks a user up without taking time.
    pub(crate) fn find(&self, name: &str, password: &str) -> Found {
        if password.len() > PASSWORD_BYTES_MAX {
            return Found::Wrong;
        }
        let list = self.list();
        let Some(known) = list.known.get(name) else {
            // An unknown user has to wait like one with a wrong password, so that nobody learns who is known.
            return match list.take_work() {
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

    /// Checks a password by hashing; it may take a good part of a second.
    pub(crate) fn work(&self, name: &str, password: &str) -> Option<Arc<User>> {
        let _one = lock(&self.working);
        let (user, real) = {
            let list = self.list();
            match list.known.get(name) {
                // After a start many connections of one user come at once; the first has done the work for all.
                Some(known) if known.remembers(&self.key, password) => {
                    return Some(Arc::clone(&known.user));
                }
                Some(known) => (Arc::clone(&known.user), true),
                None => {
                    let mut known = list.known.values();
                    let other = known.find(|known| known.takes_work())?;
                    (Arc::clone(&other.user), false)
                }
            }
        };
        if !user.secret.as_ref()?.is(password) || !real {
            return None;
        }
        // A reload may have changed it meanwhile.
        let user = self.current(&user)?;
        if let Some(known) = self.list().known.get(name) {
            *lock(&known.right) = Some(hmac::sign(&self.key, password.as_bytes()));
        }
        Some(user)
    }
}

impl List {
    fn new(guests: &Guests<'_>) -> List {
        let Guests {
            password,
            users,
            present_first,
            session_first,
        } = guests;
        let default = |secret| {
            let user = User::default_user(secret).presents_first(*present_first);
            user.opens_first(*session_first)
        };
        let open = password.is_none() && users.is_empty();
        let mut all: Vec<User> = users.to_vec();
        all.extend(password.map(|secret| default(Some(secret.clone()))));
        let known = all.into_iter().map(|user| {
            let name = user.name().into();
            let user = Arc::new(user);
            let right = Mutex::new(None);
            (name, Known { user, right })
        });
        List {
            known: known.collect(),
            anybody: open.then(|| Arc::new(default(None))),
        }
    }

    fn take_work(&self) -> bool {
        self.known.values().any(Known::takes_work)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Known {
    /// Whether this is the last password that was right.
    fn remembers(&self, key: &hmac::Key, password: &str) -> bool {
        let right = lock(&self.right);
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

    fn alice(password: &Secret) -> User {
        User::new("alice", password.clone(), Rights::all()).unwrap()
    }

    fn guests<'a>(password: &'a Secret, users: &'a [User]) -> Guests<'a> {
        Guests {
            password: Some(password),
            users,
            ..Guests::default()
        }
    }

    fn users() -> Users {
        let alice = alice(&Secret::hash("secret").unwrap());
        Users::new(&guests(&Secret::read("root").unwrap(), &[alice]))
    }

    #[test]
    fn a_reload_keeps_who_stays_and_forgets_who_goes() {
        let hash = Secret::hash("secret").unwrap();
        let root = Secret::read("root").unwrap();
        let users = Users::new(&guests(&root, &[alice(&hash)]));
        let before = users.work("alice", "secret").unwrap();
        let fewer = User::new("alice", hash.clone(), "a : show".parse().unwrap()).unwrap();
        users.replace(&guests(&root, &[fewer]));
        let now = users.current(&before).unwrap();
        assert!(!now.may(crate::users::Deed::Use, "a"));
        assert!(
            matches!(users.find("alice", "secret"), Found::User(_)),
            "it is not worked out again"
        );
        users.replace(&guests(&root, &[alice(&Secret::hash("secret").unwrap())]));
        assert!(
            users.current(&now).is_none(),
            "another salt is another password"
        );
        assert!(matches!(users.find("alice", "secret"), Found::Unsure));
        users.replace(&guests(&root, &[]));
        assert!(users.current(&now).is_none());
        assert!(users.current(&users.program()).is_some());
        users.replace(&Guests::default());
        let anybody = users.anybody().unwrap();
        assert!(users.current(&anybody).is_some());
        users.replace(&guests(&root, &[]));
        assert!(users.current(&anybody).is_none(), "it never said who it is");
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
        let open = Users::new(&Guests::default());
        assert!(open.anybody().is_some());
        assert!(matches!(open.find("default", ""), Found::Wrong));
        assert!(users().anybody().is_none());
    }
}
