//! A node of a given binary.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::Service;
use super::running::{directory, start as start_process};

pub(crate) fn start(binary: &Path) -> Result<Service, String> {
    start_on(binary, directory()?)
}

/// Starts it with a password.
pub(crate) fn start_guarded(binary: &Path, password: &str) -> Result<Service, String> {
    let data = directory()?;
    let config = data.path().join("config");
    fs::write(&config, format!("password = {password}\n"))
        .map_err(|e| format!("cannot write a configuration: {e}"))?;
    start_with(binary, data, &[OsStr::new("--config"), config.as_os_str()])
}

/// Starts it on what an earlier one left. It answers as soon as this returns.
pub(crate) fn start_on(binary: &Path, data: TempDir) -> Result<Service, String> {
    start_with(binary, data, &[])
}

/// The file in a member's directory to which it says what it does.
const LOG: &str = "log";

/// What a member has said so far.
pub(crate) fn said_by(data: &Path) -> Result<String, String> {
    fs::read_to_string(data.join(LOG)).map_err(|e| format!("cannot read a log: {e}"))
}

/// Starts a member of a cluster on its data. It answers, and has a vote, as soon as this returns.
pub(crate) fn start_member(
    binary: &Path,
    data: TempDir,
    id: usize,
    peer: SocketAddr,
    join: Option<SocketAddr>,
) -> Result<Service, String> {
    let mut words = vec!["--id".to_owned(), id.to_string()];
    words.extend(["--peer".to_owned(), peer.to_string()]);
    words.extend(
        join.iter()
            .flat_map(|join| ["--join".to_owned(), join.to_string()]),
    );
    words.extend(["--log", "info", "--log-format", "text"].map(str::to_owned));
    let log = data.path().join(LOG);
    let log = File::options().create(true).append(true).open(log);
    let mut up = Command::new(binary);
    up.stderr(log.map_err(|e| format!("cannot write a log: {e}"))?);
    let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    start_as(up, data, &words)
}

fn start_with(binary: &Path, data: TempDir, more: &[&OsStr]) -> Result<Service, String> {
    start_as(Command::new(binary), data, more)
}

fn start_as(mut up: Command, data: TempDir, more: &[&OsStr]) -> Result<Service, String> {
    up.args(["up", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    up.arg("--data").arg(data.path().join("data")).args(more);
    let mut child = start_process(up.stdout(Stdio::piped()))?;
    let lines = BufReader::new(child.stdout.take().ok_or("no pipe to the node")?).lines();
    let mut address = None;
    for line in lines.map_while(Result::ok) {
        if let Some(told) = line.strip_prefix("RESP on ") {
            address = address.or(told.parse().ok());
        }
        if line == "ready" {
            let address = address.ok_or("the node did not say where it listens")?;
            let version = format!("testigo {}", env!("CARGO_PKG_VERSION"));
            return Ok(Service::new(address, version, child, data));
        }
    }
    Err("the node ended before it was ready".into())
}
