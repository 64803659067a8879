//! The sockets between the nodes of a cluster.

mod config;

pub use config::{ClusterConfig, ClusterConfigError, ClusterSecret, PeerTls};
