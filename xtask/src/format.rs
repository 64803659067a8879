//! The format of every Rust file. `cargo fmt` follows `mod` items and so misses modules that a macro
//! declares; here rustfmt is given each file by name.

use std::collections::BTreeSet;
use std::path::Path;

use crate::files;
use crate::process::{program, root, succeeds, unstarted};

pub(crate) const HELP: &str = "\
Usage: cargo xtask fmt

Formats every Rust file of the project, by name: modules declared inside a macro too.";

const EDITION: [&str; 2] = ["--edition", "2024"];

/// Formats all files.
pub(crate) fn write() -> Result<bool, String> {
    succeeds(program("rustfmt")?.args(EDITION).args(files::rust()?))
}

/// Names the files that are not formatted.
pub(crate) fn check() -> Result<bool, String> {
    let mut rustfmt = program("rustfmt")?;
    rustfmt.args(["--check", "--files-with-diff"]).args(EDITION);
    let answer = rustfmt.args(files::rust()?).output();
    let answer = answer.map_err(|e| unstarted(&rustfmt, &e))?;
    eprint!("{}", String::from_utf8_lossy(&answer.stderr));

    // A file is named once for itself and once more for each parent module.
    let names = String::from_utf8_lossy(&answer.stdout);
    let names: BTreeSet<&str> = names.lines().collect();
    let root = root()?;
    for name in &names {
        let inside = Path::new(name).strip_prefix(&root);
        let name = inside.map_or((*name).into(), Path::to_string_lossy);
        println!("{name}: not formatted; run `cargo xtask fmt`");
    }
    Ok(answer.status.success() && names.is_empty())
}
