//! `POST /api/command`: one command of the wire as a JSON array of its words, with the rights of who asks. Only commands
//! that are over when they are answered: what waits, holds or listens needs a connection that lasts.

use std::sync::Arc;

use serde_json::json;

use super::answer::Answer;
use super::ask::{Asked, ask};
use super::words::{Said, read_words};
use crate::shared::Shared;
use crate::users::User;

/// Which of a command's forms are taken, by the word behind its name.
enum Forms {
    All,
    Only(&'static [&'static str]),
    Not(&'static [&'static str]),
}

/// All commands that are taken.
const TAKEN: &[(&str, Forms)] = &[
    ("FLOW", Forms::All),
    ("QUEUE", Forms::All),
    ("JOB", Forms::Not(&["TAKE", "PASS", "BACK"])),
    ("CLIENT", Forms::Only(&["LIST", "END", "UNBLOCK"])),
    ("SESSION", Forms::Only(&["LIST", "END"])),
    ("GATE", Forms::All),
    ("FENCE", Forms::All),
    ("ONCE", Forms::Only(&["FORGET"])),
    ("STATUS", Forms::All),
    ("STATE", Forms::All),
    ("INFO", Forms::All),
    ("COMMAND", Forms::All),
    ("PING", Forms::All),
    ("ECHO", Forms::All),
];

/// Carries out the command in a request's body.
pub(super) fn command(shared: &Arc<Shared>, user: &Arc<User>, body: &[u8]) -> Answer {
    let words = match read_words(body) {
        Ok(words) => words,
        Err(why) => return refused("400 Bad Request", "BADARG", &why),
    };
    if let Err(why) = is_taken(&words) {
        return refused("400 Bad Request", "BADARG", &why);
    }
    match ask(shared, user, &words) {
        Asked::Answered(answer) => Answer::json(json!({ "answer": answer }).to_string() + "\n"),
        Asked::Refused(line) => {
            let (code, message) = line.split_once(' ').unwrap_or((&line, ""));
            refused(status_of(code), code, message)
        }
        Asked::Silent => refused(
            "504 Gateway Timeout",
            "UNAVAILABLE",
            "unknown: the node has not answered in time; the change may have been made",
        ),
    }
}

/// An error as JSON: a word for programs, a sentence for people.
pub(super) fn refused(status: &'static str, code: &str, message: &str) -> Answer {
    let error = json!({ "error": { "code": code, "message": message } });
    Answer::json(error.to_string() + "\n").with_status(status)
}

/// Which kind of refusal a word of the wire is.
fn status_of(code: &str) -> &'static str {
    match code {
        "DENIED" | "NORIGHT" => "403 Forbidden",
        "NOGATE" | "NOFLOW" | "NOQUEUE" | "NOJOB" => "404 Not Found",
        "BADARG" | "BADFLOW" => "400 Bad Request",
        "LIMIT" => "429 Too Many Requests",
        "UNAVAILABLE" => "503 Service Unavailable",
        _ => "409 Conflict",
    }
}

fn is_taken(words: &[Said]) -> Result<(), String> {
    let [name, rest @ ..] = words else {
        return Err("the command has no words".into());
    };
    let name = name.capitals();
    let Some((_, forms)) = TAKEN.iter().find(|(taken, _)| *taken == name) else {
        return Err(format!(
            "{name} is not taken here: only commands that are over when they are answered. These are {}",
            all_taken()
        ));
    };
    let form = rest.first().map(Said::capitals).unwrap_or_default();
    let fits = match forms {
        Forms::All => true,
        Forms::Only(forms) => forms.contains(&form.as_str()),
        Forms::Not(forms) => !forms.contains(&form.as_str()),
    };
    match fits {
        true => Ok(()),
        false => Err(format!(
            "{name} {form} is not taken here: only commands that are over when they are answered. Of {name} these are {}",
            forms.words()
        )),
    }
}

fn all_taken() -> String {
    let names: Vec<&str> = TAKEN.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

impl Forms {
    fn words(&self) -> String {
        match self {
            Forms::All => "all".into(),
            Forms::Only(forms) => forms.join(", "),
            Forms::Not(forms) => format!("all but {}", forms.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(line: &str) -> Result<(), String> {
        let words: Vec<Said> = line.split_whitespace().map(Said::from).collect();
        is_taken(&words)
    }

    #[test]
    fn only_what_ends_with_its_answer_is_taken() {
        for line in [
            "JOB MOVE 1 q",
            "job show 1",
            "FLOW LIST",
            "CLIENT END 3",
            "GATE LIST",
        ] {
            assert_eq!(taken(line), Ok(()), "{line}");
        }
        let held = [
            "LOCK a",
            "LOCKALL 1 a",
            "UNLOCK a",
            "DOWNGRADE a",
            "CANCEL 1",
            "PRESENT f p",
            "JOB TAKE q",
            "job pass 1 2 q",
            "JOB BACK 1 2",
            "SESSION OPEN",
            "SESSION RESUME 1",
            "SESSION CLOSE",
            "ONCE START k 0 1",
            "SUBSCRIBE gate:a",
            "PSUBSCRIBE *",
            "HELLO 3",
            "AUTH x",
            "RESET",
            "QUIT",
            "SELECT 0",
            "CLIENT SETNAME x",
            "MULTI",
            "EXEC",
            "",
        ];
        for line in held {
            let why = taken(line).expect_err(line);
            assert!(
                line.is_empty() || why.contains("is not taken here"),
                "{why}"
            );
        }
        let why = taken("JOB TAKE q").expect_err("it holds");
        assert!(
            why.ends_with("Of JOB these are all but TAKE, PASS, BACK"),
            "{why}"
        );
    }
}
