//! Accepting connections, and what each path answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use rustls::ServerConfig;

use super::answer::Answer;
use super::events::Newest;
use super::flows::flows_of;
use super::metrics::metrics;
use super::post::post;
use super::request::{Request, Unreadable, read, skip_body};
use super::state::{edges_of, gate_of, sessions_of, state};
use crate::shared::Shared;
use crate::tls::accept_blocking;
use crate::users::{Deed, Found, User, Users};

/// More connections at once are turned away.
const CONNECTIONS_MAX: usize = 128;
/// How long a request may take to come, and an answer to go.
const PATIENCE: Duration = Duration::from_secs(10);

/// The listening door. Closing it ends its threads.
#[derive(Debug)]
pub(crate) struct HttpDoor {
    address: SocketAddr,
    inner: Arc<Inner>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    users: Arc<Users>,
    /// How to seal connections, and how long the greetings may take.
    tls: Option<(Arc<ServerConfig>, Duration)>,
    address: SocketAddr,
    newest: Newest,
    open: AtomicUsize,
}

impl HttpDoor {
    pub(crate) fn open(
        listener: TcpListener,
        shared: Arc<Shared>,
        users: Arc<Users>,
        tls: Option<(Arc<ServerConfig>, Duration)>,
    ) -> std::io::Result<HttpDoor> {
        let address = listener.local_addr()?;
        let inner = Arc::new(Inner {
            shared,
            users,
            tls,
            address,
            newest: Newest::new(),
            open: AtomicUsize::new(0),
        });
        let accepting = {
            let inner = Arc::clone(&inner);
            std::thread::Builder::new()
                .name("http".into())
                .spawn(move || accept(&listener, &inner))?
        };
        Ok(HttpDoor {
            address,
            inner,
            accepting: Some(accepting),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpDoor {
    fn drop(&mut self) {
        self.inner.newest.stop();
        // The accepting thread sleeps in accept: a connection wakes it, and it sees that the door closes.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, inner: &Arc<Inner>) {
    for stream in listener.incoming() {
        if inner.newest.is_stopping() {
            return;
        }
        let Ok(mut stream) = stream else { continue };
        if inner.open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            inner.open.fetch_sub(1, Ordering::Relaxed);
            if inner.tls.is_none() {
                let many = Answer::text("503 Service Unavailable", "too many connections");
                let _ = many.write(&mut stream, true);
            }
            continue;
        }
        let serving = Arc::clone(inner);
        let spawned = std::thread::Builder::new()
            .name("http connection".into())
            .spawn(move || {
                serving.welcome(stream);
                serving.open.fetch_sub(1, Ordering::Relaxed);
            });
        if spawned.is_err() {
            inner.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Inner {
    fn welcome(&self, mut stream: TcpStream) {
        let _ = stream.set_write_timeout(Some(PATIENCE));
        let Some((tls, patience)) = &self.tls else {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            return self.serve(&mut stream);
        };
        match accept_blocking(stream, Arc::clone(tls), *patience) {
            Ok(mut sealed) => {
                let _ = sealed.sock.set_read_timeout(Some(PATIENCE));
                self.serve(&mut sealed);
                sealed.conn.send_close_notify();
                let _ = sealed.flush();
            }
            Err(error) => log::debug!("a browser's greeting failed: {error}"),
        }
    }

    fn serve(&self, stream: &mut (impl Read + Write)) {
        let mut request = match read(stream) {
            Ok(request) => request,
            Err(Unreadable::Gone) => return,
            Err(Unreadable::TooLong) => {
                let status = "431 Request Header Fields Too Large";
                let _ = Answer::text(status, "the request is too long").write(stream, true);
                return;
            }
            Err(Unreadable::NotHttp) => {
                let _ = Answer::text("400 Bad Request", "this is not HTTP").write(stream, true);
                return;
            }
        };
        if let Some(answer) = self.respond(&mut request, stream) {
            let _ = answer.write(stream, request.method != "HEAD");
            skip_body(stream, &request);
        }
    }

    /// The answer to a request, unless it was given already or nobody wants it any more.
    fn respond(&self, request: &mut Request, stream: &mut (impl Read + Write)) -> Option<Answer> {
        if request.path == "/healthz" {
            return Some(self.health());
        }
        let user = match self.user(request) {
            Err(refusal) => return Some(refusal),
            Ok(user) => user,
        };
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/api/events") => {
                let _ = self.newest.tell(&self.shared, &user, stream);
                None
            }
            ("POST", _) => post(&self.shared, &user, request, stream),
            _ => Some(self.answer(request, &user)),
        }
    }

    /// Who asks, or why that is not answered at all.
    fn user(&self, request: &Request) -> Result<Arc<User>, Answer> {
        if let Some(anybody) = self.users.anybody() {
            // Without users the door is for this machine: a page of somebody else's must not reach it by a name of its
            // own that leads here.
            return match names_this_machine(&request.host, self.address) {
                true => Ok(anybody),
                false => Err(Answer::text(
                    "403 Forbidden",
                    "use the address 127.0.0.1 or localhost",
                )),
            };
        }
        let Some((name, password)) = credentials(&request.authorization) else {
            return Err(Answer::unauthorized());
        };
        // A browser asks for a name even where there is only a password.
        let name = match self.users.only_default() {
            true => User::DEFAULT,
            false => &name,
        };
        let found = match self.users.find(name, &password) {
            Found::User(user) => Some(user),
            Found::Wrong => None,
            Found::Unsure => self.users.work(name, &password),
        };
        found.ok_or_else(|| {
            let delay_ms = self.shared.enter(|house| house.wire.password_delay_ms);
            std::thread::sleep(Duration::from_millis(delay_ms));
            Answer::unauthorized()
        })
    }

    fn health(&self) -> Answer {
        match self.shared.enter(|house| house.local.recovering()) {
            false => Answer::text("200 OK", "ok"),
            true => Answer::text("503 Service Unavailable", "recovering: no gate grants yet"),
        }
    }

    fn answer(&self, request: &Request, user: &User) -> Answer {
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            return Answer::text("405 Method Not Allowed", "only GET and HEAD");
        }
        if let Some(page) = Answer::page(&request.path) {
            return page;
        }
        match request.path.as_str() {
            "/metrics" => Answer::metrics(self.shared.enter(|house| metrics(house, user))),
            "/api/state" => {
                let pattern = request.parameter("pattern").unwrap_or_else(|| "*".into());
                json(&self.shared.enter(|house| state(house, &pattern, user)))
            }
            "/api/sessions" => json(&self.shared.enter(|house| sessions_of(house, user))),
            "/api/flows" => json(&self.shared.enter(|house| flows_of(house, user))),
            "/api/waits" => json(&self.shared.enter(|house| edges_of(house, user))),
            path => match path.strip_prefix("/api/gates/") {
                Some(name) => self.gate(name, user),
                None => Answer::text("404 Not Found", format!("there is nothing at {path}")),
            },
        }
    }

    fn gate(&self, name: &str, user: &User) -> Answer {
        if let Err(refusal) = user.check(Deed::Show, name) {
            return Answer::text("403 Forbidden", refusal.to_string());
        }
        match self.shared.enter(|house| house.local.gate(name)) {
            Ok(view) => json(&gate_of(view, user)),
            Err(refusal) => Answer::text("404 Not Found", refusal.to_string()),
        }
    }
}

pub(super) fn json(value: &impl serde::Serialize) -> Answer {
    match serde_json::to_string(value) {
        Ok(text) => Answer::json(text + "\n"),
        Err(error) => Answer::text("500 Internal Server Error", error.to_string()),
    }
}

/// Whether a `Host` names the address that is listened on, or this machine.
fn names_this_machine(host: &str, address: SocketAddr) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => {
            name
        }
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback() || ip == address.ip())
}

/// The user and the password of `Basic`.
fn credentials(header: &str) -> Option<(String, String)> {
    let decoded = BASE64_STANDARD.decode(header.strip_prefix("Basic ")?.trim());
    let text = String::from_utf8(decoded.ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_names_are_answered_without_a_password() {
        let address = "127.0.0.1:7601".parse().expect("an address");
        for host in [
            "127.0.0.1:7601",
            "localhost",
            "LOCALHOST:80",
            "[::1]:7601",
            "::1",
        ] {
            assert!(names_this_machine(host, address), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:7601",
            "localhost.evil.example",
            "10.0.0.1:7601",
        ] {
            assert!(!names_this_machine(host, address), "{host}");
        }
    }

    #[test]
    fn credentials_are_read_from_the_header() {
        // "anybody:secret"
        let read = credentials("Basic YW55Ym9keTpzZWNyZXQ=");
        assert_eq!(read, Some(("anybody".into(), "secret".into())));
        for wrong in ["", "Basic", "Basic !!!", "Bearer secret", "Basic c2VjcmV0"] {
            assert_eq!(credentials(wrong), None, "{wrong}");
        }
    }
}
