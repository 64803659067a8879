//! Programs from outside that some tests talk to. What is missing is installed where that is
//! possible; where it is not, the tests that need it say loudly that they were skipped.

use std::process::{Command, Stdio};

/// Something that tests use when it is there.
struct External {
    name: &'static str,
    /// Succeeds when it is there.
    probe: &'static [&'static str],
    /// Tried in order until the probe succeeds.
    install: &'static [&'static [&'static str]],
}

const EXTERNALS: &[External] = &[
    External {
        name: "redis-cli",
        probe: &["redis-cli", "--version"],
        install: &[&["apt-get", "install", "-y", "redis-tools"]],
    },
    External {
        name: "redis-py",
        probe: &["python3", "-c", "import redis"],
        install: &[
            &["python3", "-m", "pip", "install", "--quiet", "redis"],
            &["apt-get", "install", "-y", "python3-redis"],
        ],
    },
    External {
        name: "curl",
        probe: &["curl", "--version"],
        install: &[&["apt-get", "install", "-y", "curl"]],
    },
    External {
        name: "tmux",
        probe: &["tmux", "-V"],
        install: &[&["apt-get", "install", "-y", "tmux"]],
    },
    External {
        name: "chromium",
        probe: &["chromium", "--version"],
        install: &[&["apt-get", "install", "-y", "chromium"]],
    },
    External {
        name: "chromedriver",
        probe: &["chromedriver", "--version"],
        install: &[&["apt-get", "install", "-y", "chromium-driver"]],
    },
    External {
        name: "strace",
        probe: &["strace", "-V"],
        install: &[&["apt-get", "install", "-y", "strace"]],
    },
    External {
        name: "ip",
        probe: &["ip", "-V"],
        install: &[&["apt-get", "install", "-y", "iproute2"]],
    },
    External {
        name: "nft",
        probe: &["nft", "--version"],
        install: &[&["apt-get", "install", "-y", "nftables"]],
    },
    External {
        name: "corosync",
        probe: &["corosync", "-v"],
        install: &[&["apt-get", "install", "-y", "corosync"]],
    },
    External {
        name: "libcpg",
        // All that a build with the feature `corosync` is linked with.
        probe: &[
            "pkg-config",
            "--exists",
            "libcpg libcfg libcmap libquorum libvotequorum",
        ],
        install: &[&[
            "apt-get",
            "install",
            "-y",
            "pkg-config",
            "libcpg-dev",
            "libcfg-dev",
            "libcmap-dev",
            "libquorum-dev",
            "libvotequorum-dev",
        ]],
    },
    External {
        name: "faketime",
        probe: &["faketime", "--version"],
        install: &[&["apt-get", "install", "-y", "faketime"]],
    },
];

/// Installs what is missing of these, or of all where none is named. Never fails: a machine without root still runs all
/// other tests.
pub(crate) fn install(only: &[&str]) -> bool {
    let mut lists_are_fresh = false;
    for External {
        name,
        probe,
        install,
    } in EXTERNALS
    {
        if !only.is_empty() && !only.contains(name) {
            continue;
        }
        if runs(probe) {
            println!("{name}: here");
            continue;
        }
        for command in *install {
            if command[0] == "apt-get" && !lists_are_fresh {
                lists_are_fresh = runs(&["apt-get", "update"]);
            }
            println!("{name}: {}", command.join(" "));
            if runs(command) && runs(probe) {
                break;
            }
        }
        match runs(probe) {
            true => println!("{name}: installed"),
            false => println!(
                "SKIPPED: {name} is not here and could not be installed; tests that need it will not run"
            ),
        }
    }
    true
}

/// Whether something that tests use is there.
pub(super) fn is_here(name: &str) -> bool {
    let mut externals = EXTERNALS.iter();
    externals.any(|external| external.name == name && runs(external.probe))
}

fn runs(command: &[&str]) -> bool {
    Command::new(command[0])
        .args(&command[1..])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_tells_what_is_there_from_what_is_not() {
        assert!(runs(&["cargo", "--version"]));
        assert!(!runs(&["a-program-that-nobody-has", "--version"]));
    }
}
