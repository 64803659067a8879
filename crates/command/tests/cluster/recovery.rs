//! What must be true when nothing fails: every node answers, all have applied the same, every gate is granted again at
//! every node; and at the very end every job is accounted for.

use std::process::Command;

use testigo_lab::Trace;

use crate::clients::jobs::{FLOW, FLOW_NAME};
use crate::clients::pools::{POOL, SLOTS};
use crate::clients::watch::{Standing, standing};
use crate::door::{Door, Heard, text};
use crate::faults::Breaker;
use crate::net::{Party, RESP_PORT, address};
use crate::nodes::PASSWORD;
use crate::stage::Stage;
use crate::up::Value;

/// Until all nodes of a new cluster have joined.
const FORMING_MS: u64 = 60_000;
/// Until every node is back in step after a fault: its lease, an election, the longest TTL, and the time after which a
/// node that keeps crashing is let in again.
const BOUND_MS: u64 = 90_000;
const LOOK_AGAIN_MS: u64 = 50;

/// Waits until a new cluster is there, and defines what the clients use.
pub(crate) fn prepare(stage: &Stage) -> Result<(), String> {
    for node in 1..=stage.nodes {
        until(
            stage,
            FORMING_MS,
            &format!("node {node} does not answer"),
            || {
                let mut door = Door::open(stage, node)?;
                matches!(door.call(&["PING"]).heard, Heard::Answer(_)).then_some(())
            },
        )?;
    }
    for (gate, definition) in stage.gates.created() {
        let words = [&["GATE", "CREATE", gate], &definition[..]];
        done(stage, &words.concat())?;
    }
    done(stage, &["FLOW", "APPLY", FLOW_NAME, FLOW])?;
    done(
        stage,
        &["POOL", "CREATE", POOL, "SLOTS", &SLOTS.to_string()],
    )
}

/// Carries out something that may be repeated, at any node.
fn done(stage: &Stage, words: &[&str]) -> Result<(), String> {
    let mut last = String::from("nobody answers");
    until(stage, FORMING_MS, "", || {
        let node = (stage.now() / 1_000 % u64::from(stage.nodes)) as Party + 1;
        let mut door = Door::open(stage, node)?;
        match door.call(words).heard {
            Heard::Answer(_) => Some(()),
            Heard::Refused(why) => {
                last = why;
                None
            }
            Heard::Unknown => None,
        }
    })
    .map_err(|_| format!("{words:?}: {last}"))
}

/// Who leads, as far as anybody knows.
pub(crate) fn leader(stage: &Stage) -> Option<Party> {
    let mut standings = (1..=stage.nodes).filter_map(|node| {
        let mut door = Door::open(stage, node)?;
        let standing = standing(&mut door)?;
        (standing.leader == Some(node.into())).then_some(node)
    });
    standings.next()
}

/// Waits until every node has applied what one of them had when the fault was over, and has granted every gate.
pub(crate) fn in_step(stage: &Stage, breaker: &mut Breaker<'_>) -> Result<(), String> {
    let mut doors: Vec<Option<Door>> = (0..stage.nodes).map(|_| None).collect();
    if stage.nodes > 1 {
        let mut goal = None;
        let mut seen: Vec<Option<Standing>> = vec![None; doors.len()];
        let reached = until(stage, BOUND_MS, "", || {
            // Nodes that a full disk has ended come back once there is room.
            breaker.nodes.start_all().ok()?;
            for (at, door) in doors.iter_mut().enumerate() {
                seen[at] = fresh(stage, at as Party + 1, door).and_then(standing);
            }
            let all: Option<Vec<Standing>> = seen.iter().copied().collect();
            let all = all?;
            let goal = *goal.get_or_insert_with(|| {
                let applied = all.iter().map(|standing| standing.applied);
                applied.max().unwrap_or(0)
            });
            let first = all.first()?.leader?;
            let agreed = all.iter().all(|standing| standing.leader == Some(first));
            (agreed && all.iter().all(|standing| standing.applied >= goal)).then_some(())
        });
        reached.map_err(|why| format!("{why}not back in step: {seen:?}, goal {goal:?}"))?;
    }
    for node in 1..=stage.nodes {
        for gate in stage.gates.all() {
            let mut last = String::from("no answer");
            until(stage, BOUND_MS, "", || {
                if stage.nodes == 1 {
                    breaker.nodes.start_all().ok()?;
                }
                let door = fresh(stage, node, &mut doors[usize::from(node) - 1])?;
                let mode = stage.gates.mode(gate, true, "nobody");
                let words = [&["LOCK", gate], &mode[..], &["WAIT", "3000"]];
                let said = door.call(&words.concat());
                match said.heard {
                    Heard::Answer(Value::Int(fence)) => {
                        door.call(&["UNLOCK", gate, &fence.to_string()]);
                        Some(())
                    }
                    other => {
                        last = format!("{other:?}");
                        None
                    }
                }
            })
            .map_err(|why| format!("{why}{gate} is not granted at node {node}: {last}"))?;
        }
    }
    Ok(())
}

/// What the nodes have on record of gates that travel by algorithms is replayed in the laboratory: the same messages, nobody
/// beside somebody else, and nobody passed more often than the algorithm's bound says.
pub(crate) fn replayed(stage: &Stage) -> Result<(), String> {
    for (gate, _) in stage.gates.created().filter(|_| stage.gates.using) {
        let mut told = String::new();
        until(stage, BOUND_MS, &format!("no trace of {gate}"), || {
            let node = format!("{}:{RESP_PORT}", address(1));
            let mut command = Command::new(env!("CARGO_BIN_EXE_testigo"));
            command.args(["trace", gate, "--resp", &node]);
            let fetched = command.env("TESTIGO_PASSWORD", PASSWORD).output().ok()?;
            told = String::from_utf8(fetched.stdout).ok()?;
            fetched.status.success().then_some(())
        })?;
        for trace in Trace::parse_all(&told).map_err(|error| format!("{gate}: {error}"))? {
            let replayed = trace
                .replay()
                .map_err(|error| format!("the trace of {gate}: {error}"))?;
            // The order that Sanders' source promises is broken by a slow voter: its profile says so.
            let is_wrong = |what: &&String| !what.starts_with("order");
            if let Some(wrong) = replayed.violations.iter().find(is_wrong) {
                return Err(format!("the trace of {gate} shows: {wrong}"));
            }
            stage.count("instances replayed");
        }
    }
    Ok(())
}

/// Every job that was acknowledged is there once, at whichever node one looks, and all have applied the same.
pub(crate) fn settle(stage: &Stage) -> Result<(), String> {
    let mut seen = Vec::new();
    // What was under way when the clients left may still be done.
    let same = until_agreed(stage, || {
        seen.clear();
        for node in 1..=stage.nodes {
            seen.push(living(stage, node));
        }
        let first = seen.first()?.as_ref().ok()?;
        let same = |other: &Result<Ending, String>| other.as_ref().is_ok_and(|o| o == first);
        seen.iter().all(same).then(|| first.jobs.clone())
    });
    match same {
        Some(jobs) => stage.records().jobs.judge(&jobs)?,
        None => return Err(format!("nodes differ at the end: {seen:?}")),
    }
    all_free(stage)
}

/// Every slot comes back, whatever its users went through, and can be taken at any node.
fn all_free(stage: &Stage) -> Result<(), String> {
    let slots = SLOTS.to_string();
    for node in 1..=stage.nodes {
        let mut last = String::from("no answer");
        let taken = until_agreed(stage, || {
            let mut door = Door::open(stage, node)?;
            let said = door.call(&["POOL", "TAKE", POOL, "COUNT", &slots, "WAIT", "3000"]);
            match said.heard {
                Heard::Answer(Value::List(_)) => Some(()),
                other => {
                    let shown = door.call(&["POOL", "SHOW", POOL]).heard;
                    last = format!("{other:?}, {shown:?}");
                    None
                }
            }
        });
        taken.ok_or_else(|| format!("not all slots can be taken at node {node}: {last}"))?;
    }
    Ok(())
}

/// What a node says when all is over.
#[derive(Debug, PartialEq, Eq)]
struct Ending {
    applied: Option<i64>,
    jobs: Vec<String>,
}

fn living(stage: &Stage, node: Party) -> Result<Ending, String> {
    let mut door = Door::open(stage, node).ok_or(format!("node {node} is gone"))?;
    let said = door.call(&["JOB", "FIND", "*", "LIMIT", "100000"]);
    let Heard::Answer(Value::List(rows)) = said.heard else {
        return Err(format!("JOB FIND at node {node}: {:?}", said.heard));
    };
    let names = rows.iter().map(|row| match row {
        Value::List(row) => row.get(1).and_then(text).unwrap_or("?").to_owned(),
        other => other.to_string(),
    });
    let mut jobs: Vec<String> = names.collect();
    jobs.sort_unstable();
    let applied = standing(&mut door).map(|standing| standing.applied);
    Ok(Ending { applied, jobs })
}

/// Looks again and again until there is something to see; the clients are gone by then.
fn until_agreed<T>(stage: &Stage, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = stage.now() + BOUND_MS * 1_000;
    loop {
        let found = look();
        if found.is_some() || stage.now() > end {
            return found;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(LOOK_AGAIN_MS));
    }
}

fn fresh<'d, 'a>(
    stage: &'a Stage,
    node: Party,
    door: &'d mut Option<Door<'a>>,
) -> Option<&'d mut Door<'a>> {
    if door.as_ref().is_none_or(Door::is_broken) {
        *door = Door::open(stage, node);
    }
    door.as_mut()
}

/// Looks again and again until something is true, within a bound.
fn until(
    stage: &Stage,
    bound_ms: u64,
    what: &str,
    mut look: impl FnMut() -> Option<()>,
) -> Result<(), String> {
    let end = stage.now() + bound_ms * 1_000;
    loop {
        if look().is_some() {
            return Ok(());
        }
        if stage.now() > end {
            return Err(format!("after {bound_ms} ms: {what}"));
        }
        if !stage.goes_on_after(LOOK_AGAIN_MS) {
            return Err(format!("the run ended: {what}"));
        }
    }
}
