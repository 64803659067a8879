//! The options of a node that is a member of a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use testigo_node::ClusterSettings;

/// What makes a node a member.
#[derive(Args, Clone)]
#[command(next_help_heading = "A node of a cluster")]
pub(super) struct Cluster {
    /// This node's number in its cluster, 1 to 255
    #[arg(long, value_name = "N")]
    id: Option<u64>,
    /// Where the other nodes reach this one; makes it a member of a cluster
    #[arg(long, value_name = "HOST:PORT")]
    peer: Option<String>,
    /// The peer address of any member of the cluster to join; without it a new node founds a cluster of one
    #[arg(long, value_name = "HOST:PORT")]
    join: Option<String>,
    /// Where to listen for the other nodes, if --peer is an address of something in front of this node
    #[arg(long, value_name = "ADDRESS", value_parser = testigo_node::listening_address)]
    peer_listen: Option<SocketAddr>,
    /// Where clients reach this node, if --resp is not what they dial
    #[arg(long, value_name = "HOST:PORT")]
    client: Option<String>,
    /// A file with the secret that all nodes of the cluster share; this or TLS is needed beyond 127.0.0.1, and with users
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// This node's certificate for TLS between the nodes, in PEM
    #[arg(long, value_name = "FILE")]
    peer_tls_cert: Option<PathBuf>,
    /// The private key of --peer-tls-cert
    #[arg(long, value_name = "FILE")]
    peer_tls_key: Option<PathBuf>,
    /// The authority that signs the certificates of nodes, and of nobody else
    #[arg(long, value_name = "FILE")]
    peer_tls_ca: Option<PathBuf>,
    /// Lets anybody who reaches --peer be a node, without a secret or TLS, past all users and passwords
    #[arg(long)]
    peer_trust_network: bool,
    /// How long a node goes on without hearing from a majority; the same on all nodes [default: 3000]
    #[arg(long, value_name = "MS")]
    lease_ms: Option<u64>,
}

impl Cluster {
    pub(super) fn settings(&self) -> ClusterSettings {
        ClusterSettings {
            id: self.id,
            peer: self.peer.clone(),
            peer_listen: self.peer_listen,
            client: self.client.clone(),
            join: self.join.clone(),
            secret_file: self.secret_file.clone(),
            peer_tls_cert: self.peer_tls_cert.clone(),
            peer_tls_key: self.peer_tls_key.clone(),
            peer_tls_ca: self.peer_tls_ca.clone(),
            peer_trust_network: self.peer_trust_network.then_some(true),
            lease_ms: self.lease_ms,
        }
    }
}
