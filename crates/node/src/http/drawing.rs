//! Flows for an editor: a text as a sketch, a sketch as a text, and what applying a text would change. Nothing here
//! changes the node.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use testigo_flow::{Finding, Graph, Name, Reading, Sketch, Stranded, plan, read, sketch};

use super::answer::{json_of, refused};
use crate::house::House;
use crate::shared::Shared;
use crate::users::{Deed, User};

/// `POST /api/flow/draw`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Draw {
    text: String,
}

pub(super) fn draw(_: &Arc<Shared>, _: &Arc<User>, body: &[u8]) -> Response {
    match serde_json::from_slice::<Draw>(body) {
        Err(why) => bad_body(&why),
        Ok(Draw { text }) => match sketch(&text) {
            Ok(sketched) => json_of(&sketched),
            Err(too_large) => refused(StatusCode::BAD_REQUEST, "LIMIT", &too_large.to_string()),
        },
    }
}

/// `POST /api/flow/write`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    sketch: Sketch,
    /// The text that the sketch was made from: what still holds of it stays as it is.
    #[serde(default)]
    text: Option<String>,
}

pub(super) fn write(_: &Arc<Shared>, _: &Arc<User>, body: &[u8]) -> Response {
    match serde_json::from_slice::<Write>(body) {
        Err(why) => bad_body(&why),
        Ok(Write { sketch, text }) => json_of(&sketch.write(text.as_deref())),
    }
}

/// `POST /api/flow/plan`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Planned {
    /// The running flow that the text would replace, if there is one of that name.
    name: Option<String>,
    text: String,
}

pub(super) fn planned(shared: &Arc<Shared>, user: &Arc<User>, body: &[u8]) -> Response {
    let Planned { name, text } = match serde_json::from_slice(body) {
        Err(why) => return bad_body(&why),
        Ok(planned) => planned,
    };
    if let Some(Err(refusal)) = name.as_ref().map(|name| user.check(Deed::Show, name)) {
        return refused(StatusCode::FORBIDDEN, "DENIED", &refusal.sentence);
    }
    let running = shared.enter(|house| {
        let flow = house.replicated().flow(name.as_deref()?).ok()?;
        let queues = flow.queues().filter_map(|(queue, id)| {
            let jobs = house.replicated().queue(id)?.jobs;
            Some((Name::new(queue).ok()?, jobs))
        });
        Some((flow.text.clone(), queues.collect::<BTreeMap<Name, u64>>()))
    });
    let Reading { flow, findings, .. } = read(&text);
    let findings: Vec<Finding> = findings.iter().map(Finding::from).collect();
    let (old, jobs) = match &running {
        Some((text, jobs)) => (read(text).graph, jobs.clone()),
        None => (Graph::default(), BTreeMap::new()),
    };
    let mut plan = flow.map(|new| plan(&old, &new, &jobs));
    let stranded = plan.iter_mut().flat_map(|plan| &mut plan.stranded);
    let stranded: Vec<_> = stranded.collect();
    if let Some(name) = name.as_deref().filter(|_| !stranded.is_empty()) {
        shared.enter(|house| name_stranded(house, user, name, stranded));
    }
    json_of(&json!({ "running": running.is_some(), "plan": plan, "findings": findings }))
}

/// Says what the first jobs are called that would be stranded, in queues that the user may look into.
fn name_stranded(house: &House, user: &User, flow: &str, stranded: Vec<&mut Stranded>) {
    let Ok(flow) = house.replicated().flow(flow) else {
        return;
    };
    let queues = stranded.iter().filter_map(|one| flow.queue(&one.queue));
    let queues = queues.filter(|queue| house.show_jobs(user, *queue).is_ok());
    let named = house.replicated().first_names(queues);
    for one in stranded {
        let names = flow.queue(&one.queue).and_then(|queue| named.get(&queue));
        let names = names.into_iter().flatten();
        one.names = names.map(|name| name.as_str().to_owned()).collect();
    }
}

fn bad_body(why: &serde_json::Error) -> Response {
    let why = format!("the body is not as wanted: {why}");
    refused(StatusCode::BAD_REQUEST, "BADARG", &why)
}
