//! Installs the package below a folder of its own, looks at the unit, starts the node as its user with a notification
//! socket, and purges it again. dpkg has a root directory there (`--root`), with its own list of users, so nothing of
//! this machine changes.

use std::env;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Packages, at, make};
use crate::process::root;

/// A node that is not ready after so long will not be.
const READY_PATIENCE: Duration = Duration::from_secs(60);
/// What the check needs beside root.
const TOOLS: [&str; 4] = ["dpkg", "useradd", "setpriv", "tar"];

/// Runs the check, or says loudly why it cannot.
pub(crate) fn check() -> Result<bool, String> {
    let binary = env::var_os("CARGO_TARGET_DIR").map_or(root()?.join("target"), PathBuf::from);
    let binary = binary.join("debug/testigo");
    if !binary.exists() {
        println!(
            "SKIPPED: the package was not checked: the part `build` makes {}",
            binary.display()
        );
        return Ok(true);
    }
    let owner = fs::metadata("/proc/self").map_err(at(Path::new("/proc/self")))?;
    if owner.uid() != 0 {
        println!("SKIPPED: the package was not installed: only root may");
        return Ok(true);
    }
    let missing = |tool: &str| Command::new(tool).arg("--version").output().is_err();
    if let Some(missing) = TOOLS.into_iter().find(|tool| missing(tool)) {
        println!("SKIPPED: the package was not installed: {missing} is not here");
        return Ok(true);
    }
    let folder = env::temp_dir().join(format!("testigo-package-{}", std::process::id()));
    let outcome = all(&binary, &folder);
    fs::remove_dir_all(&folder).map_err(at(&folder))?;
    outcome.map(|()| true)
}

fn all(binary: &Path, folder: &Path) -> Result<(), String> {
    let packages = make(binary, folder)?;
    step("the archive holds the program", || {
        unpacks(&packages, folder)
    })?;
    // The node's user must come through.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).map_err(at(folder))?;
    let system = folder.join("root");
    prepare(&system)?;
    step("dpkg installs it", || {
        dpkg(&system, "--install", &packages.deb)
    })?;
    step("the unit is right", || verify(&system))?;
    step("the node starts as its user and says READY=1", || {
        start(&system)
    })?;
    let name = Path::new("testigo");
    step("dpkg purges it", || dpkg(&system, "--purge", name))?;
    step("nothing is left behind", || nothing_left(&system))
}

fn step(what: &str, run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    run().map_err(|why| format!("failed: {what}: {why}"))?;
    println!("{what}");
    Ok(())
}

fn unpacks(packages: &Packages, folder: &Path) -> Result<(), String> {
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder).arg("-xzf").arg(&packages.archive);
    succeeds(&mut tar)?;
    let name = packages
        .archive
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let unpacked = folder.join(name.trim_end_matches(".tar.gz"));
    succeeds(Command::new(unpacked.join("usr/bin/testigo")).arg("--version"))
}

/// A system without packages, and with root alone.
fn prepare(system: &Path) -> Result<(), String> {
    for path in ["etc", "var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        let path = system.join(path);
        fs::create_dir_all(&path).map_err(at(&path))?;
    }
    for (path, text) in [
        ("var/lib/dpkg/status", ""),
        ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
        ("etc/group", "root:x:0:\n"),
        ("etc/shadow", ""),
        ("etc/gshadow", ""),
    ] {
        let path = system.join(path);
        fs::write(&path, text).map_err(at(&path))?;
    }
    Ok(())
}

fn dpkg(system: &Path, what: &str, package: &Path) -> Result<(), String> {
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", system.display()));
    // There is no C library below that root, and no shell: the scripts run outside and are told where it is.
    dpkg.args(["--force-depends", "--force-script-chrootless"]);
    dpkg.arg(what).arg(package);
    succeeds(&mut dpkg)
}

fn verify(system: &Path) -> Result<(), String> {
    let unit = "usr/lib/systemd/system/testigo.service";
    let mut analyze = Command::new("systemd-analyze");
    analyze
        .arg("verify")
        .arg("--man=no")
        .arg("--recursive-errors=no");
    analyze.arg(format!("--root={}", system.display()));
    analyze.arg("testigo.service");
    if Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("SKIPPED: {unit} was not verified: systemd-analyze is not here");
        return Ok(());
    }
    // What ExecReload calls is the system's own.
    let kill = system.join("bin/kill");
    fs::create_dir_all(system.join("bin")).map_err(at(&kill))?;
    fs::copy("/bin/kill", &kill).map_err(at(&kill))?;
    let output = analyze.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let about: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("testigo"))
        .collect();
    match output.status.success() && about.is_empty() {
        true => Ok(()),
        false => Err(said),
    }
}

/// The ids of the package's user.
fn user(system: &Path) -> Result<(String, String), String> {
    let path = system.join("etc/passwd");
    let text = fs::read_to_string(&path).map_err(at(&path))?;
    let line = text.lines().find(|line| line.starts_with("testigo:"));
    let fields: Vec<&str> = line.ok_or("there is no user testigo")?.split(':').collect();
    Ok((fields[2].to_owned(), fields[3].to_owned()))
}

/// As systemd would: as the user, with its state directory and a socket to say `READY=1` to.
fn start(system: &Path) -> Result<(), String> {
    let (uid, gid) = user(system)?;
    let configuration = system.join("etc/testigo/testigo.conf");
    let mode = fs::metadata(&configuration).map_err(at(&configuration))?;
    if (mode.gid().to_string(), mode.mode() & 0o777) != (gid.clone(), 0o640) {
        return Err("the configuration is not root's and its user's alone".into());
    }
    let state = system.join("var/lib/testigo");
    fs::create_dir_all(&state).map_err(at(&state))?;
    let ids = format!("{uid}:{gid}");
    succeeds(Command::new("chown").arg(&ids).arg(&state))?;
    let path = system.join("notify");
    let socket = UnixDatagram::bind(&path).map_err(at(&path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).map_err(at(&path))?;
    socket
        .set_read_timeout(Some(READY_PATIENCE))
        .map_err(at(&path))?;
    let mut node = Command::new("setpriv");
    node.args(["--reuid", &uid, "--regid", &gid, "--clear-groups", "--"]);
    node.arg(system.join("usr/bin/testigo")).arg("up");
    node.arg("--config").arg(&configuration);
    // The file's own addresses may be taken on this machine, and its directory is this machine's.
    node.args(["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"])
        .arg(&state);
    node.env("NOTIFY_SOCKET", &path);
    node.stdout(Stdio::null()).stderr(Stdio::piped());
    let node = node.spawn().map_err(|error| error.to_string())?;
    let outcome = served(&socket, &node);
    ended(node, outcome)
}

fn served(socket: &UnixDatagram, node: &Child) -> Result<(), String> {
    expect(socket, "READY=1")?;
    succeeds(Command::new("kill").arg(node.id().to_string()))?;
    expect(socket, "STOPPING=1")
}

fn expect(socket: &UnixDatagram, wanted: &str) -> Result<(), String> {
    let mut bytes = [0; 256];
    let count = socket.recv(&mut bytes);
    let count = count.map_err(|error| format!("no {wanted}: {error}"))?;
    match &bytes[..count] == wanted.as_bytes() {
        true => Ok(()),
        false => Err(format!("not {wanted}: {}", bytes[..count].escape_ascii())),
    }
}

/// Waits for the end of a node that was stopped, or ends it; adds what it said to what went wrong.
fn ended(mut node: Child, outcome: Result<(), String>) -> Result<(), String> {
    if outcome.is_err() {
        // It may have ended by itself.
        let _ = node.kill();
    }
    let mut said = String::new();
    if let Some(stderr) = &mut node.stderr {
        let _ = stderr.read_to_string(&mut said);
    }
    let status = node.wait().map_err(|error| error.to_string())?;
    outcome.map_err(|why| format!("{why}\n{said}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("the stop was not clean: {status}\n{said}")),
    }
}

fn nothing_left(system: &Path) -> Result<(), String> {
    for path in ["usr", "etc/testigo", "var/lib/testigo"] {
        if system.join(path).exists() {
            return Err(format!("{path} is still there"));
        }
    }
    match user(system) {
        Ok(_) => Err("the user is still there".into()),
        Err(_) => Ok(()),
    }
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let output = command.output();
    let output = output.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
        }
    }
}
