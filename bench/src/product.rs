//! The node under test: the release binary of the main workspace, built here so that it is never an old one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds the binary and says where it is.
pub(crate) fn build() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["build", "--release", "--package", "testigo-command"])
        .args([
            "--bin",
            "testigo",
            "--message-format",
            "json-render-diagnostics",
        ])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err("the product does not build".into());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let path = messages.lines().rev().find_map(|message| {
        let (_, rest) = message.split_once("\"executable\":\"")?;
        rest.split('"').next()
    });
    path.map(PathBuf::from)
        .ok_or_else(|| "cargo does not say where it put the binary".into())
}
