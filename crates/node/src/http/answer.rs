//! Answers: their kinds, the headers that all of them have, and the files of the console.

use std::fmt::Display;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use crate::health::{Health, Reason};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
pub(super) const EVENTS: &str = "text/event-stream";

/// Only what the node itself serves may run in the page, forms and relative links lead nowhere else, and no other page may
/// frame it.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// Adds the headers that every answer has.
pub(super) fn add_policy(headers: &mut HeaderMap) {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// A file of the console, as it is in the binary.
macro_rules! file {
    ($name:literal, $kind:expr) => {
        (
            concat!("/", $name),
            $kind,
            include_str!(concat!("../../../../web/", $name)),
        )
    };
}

/// The console: path, kind and content of every file. The first is the page.
const FILES: [(&str, &str, &str); 25] = [
    file!("index.html", HTML),
    file!("console.css", CSS),
    file!("console.js", JS),
    file!("api.js", JS),
    file!("canvas.js", JS),
    file!("clients.js", JS),
    file!("cluster.js", JS),
    file!("deeds.js", JS),
    file!("dom.js", JS),
    file!("editor.js", JS),
    file!("elections.js", JS),
    file!("flows.js", JS),
    file!("gates.js", JS),
    file!("groups.js", JS),
    file!("job.js", JS),
    file!("jobs.js", JS),
    file!("pace.js", JS),
    file!("panel.js", JS),
    file!("picture.js", JS),
    file!("places.js", JS),
    file!("pool.js", JS),
    file!("pools.js", JS),
    file!("sketch.js", JS),
    file!("slots.js", JS),
    file!("waits.js", JS),
];

/// Path, kind and content of every file of the console, and of the page under its short name.
pub(super) fn files() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let (_, kind, page) = FILES[0];
    std::iter::once(("/", kind, page)).chain(FILES)
}

pub(super) fn file(kind: &'static str, content: &'static str) -> Response {
    of(StatusCode::OK, kind, content)
}

fn of(status: StatusCode, kind: &'static str, body: impl IntoResponse) -> Response {
    (status, [(CONTENT_TYPE, kind)], body).into_response()
}

pub(super) fn text(status: StatusCode, body: impl Into<String>) -> Response {
    of(status, TEXT, body.into() + "\n")
}

pub(super) fn metrics(body: String) -> Response {
    of(StatusCode::OK, METRICS, body)
}

/// Whether the node is ready, and why not: a line per reason, or JSON.
pub(super) fn health(health: &Health, as_json: bool) -> Response {
    let (reasons, notes) = (health.reasons(), health.notes());
    let status = match reasons.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    if as_json {
        let ready = reasons.is_empty();
        let said = json!({ "ready": ready, "reasons": reasons, "notes": notes });
        return of(status, JSON, said.to_string() + "\n");
    }
    let ok = reasons.is_empty().then(|| "ok".to_owned());
    let reasons = reasons.iter().chain(&notes).map(Reason::to_string);
    let lines: Vec<String> = ok.into_iter().chain(reasons).collect();
    text(status, lines.join("\n"))
}

pub(super) fn json_of(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => json_text(text),
        Err(error) => broken(&error),
    }
}

/// JSON that is already encoded.
pub(super) fn json_text(text: String) -> Response {
    of(StatusCode::OK, JSON, text + "\n")
}

/// An error as JSON: a word for programs, a sentence for people.
pub(super) fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    let error = json!({ "error": { "code": code, "message": message } });
    of(status, JSON, error.to_string() + "\n")
}

/// Something happened that should not have.
pub(super) fn broken(error: &dyn Display) -> Response {
    text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

pub(super) fn unauthorized() -> Response {
    const BASIC: &str = "Basic realm=\"testigo\", charset=\"UTF-8\"";
    let why = "this node wants to know who you are: a user and its password";
    let mut answer = text(StatusCode::UNAUTHORIZED, why);
    let headers = answer.headers_mut();
    headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(BASIC));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_ready_is_unavailable_and_one_that_only_notes_something_is_not() {
        let mut health = Health {
            awaited: 1,
            ..Health::default()
        };
        for as_json in [false, true] {
            assert_eq!(super::health(&health, as_json).status(), StatusCode::OK);
        }
        health.stopping = true;
        for as_json in [false, true] {
            let status = super::health(&health, as_json).status();
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        }
    }

    #[test]
    fn every_file_of_the_console_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web");
        let found = std::fs::read_dir(folder).expect("the console's files");
        for file in found {
            let name = file.expect("a file").file_name();
            let path = format!("/{}", name.to_string_lossy());
            assert!(
                files().any(|(served, ..)| served == path),
                "{path} is not served"
            );
        }
    }
}
