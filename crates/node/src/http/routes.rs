//! The paths and their answers.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use percent_encoding::percent_decode_str;

use super::answer::{self, EVENTS, file, files, text};
use super::command::command;
use super::connection::connection_of;
use super::door::{Door, apart};
use super::drawing::{draw, planned, write};
use super::events::stream;
use super::gathering::{Seen, look, look_at_flows};
use super::guard::{HEALTH, around, no_room, text_of, turn_away, user_of, with_room, with_user};
use super::labels::{cluster_metrics, labelled};
use super::metrics::{door_metrics, metrics};
use super::post::{Posted, work_on};
use super::state::Part;
use crate::health::Health;
use crate::users::{Deed, User};

type At = State<Arc<Door>>;
type By = Extension<Arc<User>>;

/// All paths, behind the guards.
pub(super) fn routes(door: Arc<Door>) -> Router {
    let mut routes = Router::new()
        .route("/api/state", get(the_state))
        .route("/api/gates/{*name}", get(one_gate))
        .route("/api/sessions", get(the_sessions))
        .route("/api/waits", get(the_waits))
        .route("/api/flows", get(the_flows))
        .route("/api/command", post(command))
        .route("/api/flow/draw", post(|body: Posted| work_on(body, draw)))
        .route("/api/flow/write", post(|body: Posted| work_on(body, write)))
        .route("/api/flow/plan", post(planned));
    for (path, kind, content) in files() {
        routes = routes.route(path, get(async move || file(kind, content)));
    }
    let guarded = routes
        .route_layer(from_fn_with_state(Arc::clone(&door), with_room))
        // These have their own limits.
        .route("/api/events", get(events))
        .route("/metrics", get(the_metrics))
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_that_way)
        .layer(from_fn_with_state(Arc::clone(&door), with_user));
    // Anybody may ask for the health, and nothing that keeps the node from its work makes it less alive.
    let [livez, healthz] = HEALTH;
    guarded
        .route(livez, get(async || text(StatusCode::OK, "ok")))
        .route(healthz, get(health))
        .method_not_allowed_fallback(not_that_way)
        .layer(from_fn_with_state(Arc::clone(&door), around))
        .with_state(door)
}

async fn health(State(door): At, headers: HeaderMap) -> Response {
    let json = text_of(&headers, ACCEPT).contains("application/json");
    let health = apart(move || {
        let free_bytes = Health::look_at(&door.data);
        match door.is_open() {
            true => door
                .open()
                .shared
                .enter(|house| Health::of(house, free_bytes)),
            false => Health::starting(),
        }
    });
    match health.await {
        Ok(health) => answer::health(&health, json),
        Err(broken) => broken,
    }
}

async fn the_metrics(State(door): At, Extension(user): By) -> Response {
    let text = apart(move || {
        let free_bytes = Health::look_at(&door.data);
        let (text, member) = door.open().shared.enter(|house| {
            let health = Health::of(house, free_bytes);
            let text = metrics(house, &user, &health) + &cluster_metrics(house);
            let standing = house.standing();
            (text, standing.member.then_some(standing.node.0))
        });
        let text = text + &door_metrics(&door);
        match member {
            Some(node) => labelled(&text, node),
            None => text,
        }
    });
    match text.await {
        Ok(text) => answer::metrics(text),
        Err(broken) => broken,
    }
}

async fn the_state(State(door): At, Extension(user): By, uri: Uri) -> Response {
    let pattern = parameter(uri.query().unwrap_or_default(), "pattern");
    let pattern = pattern.unwrap_or_else(|| "*".into());
    let seen = look(&door, &user, &pattern, Part::Whole).await;
    written(seen, Seen::answer).await
}

async fn the_sessions(State(door): At, Extension(user): By) -> Response {
    let seen = look(&door, &user, "*", Part::Sessions).await;
    written(seen, |seen| seen.list("sessions", |state| state.sessions)).await
}

async fn the_waits(State(door): At, Extension(user): By) -> Response {
    let seen = look(&door, &user, "*", Part::Waits).await;
    written(seen, |seen| seen.list("edges", |state| state.edges)).await
}

async fn the_flows(State(door): At, Extension(user): By) -> Response {
    let seen = look_at_flows(&door, &user, Part::Flows).await;
    written(seen, |seen| seen.list("flows", |live| live.flows)).await
}

async fn one_gate(
    State(door): At,
    Extension(user): By,
    name: Result<Path<String>, PathRejection>,
) -> Response {
    let Ok(Path(name)) = name else {
        return text(StatusCode::BAD_REQUEST, "a gate's name is UTF-8");
    };
    if let Err(refusal) = user.check(Deed::Show, &name) {
        return text(StatusCode::FORBIDDEN, refusal.to_string());
    }
    let seen = look(&door, &user, &name, Part::Gate).await;
    written(seen, move |seen| seen.gate(&name)).await
}

/// Writes what was seen, or why nothing was. It may be long, so only the client that asked waits for it.
async fn written<T: Send + 'static>(
    seen: Result<Seen<T>, Response>,
    write: impl FnOnce(Seen<T>) -> Response + Send + 'static,
) -> Response {
    match seen {
        Ok(seen) => apart(move || write(seen))
            .await
            .unwrap_or_else(|broken| broken),
        Err(refusal) => refusal,
    }
}

async fn events(State(door): At, request: Request) -> Response {
    match Arc::clone(&door.streams).try_acquire_owned() {
        Ok(permit) => {
            connection_of(&request).hold(permit, true);
            let body = stream(&door, user_of(&request));
            ([(CONTENT_TYPE, EVENTS)], body).into_response()
        }
        Err(_) => no_room(door.limits.streams, "event streams", "http_streams"),
    }
}

async fn nothing_there(State(door): At, request: Request) -> Response {
    let why = format!("there is nothing at {}", request.uri().path());
    turn_away(&door, request, text(StatusCode::NOT_FOUND, why)).await
}

async fn not_that_way(State(door): At, request: Request) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let why = format!("{path} cannot be asked with {method}, only as the header Allow says");
    turn_away(&door, request, text(StatusCode::METHOD_NOT_ALLOWED, why)).await
}

/// A parameter of a query.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    let value = value.replace('+', " ");
    Some(percent_decode_str(&value).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_decoded() {
        let query = "x=1&pattern=a+b%2A%ff%&pattern=no";
        assert_eq!(
            parameter(query, "pattern").as_deref(),
            Some("a b*\u{fffd}%")
        );
        assert_eq!(parameter("pattern", "pattern"), None);
    }
}
