//! Replaces users, rights and certificates of a running node.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::config::{Config, ConfigError};
use crate::peers::ClusterConfig;
use crate::shared::Shared;
use crate::tls::{Tls, TlsError};
use crate::users::Checker;

/// Reloads a node from another thread.
#[derive(Clone, Debug)]
pub struct Reloader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Where the node listens.
    pub(crate) doors: [Option<SocketAddr>; 2],
    pub(crate) password_queue: usize,
    /// How the nodes know each other.
    pub(crate) cluster: Option<ClusterConfig>,
}

/// Why a node was not reloaded. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The certificate cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The system refused a thread.
    #[error("the system refused what a node needs: {0}")]
    System(#[from] io::Error),
}

impl Reloader {
    /// Takes over the password, the users with their rights, and the certificate, its key and its clients' authorities;
    /// everything else stays as at the start. All of it takes effect, for open connections too, or nothing does.
    pub fn reload(&self, config: &Config) -> Result<(), ReloadError> {
        let [resp, http] = self.doors;
        let doors = Config {
            resp,
            http,
            cluster: self.cluster.clone(),
            ..config.clone()
        };
        doors.check()?;
        let sealed = match (&self.tls, &config.tls) {
            (Some(tls), Some(files)) => Some((tls, files.load()?)),
            _ => None,
        };
        let users = self.shared.enter(|house| Arc::clone(house.users()));
        let checks = self.shared.enter(|house| house.checks_apart());
        let checker = match checks {
            true => None,
            false => {
                let shared = Arc::downgrade(&self.shared);
                let users = Arc::clone(&users);
                Some(Checker::start(users, shared, self.password_queue)?)
            }
        };
        if let Some((tls, config)) = sealed {
            tls.replace(config);
        }
        self.shared.enter(|house| {
            users.replace(&config.guests());
            if let Some(checker) = checker {
                house.set_checker(checker);
            }
            house.users_changed();
        });
        Ok(())
    }
}
