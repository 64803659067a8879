//! Licences, sources and advisories of what is linked, by cargo-deny where that is installed. Its database of advisories
//! comes from the network, so they are checked only where somebody has fetched it; what is left out is said loudly.

use std::env;
use std::path::{Path, PathBuf};

use crate::process::{cargo, succeeds};

/// Runs what can be run.
pub(super) fn check() -> Result<bool, String> {
    let installed = cargo("deny --version")?.output();
    if !installed.is_ok_and(|output| output.status.success()) {
        println!(
            "SKIPPED: cargo-deny is not installed, so neither licences nor sources nor advisories were checked; \
             `cargo install cargo-deny --locked` installs it"
        );
        return Ok(true);
    }
    let always = succeeds(&mut cargo("deny check licenses bans sources")?)?;
    if !database().is_some_and(|path| has_entries(&path)) {
        println!(
            "SKIPPED: the advisories were not checked, because their database is not here; \
             `cargo deny fetch db` gets it"
        );
        return Ok(always);
    }
    Ok(always & succeeds(&mut cargo("deny check --disable-fetch advisories")?)?)
}

/// Where cargo-deny keeps the advisories.
fn database() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    home.map(|home| home.join("advisory-dbs"))
}

fn has_entries(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}
