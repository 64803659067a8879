//! Every type that the facade shows has an example in its documentation.

use std::fs;
use std::path::Path;

const DECLARES: [&str; 4] = ["pub struct ", "pub enum ", "pub type ", "pub trait "];

#[test]
fn every_public_type_has_an_example() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for name in ["client", "node", "testigo"] {
        read(&crates.join(name).join("src"), &mut sources);
    }
    let facade = fs::read_to_string("src/lib.rs").expect("the facade");
    let blocking = fs::read_to_string("src/blocking.rs").expect("the blocking face");
    let shown: Vec<&str> = facade.split("pub use ").skip(1).flat_map(types).collect();
    assert!(shown.len() > 30, "this is not the list: {shown:?}");
    for name in shown {
        let declared: Vec<_> = sources
            .iter()
            .flat_map(|text| docs_of(text, name))
            .collect();
        assert!(!declared.is_empty(), "{name} is declared nowhere");
        let shows = declared.iter().any(|docs| docs.contains("```"));
        assert!(shows, "{name} has no example");
    }
    for name in ["Testigo", "Session", "Guard"] {
        let docs = docs_of(&blocking, name).concat();
        assert!(docs.contains("```"), "blocking::{name} has no example");
    }
}

/// The types in a list of names that ends with a semicolon.
fn types(list: &str) -> impl Iterator<Item = &str> {
    let list = list.split(';').next().unwrap_or_default();
    let names = list.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    names.filter(|name| name.starts_with(|first: char| first.is_uppercase()))
}

/// The documentation above every declaration of a name.
fn docs_of(text: &str, name: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let declares = |line: &str| {
        let rest = DECLARES.iter().find_map(|word| line.strip_prefix(word));
        let rest = rest.and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
    };
    let at = (0..lines.len()).filter(|at| declares(lines[*at]));
    let above = |at: usize| {
        let lines = lines[..at].iter().rev();
        let docs = lines.take_while(|line| line.starts_with("///") || line.starts_with("#["));
        docs.copied().collect::<Vec<_>>().join("\n")
    };
    at.map(above).collect()
}

fn read(folder: &Path, sources: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => read(&path, sources),
            false => sources.push(fs::read_to_string(path).expect("a text")),
        }
    }
}
