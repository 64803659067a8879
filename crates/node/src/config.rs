//! What a node is started with.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use testigo_core::Limits;
use testigo_engine::{SnapshotPolicy, Start};

use crate::wire::WireLimits;

/// The configuration of a node.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data directory; made if it is not there.
    pub data: PathBuf,
    /// Where to listen for RESP over TCP.
    pub resp: Option<SocketAddr>,
    /// Where to listen for RESP on a Unix socket.
    pub unix: Option<PathBuf>,
    /// What clients must say before anything else. Needed to listen beyond this machine.
    pub password: Option<String>,
    /// What the services may cost.
    pub limits: Limits,
    /// What a connection may cost.
    pub wire: WireLimits,
    /// When the log is replaced by a snapshot.
    pub snapshots: SnapshotPolicy,
    /// Whether the data directory is a restored backup.
    pub start: Start,
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Everybody on the network could take and end locks.
    #[error(
        "{0} can be reached from other machines, and no password is set; \
         set `password` in the configuration file, or listen on 127.0.0.1"
    )]
    OpenToAll(SocketAddr),
    /// A limit beyond what the log's records were made for.
    #[error("the limit {name} is {value}; it must be in 1..={most}")]
    Limit {
        /// The limit's name.
        name: &'static str,
        /// What was asked for.
        value: u64,
        /// The most that it can be.
        most: u64,
    },
    /// A password that no client could say.
    #[error("the password is empty; set one, or none")]
    EmptyPassword,
}

impl Config {
    /// A node that listens nowhere.
    pub fn embedded(data: impl AsRef<Path>) -> Config {
        Config {
            data: data.as_ref().to_owned(),
            resp: None,
            unix: None,
            password: None,
            limits: Limits::default(),
            wire: WireLimits::default(),
            snapshots: SnapshotPolicy::default(),
            start: Start::Ordinary,
        }
    }

    /// Whether a node would start with this. Limits can be lowered and not raised: what the log accepted under one limit
    /// must be accepted again when it is replayed.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.password.as_deref() == Some("") {
            return Err(ConfigError::EmptyPassword);
        }
        if let Some(resp) = self.resp
            && !resp.ip().is_loopback()
            && self.password.is_none()
        {
            return Err(ConfigError::OpenToAll(resp));
        }
        let (mine, most) = (&self.limits, Limits::default());
        for (name, value, most) in [
            ("gates", mine.gates as u64, most.gates as u64),
            ("sessions", mine.sessions as u64, most.sessions as u64),
            ("waiters", mine.waiters as u64, most.waiters as u64),
            ("holds", mine.holds as u64, most.holds as u64),
            ("once_keys", mine.once_keys as u64, most.once_keys as u64),
            ("ttl_ms_default", mine.ttl_ms_default, mine.ttl_ms_max),
            ("ttl_ms_max", mine.ttl_ms_max, most.ttl_ms_max),
            ("wait_ms_max", mine.wait_ms_max, most.wait_ms_max),
        ] {
            if !(1..=most).contains(&value) {
                return Err(ConfigError::Limit { name, value, most });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_beyond_this_machine_needs_a_password() {
        let mut config = Config::embedded("data");
        for (resp, open) in [
            ("127.0.0.1:7600", false),
            ("[::1]:7600", false),
            ("0.0.0.0:7600", true),
            ("192.0.2.1:7600", true),
            ("[::]:7600", true),
        ] {
            config.resp = Some(resp.parse().unwrap());
            config.password = None;
            assert_eq!(config.check().is_err(), open, "{resp}");
            config.password = Some("secret".into());
            assert_eq!(config.check(), Ok(()), "{resp}");
        }
        config.password = Some(String::new());
        assert_eq!(config.check(), Err(ConfigError::EmptyPassword));
    }

    #[test]
    fn limits_can_be_lowered_and_not_raised() {
        let mut config = Config::embedded("data");
        config.limits.gates = 10;
        assert_eq!(config.check(), Ok(()));
        for wrong in [0, Limits::default().gates + 1] {
            config.limits.gates = wrong;
            assert!(config.check().is_err(), "{wrong}");
        }
    }
}
