//! PostgreSQL as Debian configures it, with room for all clients.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::Service;
use super::debian::{account, apt};
use super::running::{directory, free_address, said, start_quietly};
use crate::wire::postgres::{USER, greet};

const CONNECTIONS: &str = "max_connections=200";

pub(crate) fn start() -> Result<Service, String> {
    let bin = match programs() {
        Some(bin) => bin,
        None => {
            apt("postgresql")?;
            programs().ok_or("PostgreSQL is installed and not to be found")?
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
    server.args(["-c", CONNECTIONS]);
    let version = said(program("postgres").arg("--version"))?;
    let version = version.split_whitespace().nth(2).unwrap_or("");
    let version = format!("PostgreSQL {version}");
    let child = start_quietly(&mut server, data.path())?;
    Service::new(address, version, child, data).once_it_answers(greet)
}

/// Debian keeps the server's programs out of the path, a folder a version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    programs.filter(|bin| bin.join("postgres").is_file()).max()
}
