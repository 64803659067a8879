//! Servers as throw-away processes on loopback ports, with their data in a temporary directory. What is missing is
//! installed from Debian.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::dialect::Dialect;
use super::etcd::Etcd;
use super::postgres::{Postgres, USER};
use super::resp::Redis;

/// A server that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    /// What it calls itself.
    pub(crate) version: String,
    child: Child,
    _data: TempDir,
}

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Service {
    /// A node of the given binary.
    pub(crate) fn testigo(binary: &Path) -> Result<Service, String> {
        let data = directory()?;
        let mut up = Command::new(binary);
        up.args(["up", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        up.arg("--data").arg(data.path().join("data"));
        let mut child = start(up.stdout(Stdio::piped()))?;
        let lines = BufReader::new(child.stdout.take().ok_or("no pipe to the node")?).lines();
        let mut address = None;
        for line in lines.map_while(Result::ok) {
            if let Some(told) = line.strip_prefix("RESP on ") {
                address = address.or(told.parse().ok());
            }
            if line == "ready" {
                return Ok(Service {
                    address: address.ok_or("the node did not say where it listens")?,
                    version: format!("testigo {}", env!("CARGO_PKG_VERSION")),
                    child,
                    _data: data,
                });
            }
        }
        Err("the node ended before it was ready".into())
    }

    /// This program as the echo server.
    pub(crate) fn baton(argument: &str) -> Result<Service, String> {
        let own = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
        let mut server = Command::new(own);
        let mut child = start(server.args(["locks", argument]).stdout(Stdio::piped()))?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no pipe to the echo server")?;
        let read = BufReader::new(out).read_line(&mut line);
        read.map_err(|e| format!("the echo server does not speak: {e}"))?;
        Ok(Service {
            address: line
                .trim()
                .parse()
                .map_err(|_| format!("{line:?} is no address"))?,
            version: "echo server".into(),
            child,
            _data: directory()?,
        })
    }

    pub(crate) fn redis(flush: &str) -> Result<Service, String> {
        install("redis-server", "redis-server")?;
        let (data, address) = (directory()?, free_address()?);
        let mut server = Command::new("redis-server");
        server.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
        server.args([
            "--appendfsync",
            flush,
            "--port",
            &address.port().to_string(),
        ]);
        server.arg("--dir").arg(data.path());
        let version = said(Command::new("redis-server").arg("--version"))?;
        let version = version
            .split_whitespace()
            .find(|word| word.starts_with("v="));
        Service {
            address,
            version: format!("Redis {}", version.unwrap_or("").trim_start_matches("v=")),
            child: start(server.stdout(Stdio::null()))?,
            _data: data,
        }
        .once_it_answers(|| Box::new(Redis::new("probe", 0)))
    }

    pub(crate) fn etcd() -> Result<Service, String> {
        install("etcd", "etcd-server")?;
        let (data, address, peers) = (directory()?, free_address()?, free_address()?);
        let (url, peers) = (format!("http://{address}"), format!("http://{peers}"));
        let mut server = Command::new("etcd");
        server.arg("--data-dir").arg(data.path().join("data"));
        server.args([
            "--listen-client-urls",
            &url,
            "--advertise-client-urls",
            &url,
        ]);
        server.args(["--listen-peer-urls", &peers]);
        server.args(["--initial-advertise-peer-urls", &peers]);
        server.args(["--initial-cluster", &format!("default={peers}")]);
        let version = said(Command::new("etcd").arg("--version"))?;
        let version = version.lines().next().unwrap_or("");
        Service {
            address,
            version: version.replace("etcd Version:", "etcd"),
            child: start(server.stdout(Stdio::null()).stderr(Stdio::null()))?,
            _data: data,
        }
        .once_it_answers(|| Box::new(Etcd::new("probe", PROBE_LEASE)))
    }

    pub(crate) fn postgres() -> Result<Service, String> {
        let bin = match postgres_programs() {
            Some(bin) => bin,
            None => {
                apt("postgresql")?;
                postgres_programs().ok_or("PostgreSQL is installed and not to be found")?
            }
        };
        let (data, address) = (directory()?, free_address()?);
        let owner = match rustix::process::getuid().is_root() {
            true => Some(account(USER)?),
            false => None,
        };
        if let Some((user, group)) = owner {
            let given = chown(data.path(), Some(user), Some(group));
            given.map_err(|e| format!("cannot give {USER} its directory: {e}"))?;
        }
        // It refuses to run as root.
        let program = |name: &str| {
            let mut command = Command::new(bin.join(name));
            command.current_dir(data.path());
            if let Some((user, group)) = owner {
                command.uid(user).gid(group);
            }
            command
        };
        let cluster = data.path().join("cluster");
        let mut init = program("initdb");
        init.args(["--auth", "trust", "--username", USER, "--no-sync", "-D"]);
        said(init.arg(&cluster))?;
        let mut server = program("postgres");
        server.arg("-D").arg(&cluster).arg("-k").arg(data.path());
        server.args(["-h", "127.0.0.1", "-p", &address.port().to_string()]);
        let version = said(program("postgres").arg("--version"))?;
        let version = version.split_whitespace().nth(2).unwrap_or("");
        Service {
            address,
            version: format!("PostgreSQL {version}"),
            child: start(server.stdout(Stdio::null()).stderr(Stdio::null()))?,
            _data: data,
        }
        .once_it_answers(|| Box::new(Postgres::new(0)))
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Greets until a greeting is answered.
    fn once_it_answers(mut self, probe: impl Fn() -> Box<dyn Dialect>) -> Result<Service, String> {
        let start = Instant::now();
        loop {
            let answered = std::net::TcpStream::connect(self.address)
                .map_err(|e| e.to_string())
                .and_then(|mut stream| probe().greet(&mut stream));
            let Err(why) = answered else {
                return Ok(self);
            };
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("{} ended at its start: {status}", self.version));
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{} does not answer: {why}", self.version));
            }
            thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // An interrupt is a fast and clean stop for all of them.
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(LOOK_AGAIN),
                _ => return,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lease of the probe; the clients' leases are numbered from 1.
const PROBE_LEASE: u64 = 1 << 32;

fn start(command: &mut Command) -> Result<Child, String> {
    let name = command.get_program().to_owned();
    let child = command.stdin(Stdio::null()).spawn();
    child.map_err(|error| format!("cannot start {}: {error}", name.display()))
}

/// What a program says, if it ends well.
fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {}: {error}", name.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("{} failed: {why}", name.display()))
        }
    }
}

fn install(program: &str, package: &str) -> Result<(), String> {
    match said(Command::new(program).arg("--version")) {
        Ok(_) => Ok(()),
        Err(_) => apt(package),
    }
}

fn apt(package: &str) -> Result<(), String> {
    eprintln!("{package} is not here; installing it from Debian");
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        said(command.args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // Old lists may do.
    let _ = apt(&["update"]);
    apt(&["install", "-y", "--no-install-recommends", package]).map(drop)
}

/// Debian keeps the server's programs out of the path, a folder a version.
fn postgres_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    programs.filter(|bin| bin.join("postgres").is_file()).max()
}

/// The numbers of a user and its group.
fn account(name: &str) -> Result<(u32, u32), String> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let mut found = fields.filter(|fields| fields.first() == Some(&name));
    let numbers = found.next().and_then(|fields| {
        let number = |at: usize| fields.get(at)?.parse().ok();
        Some((number(2)?, number(3)?))
    });
    numbers.ok_or_else(|| format!("there is no user {name}"))
}

fn directory() -> Result<TempDir, String> {
    tempfile::tempdir().map_err(|e| format!("cannot make a temporary directory: {e}"))
}

/// A port that was free a moment ago.
fn free_address() -> Result<SocketAddr, String> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|e| format!("no free port: {e}"))
}
