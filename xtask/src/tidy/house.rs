//! Which crate may know which. Dependencies point one way; this table is the only place that says so in
//! full, and a new crate begins with a line here.

use super::purity::PURE;
use super::{File, Finding};

/// A crate of the house and those of its own kind that it may depend on.
struct Room {
    name: &'static str,
    may: May,
    /// What its tests may use besides.
    tests: &'static [&'static str],
}

enum May {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

#[rustfmt::skip]
const HOUSE: &[Room] = &[
    Room { name: "protocol", may: May::Only(&[]), tests: &[] },
    Room { name: "memory", may: May::Only(&[]), tests: &[] },
    Room { name: "sim", may: May::Only(&[]), tests: &[] },
    Room { name: "lab", may: May::Only(&["protocol", "memory", "sim"]), tests: &[] },
    Room { name: "core", may: May::Only(&["protocol"]), tests: &["lab"] },
    Room { name: "flow", may: May::Only(&["sim"]), tests: &[] },
    Room { name: "engine", may: May::Only(&["protocol"]), tests: &["sim"] },
    Room { name: "node", may: May::Only(&["core", "flow", "engine"]), tests: &["sim"] },
    Room { name: "client", may: May::Only(&[]), tests: &["core", "testigo"] },
    Room { name: "testigo", may: May::AllBut(&["command"]), tests: &[] },
    Room { name: "command", may: May::AllBut(&[]), tests: &[] },
    Room { name: "boxoffice", may: May::Only(&["testigo"]), tests: &[] },
];

/// Foreign crates that would make a pure crate impure.
const IMPURE: [&str; 2] = ["rand", "tokio"];

const ONE_WAY: &str =
    "dependencies point one way: move the code, or pass what is needed as an argument";

/// The dependencies in the manifest of a crate.
pub(super) fn check(file: &File) -> Vec<Finding> {
    let Some(name) = file.owner().filter(|_| file.path.ends_with("/Cargo.toml")) else {
        return Vec::new();
    };
    let Some(room) = HOUSE.iter().find(|room| room.name == name) else {
        let wrong = format!("the crate `{name}` is not in the table of dependencies");
        return vec![Finding::fault(
            1,
            wrong,
            "add it to xtask/src/tidy/house.rs",
        )];
    };
    let mut findings = Vec::new();
    for Dependency {
        line,
        on,
        for_tests,
    } in dependencies(file.text)
    {
        let ours = on.strip_prefix("testigo-");
        let ours = ours.or((on == "testigo").then_some("testigo"));
        let allowed = match (ours, &room.may) {
            (None, _) => for_tests || !PURE.contains(&name) || !IMPURE.contains(&on),
            (Some(other), _) if for_tests && room.tests.contains(&other) => true,
            (Some(other), May::Only(some)) => some.contains(&other),
            (Some(other), May::AllBut(some)) => !some.contains(&other),
        };
        if !allowed {
            let wrong = format!("`{name}` must not depend on `{on}`");
            findings.push(Finding::fault(line, wrong, ONE_WAY));
        }
    }
    findings
}

/// A line of a manifest that names a crate.
struct Dependency<'a> {
    line: usize,
    on: &'a str,
    for_tests: bool,
}

fn dependencies(manifest: &str) -> Vec<Dependency<'_>> {
    let mut found = Vec::new();
    let mut section = "";
    for (i, text) in manifest.lines().enumerate() {
        let (line, text) = (i + 1, text.trim());
        if let Some(header) = text.strip_prefix('[') {
            section = header.trim_end_matches(']');
        }
        let for_tests = section.contains("dev-dependencies");
        // A dependency may have a section of its own: `[dependencies.serde]`.
        let own = section.rsplit_once("dependencies.").map(|(_, name)| name);
        let key = text.split(['=', '.', ' ']).next().unwrap_or(text);
        let on = match own {
            Some(name) if text.starts_with('[') => name,
            None if section.ends_with("dependencies") && !text.starts_with(['[', '#']) => key,
            _ => "",
        };
        let renamed = text.split_once("package").map_or("", |(_, rest)| rest);
        let renamed = renamed.split('"').nth(1).unwrap_or_default();
        let inside = own.is_some() || section.ends_with("dependencies");
        let names = [on, if inside { renamed } else { "" }];
        for on in names.into_iter().filter(|name| !name.is_empty()) {
            found.push(Dependency {
                line,
                on,
                for_tests,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::faults;

    fn of(name: &str, manifest: &str) -> Vec<usize> {
        faults(check, &format!("crates/{name}/Cargo.toml"), manifest)
    }

    #[test]
    fn a_dependency_that_points_back_is_caught() {
        let on =
            |name| format!("[package]\nname = \"x\"\n\n[dependencies]\n{name}.workspace = true");
        assert_eq!(of("protocol", &on("testigo-sim")), [5]);
        assert_eq!(of("core", &on("testigo-engine")), [5]);
        assert_eq!(of("engine", &on("testigo-sim")), [5]);
        assert_eq!(of("client", &on("testigo-core")), [5]);
        assert_eq!(of("testigo", &on("testigo-command")), [5]);
        assert_eq!(of("lab", &on("testigo")), [5]);
    }

    #[test]
    fn a_dependency_that_points_on_passes() {
        let on = |name| format!("[dependencies]\n# testigo-node\n{name} = {{ path = \"../x\" }}");
        assert_eq!(of("lab", &on("testigo-sim")), []);
        assert_eq!(of("core", &on("testigo-protocol")), []);
        assert_eq!(of("testigo", &on("testigo-node")), []);
        assert_eq!(of("command", &on("testigo-lab")), []);
        assert_eq!(of("protocol", &on("serde")), []);
        let tests = "[dev-dependencies]\ntestigo-sim.workspace = true";
        assert_eq!(of("engine", tests), []);
        assert_eq!(of("protocol", tests), [2]);
    }

    #[test]
    fn every_way_to_write_a_dependency_is_read() {
        for (manifest, line) in [
            ("[dependencies.testigo-sim]\nworkspace = true", 1),
            ("[target.'cfg(unix)'.dependencies]\ntestigo-sim = \"1\"", 2),
            ("[build-dependencies]\ntestigo-sim.workspace = true", 2),
            ("[dependencies]\nsim = { package = \"testigo-sim\" }", 2),
            ("[dependencies.sim]\npackage = \"testigo-sim\"", 2),
        ] {
            assert_eq!(of("memory", manifest), [line], "{manifest}");
        }
        assert_eq!(of("memory", "[features]\ntestigo-sim = []"), []);
    }

    #[test]
    fn a_pure_crate_takes_no_runtime() {
        let manifest = "[dependencies]\ntokio = \"1\"\nrand.workspace = true";
        assert_eq!(of("core", manifest), [2, 3]);
        assert_eq!(of("node", manifest), []);
    }

    #[test]
    fn a_crate_without_a_line_in_the_table_is_caught() {
        assert_eq!(of("gadgets", "[package]"), [1]);
        assert_eq!(faults(check, "xtask/Cargo.toml", "[package]"), []);
    }
}
