//! Which requests are let in: those that cannot be misread, under a name of this machine if there are no users, with a
//! password if there are, and as many at a time as the limits allow.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, EXPECT, HOST, RETRY_AFTER, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use axum::middleware::Next;
use axum::response::Response;
use base64::prelude::{BASE64_STANDARD, Engine};

use super::answer::{self, add_policy, text, unauthorized};
use super::connection::connection_of;
use super::door::{Door, apart};
use crate::health::Health;
use crate::house::House;
use crate::users::{Found, Origin, User};

/// What is answered as soon as the node listens.
pub(super) const HEALTH: [&str; 2] = ["/livez", "/healthz"];

/// Around every request: lets it on if it cannot be misread, and adds the policy headers to every answer.
pub(super) async fn around(
    State(door): State<Arc<Door>>,
    request: Request,
    next: Next,
) -> Response {
    let connection = connection_of(&request);
    connection.request_begins();
    let mut response = match unclear(&request) {
        None if !door.is_open() && !HEALTH.contains(&request.uri().path()) => {
            let starts = answer::health(&Health::starting(), false);
            turn_away(&door, request, starts).await
        }
        None => next.run(request).await,
        Some(refusal) => {
            let mut refusal = turn_away(&door, request, refusal).await;
            let headers = refusal.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            refusal
        }
    };
    add_policy(response.headers_mut());
    response.map(|body| connection.answer(body))
}

/// Why a request could mean one thing to a proxy and another to this node, if it could.
fn unclear(request: &Request) -> Option<Response> {
    let headers = request.headers();
    let bad = |why| Some(text(StatusCode::BAD_REQUEST, why));
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => return bad("Host must be there once, not twice"),
        (None, _) if request.version() == Version::HTTP_11 => {
            return bad("the header Host is missing");
        }
        _ => {}
    }
    let authority = request.uri().authority();
    if authority.is_some_and(|named| !named.as_str().eq_ignore_ascii_case(text_of(headers, HOST))) {
        return bad("the request names one host, and the header Host another");
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        let why = "say the body's length as Content-Length, and send it without Transfer-Encoding";
        return Some(text(StatusCode::LENGTH_REQUIRED, why));
    }
    None
}

/// Lets a request on if it has a user, and attaches that user.
pub(super) async fn with_user(
    State(door): State<Arc<Door>>,
    mut request: Request,
    next: Next,
) -> Response {
    let from = Origin::of(connection_of(&request).peer);
    match user(&door, request.headers(), from).await {
        Ok(user) => {
            request.extensions_mut().insert(user);
            next.run(request).await
        }
        Err(refusal) => turn_away(&door, request, refusal).await,
    }
}

/// Lets a request on unless there are too many.
pub(super) async fn with_room(
    State(door): State<Arc<Door>>,
    request: Request,
    next: Next,
) -> Response {
    match Arc::clone(&door.requests).try_acquire_owned() {
        Ok(permit) => {
            connection_of(&request).hold(permit, false);
            next.run(request).await
        }
        Err(_) => {
            let refusal = no_room(door.limits.requests, "requests", "http_requests");
            turn_away(&door, request, refusal).await
        }
    }
}

/// The answer at a limit.
pub(super) fn no_room(most: usize, what: &str, limit: &str) -> Response {
    let why = format!("{most} {what} are under way, the limit {limit}; try again in a moment");
    let mut refusal = text(StatusCode::SERVICE_UNAVAILABLE, why);
    let headers = refusal.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    refusal
}

/// Answers a request whose body nobody wants. The body is read all the same, unless it is too long or not sent yet, because
/// otherwise the answer would be lost with the connection.
pub(super) async fn turn_away(door: &Door, request: Request, refusal: Response) -> Response {
    let waits = request.headers().contains_key(EXPECT);
    let mut body = request.into_body();
    let length = body.size_hint().upper();
    if waits || length.is_none_or(|length| length > door.limits.body_bytes as u64) {
        return refusal;
    }
    let all_read = async {
        while let Some(Ok(_)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {}
    };
    let patience = Duration::from_millis(door.limits.body_ms);
    let _ = tokio::time::timeout(patience, all_read).await;
    refusal
}

/// The user of a request behind the guard.
pub(super) fn user_of(request: &Request) -> Arc<User> {
    let user = request.extensions().get::<Arc<User>>();
    Arc::clone(user.expect("every request behind the guard has a user"))
}

/// A header as text; empty if it is missing.
pub(super) fn text_of(headers: &HeaderMap, name: HeaderName) -> &str {
    let value = headers.get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// The user of a request, or the answer that refuses it.
async fn user(door: &Arc<Door>, headers: &HeaderMap, from: Origin) -> Result<Arc<User>, Response> {
    if let Some(anybody) = door.open().users.anybody() {
        // Without users the front door is only for this machine: a foreign page must not reach it by a name of its own that
        // resolves here.
        return match names_this_machine(text_of(headers, HOST), door.address) {
            true => Ok(anybody),
            false => Err(text(
                StatusCode::FORBIDDEN,
                "use the address 127.0.0.1 or localhost",
            )),
        };
    }
    let Some((name, password)) = credentials(text_of(headers, AUTHORIZATION)) else {
        return Err(unauthorized());
    };
    // A browser asks for a name even if there is only a password.
    let name = match door.open().users.only_default() {
        true => User::DEFAULT.to_owned(),
        false => name,
    };
    // Both front doors slow guesses together.
    while until(door, |house| house.password_due(from, &name)).await {}
    let found = match door.open().users.find(&name, &password) {
        Found::User(user) => Some(user),
        Found::Wrong => None,
        Found::Unsure => work(door, name.clone(), password).await?,
    };
    let right = found.is_some();
    until(door, |house| house.password_checked(from, &name, right)).await;
    found.ok_or_else(unauthorized)
}

/// Sleeps until a time on the house's clock; says whether it was in the future.
async fn until(door: &Door, time: impl FnOnce(&mut House) -> u64) -> bool {
    let left = door.open().shared.enter(|house| {
        let time = time(house);
        time.saturating_sub(house.now())
    });
    tokio::time::sleep(Duration::from_millis(left)).await;
    left > 0
}

/// Checks a hashed password. One at a time: guessing must take neither all processors nor all of the front door's threads.
async fn work(
    door: &Arc<Door>,
    name: String,
    password: String,
) -> Result<Option<Arc<User>>, Response> {
    let _turn = door.hashing.acquire().await;
    let users = Arc::clone(&door.open().users);
    apart(move || users.work(&name, &password)).await
}

/// Whether a `Host` names the address on which the node listens, or this machine.
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
            .parse::<IpAddr>()
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
