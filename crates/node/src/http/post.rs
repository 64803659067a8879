//! Requests with a body: JSON only, and only from this node's own pages or from programs. A foreign page cannot send JSON
//! without asking first, and is also refused because of its `Origin`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Bytes, HttpBody, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONNECTION, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;

use super::answer::refused;
use super::door::{Door, apart};
use super::guard::{text_of, turn_away, user_of};
use crate::shared::Shared;
use crate::users::User;

/// A body that may be acted on, and who sent it.
pub(super) struct Posted {
    pub(super) door: Arc<Door>,
    pub(super) user: Arc<User>,
    pub(super) body: Bytes,
}

impl FromRequest<Arc<Door>> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, door: &Arc<Door>) -> Result<Posted, Response> {
        if let Some(refusal) = refusal(request.headers()) {
            return Err(turn_away(door, request, refusal).await);
        }
        let (door, user) = (Arc::clone(door), user_of(&request));
        let most = door.limits.body_bytes;
        let body = request.into_body();
        if body.size_hint().lower() > most as u64 {
            let why = format!("the body is longer than {most} bytes, the limit http_body_bytes");
            return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "LIMIT", &why));
        }
        let patience = Duration::from_millis(door.limits.body_ms);
        match tokio::time::timeout(patience, to_bytes(body, most)).await {
            Ok(Ok(body)) => Ok(Posted { door, user, body }),
            // The other side is gone.
            Ok(Err(why)) => Err(closing(refused(
                StatusCode::BAD_REQUEST,
                "BADARG",
                &format!("the body did not come whole: {why}"),
            ))),
            Err(_) => Err(closing(refused(
                StatusCode::REQUEST_TIMEOUT,
                "LIMIT",
                &format!(
                    "the body did not come whole within {} ms, the limit http_body_ms",
                    door.limits.body_ms
                ),
            ))),
        }
    }
}

fn closing(mut refusal: Response) -> Response {
    let headers = refusal.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    refusal
}

/// What a path does with a body.
type Work = fn(&Arc<Shared>, &Arc<User>, &[u8]) -> Response;

/// Does something with a body, on another thread so that quick answers need not wait.
pub(super) async fn work_on(Posted { door, user, body }: Posted, work: Work) -> Response {
    let done = apart(move || work(&door.open().shared, &user, &body)).await;
    done.unwrap_or_else(|broken| broken)
}

/// Why a body is not even read, if so.
fn refusal(headers: &HeaderMap) -> Option<Response> {
    let kind = text_of(headers, CONTENT_TYPE).split(';').next();
    if !kind
        .unwrap_or_default()
        .trim()
        .eq_ignore_ascii_case("application/json")
    {
        return Some(refused(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "BADARG",
            "the content type must be application/json",
        ));
    }
    if !is_own(text_of(headers, ORIGIN), text_of(headers, HOST)) {
        return Some(refused(
            StatusCode::FORBIDDEN,
            "DENIED",
            "a page from elsewhere may not send this",
        ));
    }
    None
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
