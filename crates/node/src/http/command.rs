//! `POST /api/command`: one command of the wire as a JSON array of its words, with the rights of the caller. Only
//! non-blocking commands are accepted: to wait, hold or listen requires a connection that lasts.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::answer::{json_of, refused};
use super::ask::{Asked, ask};
use super::post::Posted;
use super::words::{Said, read_words};

/// Which of a command's forms are accepted, by the word after its name.
enum Forms {
    All,
    Only(&'static [&'static str]),
    Not(&'static [&'static str]),
}

/// All commands that are accepted.
const TAKEN: &[(&str, Forms)] = &[
    ("FLOW", Forms::All),
    ("QUEUE", Forms::All),
    ("JOB", Forms::Not(&["TAKE", "PASS", "BACK"])),
    ("CLIENT", Forms::Only(&["LIST", "END", "UNBLOCK"])),
    ("SESSION", Forms::Only(&["LIST", "END"])),
    ("GATE", Forms::All),
    ("ELECT", Forms::Only(&["LEADER", "SHOW", "LIST"])),
    ("POOL", Forms::Not(&["TAKE", "GIVE"])),
    ("FENCE", Forms::All),
    ("ONCE", Forms::Only(&["FORGET"])),
    ("DECIDE", Forms::All),
    ("GROUP", Forms::Only(&["MEMBERS"])),
    (
        "CLUSTER",
        Forms::Only(&["STATUS", "LEASE", "WAITS", "OWNERS", "ADD", "REMOVE"]),
    ),
    ("OWNER", Forms::All),
    ("STATUS", Forms::All),
    ("STATE", Forms::All),
    ("INFO", Forms::All),
    ("COMMAND", Forms::All),
    ("PING", Forms::All),
    ("ECHO", Forms::All),
];

/// Carries out the command in a request's body.
pub(super) async fn command(Posted { door, user, body }: Posted) -> Response {
    let words = match read_words(&body) {
        Ok(words) => words,
        Err(why) => return refused(StatusCode::BAD_REQUEST, "BADARG", &why),
    };
    if let Err(why) = is_taken(&words) {
        return refused(StatusCode::BAD_REQUEST, "BADARG", &why);
    }
    match ask(&door.open().shared, &user, &words).await {
        Asked::Answered(answer) => json_of(&json!({ "answer": answer })),
        Asked::Refused(line) => {
            let (code, message) = line.split_once(' ').unwrap_or((&line, ""));
            refused(status_of(code), code, message)
        }
        Asked::Silent => refused(
            status_of("UNKNOWN"),
            "UNKNOWN",
            "the node has not answered in time; the change may have been made",
        ),
    }
}

/// The HTTP status for an error word of the wire.
fn status_of(code: &str) -> StatusCode {
    match code {
        "DENIED" | "NORIGHT" => StatusCode::FORBIDDEN,
        "NOGATE" | "NOPOOL" | "NOFLOW" | "NOQUEUE" | "NOJOB" => StatusCode::NOT_FOUND,
        "BADARG" | "BADFLOW" => StatusCode::BAD_REQUEST,
        "LIMIT" => StatusCode::TOO_MANY_REQUESTS,
        "UNAVAILABLE" => StatusCode::SERVICE_UNAVAILABLE,
        // Not 503, after which a proxy may retry by itself.
        "UNKNOWN" => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::CONFLICT,
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
    fn only_an_unknown_end_has_the_status_of_one() {
        use testigo_core::Word;
        assert_eq!(
            status_of(Word::Unknown.as_str()),
            StatusCode::GATEWAY_TIMEOUT
        );
        let unavailable = status_of(Word::Unavailable.as_str());
        assert_eq!(unavailable, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status_of(Word::Busy.as_str()), StatusCode::CONFLICT);
    }

    #[test]
    fn only_what_ends_with_its_answer_is_taken() {
        for line in [
            "JOB MOVE 1 q",
            "job show 1",
            "FLOW LIST",
            "CLIENT END 3",
            "GATE LIST",
            "POOL SHOW p CELLS 9",
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
            "POOL TAKE p",
            "POOL GIVE p 1",
            "SESSION OPEN",
            "SESSION RESUME 1",
            "SESSION CLOSE",
            "ONCE START k 0 1",
            "GROUP JOIN g",
            "GROUP SEND g x",
            "GROUP LEAVE g",
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
