//! Where the nodes are, and how and as which user to speak to them.

use std::fmt;

use crate::address::Address;
use crate::addresses::Addresses;
use crate::tls::Tls;

/// A node or the nodes of a cluster, and the user of a connection to one of them.
///
/// ```
/// use testigo::{Addresses, Target};
///
/// let nodes: Addresses = "a.example:7600,b.example:7600".parse()?;
/// let target = Target::from(nodes).user("alice", "secret");
/// # Ok::<(), testigo::BadAddress>(())
/// ```
#[derive(Clone, Debug)]
pub struct Target {
    /// Their addresses. A client connects to one, and moves on to the next when that one is gone.
    pub addresses: Addresses,
    /// The user. A node without users and password needs none.
    pub credentials: Option<Credentials>,
    /// TLS for the connection, if wanted.
    pub tls: Option<Tls>,
    /// The name of the connection, which others see; it has no blanks.
    pub name: Option<String>,
}

impl Target {
    /// Sets the user.
    pub fn user(mut self, user: impl Into<String>, password: impl Into<String>) -> Target {
        self.credentials = Some(Credentials {
            user: user.into(),
            password: password.into(),
        });
        self
    }

    /// Sets the name of the connection in a node's lists.
    pub fn name(mut self, name: impl Into<String>) -> Target {
        self.name = Some(name.into());
        self
    }

    /// Sets TLS.
    pub fn tls(mut self, tls: Tls) -> Target {
        self.tls = Some(tls);
        self
    }
}

impl From<Address> for Target {
    fn from(address: Address) -> Target {
        Target::from(Addresses::from(address))
    }
}

impl From<Addresses> for Target {
    fn from(addresses: Addresses) -> Target {
        Target {
            addresses,
            credentials: None,
            tls: None,
            name: None,
        }
    }
}

/// A user and its password.
///
/// ```
/// use testigo::Credentials;
///
/// let own = Credentials {
///     user: Credentials::DEFAULT_USER.into(),
///     password: "secret".into(),
/// };
/// assert!(!format!("{own:?}").contains("secret"), "no log shows it");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name; the one for the node's own password is [`Credentials::DEFAULT_USER`].
    pub user: String,
    /// The password.
    pub password: String,
}

impl Credentials {
    /// The user to whom a password without a name belongs.
    pub const DEFAULT_USER: &'static str = "default";
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The password stays out of every log.
        write!(f, "Credentials({:?})", self.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let address: Address = Address::DEFAULT.parse().expect("an address");
        let target = Target::from(address).user("alice", "secret");
        let shown = format!("{target:?}");
        assert!(
            shown.contains("alice") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
