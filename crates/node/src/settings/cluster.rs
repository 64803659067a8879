//! The keys that make a node a cluster member. The command line has the same, and takes precedence over the file.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::peers::{ClusterConfig, ClusterSecret, PeerTls};

/// What a file or the command line says about the cluster; `None` for what it does not mention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSettings {
    /// The node's number.
    pub id: Option<u64>,
    /// Its address for the other nodes.
    pub peer: Option<String>,
    /// Where it listens for them, if elsewhere.
    pub peer_listen: Option<SocketAddr>,
    /// Its address for clients, if not that of its RESP front door.
    pub client: Option<String>,
    /// The peer address of any member of the cluster to join.
    pub join: Option<String>,
    /// The file with the secret that all nodes share.
    pub secret_file: Option<PathBuf>,
    /// Mutual TLS between the nodes: the certificate, the key, and the authority.
    pub peer_tls_cert: Option<PathBuf>,
    /// See `peer_tls_cert`.
    pub peer_tls_key: Option<PathBuf>,
    /// See `peer_tls_cert`.
    pub peer_tls_ca: Option<PathBuf>,
    /// Whether whoever reaches `peer` may be a node.
    pub peer_trust_network: Option<bool>,
    /// The node lease, in milliseconds.
    pub lease_ms: Option<u64>,
}

impl ClusterSettings {
    /// The keys of a configuration file.
    pub const KEYS: &[&str] = &[
        "id",
        "peer",
        "peer_listen",
        "client",
        "join",
        "secret_file",
        "peer_tls_cert",
        "peer_tls_key",
        "peer_tls_ca",
        "peer_trust_network",
        "lease_ms",
    ];

    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = || {
            let number = value.parse();
            number.map_err(|_| format!("{value:?} is not a whole number"))
        };
        match key {
            "id" => self.id = Some(number()?),
            "lease_ms" => self.lease_ms = Some(number()?),
            "peer" => self.peer = Some(value.to_owned()),
            "client" => self.client = Some(value.to_owned()),
            "join" => self.join = Some(value.to_owned()),
            "peer_listen" => self.peer_listen = Some(super::listening_address(value)?),
            "secret_file" => self.secret_file = Some(value.into()),
            "peer_tls_cert" => self.peer_tls_cert = Some(value.into()),
            "peer_tls_key" => self.peer_tls_key = Some(value.into()),
            "peer_trust_network" => self.peer_trust_network = Some(super::yes(value)?),
            "peer_tls_ca" => self.peer_tls_ca = Some(value.into()),
            _ => return Err(format!("the key {key:?} is unknown")),
        }
        Ok(())
    }

    /// These settings; where one is missing, the other's.
    pub fn or(&self, other: &ClusterSettings) -> ClusterSettings {
        macro_rules! either {
            ($($field:ident),*) => {
                ClusterSettings {
                    $($field: self.$field.clone().or_else(|| other.$field.clone()),)*
                }
            };
        }
        either!(
            id,
            peer,
            peer_listen,
            client,
            join,
            secret_file,
            peer_tls_cert,
            peer_tls_key,
            peer_tls_ca,
            peer_trust_network,
            lease_ms
        )
    }

    /// The member that this describes; `None` if there is nothing about a cluster.
    pub fn member(&self) -> Result<Option<ClusterConfig>, String> {
        let (id, peer) = match (self.id, &self.peer) {
            (Some(id), Some(peer)) => (id, peer),
            (None, Some(_)) => return Err("peer needs id: the node's own number, 1 to 255".into()),
            (_, None) if *self == ClusterSettings::default() => return Ok(None),
            (_, None) => {
                let said = self.first_said();
                return Err(format!(
                    "{said} needs peer: HOST:PORT where the other nodes reach this one; without peer a node is alone"
                ));
            }
        };
        let mut member = ClusterConfig::new(id, peer);
        member.listen = self.peer_listen;
        member.client = self.client.clone();
        member.join = self.join.clone();
        member.secret = self.secret()?;
        member.tls = self.tls()?;
        member.trust_network = self.peer_trust_network == Some(true);
        if let Some(lease_ms) = self.lease_ms {
            member.lease_ms = lease_ms;
        }
        Ok(Some(member))
    }

    fn first_said(&self) -> &'static str {
        let said = [
            ("id", self.id.is_some()),
            ("join", self.join.is_some()),
            ("peer_listen", self.peer_listen.is_some()),
            ("client", self.client.is_some()),
            ("secret_file", self.secret_file.is_some()),
            ("peer_trust_network", self.peer_trust_network.is_some()),
            ("lease_ms", self.lease_ms.is_some()),
        ];
        let first = said.into_iter().find(|(_, said)| *said);
        first.map_or("peer_tls_cert", |(key, _)| key)
    }

    fn secret(&self) -> Result<Option<ClusterSecret>, String> {
        let Some(path) = &self.secret_file else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        let secret = ClusterSecret::read(&text);
        let secret = secret.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Some(secret))
    }

    fn tls(&self) -> Result<Option<PeerTls>, String> {
        match (&self.peer_tls_cert, &self.peer_tls_key, &self.peer_tls_ca) {
            (None, None, None) => Ok(None),
            (Some(cert), Some(key), Some(ca)) => Ok(Some(PeerTls {
                cert: cert.clone(),
                key: key.clone(),
                ca: ca.clone(),
            })),
            _ => Err(
                "TLS between nodes needs all three: peer_tls_cert, peer_tls_key and peer_tls_ca"
                    .into(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;

    fn member(text: &str) -> Result<Option<ClusterConfig>, String> {
        Settings::read(text).unwrap().cluster.member()
    }

    #[test]
    fn a_node_is_alone_unless_the_file_says_more() {
        assert_eq!(member("resp = 127.0.0.1:7600"), Ok(None));
        let text = "id = 2\npeer = node2:7700\njoin = node1:7700\npeer_listen = 0.0.0.0:7700\nlease_ms = 5000";
        let member = member(text).unwrap().unwrap();
        assert_eq!((member.id, &*member.peer), (2, "node2:7700"));
        assert_eq!(member.join.as_deref(), Some("node1:7700"));
        assert_eq!(member.listen, Some("0.0.0.0:7700".parse().unwrap()));
        assert_eq!(member.lease_ms, 5000);
    }

    #[test]
    fn half_a_member_is_told_what_is_missing() {
        for (text, wrong) in [
            ("peer = a:1", "needs id"),
            ("id = 1", "id needs peer"),
            ("join = a:1", "join needs peer"),
            ("secret_file = x", "secret_file needs peer"),
            ("peer_tls_ca = x", "peer_tls_cert needs peer"),
            ("peer_trust_network = yes", "peer_trust_network needs peer"),
            ("id = 1\npeer = a:1\npeer_tls_ca = x", "all three"),
            (
                "id = 1\npeer = a:1\nsecret_file = /nowhere/secret",
                "/nowhere/secret",
            ),
        ] {
            let error = member(text).unwrap_err();
            assert!(error.contains(wrong), "{text}: {error}");
        }
        assert!(Settings::read("id = one").is_err());
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let file = Settings::read("id = 2\npeer = a:1\njoin = b:1")
            .unwrap()
            .cluster;
        let line = ClusterSettings {
            peer: Some("c:1".into()),
            ..ClusterSettings::default()
        };
        let member = line.or(&file).member().unwrap().unwrap();
        assert_eq!((member.id, &*member.peer), (2, "c:1"));
    }
}
