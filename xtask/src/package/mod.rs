//! `cargo xtask package`: what an administrator installs. One tree of files becomes a Debian package and an archive. It
//! needs `tar` and `gzip`, and no tool of Debian.

mod ar;
mod check;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, program, root, succeeds};
pub(crate) use check::check;
use tree::Tree;

pub(crate) const HELP: &str = "\
Usage: cargo xtask package [--binary FILE] [--out DIR]

Makes testigo_VERSION_ARCH.deb, with a systemd unit, a user of its own and a configuration file, and
testigo-VERSION-ARCH-linux.tar.gz with the same files.

Options:
  --binary FILE  Package this program instead of building one (cargo build --release, some minutes)
  --out DIR      Where to write [default: target/package]

Example: cargo xtask package && dpkg -i target/package/testigo_*.deb";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The packages that were made.
struct Packages {
    deb: PathBuf,
    archive: PathBuf,
}

/// Reads the arguments of `cargo xtask package`, and makes both packages.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let (mut binary, mut out) = (None, root()?.join("target/package"));
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--binary" => binary = Some(PathBuf::from(value()?)),
            "--out" => out = value()?.into(),
            other => return Err(format!("unexpected argument `{other}`\n\n{HELP}")),
        }
    }
    let binary = match binary {
        Some(binary) => binary,
        None => {
            println!("building the release binary …");
            if !succeeds(&mut cargo("build --release")?)? {
                return Ok(false);
            }
            root()?.join("target/release/testigo")
        }
    };
    let Packages { deb, archive } = make(&binary, &out)?;
    println!("{}\n{}", deb.display(), archive.display());
    Ok(true)
}

fn make(binary: &Path, out: &Path) -> Result<Packages, String> {
    let stage = out.join("stage");
    if stage.exists() {
        fs::remove_dir_all(&stage).map_err(at(&stage))?;
    }
    fs::create_dir_all(&stage).map_err(at(&stage))?;
    let tree = Tree::lay_out(binary, &stage.join("data"))?;
    let deb = out.join(format!("testigo_{VERSION}_{}.deb", debian_architecture()));
    let control = tree.control(&stage.join("control"))?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", compressed(&control, ".", &stage)?),
        ("data.tar.gz", compressed(&tree.root, ".", &stage)?),
    ];
    fs::write(&deb, ar::archive(&members)).map_err(at(&deb))?;
    // The archive is the same tree under a name of its own, wherever it is unpacked.
    let name = format!("testigo-{VERSION}-{}-linux", std::env::consts::ARCH);
    let named = stage.join(&name);
    fs::rename(&tree.root, &named).map_err(at(&named))?;
    let archive = out.join(format!("{name}.tar.gz"));
    let bytes = compressed(&stage, &name, &stage)?;
    fs::write(&archive, bytes).map_err(at(&archive))?;
    fs::remove_dir_all(&stage).map_err(at(&stage))?;
    Ok(Packages { deb, archive })
}

/// A folder of a folder as a compressed archive whose bytes depend on the contents alone.
fn compressed(folder: &Path, what: &str, scratch: &Path) -> Result<Vec<u8>, String> {
    let file = scratch.join("archive.tar.gz");
    let mut tar = program("tar")?;
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0"]);
    tar.args(["--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{}", committed_at()));
    tar.args([
        "--use-compress-program",
        "gzip -n",
        "--exclude=archive.tar.gz",
    ]);
    tar.arg("--file").arg(&file);
    tar.arg("--directory").arg(folder).arg(what);
    if !succeeds(&mut tar)? {
        return Err(format!("tar failed at {}", folder.display()));
    }
    fs::read(&file).map_err(at(&file))
}

/// When the newest commit was made; the start of time where there is no repository.
fn committed_at() -> String {
    let commit = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .output();
    let text = commit.map(|commit| String::from_utf8_lossy(&commit.stdout).trim().to_owned());
    text.ok()
        .filter(|text| !text.is_empty())
        .unwrap_or("0".into())
}

fn debian_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Says which file an error is about.
fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}
