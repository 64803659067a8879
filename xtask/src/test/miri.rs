//! The unsafe code of the product under Miri, which knows what is undefined: `StudyLock` and the other locks of
//! `crates/memory`, on threads. Miri comes with a nightly toolchain; where that is not installed, it is said loudly.

use std::process::Command;

use super::{Outcome, counted, plain};
use crate::process::program;

/// Runs what can be run.
pub(super) fn check() -> Result<Outcome, String> {
    let installed = miri("--version")?.output();
    if !installed.is_ok_and(|output| output.status.success()) {
        println!(
            "SKIPPED: Miri is not installed, so the unsafe code of crates/memory was not run under it; \
             `rustup toolchain install nightly --component miri,rust-src` installs it"
        );
        return Ok(plain(true));
    }
    counted(&mut miri("test -p testigo-memory --test threads")?)
}

fn miri(arguments: &str) -> Result<Command, String> {
    let mut command = program("rustup")?;
    command.args(["run", "nightly", "cargo", "miri"]);
    command.args(arguments.split_whitespace());
    Ok(command)
}
