//! Requests that bring something: JSON only, and only from this node's own pages or from programs. A page from elsewhere
//! cannot send JSON without asking first, and is refused by its `Origin` besides.

use std::io::{Read, Write};
use std::sync::Arc;

use super::answer::Answer;
use super::command::{command, refused};
use super::drawing::{draw, planned, write};
use super::request::{BODY_BYTES_MAX, Length, Request, Unreadable, read_body};
use crate::shared::Shared;
use crate::users::User;

/// What a path does with a body.
type Deed = fn(&Arc<Shared>, &Arc<User>, &[u8]) -> Answer;

fn deed_at(path: &str) -> Option<Deed> {
    match path {
        "/api/command" => Some(command),
        "/api/flow/draw" => Some(draw),
        "/api/flow/write" => Some(write),
        "/api/flow/plan" => Some(planned),
        _ => None,
    }
}

/// Answers a `POST`; nothing when the other side is gone.
pub(super) fn post(
    shared: &Arc<Shared>,
    user: &Arc<User>,
    request: &mut Request,
    stream: &mut (impl Read + Write),
) -> Option<Answer> {
    let Some(deed) = deed_at(&request.path) else {
        return Some(Answer::text("405 Method Not Allowed", "only GET and HEAD"));
    };
    if let Err(refusal) = check(request) {
        return Some(refusal);
    }
    match read_body(stream, request) {
        Ok(body) => Some(deed(shared, user, &body)),
        Err(Unreadable::TooLong) => Some(refused(
            "413 Content Too Large",
            "LIMIT",
            &format!("the body is longer than {BODY_BYTES_MAX} bytes"),
        )),
        Err(Unreadable::NotHttp | Unreadable::Gone) => None,
    }
}

fn check(request: &Request) -> Result<(), Answer> {
    let kind = request.content_type.split(';').next().unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/json") {
        return Err(refused(
            "415 Unsupported Media Type",
            "BADARG",
            "the content type must be application/json",
        ));
    }
    if !is_own(&request.origin, &request.host) {
        return Err(refused(
            "403 Forbidden",
            "DENIED",
            "a page from elsewhere may not send this",
        ));
    }
    if request.length == Length::Unclear {
        return Err(refused(
            "411 Length Required",
            "BADARG",
            "say the body's length once, as Content-Length",
        ));
    }
    Ok(())
}

/// Whether a request comes from a page of this node, or from no page at all.
fn is_own(origin: &str, host: &str) -> bool {
    if origin.is_empty() {
        return true;
    }
    let from = origin.split_once("://").map(|(_, from)| from);
    from.is_some_and(|from| from.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_nodes_own_pages_may_send() {
        for origin in ["", "http://127.0.0.1:7601", "https://127.0.0.1:7601"] {
            assert!(is_own(origin, "127.0.0.1:7601"), "{origin}");
        }
        for origin in [
            "null",
            "http://127.0.0.1",
            "http://127.0.0.1:7602",
            "http://evil.example",
            "http://127.0.0.1:7601.evil.example",
            "127.0.0.1:7601",
        ] {
            assert!(!is_own(origin, "127.0.0.1:7601"), "{origin}");
        }
    }
}
