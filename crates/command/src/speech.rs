//! What a node says, in the words of the shell. A node speaks to whoever sends commands over the wire, so its sentences
//! name those; somebody at a shell has never seen one. The first word of a refusal is for programs, which have the exit
//! code here; it is left out.

use std::time::Duration;

use testigo_client::{NotDone, Word};

use crate::span::Span;

/// Parts of a node's sentences, and what the command line says instead. Each is long enough to be nobody's name.
const PHRASES: &[(&str, &str)] = &[
    (
        " has members and ORDER FIFO, not ",
        " has members and --order fifo, not ",
    ),
    (
        " has members and ORDER CAUSAL, not ",
        " has members and --order causal, not ",
    ),
    (
        " has members and ORDER TOTAL, not ",
        " has members and --order total, not ",
    ),
    ("; leave ORDER out, or say ", "; leave --order out, or say "),
    (
        "; GATE CREATE makes one, GATE LIST shows them",
        "; `testigo gate create` makes one, `testigo gate list` shows them",
    ),
    (
        "; POOL CREATE makes one, POOL LIST shows them",
        "; `testigo pool create` makes one, `testigo pool list` shows them",
    ),
    (
        "; FLOW APPLY makes one, FLOW LIST shows them",
        "; `testigo flow apply` makes one, `testigo flow list` shows them",
    ),
    (
        "; FLOW SHOW shows the queues of a flow",
        "; `testigo queue list` shows them",
    ),
    (
        "; POOL SHOW says by whom",
        "; `testigo pool show` says by whom",
    ),
    ("; FLOW SHOW lists them", "; `testigo flow show` lists them"),
    (
        "; SESSION LIST shows them",
        "; `testigo session list` shows them",
    ),
    (
        "; CLUSTER STATUS lists them",
        "; `testigo cluster status` lists them",
    ),
    (
        "; JOB SHOW says in whose, SESSION END ends them",
        "; `testigo job show` says in whose, `testigo session end` ends them",
    ),
    ("; JOB TAKE gives one", "; `testigo job take` gives one"),
    (
        "; begin with CLUSTER BACKUP",
        "; begin again with `testigo cluster backup`",
    ),
    (
        " ran out; open a new one",
        " ran out; `testigo session list` shows those that are open",
    ),
    ("; begin again with CURSOR 0", "; ask again"),
    ("; SESSION CLOSE, OPEN or RESUME goes on", ""),
    ("; PRESENT again", ""),
    ("; STALE before the command asks this node alone", ""),
    (
        "; ask with a WAIT, or try again in a moment",
        "; say --wait, or try again in a moment",
    ),
    (
        " must PRESENT flow process before it works",
        " must say which process it is, with --as FLOW/PROCESS, before it works",
    ),
    (
        "ORDER READERS and ORDER WRITERS need a SHARED gate; use ARRIVAL or CLASS",
        "--order readers and --order writers need a gate that is shared; use arrival or class",
    ),
    (
        "CAPACITY and STAY need a ROOMS gate; PERMITS and LEASE bound the others",
        "--capacity and --stay need a gate of rooms; permits and --lease bound the others",
    ),
    (
        "so it needs a SHARED or a MUTEX gate, not ",
        "so it needs a gate that is shared or a mutex, not ",
    ),
    (" exists as MUTEX with", " exists as a mutex with"),
    (" exists as SHARED with", " exists as a shared one with"),
    (" exists as PERMITS with", " exists as one of permits with"),
    (" exists as ROOMS with", " exists as one of rooms with"),
    (
        " is MUTEX; it takes neither SHARED nor PERMITS nor ROOM",
        " is a mutex; it takes neither --shared nor --permits nor --room",
    ),
    (
        " is SHARED; it takes SHARED or nothing",
        " is shared; it takes --shared or nothing",
    ),
    (
        " is PERMITS; it takes PERMITS h or nothing",
        " has permits; it takes --permits H or nothing",
    ),
    (
        " is ROOMS; say which with ROOM r",
        " has rooms; say which with --room R",
    ),
    (
        "AUTH was given, and this node has no password",
        "a user and a password were given, and this node has none",
    ),
];

/// The options by which the shell says what the wire says in these words, and whether they are spans.
const OPTIONS: &[(&str, &str, bool)] = &[
    ("WAIT", "--wait", true),
    ("TTL", "--ttl", true),
    ("NEEDS", "--needs", true),
    ("LEASE", "--lease", true),
    ("STAY", "--stay", true),
    ("CLASS", "--class", false),
    ("CLASSES", "--classes", false),
    ("OVERTAKES", "--overtakes", false),
    ("CAPACITY", "--capacity", false),
    ("BURST", "--burst", false),
    ("USING", "--using", false),
    ("LIMIT", "--limit", false),
    ("FREELOW", "--free-low", false),
    ("PERMITS", "permits", false),
];

/// Why a call was not done, for somebody at a shell.
pub(crate) fn in_shell_words(not_done: &NotDone) -> String {
    match not_done {
        NotDone::Unknown(why) => format!("unknown whether it was done: {}", sentence(why)),
        NotDone::Refused(refusal) => match &refusal.word {
            Word::Other(word) if word == "NOAUTH" => {
                "the node wants a password: set TESTIGO_PASSWORD, or say --password-file FILE"
                    .into()
            }
            Word::Other(word) if word == "WRONGPASS" => {
                "the node knows no such user with that password".into()
            }
            Word::Other(word) => sentence(&format!("{} {}", word.to_lowercase(), refusal.sentence)),
            _ => sentence(&refusal.sentence),
        },
    }
}

/// A node's sentence without the words of the wire.
fn sentence(said: &str) -> String {
    let mut said = with_option(said);
    for (wire, shell) in PHRASES {
        if said.contains(wire) {
            said = said.replace(wire, shell);
        }
    }
    said
}

/// A sentence that begins with an option of the wire, and mostly its value, begins with that of the shell.
fn with_option(said: &str) -> String {
    let (first, rest) = said.split_once(' ').unwrap_or((said, ""));
    let Some((_, option, span)) = OPTIONS.iter().find(|(wire, ..)| *wire == first) else {
        return said.to_owned();
    };
    let (value, after) = rest.split_once(' ').unwrap_or((rest, ""));
    match is_number(value) {
        true if *span => format!("{option} {} {}", in_units(value), in_spans(after)),
        true => format!("{option} {value} {after}"),
        false if first == "NEEDS" => format!("{option} {rest}").to_lowercase(),
        false => said.to_owned(),
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Milliseconds as people write a span.
fn in_units(ms: &str) -> String {
    match ms.parse() {
        Ok(ms) => Span(Duration::from_millis(ms)).to_string(),
        Err(_) => format!("{ms}ms"),
    }
}

/// What is said of a span: its bounds are spans, too.
fn in_spans(said: &str) -> String {
    let mut words: Vec<&str> = said.split(' ').collect();
    let Some(at) = words.iter().position(|word| *word == "milliseconds") else {
        return said.to_owned();
    };
    let before = at.checked_sub(1).map_or("", |before| words[before]);
    if let ["is", "not", "in", range, "milliseconds"] = words[..]
        && let Some((least, most)) = range.split_once("..=")
    {
        return format!("must be between {} and {}", in_units(least), in_units(most));
    }
    if !is_number(before) {
        return said.to_owned();
    }
    let span = in_units(before);
    words[at - 1] = &span;
    words.remove(at);
    words
        .join(" ")
        .replace(" that are allowed", " that is allowed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use testigo_client::Refusal;

    fn said(word: Word, sentence: &str) -> String {
        let sentence = sentence.to_owned();
        in_shell_words(&NotDone::Refused(Refusal { word, sentence }))
    }

    #[test]
    fn a_pool_that_is_not_there_is_said_in_the_words_of_the_shell() {
        let wire = "there is no pool x; POOL CREATE makes one, POOL LIST shows them";
        assert_eq!(
            said(Word::NoPool, wire),
            "there is no pool x; `testigo pool create` makes one, `testigo pool list` shows them"
        );
    }

    #[test]
    fn the_commands_of_the_wire_become_those_of_the_shell() {
        let wire = "there is no gate x; GATE CREATE makes one, GATE LIST shows them";
        assert_eq!(
            said(Word::NoGate, wire),
            "there is no gate x; `testigo gate create` makes one, `testigo gate list` shows them"
        );
        let wire = "WAIT 86400000 is above the limit wait_ms_max of 3600000 milliseconds";
        assert_eq!(
            said(Word::BadArg, wire),
            "--wait 1d is above the limit wait_ms_max of 1h"
        );
        let wire = "WAIT 7200000 is more than the 3600000 milliseconds that are allowed";
        assert_eq!(
            said(Word::BadArg, wire),
            "--wait 2h is more than the 1h that is allowed"
        );
        let wire = "TTL 120000 is not in 100..=60000 milliseconds";
        assert_eq!(
            said(Word::BadArg, wire),
            "--ttl 2m must be between 100ms and 1m"
        );
        let wire = "gate g is PERMITS; it takes PERMITS h or nothing";
        assert_eq!(
            said(Word::BadArg, wire),
            "gate g has permits; it takes --permits H or nothing"
        );
    }

    #[test]
    fn names_stay_as_they_are() {
        for name in ["there is no session WAIT", "gate LIMIT 5 is unknown"] {
            assert_eq!(said(Word::Stale, name), name);
        }
    }
}
