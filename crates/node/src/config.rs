//! How a node is configured.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use testigo_core::Limits;
use testigo_core::pool::POOL_NODES_MAX;
use testigo_engine::{Opening, SnapshotPolicy};

use crate::http::HttpLimits;
use crate::peers::{ClusterConfig, ClusterConfigError};
use crate::tls::TlsFiles;
use crate::users::{Guests, Secret, User};
use crate::wire::WireLimits;

/// Cap on users of a node.
const USERS_MAX: usize = 10_000;
/// Corosync's own limit for the name of a group.
const GROUP_NAME_MAX: usize = 127;
/// Cap on members of a Corosync group.
const GROUP_NODES_MAX: usize = POOL_NODES_MAX;

/// The configuration of a node.
///
/// ```
/// use testigo_node::Config;
///
/// let mut config = Config::embedded("/var/lib/shop/testigo");
/// config.http = Some("127.0.0.1:7601".parse()?); // a console for people
/// config.check()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The data directory; created if it does not exist.
    pub data: PathBuf,
    /// Where to listen for RESP over TCP.
    pub resp: Option<SocketAddr>,
    /// Where to listen for HTTP: the console, JSON and metrics.
    pub http: Option<SocketAddr>,
    /// Where to listen for RESP on a Unix socket.
    pub unix: Option<PathBuf>,
    /// TLS on both TCP front doors.
    pub tls: Option<TlsFiles>,
    /// The password of the default user, who may do everything. A password or users are required to listen beyond this
    /// machine.
    pub password: Option<Secret>,
    /// Other users, with their rights.
    pub users: Vec<User>,
    /// Whether the default user, or everybody if there are no users, must `PRESENT` before working on flows.
    pub present_first: bool,
    /// Whether the same must open or resume a session before they hold anything: see [`User::opens_first`].
    pub session_first: bool,
    /// The directory below which flows keep the files of their jobs; without it their `data` are relative paths.
    pub files_root: Option<PathBuf>,
    /// What the services may cost.
    pub limits: Limits,
    /// What a connection may cost.
    pub wire: WireLimits,
    /// What the HTTP door may cost.
    pub http_limits: HttpLimits,
    /// When the log is replaced by a snapshot.
    pub snapshots: SnapshotPolicy,
    /// Whether the data directory is a restored backup.
    pub opening: Opening,
    /// The cluster of which the node is a member; without it the node is alone.
    pub cluster: Option<ClusterConfig>,
    /// The Corosync group that shares the pools instead of the log.
    pub corosync: Option<CorosyncConfig>,
}

/// A Corosync process group whose members share pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorosyncConfig {
    /// The name of the process group.
    pub group: String,
    /// The Corosync node IDs of all members, including this node: the same at all of them.
    pub members: Vec<u32>,
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Everybody on the network could take and end locks.
    #[error(
        "{0} can be reached from other machines, and no password is set; \
         set `password` or users in the configuration file, or listen on 127.0.0.1"
    )]
    OpenToAll(SocketAddr),
    /// A limit beyond what the log's records allow.
    #[error("the limit {name} is {value}; it must be in 1..={most}")]
    Limit {
        /// The limit's name.
        name: &'static str,
        /// The configured value.
        value: u64,
        /// The maximum.
        most: u64,
    },
    /// It is unclear which of the two counts.
    #[error("user {0} is said twice; `password` is the password of user default")]
    UserTwice(String),
    /// There are too many.
    #[error("{0} users are more than {USERS_MAX}")]
    ManyUsers(usize),
    /// The pools would be in both the log and the group.
    #[error(
        "a node of a cluster has its pools on the cluster's log: --corosync is for nodes without --peer"
    )]
    CorosyncInCluster,
    /// No Corosync group can be like this.
    #[error(
        "a Corosync group has a name of 1 to {GROUP_NAME_MAX} bytes, and 1 to {GROUP_NODES_MAX} members: --corosync-members 1,2,3"
    )]
    CorosyncGroup,
    /// It cannot be a member of a cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterConfigError),
}

impl Config {
    /// A node that does not listen anywhere.
    pub fn embedded(data: impl AsRef<Path>) -> Config {
        Config {
            data: data.as_ref().to_owned(),
            resp: None,
            http: None,
            unix: None,
            tls: None,
            password: None,
            users: Vec::new(),
            present_first: false,
            session_first: false,
            files_root: None,
            limits: Limits::default(),
            wire: WireLimits::default(),
            http_limits: HttpLimits::default(),
            snapshots: SnapshotPolicy::default(),
            opening: Opening::Ordinary,
            cluster: None,
            corosync: None,
        }
    }

    /// Whether a node would start with this. The default limits are the highest allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_users()?;
        let guarded = self.password.is_some() || !self.users.is_empty();
        for address in [self.resp, self.http].into_iter().flatten() {
            if !address.ip().is_loopback() && !guarded {
                return Err(ConfigError::OpenToAll(address));
            }
        }
        if let Some(cluster) = &self.cluster {
            cluster.check()?;
            if guarded {
                cluster.check_with_users()?;
            }
        }
        if let Some(CorosyncConfig { group, members }) = &self.corosync {
            if self.cluster.is_some() {
                return Err(ConfigError::CorosyncInCluster);
            }
            let named = (1..=GROUP_NAME_MAX).contains(&group.len());
            if !named || !(1..=GROUP_NODES_MAX).contains(&members.len()) {
                return Err(ConfigError::CorosyncGroup);
            }
        }
        let (mine, most) = (&self.limits, Limits::default());
        for (name, value, most) in [
            ("gates", mine.gates as u64, most.gates as u64),
            ("sessions", mine.sessions as u64, most.sessions as u64),
            ("waiters", mine.waiters as u64, most.waiters as u64),
            ("holds", mine.holds as u64, most.holds as u64),
            (
                "deadlock_steps",
                mine.deadlock_steps as u64,
                most.deadlock_steps as u64,
            ),
            ("once_keys", mine.once_keys as u64, most.once_keys as u64),
            ("ttl_ms_default", mine.ttl_ms_default, mine.ttl_ms_max),
            ("ttl_ms_max", mine.ttl_ms_max, most.ttl_ms_max),
            ("wait_ms_max", mine.wait_ms_max, most.wait_ms_max),
        ]
        .into_iter()
        .chain(self.http_limits.bounds())
        {
            if !(1..=most).contains(&value) {
                return Err(ConfigError::Limit { name, value, most });
            }
        }
        Ok(())
    }

    pub(crate) fn guests(&self) -> Guests<'_> {
        Guests {
            password: self.password.as_ref(),
            users: &self.users,
            present_first: self.present_first,
            session_first: self.session_first,
        }
    }

    fn check_users(&self) -> Result<(), ConfigError> {
        if self.users.len() > USERS_MAX {
            return Err(ConfigError::ManyUsers(self.users.len()));
        }
        let mut names: Vec<&str> = self.users.iter().map(User::name).collect();
        names.extend(self.password.is_some().then_some(User::DEFAULT));
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ConfigError::UserTwice(pair[0].to_owned())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::ClusterSecret;
    use crate::users::Rights;

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
            config.password = Some(Secret::read("secret").unwrap());
            assert_eq!(config.check(), Ok(()), "{resp}");
        }
        let alice = User::new("alice", Secret::read("x").unwrap(), Rights::all()).unwrap();
        config.password = None;
        config.users = vec![alice.clone()];
        assert_eq!(config.check(), Ok(()));
        config.users.push(alice);
        assert_eq!(config.check(), Err(ConfigError::UserTwice("alice".into())));
    }

    #[test]
    fn nobody_joins_past_the_users_unless_that_is_wanted() {
        let with = |users: bool, change: fn(&mut ClusterConfig)| {
            let mut config = Config::embedded("data");
            config.password = users.then(|| Secret::read("secret").unwrap());
            let mut cluster = ClusterConfig::new(1, "127.0.0.1:7700");
            change(&mut cluster);
            config.cluster = Some(cluster);
            config.check()
        };
        assert_eq!(with(false, |_| {}), Ok(()));
        let refused = with(true, |_| {}).unwrap_err().to_string();
        for said in ["/dev/urandom", "--secret-file", "--peer-trust-network"] {
            assert!(refused.contains(said), "{refused}");
        }
        assert_eq!(with(true, |cluster| cluster.trust_network = true), Ok(()));
        let secret = |cluster: &mut ClusterConfig| {
            cluster.secret = Some(ClusterSecret::read("0123456789abcdef").unwrap());
        };
        assert_eq!(with(true, secret), Ok(()));
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

    #[test]
    fn the_http_door_has_some_room_and_not_without_bounds() {
        for wrong in [0, usize::MAX] {
            let mut config = Config::embedded("data");
            config.http_limits.requests = wrong;
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains("http_requests"), "{error}");
        }
    }
}
