//! One machine's node: `core` and the engine in one house, with a front door for programs that speak RESP and one for the
//! program that embeds the node. This is the low-level interface: the crate `testigo` gives an embedded node the same handles
//! as a remote one, over a [`Pipe`].
//!
//! ```
//! use testigo_core::Lock;
//! use testigo_node::{Config, Node};
//!
//! # let dir = tempfile::tempdir()?;
//! let node = Node::start(Config::embedded(dir.path()))?;
//! let session = node.session()?;
//! let deploy = Lock { gate: "deploy", ..Lock::default() };
//! let grant = session.lock(&deploy)?.expect("nobody else is here");
//! println!("inside with fence {}", grant.fence);
//! session.unlock("deploy", Some(grant.fence))?;
//! node.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod among;
mod backup;
mod clock;
mod cluster;
mod commands;
mod completion;
mod config;
mod connection;
#[cfg_attr(not(feature = "corosync"), path = "corosync/absent.rs")]
mod corosync;
mod embedded;
mod embedded_decisions;
mod embedded_groups;
mod embedded_pools;
mod generation;
mod grants;
mod health;
#[cfg(test)]
mod hostile;
mod house;
mod http;
mod kept;
mod linger;
mod listen;
mod mailbox;
mod near;
mod node;
mod open;
mod output;
mod peers;
mod pipe;
mod random;
mod reactor;
mod relay;
mod reload;
mod scheme;
mod serve;
mod settings;
mod shared;
mod sparing;
mod stats;
mod tls;
mod unfinished;
mod users;
mod wire;

pub use backup::{Backup, BackupError, BackupHeader, BackupMember, Refounded, refound, salvage};
pub use config::{Config, ConfigError, CorosyncConfig};
pub use corosync::CorosyncError;
pub use embedded::{Campaign, Entering, Session, Submitted, Wait};
pub use generation::wait_secs as generation_wait_secs;
pub use house::{Holding, Leader};
pub use http::HttpLimits;
pub use listen::ListenError;
pub use mailbox::SessionEvent;
pub use near::{did_you_mean, nearest};
pub use node::{DiskFailure, Node, StartError, StopError, Stopper};
pub use peers::{ClusterConfig, ClusterConfigError, ClusterSecret, PeerTls};
pub use pipe::{Pipe, Pipes};
pub use reload::{ReloadError, Reloader};
pub use settings::{ClusterSettings, Settings, SettingsError, listening_address};
pub use testigo_engine::{DiskError, FlushError, Opening};
pub use tls::{TlsError, TlsFiles};
pub use users::{Deed, Rights, RightsError, Secret, SecretError, User, UserError};
pub use wire::WireLimits;
