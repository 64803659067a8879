//! What a node must hold: gates that nobody uses, and sessions that are open.

use std::path::Path;
use std::time::Instant;

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::report::{Bar, Report, Unit, memory_of};
use crate::service;
use crate::wire::Client;
use crate::wire::resp::command;

const GATES: usize = 100_000;
const SESSIONS: usize = 10_000;
/// Clients that create gates at once, so that their changes share flushes.
const BUILDERS: usize = 200;
/// Sessions opened before their answers are read.
const BATCH: usize = 1_000;
/// Descriptors of this process besides the sessions.
const SPARE: u64 = 100;

/// The memory of a node with many gates that nobody uses.
pub(crate) fn gates(binary: &Path, report: &mut Report) -> Result<(), String> {
    let node = service::testigo::start(binary)?;
    let empty = memory_of(node.process())?;
    let begin = Instant::now();
    let mut builders = Vec::new();
    for builder in 0..BUILDERS {
        let mut client = Client::connect(node.address)?;
        let mut commands = Vec::new();
        for gate in 0..GATES / BUILDERS {
            let name = format!("service-{builder:03}/gate-{gate:06}");
            commands.extend(command(&["GATE", "CREATE", &name, "MUTEX"]));
        }
        client.say(&commands)?;
        builders.push(client);
    }
    for _ in 0..GATES / BUILDERS {
        for builder in &mut builders {
            builder.expect("+OK")?;
        }
    }
    drop(builders);
    let taken = begin.elapsed().as_secs_f64();
    let memory = memory_of(node.process())?;
    report.row(
        "memory of a node with 100,000 idle gates",
        Bar::AtMost(150.0 * 1_048_576.0, Unit::Bytes),
        memory as f64,
        &format!(
            "created in {taken:.1} s, all durable; {} before",
            Unit::Bytes.show(empty as f64)
        ),
    );
    Ok(())
}

/// Sessions that are open at once, each with its connection.
pub(crate) fn sessions(binary: &Path, report: &mut Report) -> Result<(), String> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit
        .maximum
        .is_some_and(|most| most < SESSIONS as u64 + SPARE)
    {
        return Err(format!("this system allows a process only {limit:?} files"));
    }
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).map_err(|e| format!("cannot open more files: {e}"))?;
    let node = service::testigo::start(binary)?;
    let begin = Instant::now();
    let mut clients = Vec::new();
    let mut opened = 0;
    for first in (0..SESSIONS).step_by(BATCH) {
        for _ in 0..BATCH {
            let mut client = Client::connect(node.address)?;
            client.say(&command(&["SESSION", "OPEN", "TTL", "60000"]))?;
            clients.push(client);
        }
        for client in &mut clients[first..] {
            opened += usize::from(client.line()?.starts_with(':'));
        }
    }
    let taken = begin.elapsed().as_secs_f64();
    for client in &mut clients {
        client.say(&command(&["PING"]))?;
    }
    let mut answering = 0;
    for client in &mut clients {
        answering += usize::from(client.line()? == "+PONG");
    }
    let memory = memory_of(node.process())?;
    report.row(
        "open sessions that all answer",
        Bar::AtLeast(SESSIONS as f64, Unit::Count),
        opened.min(answering) as f64,
        &format!(
            "opened in {taken:.1} s, all durable; the node has {}",
            Unit::Bytes.show(memory as f64)
        ),
    );
    Ok(())
}
