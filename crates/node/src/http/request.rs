//! Reading a request: its head, only so much of it, and then its body if somebody wants it.

use std::io::{Read, Write};

/// The longest head that is read.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
/// The longest body that is read: a command with a job's body, each byte of it escaped as JSON.
pub(super) const BODY_BYTES_MAX: usize = 4 << 20;

/// What a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) host: String,
    pub(super) authorization: String,
    pub(super) origin: String,
    pub(super) content_type: String,
    /// What its head says of its body.
    pub(super) length: Length,
    /// Waits to be told to send its body.
    pub(super) expects: bool,
    /// The bytes that came behind the head.
    pub(super) begun: Vec<u8>,
}

/// How long a request says that its body is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Length {
    /// It has none.
    #[default]
    None,
    Bytes(usize),
    /// In a way that is not read here: in chunks, twice, or not as a number.
    Unclear,
}

/// Why there is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The other side is gone, or silent for too long.
    Gone,
    TooLong,
    NotHttp,
}

pub(super) fn read(stream: &mut impl Read) -> Result<Request, Unreadable> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    loop {
        let read = stream.read(&mut chunk).map_err(|_| Unreadable::Gone)?;
        if read == 0 {
            return Err(Unreadable::Gone);
        }
        head.extend_from_slice(&chunk[..read]);
        if let Some(request) = parse(&head)? {
            return Ok(request);
        }
        if head.len() >= HEAD_BYTES_MAX {
            return Err(Unreadable::TooLong);
        }
    }
}

/// The body that a head has announced.
pub(super) fn read_body(
    stream: &mut (impl Read + Write),
    request: &mut Request,
) -> Result<Vec<u8>, Unreadable> {
    let length = match request.length {
        Length::Bytes(length) if length > BODY_BYTES_MAX => return Err(Unreadable::TooLong),
        Length::Bytes(length) => length,
        Length::None => 0,
        Length::Unclear => return Err(Unreadable::NotHttp),
    };
    let mut body = std::mem::take(&mut request.begun);
    if request.expects && body.len() < length {
        let go_on = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        go_on
            .and_then(|()| stream.flush())
            .map_err(|_| Unreadable::Gone)?;
    }
    let mut chunk = [0; 16 * 1024];
    while body.len() < length {
        let read = stream.read(&mut chunk).map_err(|_| Unreadable::Gone)?;
        if read == 0 {
            return Err(Unreadable::Gone);
        }
        body.extend_from_slice(&chunk[..read]);
    }
    body.truncate(length);
    request.length = Length::None;
    Ok(body)
}

/// Reads past a body that nobody wants, so that the answer is not lost with it; not past one that is too long anyhow.
pub(super) fn skip_body(stream: &mut impl Read, request: &Request) {
    let length = match request.length {
        Length::Bytes(length) if length <= BODY_BYTES_MAX && !request.expects => length,
        _ => return,
    };
    let mut left = length.saturating_sub(request.begun.len());
    let mut chunk = [0; 16 * 1024];
    while left > 0 {
        match stream.read(&mut chunk) {
            Ok(read) if read > 0 => left = left.saturating_sub(read),
            _ => return,
        }
    }
}

/// The request at the start of these bytes, if its head is complete.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Request>, Unreadable> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let head_bytes = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Unreadable::TooLong),
        Err(_) => return Err(Unreadable::NotHttp),
    };
    let target = parsed.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |name: &str| {
        let found = parsed
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name));
        found
            .map(|header| String::from_utf8_lossy(header.value).into_owned())
            .unwrap_or_default()
    };
    Ok(Some(Request {
        method: parsed.method.unwrap_or("").to_owned(),
        path: decoded(path),
        query: query.to_owned(),
        host: header("host"),
        authorization: header("authorization"),
        origin: header("origin"),
        content_type: header("content-type"),
        expects: !header("expect").is_empty(),
        length: length(parsed.headers),
        begun: bytes.get(head_bytes..).unwrap_or_default().to_vec(),
    }))
}

fn length(headers: &[httparse::Header<'_>]) -> Length {
    let named = |name: &'static str| {
        let fits = move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        headers.iter().filter(fits)
    };
    let mut lengths = named("content-length");
    match (lengths.next(), lengths.next()) {
        _ if named("transfer-encoding").next().is_some() => Length::Unclear,
        (None, _) => Length::None,
        (Some(one), None) => {
            let digits = std::str::from_utf8(one.value).unwrap_or_default().trim();
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.parse().ok().filter(|_| plain);
            number.map_or(Length::Unclear, Length::Bytes)
        }
        (Some(_), Some(_)) => Length::Unclear,
    }
}

impl Request {
    /// A parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(key, _)| *key == name)
            .map(|(_, value)| decoded(&value.replace('+', " ")))
    }
}

/// Percent-encoding undone; what is not text stays recognisable.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).filter(|_| *first == b'%');
        let byte = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{frugally, inputs};

    #[test]
    fn a_head_is_read_however_it_is_cut() {
        let text = b"GET /api/gates/a%20b?pattern=x%2A HTTP/1.1\r\nHost: localhost:7601\r\nauthorization: Basic eA==\r\n\r\n";
        for cut in 1..text.len() {
            let mut stream = text[..cut].chain(&text[cut..]);
            let request = read(&mut stream).expect("a request");
            assert_eq!(
                (request.method.as_str(), request.path.as_str()),
                ("GET", "/api/gates/a b")
            );
            assert_eq!(request.parameter("pattern").as_deref(), Some("x*"));
            assert_eq!(request.host, "localhost:7601");
            assert_eq!(request.authorization, "Basic eA==");
        }
    }

    #[test]
    fn what_is_not_http_or_too_long_is_refused() {
        assert_eq!(
            read(&mut &b"\x16\x03\x01 hello\r\n\r\n"[..]),
            Err(Unreadable::NotHttp)
        );
        assert_eq!(read(&mut &b"GET / HTTP/1.1\r\n"[..]), Err(Unreadable::Gone));
        let long = format!(
            "GET / HTTP/1.1\r\nX: {}\r\n",
            "x".repeat(2 * HEAD_BYTES_MAX)
        );
        assert_eq!(read(&mut long.as_bytes()), Err(Unreadable::TooLong));
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "A: b\r\n".repeat(HEADERS_MAX + 1)
        );
        assert_eq!(read(&mut many.as_bytes()), Err(Unreadable::TooLong));
    }

    /// Random and mutated heads: an answer or an error, never a panic, never more memory than they warrant.
    #[test]
    fn no_input_panics_or_takes_much() {
        const INPUTS: u64 = 100_000;
        const ALPHABET: &[u8] = b"GET /?&%=+: HTTP1.0\r\n\t\0\xff\x80";
        let samples = [
            "GET /api/state?x=%41&y=%&%zz=+ HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
            "HEAD /api/gates/a%20%ff%2 HTTP/1.0\r\nAuthorization: Basic eDp5\r\n\r\n",
            "POST * HTTP/1.1\r\nHost:\r\nContent-Length: 18446744073709551616\r\n\r\nbody",
        ];
        let (mut all, mut read) = (0, 0);
        inputs(INPUTS, |chance| {
            let mut bytes = match chance.below(6) {
                0 => chance.bytes(80),
                _ => chance.one(&samples).as_bytes().to_vec(),
            };
            chance.mutate(&mut bytes, ALPHABET, 6);
            let request = frugally(&bytes, || parse(&bytes));
            all += 1;
            if let Ok(Some(request)) = request {
                read += 1;
                let parameter = frugally(&bytes, || request.parameter("x"));
                assert!(parameter.is_none_or(|value| value.len() <= 3 * bytes.len()));
            }
        });
        assert!(read > all / 20, "too few are requests: {read} of {all}");
    }
}
