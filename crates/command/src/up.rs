//! `testigo up`: runs a node until it is told to stop.

mod cluster;
mod corosync;
mod joining;
mod logging;
mod notify;

use std::fmt::Display;
use std::io::{self, Write, stdout};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use clap::{Args, ValueEnum};
use log::LevelFilter;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use testigo_node::{
    ClusterSettings, Config, FlushError, Node, Opening, Reloader, Settings, StartError, StopError,
    TlsFiles, listening_address,
};

use crate::exit::{DISK_FAILED, Failure, NOT_GOOD, Outcome, complain};
use cluster::Cluster;
use corosync::CorosyncGroup;
use logging::LogFormat;
use notify::notify;

/// Where a node listens if nobody says otherwise.
const RESP: &str = "127.0.0.1:7600";
/// Where the console is if nobody says otherwise.
const HTTP: &str = "127.0.0.1:7601";
/// What a configuration file says of TLS.
const TLS_KEYS: &[&str] = &["tls_cert", "tls_key", "tls_client_ca"];
/// Where a node keeps its data if nobody says otherwise.
const DATA: &str = "testigo-data";

/// Run a node: every kind of lock as a service, until SIGTERM or Ctrl-C.
///
/// Prints where it listens and what to try, then `ready` on a line of its own. A service manager
/// is told the same (NOTIFY_SOCKET, systemd's Type=notify). SIGHUP reloads users, rights and
/// certificates; a wrong file changes nothing.
///
/// With --id and --peer it is a node of a cluster: a new directory founds one, or with --join joins
/// one, and `ready` comes once the node is a voter. A directory that is a member already only needs
/// --id and --peer.
///
/// With --corosync the pools of a node without --peer are shared in a Corosync process group: every
/// part of a partition goes on taking and donating slots.
///
/// Exit code 0: a clean stop; 1: not clean, the next start recovers; 2: it could not start; 3: the
/// disk failed.
///
/// Examples:
///
///     testigo up --data /var/lib/testigo
///     testigo up --id 2 --peer node2:7700 --join node1:7700 --secret-file /etc/testigo/secret
///     testigo up --corosync testigo --corosync-members 1,2,3
#[derive(Args, Clone)]
#[command(verbatim_doc_comment)]
pub(crate) struct Up {
    /// The data directory; made if it is not there [default: testigo-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to listen for RESP [default: 127.0.0.1:7600]
    #[arg(long, value_name = "ADDRESS", value_parser = listening_address)]
    resp: Option<SocketAddr>,
    /// Where to serve the console, JSON and metrics over HTTP [default: 127.0.0.1:7601]
    #[arg(long, value_name = "ADDRESS", value_parser = listening_address)]
    http: Option<SocketAddr>,
    /// Listen for RESP on a Unix socket, too
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// The certificate to speak TLS with on both TCP doors, in PEM; with --tls-key
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Let in only clients with a certificate of one of these authorities
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// Flows keep the files of their jobs below this directory, or say relative paths
    #[arg(long, value_name = "DIR")]
    files_root: Option<PathBuf>,
    /// A file of `key = value` lines: these options, password, users, and limits by name
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The data directory is a backup that was copied back: fences start above all that may have been granted since
    #[arg(long)]
    restored: bool,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    corosync: CorosyncGroup,
    /// How much to tell on standard error
    #[arg(long, value_name = "LEVEL")]
    log: Option<Level>,
    /// How to tell it: a line of text each, or a line of JSON with time, level and message [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// A thread that panics has left something half done that others wait for: the node ends as by a crash, and the next start
/// recovers.
fn end_with_any_thread() {
    let complain = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // A peer's message that an algorithm cannot have got: refused, and nothing is half done.
        if testigo_protocol::tries_a_step() {
            return;
        }
        complain(panic);
        std::process::abort();
    }));
}

impl Up {
    pub(crate) fn run(self) -> Outcome {
        let settings = self.settings()?;
        logging::tell(self.level(&settings), self.log_format(&settings));
        let config = self.config(&settings)?;
        if let Some(path) = self.config.as_ref().filter(|_| settings.has_secrets()) {
            warn_if_readable(path, "passwords or their hashes");
        }
        if let Some(tls) = &config.tls {
            warn_if_readable(&tls.key, "a private key");
        }
        let tls = config.tls.is_some();
        if let Some(tls) = config
            .cluster
            .as_ref()
            .and_then(|member| member.tls.as_ref())
        {
            warn_if_readable(&tls.key, "a private key");
        }
        if let Some(path) = &self.cluster.settings().or(&settings.cluster).secret_file {
            warn_if_readable(path, "the cluster's secret");
        }
        warn_of_the_clear(&config);
        end_with_any_thread();
        // A file that may not grow (ulimit -f) is then an error of the write, not the end of the process.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        // Nobody could be told that the node is ready; better to see that before the data directory is taken over.
        rustix::io::write(stdout(), &[])
            .map_err(|error| cannot_say(&error, "nothing was started"))?;
        let data = config.data.clone();
        let node = Node::start(config).map_err(|error| unstarted(&error, &data))?;
        // Before `ready`: whoever reads that may send a signal.
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let (stopper, reloader) = (node.stopper(), node.reloader());
        let (up, mut counts) = (self.clone(), settings.clone());
        thread::spawn(move || {
            let mut stopping = false;
            for signal in signals.forever() {
                if signal == SIGHUP {
                    up.reload(&reloader, &mut counts);
                    continue;
                }
                if std::mem::replace(&mut stopping, true) {
                    complain!("testigo: stopped at once; the next start recovers");
                    std::process::exit(NOT_GOOD.into());
                }
                notify(notify::STOPPING);
                log::info!("stopping; a second signal does not wait for the disk");
                stopper.stop();
            }
        });
        let ready = match announce(&node, self.unix.or(settings.unix), tls) {
            Ok(ready) => ready,
            Err(error) => {
                node.stop()?;
                return Err(cannot_say(&error, "the node was stopped again"));
            }
        };
        if ready {
            notify(notify::READY);
        }
        let never_let_in = !ready && node.was_removed();
        match node.wait() {
            Ok(()) if never_let_in => Err(Failure(format!(
                "the data directory {}: this node was removed from its cluster; to let it join again, give --data an empty \
                 directory and --join HOST:PORT of a member",
                data.display()
            ))),
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(StopError::Disk(FlushError(error))) => {
                log::error!(
                    "ended: {error}; everything acknowledged before is on it: repair it and start again"
                );
                Ok(ExitCode::from(DISK_FAILED))
            }
            Err(error) => {
                log::error!("the stop was not clean: {error}");
                Ok(ExitCode::from(NOT_GOOD))
            }
        }
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let Some(path) = &self.config else {
            return Ok(Settings::default());
        };
        let wrong = |error: &dyn Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let settings = Settings::read(&text).map_err(|error| wrong(&error))?;
        settings.users().map_err(|error| wrong(&error))?;
        Ok(settings)
    }

    /// SIGHUP: users, rights and certificates are read again. What is wrong changes nothing.
    fn reload(&self, reloader: &Reloader, counts: &mut Settings) {
        let reloaded = self.settings().and_then(|settings| {
            let reloaded = reloader.reload(&self.config(&settings)?);
            let file = self
                .config
                .as_deref()
                .unwrap_or(Path::new("the command line"));
            reloaded.map_err(|error| format!("{}: {error}", file.display()))?;
            Ok(settings)
        });
        match reloaded {
            Err(Failure(why)) => log::error!("not reloaded, and nothing is changed: {why}"),
            Ok(settings) => {
                for key in counts.changed_until_restart(&settings) {
                    log::warn!("{key} is another in the file, and counts from the next start on");
                }
                *counts = settings;
                log::info!("reloaded: users, rights and certificates");
            }
        }
    }

    fn level(&self, settings: &Settings) -> LevelFilter {
        let said = settings.log.as_ref();
        let said = said.and_then(|word| Level::from_str(word, true).ok());
        match self.log.or(said).unwrap_or(Level::Warn) {
            Level::Error => LevelFilter::Error,
            Level::Warn => LevelFilter::Warn,
            Level::Info => LevelFilter::Info,
            Level::Debug => LevelFilter::Debug,
        }
    }

    fn log_format(&self, settings: &Settings) -> LogFormat {
        let said = settings.log_format.as_ref();
        let said = said.and_then(|word| LogFormat::from_str(word, true).ok());
        self.log_format.or(said).unwrap_or(LogFormat::Text)
    }

    /// What the command line says goes before what the file says.
    fn config(&self, settings: &Settings) -> Result<Config, Failure> {
        let data = self.data.as_ref().or(settings.data.as_ref());
        let mut config = Config::embedded(data.cloned().unwrap_or_else(|| DATA.into()));
        config.resp = match self.resp.or(settings.resp) {
            Some(address) => Some(address),
            None => Some(RESP.parse()?),
        };
        config.http = match self.http.or(settings.http) {
            Some(address) => Some(address),
            None => Some(HTTP.parse()?),
        };
        config.unix = self.unix.clone().or_else(|| settings.unix.clone());
        if self.restored {
            config.opening = Opening::Restored;
        }
        let tls = self.tls(settings);
        config.tls = tls.map_err(|error| self.at(settings, TLS_KEYS, error))?;
        let member = self.cluster.settings().or(&settings.cluster).member();
        let keys = ClusterSettings::KEYS;
        config.cluster = member.map_err(|error| self.at(settings, keys, error.into()))?;
        config.corosync = self.corosync.config(settings);
        if self.restored && config.cluster.is_some() {
            return Err(Failure(
                "--restored is for the directory of a node that is alone: for a cluster, see testigo cluster restore --help and testigo recover --help".into(),
            ));
        }
        let files_root = self.files_root.as_ref().or(settings.files_root.as_ref());
        config.files_root = files_root.map(std::path::absolute).transpose()?;
        config.password = settings.password.clone();
        config.users = settings.users()?;
        config.present_first = settings.present_first;
        config.session_first = settings.session_first;
        settings.apply_limits(&mut config);
        Ok(config)
    }

    /// What is wrong with several keys together, with the place of the first in the file, if they are in one.
    fn at(&self, settings: &Settings, keys: &[&str], Failure(wrong): Failure) -> Failure {
        match (&self.config, settings.line_of(keys)) {
            (Some(file), Some(line)) => {
                Failure(format!("{}: line {line}: {wrong}", file.display()))
            }
            _ => Failure(wrong),
        }
    }

    fn tls(&self, settings: &Settings) -> Result<Option<TlsFiles>, Failure> {
        let cert = self.tls_cert.as_ref().or(settings.tls_cert.as_ref());
        let key = self.tls_key.as_ref().or(settings.tls_key.as_ref());
        let client_ca = self
            .tls_client_ca
            .as_ref()
            .or(settings.tls_client_ca.as_ref());
        match (cert, key, client_ca) {
            (None, None, None) => Ok(None),
            (Some(cert), Some(key), client_ca) => Ok(Some(TlsFiles {
                cert: cert.clone(),
                key: key.clone(),
                client_ca: client_ca.cloned(),
            })),
            _ => Err("TLS needs a certificate and its key: --tls-cert FILE --tls-key FILE".into()),
        }
    }
}

/// Whoever listens beyond this machine without TLS should know what that means.
fn warn_of_the_clear(config: &Config) {
    let doors = [config.resp, config.http].into_iter().flatten();
    for address in doors.filter(|address| config.tls.is_none() && !address.ip().is_loopback()) {
        log::warn!(
            "passwords and locks travel in the clear to {address}; --tls-cert and --tls-key seal them"
        );
    }
}

/// A file with secrets in it should be its owner's alone.
fn warn_if_readable(path: &Path, what: &str) {
    use std::os::unix::fs::PermissionsExt;
    let found = std::fs::metadata(path);
    let mode = found.map_or(0, |found| found.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let path = path.display();
        log::warn!("{path} has {what} and is open to others (mode {mode:o}): chmod 600 {path}");
    }
}

/// Why a node did not start. What is wrong with the data directory is said with its name.
fn unstarted(error: &StartError, data: &Path) -> Failure {
    let (why, data) = (error.to_string(), data.display().to_string());
    let failed = why.strip_prefix("the disk failed (");
    let failed = failed.and_then(|why| why.strip_suffix(')'));
    match (error, failed) {
        (StartError::Data(_), Some(failed)) => {
            let failed = failed.strip_prefix(&format!("{data}: ")).unwrap_or(failed);
            Failure(format!(
                "the data directory {data} cannot be used: {failed}"
            ))
        }
        (StartError::Data(_), None) if !why.contains(&data) => {
            Failure(format!("the data directory {data}: {why}"))
        }
        _ => Failure(why),
    }
}

fn cannot_say(error: &dyn Display, then: &str) -> Failure {
    Failure(format!(
        "cannot write to standard output, where a node says that it is ready: {error}; {then}"
    ))
}

/// Says where the node listens, and that it is ready, unless it stops before, told to or removed: then it gives false.
fn announce(node: &Node, unix: Option<PathBuf>, tls: bool) -> io::Result<bool> {
    let mut out = stdout().lock();
    let (sealed, scheme, option) = match tls {
        true => (", over TLS", "https", "--tls "),
        false => ("", "http", ""),
    };
    if let Some(address) = node.resp_address() {
        writeln!(out, "RESP on {address}{sealed}")?;
    }
    if let Some(path) = unix {
        writeln!(out, "RESP on {}", path.display())?;
    }
    if let Some(address) = node.http_address() {
        writeln!(out, "console on {scheme}://{address}/")?;
    }
    joining::wait_for_membership(node, &mut out)?;
    if node.is_stopping() {
        return Ok(false);
    }
    if node.recovering() {
        let what = match node.recovering_everywhere() {
            true => "no gate grants until every session has resumed, closed or run out",
            false => {
                "what earlier sessions may hold waits until they have resumed, closed or run out"
            }
        };
        let seconds = node.recovers_within_ms().div_ceil(1000);
        writeln!(out, "recovering: {what}, at most {seconds} s")?;
    }
    if let Some(address) = node.resp_address() {
        let port = address.port();
        writeln!(out, "try: redis-cli {option}-p {port} STATUS")?;
        let place = match address.to_string() == RESP {
            true => String::new(),
            false => format!("--resp {address} "),
        };
        let line = format!("testigo lock {option}{place}deploy -- testigo gate show deploy");
        writeln!(out, "     {line}")?;
    }
    writeln!(out, "ready")?;
    out.flush()?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Output};
    use testigo_protocol::{Effects, NodeId, PacketError, rooms};

    const CHILD: &str = "TESTIGO_TEST_CHILD";

    /// A test starts itself again, as the process that is to end or not.
    fn again(test: &str) -> Output {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let test = format!("up::tests::{test}");
        again.args(["--exact", &test, "--nocapture"]);
        again.env(CHILD, "").output().unwrap()
    }

    #[test]
    fn death_of_any_thread_ends_the_node() {
        if std::env::var_os(CHILD).is_some() {
            end_with_any_thread();
            let _ = thread::spawn(|| panic!("on purpose")).join();
            return;
        }
        let ended = again("death_of_any_thread_ends_the_node");
        assert!(!ended.status.success(), "{ended:?}");
        let said = [&ended.stdout[..], &ended.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("on purpose"), "{said}");
        assert!(!said.contains("test result"), "{said}");
    }

    /// The word of one group to another, as if a process had sent it: an algorithm cannot have got that.
    #[test]
    fn a_message_that_cannot_be_does_not_end_the_node() {
        if std::env::var_os(CHILD).is_none() {
            let ended = again("a_message_that_cannot_be_does_not_end_the_node");
            assert!(ended.status.success(), "{ended:?}");
            return;
        }
        end_with_any_thread();
        let mut all = rooms::OVER.iter();
        let algorithm = all
            .find(|a| a.profile.name == "rooms-over:lamport")
            .unwrap();
        let setup = algorithm.profile.telling_setup();
        let (machine, tag) = ((algorithm.machine)(&setup).unwrap(), algorithm.tag(&setup));
        let processes = machine.shape().users as u32;
        let member = |id| machine.member(NodeId(id), tag).unwrap();
        let mut effects = Effects::default();
        member(0).ask(rooms::Ask::Enter(0), &mut effects);
        let (to, packet) = effects.sends.remove(0);
        assert_eq!(to, NodeId(processes));
        let mut group = member(processes);
        group.receive(NodeId(0), &packet, &mut effects).unwrap();
        let (to, packet) = effects.sends.remove(0);
        let refused = member(to.0).receive(NodeId(0), &packet, &mut effects);
        let from = NodeId(0);
        assert_eq!(refused, Err(PacketError::Impossible { from }));
    }
}
