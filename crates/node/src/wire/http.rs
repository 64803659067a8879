//! HTTP that arrives where RESP is spoken. Any page can make a browser send a request to any port of this machine, with a
//! body of the page's choice; read line by line, that body would be commands. The request line always comes first, so a
//! connection that begins like this is closed before its body is looked at.

/// The answer, in HTTP.
pub(crate) const THIS_IS_RESP: &str = "HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    connection: close\r\n\
    cross-origin-resource-policy: same-origin\r\n\
    \r\n\
    This is the RESP door of a testigo node. The console and the HTTP API have a port of their own: 7601, unless \
    --http says otherwise.\n";

/// Whether a line belongs to HTTP: it ends in `HTTP/…`, begins with `Host:`, or posts something. `GET key` does not.
pub(super) fn is_http(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let mut words = line.split(u8::is_ascii_whitespace);
    let first = words.next().unwrap_or_default();
    let last = words.next_back().unwrap_or(first);
    begins(last, b"HTTP/") || begins(line, b"Host:") || first.eq_ignore_ascii_case(b"POST")
}

fn begins(text: &[u8], with: &[u8]) -> bool {
    let start = text.get(..with.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(with))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_told_from_a_command() {
        for line in [
            "GET / HTTP/1.1",
            "get / http/0.9",
            "PRI * HTTP/2.0",
            "POST /' HTTP/1.1 ",
            "POST /",
            "HTTP/1.1",
            "Host: 127.0.0.1:7600",
            "host:x",
            " Host: x",
        ] {
            assert!(is_http(line.as_bytes()), "{line}");
        }
        for line in [
            "GET key",
            "LOCK HTTP",
            "LOCK a REASON HTTP/1.1 again",
            "LOCK \"HTTP/1.1\"",
            "LOCK xHTTP/1.1",
            "LOCK Host:",
            "Hosts: x",
            "",
        ] {
            assert!(!is_http(line.as_bytes()), "{line}");
        }
    }
}
