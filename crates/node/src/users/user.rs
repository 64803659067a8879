//! One user: a name, what its password is checked against, and its rights.

use testigo_core::{Matcher, Refusal, bare_name};

use super::rights::{Deed, Rights};
use super::secret::Secret;

/// A user of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: Box<str>,
    pub(super) secret: Option<Secret>,
    rights: Rights,
    present_first: bool,
    session_first: bool,
}

/// A name that no user can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the user {0:?}: a name is 1 to {NAME_BYTES_MAX} letters, digits, - and _")]
pub struct UserError(String);

/// The longest name of a user.
const NAME_BYTES_MAX: usize = 64;

impl User {
    /// The user to whom a password without a name belongs, and everybody on a node without users.
    pub const DEFAULT: &'static str = "default";

    /// A user.
    pub fn new(name: &str, secret: Secret, rights: Rights) -> Result<User, UserError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(fits) {
            true => Ok(User {
                name: name.into(),
                secret: Some(secret),
                rights,
                present_first: false,
                session_first: false,
            }),
            false => Err(UserError(name.chars().take(100).collect())),
        }
    }

    /// The default user, who may do everything.
    pub(super) fn default_user(secret: Option<Secret>) -> User {
        User {
            name: User::DEFAULT.into(),
            secret,
            rights: Rights::all(),
            present_first: false,
            session_first: false,
        }
    }

    /// The same user; sets whether its connections must `PRESENT` before working on flows. A client library that reconnects
    /// by itself does not, and would go on with all of the user's rights instead of the process's.
    pub fn presents_first(mut self, first: bool) -> User {
        self.present_first = first;
        self
    }

    /// See [`User::presents_first`].
    pub(crate) fn must_present(&self) -> bool {
        self.present_first
    }

    /// The same user; sets whether its connections must open or resume a session before they hold anything, or ask whether all
    /// is well. A client library that reconnects by itself would go on in a new implicit session, and what the earlier
    /// connection held is gone.
    pub fn opens_first(mut self, first: bool) -> User {
        self.session_first = first;
        self
    }

    /// See [`User::opens_first`].
    pub(crate) fn must_open(&self) -> bool {
        self.session_first
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it may do a deed to a name; the node as a whole is the empty name. Every permission is decided here. A right
    /// to a gate is also a right to the election of that name.
    pub fn may(&self, deed: Deed, name: &str) -> bool {
        self.rights.allow(deed, bare_name(name))
    }

    /// Whether it may see a name and a pattern fits. The right comes first: who may not see a name does not make the node
    /// match it.
    pub(crate) fn sees(&self, name: &str, pattern: &Matcher) -> bool {
        self.may(Deed::Show, name) && pattern.fits(bare_name(name))
    }

    /// Like [`User::may`]; the refusal says what is missing.
    pub(crate) fn check(&self, deed: Deed, name: &str) -> Result<(), Refusal> {
        match self.may(deed, name) {
            true => Ok(()),
            false => Err(Rights::denied(&self.name, deed, bare_name(name))),
        }
    }

    /// The user as sessions remember it: `None` for the default one.
    pub(crate) fn mark(&self) -> Option<&str> {
        Some(&*self.name).filter(|name| *name != User::DEFAULT)
    }
}
