//! The state of all members of a cluster, at any of them, gathered by the wire's `STATE`. Alone, the node makes it without
//! asking.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;

use super::answer::{json_of, json_text, text};
use super::ask::{Asked, ask};
use super::door::{Door, apart};
use super::flows::{Live, flows_of};
use super::making::{StateMaker, state};
use super::state::{Part, State};
use super::words::Said;
use crate::shared::Shared;
use crate::users::User;

/// What was seen, and where.
pub(super) enum Seen<T> {
    /// By this node, which is alone.
    Here(Box<T>),
    /// By the members, as JSON.
    Everywhere(String),
}

/// The state as a user may see it, or a part of it; otherwise the answer that says why not.
pub(super) async fn look(
    door: &Arc<Door>,
    user: &Arc<User>,
    pattern: &str,
    part: Part,
) -> Result<Seen<State>, Response> {
    let maker = StateMaker::new(pattern, part, Arc::clone(user));
    let maker = maker.map_err(|wrong| text(StatusCode::BAD_REQUEST, wrong.to_string()))?;
    let here = move |shared: &Shared, _: &Arc<User>| state(shared, maker);
    seen(door, user, pattern, part, here).await
}

/// The flows as a user may see them; otherwise the answer that says why not.
pub(super) async fn look_at_flows(
    door: &Arc<Door>,
    user: &Arc<User>,
    part: Part,
) -> Result<Seen<Live>, Response> {
    let whole = part == Part::Flows;
    let here = move |shared: &Shared, user: &Arc<User>| flows_of(shared, whole, user);
    seen(door, user, "*", part, here).await
}

async fn seen<T: Send + 'static>(
    door: &Arc<Door>,
    user: &Arc<User>,
    pattern: &str,
    part: Part,
    here: impl FnOnce(&Shared, &Arc<User>) -> Option<T> + Send + 'static,
) -> Result<Seen<T>, Response> {
    if door.member {
        let told = everywhere(door, user, pattern, part).await;
        return told.map(Seen::Everywhere);
    }
    let (door, user) = (Arc::clone(door), Arc::clone(user));
    match apart(move || here(&door.open().shared, &user)).await? {
        Some(seen) => Ok(Seen::Here(Box::new(seen))),
        None => Err(unavailable("the node is stopping, or has too much to do")),
    }
}

async fn everywhere(
    door: &Arc<Door>,
    user: &Arc<User>,
    pattern: &str,
    part: Part,
) -> Result<String, Response> {
    let mut words = vec![Said::from("STALE"), "STATE".into(), pattern.into()];
    words.extend(part.word().map(Said::from));
    let mut asked = ask(&door.open().shared, user, &words[1..]).await;
    if let Asked::Refused(why) = &asked
        && why.starts_with("UNAVAILABLE ")
    {
        // Without a majority: this node's own books, which name all others as missing.
        asked = ask(&door.open().shared, user, &words).await;
    }
    match asked {
        Asked::Answered(Value::String(state)) => Ok(state),
        Asked::Refused(why) => Err(unavailable(&why)),
        Asked::Answered(_) | Asked::Silent => Err(unavailable("the node does not answer")),
    }
}

fn unavailable(why: &str) -> Response {
    text(StatusCode::SERVICE_UNAVAILABLE, why)
}

impl<T: Serialize> Seen<T> {
    pub(super) fn into_text(self) -> String {
        match self {
            Seen::Here(state) => serde_json::to_string(&state).unwrap_or_default(),
            Seen::Everywhere(state) => state,
        }
    }

    pub(super) fn answer(self) -> Response {
        match self {
            Seen::Here(state) => json_of(&state),
            Seen::Everywhere(state) => json_text(state),
        }
    }

    /// One list of it. A list cannot name missing members, so if there are any this is refused.
    pub(super) fn list<R: Serialize>(self, name: &str, own: impl FnOnce(T) -> Vec<R>) -> Response {
        match self {
            Seen::Here(state) => json_of(&own(*state)),
            Seen::Everywhere(state) => match whole(read(&state)) {
                Ok(state) => json_of(&state[name]),
                Err(why) => unavailable(&why),
            },
        }
    }
}

impl Seen<State> {
    /// Its only gate.
    pub(super) fn gate(self, name: &str) -> Response {
        let none = || {
            let refusal = testigo_core::no_gate(name);
            text(StatusCode::NOT_FOUND, refusal.to_string())
        };
        match self {
            Seen::Here(state) => state.gates.first().map_or_else(none, json_of),
            Seen::Everywhere(state) => {
                let state = read(&state);
                match &state["gates"][0] {
                    Value::Null => whole(state).map_or_else(|why| unavailable(&why), |_| none()),
                    gate => json_of(gate),
                }
            }
        }
    }
}

fn read(state: &str) -> Value {
    serde_json::from_str(state).unwrap_or_default()
}

/// The state if it is complete; otherwise a sentence that names the missing members.
fn whole(state: Value) -> Result<Value, String> {
    let missing = state["missing"].as_array();
    let nodes = missing
        .into_iter()
        .flatten()
        .map(|node| format!("node {node}"));
    let nodes: Vec<String> = nodes.collect();
    match nodes[..] {
        [] => Ok(state),
        _ => Err(format!("{} did not answer", nodes.join(" and "))),
    }
}
