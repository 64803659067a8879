//! What Debian has, and what it calls things.

use std::process::Command;

use super::running::said;

/// Installs a package unless its program is there.
pub(crate) fn install(program: &str, package: &str) -> Result<(), String> {
    match said(Command::new(program).arg("--version")) {
        Ok(_) => Ok(()),
        Err(_) => apt(package),
    }
}

pub(super) fn apt(package: &str) -> Result<(), String> {
    eprintln!("{package} is not here; installing it from Debian");
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        said(command.args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // Old lists may do.
    let _ = apt(&["update"]);
    apt(&["install", "-y", "--no-install-recommends", package]).map(drop)
}

/// The version of an installed package, without Debian's own part.
pub(super) fn version(package: &str) -> String {
    let mut query = Command::new("dpkg-query");
    let version = said(query.args(["-W", "-f", "${Version}", package])).unwrap_or_default();
    version.split(['-', '+']).next().unwrap_or("").to_owned()
}

/// The numbers of a user and its group.
pub(super) fn account(name: &str) -> Result<(u32, u32), String> {
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
