//! The files of a package, laid out as they are installed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{VERSION, at, debian_architecture};
use crate::process::root;

const CONFIGURATION: &str = "etc/testigo/testigo.conf";
/// What shells read, and where they look for it.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/testigo"),
    ("fish", "usr/share/fish/vendor_completions.d/testigo.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_testigo"),
];
const SCRIPTS: [&str; 3] = ["postinst", "postrm", "prerm"];

pub(super) struct Tree {
    pub(super) root: PathBuf,
    libc: Option<String>,
}

impl Tree {
    /// Copies everything to where it belongs below a folder that is not there yet.
    pub(super) fn lay_out(binary: &Path, folder: &Path) -> Result<Tree, String> {
        let program = fs::read(binary).map_err(at(binary))?;
        let tree = Tree {
            root: folder.to_owned(),
            libc: newest_libc(&program),
        };
        tree.put("usr/bin/testigo", &program, 0o755)?;
        let clone = root()?;
        let copy = |from: &str, to: &str, mode| {
            let from = clone.join(from);
            tree.put(to, &fs::read(&from).map_err(at(&from))?, mode)
        };
        let unit = "usr/lib/systemd/system/testigo.service";
        copy("packaging/testigo.service", unit, 0o644)?;
        copy("packaging/testigo.conf", CONFIGURATION, 0o640)?;
        for (shell, path) in COMPLETIONS {
            let printed = Command::new(binary).args(["completions", shell]).output();
            let printed = printed.map_err(at(binary))?;
            if !printed.status.success() {
                return Err(format!("testigo completions {shell} failed"));
            }
            tree.put(path, &printed.stdout, 0o644)?;
        }
        let documents = "usr/share/doc/testigo";
        for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            copy(name, &format!("{documents}/{name}"), 0o644)?;
        }
        copy(
            "packaging/grafana/testigo.json",
            &format!("{documents}/grafana.json"),
            0o644,
        )?;
        let docs = clone.join("docs");
        for entry in fs::read_dir(&docs).map_err(at(&docs))? {
            let name = entry.map_err(at(&docs))?.file_name();
            let name = name.to_string_lossy();
            let to = format!("{documents}/docs/{name}");
            copy(&format!("docs/{name}"), &to, 0o644)?;
        }
        Ok(tree)
    }

    /// Writes what dpkg needs to know into a folder, which it gives back.
    pub(super) fn control(&self, folder: &Path) -> Result<PathBuf, String> {
        let control = Tree {
            root: folder.to_owned(),
            libc: None,
        };
        let libc = self.libc.as_deref();
        let libc = libc.map_or("libc6".into(), |version| format!("libc6 (>= {version})"));
        let text = format!(
            "Package: testigo\n\
             Version: {VERSION}\n\
             Architecture: {}\n\
             Maintainer: The Testigo contributors\n\
             Installed-Size: {}\n\
             Depends: {libc}, passwd\n\
             Section: net\n\
             Priority: optional\n\
             Description: coordinates the processes of a cluster\n \
             Locks, elastic pools, leaders and durable flows of jobs, over the Redis protocol,\n \
             with a laboratory that simulates, checks and draws coordination algorithms.\n",
            debian_architecture(),
            kibibytes(&self.root)?,
        );
        control.put("control", text.as_bytes(), 0o644)?;
        control.put("conffiles", format!("/{CONFIGURATION}\n").as_bytes(), 0o644)?;
        for script in SCRIPTS {
            let from = root()?.join("packaging/deb").join(script);
            control.put(script, &fs::read(&from).map_err(at(&from))?, 0o755)?;
        }
        Ok(control.root)
    }

    /// Writes a file, in folders that everybody may enter whatever the umask is.
    fn put(&self, path: &str, content: &[u8], mode: u32) -> Result<(), String> {
        let file = self.root.join(path);
        let folder = file.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(at(folder))?;
        let ours = folder.ancestors();
        for folder in ours.take_while(|folder| folder.starts_with(&self.root)) {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(at(folder))?;
        }
        fs::write(&file, content).map_err(at(&file))?;
        fs::set_permissions(&file, Permissions::from_mode(mode)).map_err(at(&file))
    }
}

/// The newest version of the C library that a program asks for, by the names of its symbols.
fn newest_libc(program: &[u8]) -> Option<String> {
    const MARK: &[u8] = b"GLIBC_2.";
    let marks = program.windows(MARK.len()).enumerate();
    let at = marks.filter(|(_, bytes)| *bytes == MARK).map(|(at, _)| at);
    let minor = at.filter_map(|at| {
        let digits = program[at + MARK.len()..].iter();
        let digits = digits.take_while(|byte| byte.is_ascii_digit());
        let text: String = digits.map(|byte| char::from(*byte)).collect();
        text.parse::<u32>().ok()
    });
    minor.max().map(|minor| format!("2.{minor}"))
}

fn kibibytes(folder: &Path) -> Result<u64, String> {
    let mut sum = 0;
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        sum += match path.is_dir() {
            true => kibibytes(&path)?,
            false => fs::metadata(&path).map_err(at(&path))?.len().div_ceil(1024),
        };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_c_library_that_is_asked_for_counts() {
        let program = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_2.x";
        assert_eq!(newest_libc(program), Some("2.34".into()));
        assert_eq!(newest_libc(b"static"), None);
    }
}
