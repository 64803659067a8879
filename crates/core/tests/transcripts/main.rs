//! Every text file beside this one is a transcript: commands, and under each what it was answered and what else
//! happened (`> `). `TESTIGO_REWRITE=1` writes what happens now into the files, to be read before it is committed.

mod house;

use std::fs;
use std::path::PathBuf;

use house::House;
use testigo_core::Limits;

#[test]
fn every_transcript_is_true() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "txt"))
        .collect();
    files.sort();
    assert!(files.len() >= 10, "the transcripts are missing");
    let mut wrong = String::new();
    for file in files {
        let written = fs::read_to_string(&file).unwrap();
        let happened = replay(&written);
        if happened == written {
            continue;
        }
        if std::env::var_os("TESTIGO_REWRITE").is_some() {
            fs::write(&file, happened).unwrap();
        } else {
            wrong += &format!("{}\n{}", file.display(), difference(&written, &happened));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The transcript with its commands carried out anew. A title (`# …`) begins a new house.
fn replay(written: &str) -> String {
    let small = Limits {
        waiters_per_gate: 4,
        ids_per_session: 2,
        set_size: 4,
        ..Limits::default()
    };
    let mut house = House::new(small.clone());
    let mut happened = String::new();
    for line in written.lines().filter(|line| !line.starts_with("> ")) {
        happened += &format!("{line}\n");
        if line.starts_with('#') {
            house = House::new(small.clone());
        } else {
            for said in house.say(line) {
                happened += &format!("> {said}\n");
            }
        }
    }
    happened
}

fn difference(written: &str, happened: &str) -> String {
    let at = written
        .lines()
        .zip(happened.lines())
        .take_while(|(a, b)| a == b)
        .count();
    let from = at.saturating_sub(3);
    let part = |text: &str| {
        let lines: Vec<&str> = text.lines().skip(from).take(8).collect();
        lines.join("\n")
    };
    format!(
        "written:\n{}\nhappened:\n{}\n\n",
        part(written),
        part(happened)
    )
}
