//! `cargo xtask newcomer`: does what the README and the tutorial say, as somebody who has just cloned the repository, and
//! compares what happens with what they show. It runs in namespaces of its own, so the documents' ports are free and
//! `pgrep` finds nobody else's programs.

mod document;
mod shown;
mod terminal;
mod walk;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, program, root, succeeds};
use walk::walk;

pub(crate) const HELP: &str = "\
Usage: cargo xtask newcomer [--binary FILE]

Clones this repository, builds it, and walks through the README and docs/tutorial.md without a person: every command,
in three terminals, with what each must print. Takes some minutes for the build, then two for the documents.

Options:
  --binary FILE  Walk with this program, in an empty folder with the examples, instead of cloning and building

Example: cargo xtask newcomer --binary target/release/testigo";

/// The documents that a newcomer reads, in their order.
const DOCUMENTS: [&str; 2] = ["README.md", "docs/tutorial.md"];
/// Set inside the namespaces: the folder to walk in.
const INSIDE: &str = "TESTIGO_NEWCOMER";

/// Reads the arguments of `cargo xtask newcomer`, and walks.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    if let Some(folder) = env::var_os(INSIDE) {
        return inside(Path::new(&folder), arguments.first().ok_or("no document")?);
    }
    match arguments {
        [] => from_nothing(),
        [option, binary] if option == "--binary" => with(Path::new(binary)),
        _ => Err(format!("unexpected arguments\n\n{HELP}")),
    }
}

/// The same for `cargo xtask test`, with the program that the tests have built.
pub(crate) fn check() -> Result<bool, String> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root()?.join("target"), PathBuf::from);
    let binary = target.join("debug/testigo");
    match binary.exists() {
        true => with(&binary),
        false => {
            println!(
                "SKIPPED: the tutorial: the part `build` makes {}",
                binary.display()
            );
            Ok(true)
        }
    }
}

fn from_nothing() -> Result<bool, String> {
    let folder = Folder::new()?;
    let clone = folder.0.join("clone");
    println!("cloning into {} …", clone.display());
    let mut git = program("git")?;
    git.args(["clone", "--quiet", "."]).arg(&clone);
    let mut build = cargo("build --release")?;
    build.current_dir(&clone).env_remove("CARGO_TARGET_DIR");
    println!("building …");
    if !succeeds(&mut git)? || !succeeds(&mut build)? {
        return Ok(false);
    }
    for document in DOCUMENTS {
        if !in_namespaces(&clone, document)? {
            return Ok(false);
        }
        // The next document begins in a clone as fresh as this one was.
        let mut clean = program("git")?;
        clean.args(["clean", "--quiet", "-fdx", "--exclude=target"]);
        if !succeeds(clean.current_dir(&clone))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn with(binary: &Path) -> Result<bool, String> {
    let binary =
        fs::canonicalize(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    for document in DOCUMENTS {
        let folder = Folder::new()?;
        let clone = folder.0.join("clone");
        let release = clone.join("target/release");
        let link = |to: PathBuf, at: PathBuf| std::os::unix::fs::symlink(to, at);
        let made = fs::create_dir_all(&release)
            .and_then(|()| link(binary.clone(), release.join("testigo")))
            .and_then(|()| {
                link(
                    root().map_err(std::io::Error::other)?.join("examples"),
                    clone.join("examples"),
                )
            });
        made.map_err(|error| error.to_string())?;
        if !in_namespaces(&clone, document)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Starts this program again where nobody else listens or runs.
fn in_namespaces(clone: &Path, document: &str) -> Result<bool, String> {
    const NAMESPACES: [&str; 7] = [
        "--user",
        "--map-root-user",
        "--net",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
    ];
    let mut probe = Command::new("unshare");
    let there = probe
        .args(NAMESPACES)
        .args(["ip", "link", "set", "lo", "up"]);
    if !there.output().is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: {document}: this system gives no namespaces (unshare, ip)");
        return Ok(true);
    }
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let mut walk = Command::new("unshare");
    walk.args(NAMESPACES).arg(own).args(["newcomer", document]);
    walk.env(INSIDE, clone).env_remove("CARGO_TARGET_DIR");
    succeeds(&mut walk)
}

fn inside(clone: &Path, document: &str) -> Result<bool, String> {
    succeeds(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    // Without sources there is nothing to build, and the program is there.
    let builds = clone.join("Cargo.toml").exists();
    let path = match builds {
        true => clone.join(document),
        false => root()?.join(document),
    };
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("walking through {document} …");
    walk(&document::steps(&text), clone, builds).map_err(|why| format!("{document}: {why}"))?;
    println!("{document}: as it is written");
    Ok(true)
}

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, String> {
        let folder = env::temp_dir().join(format!("testigo-newcomer-{}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => Ok(Folder(folder)),
            Err(error) => Err(format!("{}: {error}", folder.display())),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left in a temporary folder is the system's to clear.
        let _ = fs::remove_dir_all(&self.0);
    }
}
