//! The sockets between the nodes of a cluster. Every node dials every other one and sends on the connection that it dialled;
//! it hears on those that it accepted. They carry the frames of the log's engine; this module decides who may send them, and
//! makes sure that they arrive intact or not at all.

mod all;
mod cable;
mod config;
mod dial;
mod door;
mod founding;
mod frames;
mod greeting;
mod hearing;
mod identity;
mod join;
mod joiner;
mod stranger;
mod stream;
#[cfg(test)]
mod tests;
mod tls;
mod warnings;

pub(crate) use all::{PeerStatus, Peers, listen_for_peers};
pub(crate) use config::host_and_port;
pub use config::{ClusterConfig, ClusterConfigError, ClusterSecret, PeerTls};
pub(crate) use founding::sought;
pub(crate) use identity::Identity;
pub(crate) use join::{JoinAnswer, Welcome, ask_to_join};
pub(crate) use joiner::Joiner;
