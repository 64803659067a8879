//! Writing an answer.

use std::io::{self, Write};

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    kind: &'static str,
    body: Vec<u8>,
    extra: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Only what the node itself serves may run in the page, and nobody may frame it.
const SAFETY: &str = "Content-Security-Policy: default-src 'self'; img-src 'self' data:; frame-ancestors 'none'\r\n\
                      X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n";

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

/// The console: path, kind and content of every file.
const FILES: [(&str, &str, &str); 18] = [
    file!("index.html", HTML),
    file!("console.css", CSS),
    file!("console.js", JS),
    file!("api.js", JS),
    file!("canvas.js", JS),
    file!("clients.js", JS),
    file!("deeds.js", JS),
    file!("dom.js", JS),
    file!("editor.js", JS),
    file!("flows.js", JS),
    file!("gates.js", JS),
    file!("job.js", JS),
    file!("jobs.js", JS),
    file!("pace.js", JS),
    file!("panel.js", JS),
    file!("picture.js", JS),
    file!("places.js", JS),
    file!("sketch.js", JS),
];

impl Answer {
    pub(super) fn page(path: &str) -> Option<Answer> {
        let path = if path == "/" { "/index.html" } else { path };
        let mut files = FILES.iter();
        let (_, kind, body) = files.find(|(name, ..)| *name == path)?;
        Some(Answer::new("200 OK", kind, *body))
    }

    pub(super) fn json(body: String) -> Answer {
        Answer::new("200 OK", JSON, body)
    }

    pub(super) fn with_status(self, status: &'static str) -> Answer {
        Answer { status, ..self }
    }

    pub(super) fn metrics(body: String) -> Answer {
        Answer::new("200 OK", METRICS, body)
    }

    pub(super) fn text(status: &'static str, body: impl Into<String>) -> Answer {
        Answer::new(status, TEXT, body.into() + "\n")
    }

    pub(super) fn unauthorized() -> Answer {
        Answer {
            extra: "WWW-Authenticate: Basic realm=\"testigo\", charset=\"UTF-8\"\r\n",
            ..Answer::text(
                "401 Unauthorized",
                "this node wants to know who you are: a user and its password",
            )
        }
    }

    fn new(status: &'static str, kind: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer {
            status,
            kind,
            body: body.into(),
            extra: "",
        }
    }

    /// With the body, or for `HEAD` without.
    pub(super) fn write(&self, stream: &mut impl Write, with_body: bool) -> io::Result<()> {
        let Answer {
            status,
            kind,
            body,
            extra,
        } = self;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n{SAFETY}{extra}Connection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        if with_body {
            stream.write_all(body)?;
        }
        stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_console_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web");
        let files = std::fs::read_dir(folder).expect("the console's files");
        for file in files {
            let name = file.expect("a file").file_name();
            let path = format!("/{}", name.to_string_lossy());
            assert!(Answer::page(&path).is_some(), "{path} is not served");
        }
        assert!(Answer::page("/").is_some() && Answer::page("/../Cargo.toml").is_none());
    }
}
