//! What makes a node a cluster member: its number, its address, and how the nodes authenticate each other.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use testigo_engine::NODES_MAX;

/// The default node lease.
const LEASE_MS_DEFAULT: u64 = 3_000;

/// A node lease is longer than an election, and no longer than a session may be silent.
const LEASE_MS: std::ops::RangeInclusive<u64> = 1_000..=60_000;

/// The longest address.
pub(crate) const ADDRESS_BYTES_MAX: usize = 255;

/// Makes a node a member of a cluster; without it, the node is alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The node's number, 1 to [`NODES_MAX`]. A data directory belongs to one number for ever.
    pub id: u64,
    /// The address of this node for the others, `host:port`. The host may be a name.
    pub peer: String,
    /// Where it listens for them, unless that is what `peer` resolves to: for example behind a forwarded port or in a
    /// container.
    pub listen: Option<SocketAddr>,
    /// The address of this node for clients, `host:port`, unless that is the host of `peer` and the port of the RESP front
    /// door.
    pub client: Option<String>,
    /// The peer address of any member of the cluster to join. Without it, a new directory founds a cluster of one. A directory
    /// that is a member already needs none.
    pub join: Option<String>,
    /// The secret that only the nodes of the cluster know.
    pub secret: Option<ClusterSecret>,
    /// Mutual TLS between the nodes.
    pub tls: Option<PeerTls>,
    /// Whether whoever reaches `peer` may be a node, where neither a secret nor TLS says who may.
    pub trust_network: bool,
    /// How long a node acts without hearing from a majority, in milliseconds. The same on all nodes.
    pub lease_ms: u64,
}

/// The files of mutual TLS between nodes, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTls {
    /// This node's certificate, valid for the host of `peer`, and those between it and the authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority that signs the nodes' certificates and no others: whoever has one may become a member.
    pub ca: PathBuf,
}

/// Why a node cannot be a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterConfigError {
    /// It is not a valid node number.
    #[error("id {0}: a node's number is 1 to {NODES_MAX}")]
    Id(u64),
    /// It is not a valid address.
    #[error(
        "{key} {address:?}: {why}; an address looks like 10.0.0.1:7700, node1.example:7700 or [::1]:7700"
    )]
    Address {
        /// The setting.
        key: &'static str,
        /// Its value.
        address: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It would ask itself to join.
    #[error(
        "join {0} is this node's own peer address; join any other member, or leave it out to found a cluster"
    )]
    JoinsItself(String),
    /// Everybody on the network could become a member.
    #[error(
        "{0} can be reached from other machines, and the nodes have no way to know each other; \
         set a secret (secret_file) or TLS (peer_tls_cert, peer_tls_key, peer_tls_ca), or use 127.0.0.1; \
         peer_trust_network lets anybody in"
    )]
    OpenToAll(String),
    /// Whoever can reach it could become a member, and is asked for no password.
    #[error(
        "this node has users, and whoever can reach {0}, without a password, could join as a node and read and change \
         everything; draw a secret for all nodes: `head -c 32 /dev/urandom | base64 > secret; chmod 600 secret` and use \
         --secret-file secret, or TLS (--peer-tls-cert, --peer-tls-key, --peer-tls-ca); or say that everybody there may: \
         --peer-trust-network"
    )]
    PastUsers(String),
    /// A lease too short for an election, or too long to wait for.
    #[error("lease_ms {0}: a node lease is {least} to {most} milliseconds", least = LEASE_MS.start(), most = LEASE_MS.end())]
    Lease(u64),
    /// It could be guessed.
    #[error(
        "the cluster's secret has {0} bytes; it needs {least} to {most}, best drawn at random: `head -c 32 /dev/urandom | base64`",
 least = ClusterSecret::BYTES_MIN, most = ClusterSecret::BYTES_MAX
    )]
    Secret(usize),
}

impl ClusterConfig {
    /// A node with this number and address, without any authentication.
    pub fn new(id: u64, peer: impl Into<String>) -> ClusterConfig {
        ClusterConfig {
            id,
            peer: peer.into(),
            listen: None,
            client: None,
            join: None,
            secret: None,
            tls: None,
            trust_network: false,
            lease_ms: LEASE_MS_DEFAULT,
        }
    }

    /// Whether a node would start with this.
    pub fn check(&self) -> Result<(), ClusterConfigError> {
        if !(1..=NODES_MAX).contains(&self.id) {
            return Err(ClusterConfigError::Id(self.id));
        }
        let peer = Some(&self.peer);
        for (key, address) in [
            ("peer", peer),
            ("client", self.client.as_ref()),
            ("join", self.join.as_ref()),
        ] {
            let Some(address) = address else { continue };
            host_and_port(address).map_err(|why| ClusterConfigError::Address {
                key,
                address: address.clone(),
                why,
            })?;
        }
        if self.join.as_ref() == peer {
            return Err(ClusterConfigError::JoinsItself(self.peer.clone()));
        }
        if !LEASE_MS.contains(&self.lease_ms) {
            return Err(ClusterConfigError::Lease(self.lease_ms));
        }
        let guarded = self.is_guarded();
        let beyond = self.listen.filter(|listen| !listen.ip().is_loopback());
        match beyond.map(|listen| listen.to_string()) {
            _ if guarded => Ok(()),
            Some(listen) => Err(ClusterConfigError::OpenToAll(listen)),
            None if is_loopback(&self.peer) => Ok(()),
            None => Err(ClusterConfigError::OpenToAll(self.peer.clone())),
        }
    }

    /// Whether it is settled who may be a node: by a secret or TLS, or because everybody may.
    pub(crate) fn is_guarded(&self) -> bool {
        self.secret.is_some() || self.tls.is_some() || self.trust_network
    }

    /// Whether a node with users would start with this: their passwords must not be all that is asked for.
    pub(crate) fn check_with_users(&self) -> Result<(), ClusterConfigError> {
        match self.is_guarded() {
            true => Ok(()),
            false => Err(ClusterConfigError::PastUsers(self.peer.clone())),
        }
    }

    /// The address of this node for clients, if it listens on TCP: the configured one; otherwise that of the RESP front door;
    /// otherwise, if that listens everywhere, the host of the peer address with its port.
    pub fn client_address(&self, resp: Option<SocketAddr>) -> Option<String> {
        if self.client.is_some() {
            return self.client.clone();
        }
        let resp = resp?;
        let host = self
            .peer
            .rsplit_once(':')
            .filter(|_| resp.ip().is_unspecified());
        Some(match host {
            Some((host, _)) => format!("{host}:{}", resp.port()),
            None => resp.to_string(),
        })
    }
}

/// Splits an address into a host, without brackets, and a port.
pub(crate) fn host_and_port(address: &str) -> Result<(&str, u16), &'static str> {
    if address.len() > ADDRESS_BYTES_MAX {
        return Err("it is longer than 255 bytes");
    }
    let (host, port) = address.rsplit_once(':').ok_or("it has no port")?;
    let port: u16 = port
        .parse()
        .map_err(|_| "its port is not a number from 1 to 65535")?;
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let host = match inner {
        Some(inner) => inner,
        None if host.contains(':') => return Err("an IPv6 address stands in brackets"),
        None => host,
    };
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"/@[]\"'\\".contains(&byte);
    match host.bytes().all(plain) && !host.is_empty() {
        true if port == 0 => Err("its port is 0, which nobody can dial"),
        true => Ok((host, port)),
        false => Err("its host is neither an address nor a name"),
    }
}

/// Whether only this machine can reach an address. A name other than localhost may resolve to anything.
fn is_loopback(address: &str) -> bool {
    let Ok((host, _)) = host_and_port(address) else {
        return false;
    };
    let ip = host.parse().map(|ip: IpAddr| ip.is_loopback());
    ip.unwrap_or_else(|_| host.eq_ignore_ascii_case("localhost"))
}

/// The secret by which the nodes of a cluster authenticate each other. It is never sent.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterSecret(Vec<u8>);

impl ClusterSecret {
    /// Anybody who has listened to one greeting could guess a shorter one.
    pub const BYTES_MIN: usize = 16;
    /// The longest secret.
    pub const BYTES_MAX: usize = 1024;

    /// Reads the text of a file; surrounding white space does not count.
    pub fn read(text: &str) -> Result<ClusterSecret, ClusterConfigError> {
        let bytes = text.trim().as_bytes();
        match bytes.len() {
            Self::BYTES_MIN..=Self::BYTES_MAX => Ok(ClusterSecret(bytes.to_vec())),
            length => Err(ClusterConfigError::Secret(length)),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Never shows the secret.
impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Option<ClusterSecret> {
        Some(ClusterSecret::read("  0123456789abcdef\n").unwrap())
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        assert_eq!(host_and_port("[::1]:7700"), Ok(("::1", 7700)));
        assert_eq!(host_and_port("node-1.example:1"), Ok(("node-1.example", 1)));
        let long = format!("{}:1", "x".repeat(254));
        for bad in [
            "", "a", ":1", "a:", "a:0", "a:65536", "::1:7", "a b:1", "a\0:1", "[]:1", &long,
        ] {
            assert!(host_and_port(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn beyond_this_machine_the_nodes_must_know_each_other() {
        for (peer, open) in [
            ("127.0.0.1:7700", false),
            ("[::1]:7700", false),
            ("localhost:7700", false),
            ("node1:7700", true),
            ("10.0.0.1:7700", true),
            ("0.0.0.0:7700", true),
        ] {
            let mut config = ClusterConfig::new(1, peer);
            assert_eq!(config.check().is_err(), open, "{peer}");
            config.secret = secret();
            assert_eq!(config.check(), Ok(()), "{peer}");
        }
        let mut config = ClusterConfig::new(1, "node1:7700");
        config.trust_network = true;
        assert_eq!(config.check(), Ok(()));
        let mut config = ClusterConfig::new(1, "127.0.0.1:7700");
        config.listen = Some("0.0.0.0:7700".parse().unwrap());
        assert!(matches!(
            config.check(),
            Err(ClusterConfigError::OpenToAll(_))
        ));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let check = |change: fn(&mut ClusterConfig)| {
            let mut config = ClusterConfig::new(1, "127.0.0.1:7700");
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        for (error, part) in [
            (check(|config| config.id = 0), "1 to 255"),
            (check(|config| config.id = 256), "1 to 255"),
            (check(|config| config.peer = "x".into()), "no port"),
            (
                check(|config| config.join = Some("x:y".into())),
                "join \"x:y\"",
            ),
            (
                check(|config| config.join = Some(config.peer.clone())),
                "own",
            ),
            (check(|config| config.lease_ms = 10), "1000 to 60000"),
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(
            ClusterSecret::read(" short "),
            Err(ClusterConfigError::Secret(5))
        );
        assert!(!format!("{:?}", secret()).contains("0123"));
    }

    #[test]
    fn clients_are_told_an_address_that_they_can_dial() {
        let mut config = ClusterConfig::new(1, "[fd00::1]:7700");
        let at =
            |config: &ClusterConfig, resp: &str| config.client_address(Some(resp.parse().unwrap()));
        assert_eq!(at(&config, "0.0.0.0:7600").unwrap(), "[fd00::1]:7600");
        assert_eq!(at(&config, "10.0.0.1:7600").unwrap(), "10.0.0.1:7600");
        assert_eq!(config.client_address(None), None);
        config.client = Some("locks.example:7600".into());
        assert_eq!(at(&config, "0.0.0.0:1").unwrap(), "locks.example:7600");
    }
}
