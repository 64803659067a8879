//! The configuration file: one `key = value` per line, `#` starts a comment. The keys are those of the command line, and the
//! names of limits.

mod cluster;

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Component, PathBuf};

use crate::config::Config;
use crate::near::{did_you_mean, nearest};
use crate::users::{Rights, RightsError, Secret, User};
pub use cluster::ClusterSettings;

/// The contents of a configuration file; `None` for what it does not mention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The data directory.
    pub data: Option<PathBuf>,
    /// Where to listen over TCP.
    pub resp: Option<SocketAddr>,
    /// Where to listen for HTTP.
    pub http: Option<SocketAddr>,
    /// Where to listen on a Unix socket.
    pub unix: Option<PathBuf>,
    /// TLS: the certificate, the key, and the authority of the clients that are let in.
    pub tls_cert: Option<PathBuf>,
    /// See `tls_cert`.
    pub tls_key: Option<PathBuf>,
    /// See `tls_cert`.
    pub tls_client_ca: Option<PathBuf>,
    /// The password of the default user.
    pub password: Option<Secret>,
    users: BTreeMap<String, HalfUser>,
    /// Whether the default user must `PRESENT` before working on flows.
    pub present_first: bool,
    /// Whether the default user must open or resume a session before it holds anything.
    pub session_first: bool,
    /// The directory below which flows keep the files of their jobs.
    pub files_root: Option<PathBuf>,
    /// The level of logging to standard error.
    pub log: Option<String>,
    /// Its format: `text` or `json`.
    pub log_format: Option<String>,
    /// What makes the node a member of a cluster.
    pub cluster: ClusterSettings,
    /// The Corosync process group that shares the pools.
    pub corosync: Option<String>,
    /// The Corosync node IDs of its members.
    pub corosync_members: Option<Vec<u32>>,
    limits: Vec<(String, u64)>,
    /// The last line of each key.
    lines: BTreeMap<String, usize>,
}

/// What a file has said about a user so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct HalfUser {
    /// The first line that names it.
    line: usize,
    present_first: bool,
    session_first: bool,
    secret: Option<Secret>,
    rights: Option<Rights>,
}

/// An invalid line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {wrong}")]
pub struct SettingsError {
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong with it.
    pub wrong: String,
}

/// The keys other than limits and those of the cluster.
const KEYS: &[&str] = &[
    "data",
    "resp",
    "http",
    "unix",
    "tls_cert",
    "tls_key",
    "tls_client_ca",
    "password",
    "user.NAME.password",
    "user.NAME.rights",
    "user.NAME.present_first",
    "user.NAME.session_first",
    "present_first",
    "session_first",
    "files_root",
    "log",
    "log_format",
    "corosync",
    "corosync_members",
];

/// The keys that set a limit, and where.
type Field = fn(&mut Config) -> Slot<'_>;

enum Slot<'a> {
    Count(&'a mut usize),
    Millis(&'a mut u64),
}

const LIMITS: &[(&str, Field)] = &[
    ("gates", |c| Slot::Count(&mut c.limits.gates)),
    ("sessions", |c| Slot::Count(&mut c.limits.sessions)),
    ("waiters", |c| Slot::Count(&mut c.limits.waiters)),
    ("waiters_per_gate", |c| {
        Slot::Count(&mut c.limits.waiters_per_gate)
    }),
    ("holds", |c| Slot::Count(&mut c.limits.holds)),
    ("deadlock_steps", |c| {
        Slot::Count(&mut c.limits.deadlock_steps)
    }),
    ("once_keys", |c| Slot::Count(&mut c.limits.once_keys)),
    ("ttl_ms_default", |c| {
        Slot::Millis(&mut c.limits.ttl_ms_default)
    }),
    ("ttl_ms_max", |c| Slot::Millis(&mut c.limits.ttl_ms_max)),
    ("wait_ms_max", |c| Slot::Millis(&mut c.limits.wait_ms_max)),
    ("connections", |c| Slot::Count(&mut c.wire.connections)),
    ("preauth_frame_bytes", |c| {
        Slot::Count(&mut c.wire.preauth_frame_bytes)
    }),
    ("preauth_arguments", |c| {
        Slot::Count(&mut c.wire.preauth_arguments)
    }),
    ("preauth_ms", |c| Slot::Millis(&mut c.wire.preauth_ms)),
    ("unfinished_bytes", |c| {
        Slot::Count(&mut c.wire.unfinished_bytes)
    }),
    ("frame_bytes", |c| Slot::Count(&mut c.wire.frame_bytes)),
    ("arguments", |c| Slot::Count(&mut c.wire.arguments)),
    ("argument_bytes", |c| {
        Slot::Count(&mut c.wire.argument_bytes)
    }),
    ("inline_bytes", |c| Slot::Count(&mut c.wire.inline_bytes)),
    ("output_bytes", |c| Slot::Count(&mut c.wire.output_bytes)),
    ("output_bytes_total", |c| {
        Slot::Count(&mut c.wire.output_bytes_total)
    }),
    ("changes_under_way", |c| {
        Slot::Count(&mut c.wire.changes_under_way)
    }),
    ("subscriptions", |c| Slot::Count(&mut c.wire.subscriptions)),
    ("patterns", |c| Slot::Count(&mut c.wire.patterns)),
    ("subscriptions_total", |c| {
        Slot::Count(&mut c.wire.subscriptions_total)
    }),
    ("pattern_bytes_total", |c| {
        Slot::Count(&mut c.wire.pattern_bytes_total)
    }),
    ("list_rows", |c| Slot::Count(&mut c.wire.list_rows)),
    ("handshake_ms", |c| Slot::Millis(&mut c.wire.handshake_ms)),
    ("password_delay_ms", |c| {
        Slot::Millis(&mut c.wire.password_delay_ms)
    }),
    ("password_tries", |c| {
        Slot::Count(&mut c.wire.password_tries)
    }),
    ("password_wait_ms", |c| {
        Slot::Millis(&mut c.wire.password_wait_ms)
    }),
    ("password_pairs", |c| {
        Slot::Count(&mut c.wire.password_pairs)
    }),
    ("password_queue", |c| {
        Slot::Count(&mut c.wire.password_queue)
    }),
    ("http_connections", |c| {
        Slot::Count(&mut c.http_limits.connections)
    }),
    ("http_requests", |c| {
        Slot::Count(&mut c.http_limits.requests)
    }),
    ("http_streams", |c| Slot::Count(&mut c.http_limits.streams)),
    ("http_head_bytes", |c| {
        Slot::Count(&mut c.http_limits.head_bytes)
    }),
    ("http_head_fields", |c| {
        Slot::Count(&mut c.http_limits.head_fields)
    }),
    ("http_body_bytes", |c| {
        Slot::Count(&mut c.http_limits.body_bytes)
    }),
    ("http_head_ms", |c| Slot::Millis(&mut c.http_limits.head_ms)),
    ("http_body_ms", |c| Slot::Millis(&mut c.http_limits.body_ms)),
    ("http_answer_ms", |c| {
        Slot::Millis(&mut c.http_limits.answer_ms)
    }),
];

impl Settings {
    /// Reads a configuration file's text.
    pub fn read(text: &str) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = match line.split_once('=') {
                Some((key, value)) => {
                    settings.lines.insert(key.trim().to_owned(), at + 1);
                    settings.set(at + 1, key.trim(), unquoted(value.trim()))
                }
                None => Err("it is not `key = value`".to_owned()),
            };
            read.map_err(|wrong| SettingsError {
                line: at + 1,
                wrong,
            })?;
        }
        Ok(settings)
    }

    fn set(&mut self, line: usize, key: &str, value: &str) -> Result<(), String> {
        match key {
            "data" => self.data = Some(value.into()),
            "resp" => self.resp = Some(listening_address(value)?),
            "http" => self.http = Some(listening_address(value)?),
            "unix" => self.unix = Some(value.into()),
            "tls_cert" => self.tls_cert = Some(value.into()),
            "tls_key" => self.tls_key = Some(value.into()),
            "tls_client_ca" => self.tls_client_ca = Some(value.into()),
            "password" => self.password = Some(secret(value)?),
            "present_first" => self.present_first = yes(value)?,
            "session_first" => self.session_first = yes(value)?,
            "files_root" => self.files_root = Some(directory(value)?),
            "log" => self.log = Some(one_of(value, &["error", "warn", "info", "debug"])?),
            "corosync" => self.corosync = Some(value.into()),
            "corosync_members" => self.corosync_members = Some(node_ids(value)?),
            "log_format" => self.log_format = Some(one_of(value, &["text", "json"])?),
            key if key.starts_with("user.") => self.set_user(line, key, value)?,
            key if ClusterSettings::KEYS.contains(&key) => self.cluster.set(key, value)?,
            key if LIMITS.iter().any(|(name, _)| *name == key) => {
                let number = value.parse();
                let number = number.map_err(|_| format!("{value:?} is not a whole number"))?;
                self.limits.push((key.to_owned(), number));
            }
            key => {
                let limits = LIMITS.iter().map(|(name, _)| *name);
                let known: Vec<&str> = KEYS.iter().chain(ClusterSettings::KEYS).copied().collect();
                let known: Vec<&str> = known.into_iter().chain(limits).collect();
                return Err(match nearest(key, known.iter().copied()) {
                    Some(near) => format!("the key {key:?} is unknown; did you mean {near}?"),
                    None => format!("the key {key:?} is unknown; there are {}", known.join(", ")),
                });
            }
        }
        Ok(())
    }

    /// `user.NAME.password`, `rights`, `present_first` or `session_first`.
    fn set_user(&mut self, line: usize, key: &str, value: &str) -> Result<(), String> {
        let rest = key
            .strip_prefix("user.")
            .and_then(|rest| rest.rsplit_once('.'));
        let (name, what) = rest.unwrap_or((key, ""));
        let half = self.users.entry(name.to_owned()).or_insert(HalfUser {
            line,
            ..HalfUser::default()
        });
        let twice = match what {
            "password" => half.secret.replace(secret(value)?).is_some(),
            "rights" => {
                let rights = value
                    .parse()
                    .map_err(|error: RightsError| error.to_string())?;
                half.rights.replace(rights).is_some()
            }
            "present_first" => {
                half.present_first = yes(value)?;
                false
            }
            "session_first" => {
                half.session_first = yes(value)?;
                false
            }
            _ => {
                return Err(format!(
                    "the key {key:?} is unknown; a user has user.NAME.password, user.NAME.rights, user.NAME.present_first and user.NAME.session_first"
                ));
            }
        };
        match twice {
            true => Err(format!("{key} is said twice")),
            false => Ok(()),
        }
    }

    /// The first line with one of these keys.
    pub fn line_of(&self, keys: &[&str]) -> Option<usize> {
        let lines = keys.iter().filter_map(|key| self.lines.get(*key));
        lines.min().copied()
    }

    /// Whether the file contains a password, or the hash of one.
    pub fn has_secrets(&self) -> bool {
        let users = self.users.values();
        self.password.is_some() || users.into_iter().any(|user| user.secret.is_some())
    }

    /// The users, each of them complete.
    pub fn users(&self) -> Result<Vec<User>, SettingsError> {
        let whole = |(name, half): (&String, &HalfUser)| {
            let missing = |what| format!("user {name} has no {what}; say user.{name}.{what}");
            let secret = half.secret.clone().ok_or_else(|| missing("password"))?;
            let rights = half.rights.clone().ok_or_else(|| missing("rights"))?;
            let user = User::new(name, secret, rights).map_err(|error| error.to_string())?;
            let user = user.presents_first(half.present_first);
            Ok(user.opens_first(half.session_first))
        };
        let whole = |user: (&String, &HalfUser)| {
            let line = user.1.line;
            whole(user).map_err(|wrong| SettingsError { line, wrong })
        };
        self.users.iter().map(whole).collect()
    }

    /// The keys whose values differ in a newer file and take effect only at the next start.
    pub fn changed_until_restart(&self, newer: &Settings) -> Vec<&'static str> {
        let changed = [
            ("data", self.data != newer.data),
            ("resp", self.resp != newer.resp),
            ("http", self.http != newer.http),
            ("unix", self.unix != newer.unix),
            (
                "tls_cert",
                self.tls_cert.is_some() != newer.tls_cert.is_some(),
            ),
            ("files_root", self.files_root != newer.files_root),
            ("log", self.log != newer.log),
            ("log_format", self.log_format != newer.log_format),
            (
                "corosync",
                (&self.corosync, &self.corosync_members)
                    != (&newer.corosync, &newer.corosync_members),
            ),
            ("the cluster's keys", self.cluster != newer.cluster),
            ("limits", self.limits != newer.limits),
        ];
        let changed = changed.into_iter().filter(|(_, changed)| *changed);
        changed.map(|(key, _)| key).collect()
    }

    /// Puts the limits into a configuration.
    pub fn apply_limits(&self, config: &mut Config) {
        for (key, value) in &self.limits {
            let Some((_, field)) = LIMITS.iter().find(|(name, _)| name == key) else {
                continue;
            };
            match field(config) {
                Slot::Count(count) => *count = usize::try_from(*value).unwrap_or(usize::MAX),
                Slot::Millis(millis) => *millis = *value,
            }
        }
    }
}

/// A list such as `1,2,3`.
fn node_ids(value: &str) -> Result<Vec<u32>, String> {
    let ids = value.split(',').map(|id| id.trim().parse());
    let ids: Result<_, _> = ids.collect();
    ids.map_err(|_| format!("{value:?} is not a list of node ids such as 1,2,3"))
}

fn yes(value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("{value:?} is neither yes nor no")),
    }
}

fn one_of(value: &str, known: &[&str]) -> Result<String, String> {
    match known.contains(&value) {
        true => Ok(value.to_owned()),
        false => {
            let hint = did_you_mean(value, known.iter().copied());
            let known = known.join(", ");
            Err(format!("{value:?} is unknown; {hint}it is one of {known}"))
        }
    }
}

fn secret(value: &str) -> Result<Secret, String> {
    Secret::read(value).map_err(|error| error.to_string())
}

/// A directory that means the same on every machine.
fn directory(value: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(value);
    let climbs = path.components().any(|part| part == Component::ParentDir);
    match path.is_absolute() && !climbs {
        true => Ok(path),
        false => Err(format!("{value:?} is no absolute path without ..")),
    }
}

/// Where to listen: an address, or a host name and a port. If a name has several addresses, the first IPv4 address counts.
pub fn listening_address(value: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = value.parse() {
        return Ok(address);
    }
    let bad =
        |why: String| format!("{value:?} is no address: {why}; one looks like 127.0.0.1:7600");
    let named = value.rsplit_once(':');
    if !named.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        return Err(bad("HOST:PORT is wanted".into()));
    }
    let found = value
        .to_socket_addrs()
        .map_err(|error| bad(error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    let first = found
        .iter()
        .find(|address| address.is_ipv4())
        .or(found.first());
    first
        .copied()
        .ok_or_else(|| bad("that host has none".into()))
}

/// A value may be in quotes, as in TOML.
fn unquoted(value: &str) -> &str {
    let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    inner.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_line_by_line() {
        let text = "# the lock server\ndata = \"locks\"\nresp = 127.0.0.1:7000\n\nwaiters = 50\npassword = a=b\n";
        let settings = Settings::read(text).unwrap();
        assert_eq!(settings.data, Some("locks".into()));
        assert_eq!(settings.resp, Some("127.0.0.1:7000".parse().unwrap()));
        assert_eq!(settings.password, Some(Secret::read("a=b").unwrap()));
        let mut config = Config::embedded("x");
        settings.apply_limits(&mut config);
        assert_eq!(config.limits.waiters, 50);
    }

    #[test]
    fn a_hosts_name_is_an_address() {
        let settings = Settings::read("resp = localhost:7000\nhttp = [::1]:7001").unwrap();
        assert_eq!(settings.resp, Some("127.0.0.1:7000".parse().unwrap()));
        assert_eq!(settings.http, Some("[::1]:7001".parse().unwrap()));
    }

    #[test]
    fn users_have_a_password_and_rights() {
        let text =
            "user.bob.password = x\nuser.bob.rights = deploy/* : use\nuser.al.rights = * : show\n";
        let settings = Settings::read(text).unwrap();
        let error = settings.users().unwrap_err();
        assert!(error.wrong.contains("user.al.password"), "{error}");
        assert_eq!(error.line, 3);
        let whole = Settings::read(&format!("{text}user.al.password = y")).unwrap();
        let users = whole.users().unwrap();
        let names: Vec<&str> = users.iter().map(User::name).collect();
        assert_eq!(names, ["al", "bob"]);
        assert!(users[1].may(crate::users::Deed::Use, "deploy/x"));
    }

    #[test]
    fn what_means_nothing_is_named_with_its_line() {
        for (text, line, wrong) in [
            ("data = x\nnonsense", 2, "key = value"),
            ("reps = 127.0.0.1:1", 1, "did you mean resp?"),
            ("wibble = 1", 1, "there are data, resp"),
            ("resp = here", 1, "no address"),
            ("resp = no such host:80", 1, "no address"),
            ("log = wran", 1, "did you mean warn?"),
            ("log_format = xml", 1, "text, json"),
            ("\nwaiters = many", 2, "whole number"),
            ("password =", 1, "empty"),
            ("present_first = maybe", 1, "neither yes nor no"),
            ("user.b.session_first = 1", 1, "neither yes nor no"),
            ("files_root = jobs", 1, "absolute"),
            ("files_root = /srv/../etc", 1, "absolute"),
            ("user.bob = x", 1, "user.NAME.password"),
            ("user.bob.rights = deploy", 1, "no colon"),
            ("user.b.password = x\nuser.b.password = x", 2, "twice"),
        ] {
            let error = Settings::read(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.wrong.contains(wrong), "{error}");
        }
    }

    #[test]
    fn the_members_of_a_corosync_group_are_read() {
        let settings = Settings::read("corosync = shop\ncorosync_members = 1, 2,3\n").unwrap();
        assert_eq!(settings.corosync.as_deref(), Some("shop"));
        assert_eq!(settings.corosync_members, Some(vec![1, 2, 3]));
        let wrong = Settings::read("corosync_members = 1,two").unwrap_err();
        assert!(wrong.to_string().contains("such as 1,2,3"), "{wrong}");
    }
}
