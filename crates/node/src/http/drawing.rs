//! Flows for an editor: text to sketch, sketch to text, and what applying a text would change. Nothing here changes the node.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use testigo_core::FlowMark;
use testigo_flow::{
    AtWork, Finding, Losing, Name, Plan, Reading, Sketch, Stranded, plan, read, sketch,
};

use super::answer::{json_of, refused};
use super::ask::{Asked, ask};
use super::door::apart;
use super::post::Posted;
use super::words::Said;
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
    /// The text from which the sketch was made: whatever still holds of it stays unchanged.
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
    /// The running flow that the text would replace, if there is one with this name.
    name: Option<String>,
    text: String,
    /// The text with which the author started; empty if there was no flow.
    #[serde(default)]
    seen: Option<String>,
}

/// A plan, and findings.
#[derive(Serialize)]
struct Foreseen {
    /// Whether there is such a flow.
    running: bool,
    /// The mark of its text.
    mark: Option<String>,
    plan: Option<Plan>,
    /// What others have changed since the author saw it; `None` if nobody has, or if the author does not say what it saw.
    since: Option<Plan>,
    findings: Vec<Finding>,
}

pub(super) async fn planned(Posted { door, user, body }: Posted) -> Response {
    let Planned { name, text, seen } = match serde_json::from_slice(&body) {
        Err(why) => return bad_body(&why),
        Ok(planned) => planned,
    };
    if let Some(Err(refusal)) = name.as_ref().map(|name| user.check(Deed::Show, name)) {
        return refused(StatusCode::FORBIDDEN, "DENIED", &refusal.sentence);
    }
    let (shared, author, flow) = (
        Arc::clone(&door.open().shared),
        Arc::clone(&user),
        name.clone(),
    );
    let foreseen =
        apart(move || foresee(&shared, &author, flow.as_deref(), &text, seen.as_deref()));
    let mut foreseen = match foreseen.await {
        Err(broken) => return broken,
        Ok(foreseen) => foreseen,
    };
    let losing = foreseen.plan.as_mut().map(|plan| &mut plan.losing);
    if let Some((name, losing)) = name.zip(losing.filter(|losing| !losing.is_empty())) {
        let words = ["FLOW", "CLIENTS", &name].map(Said::from);
        if let Asked::Answered(clients) = ask(&door.open().shared, &user, &words).await {
            name_clients(losing, &clients);
        }
    }
    json_of(&foreseen)
}

fn foresee(
    shared: &Shared,
    user: &User,
    name: Option<&str>,
    text: &str,
    seen: Option<&str>,
) -> Foreseen {
    let running = shared.enter(|house| {
        let flow = house.replicated().flow(name?).ok()?;
        let queues = flow.queues().filter_map(|(queue, id)| {
            let jobs = house.replicated().queue(id)?.jobs;
            Some((Name::new(queue).ok()?, jobs))
        });
        Some((flow.text.clone(), queues.collect::<BTreeMap<Name, u64>>()))
    });
    let mark = running.as_ref().map(|(text, _)| FlowMark::of(text));
    let Reading { flow, findings, .. } = read(text);
    let is = running.as_ref().map_or("", |(text, _)| text);
    let old = read(is).graph;
    let since = seen.filter(|seen| *seen != is);
    let since = since.map(|seen| plan(&read(seen).graph, &old, &BTreeMap::new()));
    let jobs = running.map(|(_, jobs)| jobs).unwrap_or_default();
    let mut plan = flow.map(|new| plan(&old, &new, &jobs));
    let stranded = plan.iter_mut().flat_map(|plan| &mut plan.stranded);
    let stranded: Vec<_> = stranded.collect();
    if let Some(name) = name.filter(|_| !stranded.is_empty()) {
        shared.enter(|house| name_stranded(house, user, name, stranded));
    }
    Foreseen {
        running: mark.is_some(),
        mark: mark.map(|mark| mark.to_string()),
        plan,
        since,
        findings: findings.iter().map(Finding::from).collect(),
    }
}

/// Names those who work, on any node, as processes that would vanish or lose an arrow.
fn name_clients(losing: &mut [Losing], clients: &Value) {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    for client in clients.as_array().into_iter().flatten() {
        let process = text(client, "process");
        if let Some(one) = losing.iter_mut().find(|one| *one.process == *process) {
            let jobs = client["jobs"].as_array().into_iter().flatten();
            one.clients.push(AtWork {
                id: client["id"].as_u64().unwrap_or_default(),
                name: text(client, "name"),
                machine: text(client, "machine"),
                jobs: jobs.map(|job| text(job, "name")).collect(),
            });
        }
    }
}

/// Names the first jobs that would be stranded, in queues that the user may look into.
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
