//! Writing a configuration file.

use std::collections::BTreeSet;
use std::fmt;

use super::keep::{Kept, RowKey};
use super::{FIRST_SERVER, LAST_ROW, NO_DIRECTORY, infer};
use crate::canonical::declarations;
use crate::{Flow, Graph, Name};

/// A configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub text: String,
    /// The declarations that it cannot say.
    pub unsaid: Vec<String>,
}

/// A process whose name would end the file's list of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoConfigName(pub Name);

impl fmt::Display for NoConfigName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoConfigName(name) = self;
        write!(
            f,
            "a configuration file cannot name a process {name}, which ends its list; rename it"
        )
    }
}

impl std::error::Error for NoConfigName {}

/// Writes a flow as a configuration file, sorted by name, so that equal flows give equal files.
pub fn config(flow: &Flow) -> Result<Config, NoConfigName> {
    write(flow, Kept::default())
}

/// Writes a flow in the place of an older configuration file, with its comments, the order of its rows and the numbers of
/// its queues.
pub fn revise_config(old: &str, flow: &Flow) -> Result<Config, NoConfigName> {
    write(flow, Kept::of(old))
}

fn write(flow: &Flow, mut kept: Kept) -> Result<Config, NoConfigName> {
    let graph = flow.graph();
    if let Some((name, _)) = graph.processes.get_key_value(LAST_ROW) {
        return Err(NoConfigName(name.clone()));
    }
    let mut text = String::new();
    let (queues, processes) = (graph.queues.len(), graph.processes.len());
    let counts = format!("cantcolas= {queues}, cantproctype= {processes}");
    kept.write(&mut text, &RowKey::Counts, &counts);
    let reject = graph.defaults.reject.as_deref().unwrap_or_default();
    kept.write(&mut text, &RowKey::Reject, &format!("colarechazo={reject}"));
    kept.write(&mut text, &RowKey::BeginQueues, "BeginCola");
    let mut queues: Vec<_> = graph.queues.iter().collect();
    queues.sort_by_key(|(name, _)| kept.place(&RowKey::Queue(name.to_string())));
    for (name, queue) in queues {
        let path = queue.data.as_deref().filter(|path| is_plain(path));
        let path = path.unwrap_or(NO_DIRECTORY);
        let (put, take) = kept.numbers(name, FIRST_SERVER);
        let row = format!("{name}, {path}, {put}, {take}");
        kept.write(&mut text, &RowKey::Queue(name.to_string()), &row);
    }
    kept.write(&mut text, &RowKey::EndQueues, "EndCola");
    kept.write(&mut text, &RowKey::BeginProcesses, "BeginProceso");
    let marks = needs_marks(graph);
    let mut processes: Vec<_> = graph.processes.iter().collect();
    processes.sort_by_key(|(name, _)| kept.place(&RowKey::Process(name.to_string())));
    for (name, process) in processes {
        let mut lists = vec![("e", &process.takes), ("s", &process.passes)];
        if marks {
            lists.extend([("i", &process.creates), ("f", &process.deletes)]);
        }
        let lists: Vec<String> = lists.into_iter().filter_map(list).collect();
        kept.write(&mut text, &RowKey::Process(name.to_string()), name);
        kept.write(
            &mut text,
            &RowKey::Lists(name.to_string()),
            &lists.join(", "),
        );
        kept.write(&mut text, &RowKey::EndProcess(name.to_string()), "fin");
    }
    kept.write(&mut text, &RowKey::EndProcesses, LAST_ROW);
    kept.write_tail(&mut text);
    let unsaid = unsaid(graph);
    Ok(Config { text, unsaid })
}

fn list((mark, queues): (&str, &BTreeSet<Name>)) -> Option<String> {
    let names: Vec<&str> = queues.iter().map(Name::as_str).collect();
    (!names.is_empty()).then(|| format!("{mark}: {}", names.join(", ")))
}

/// Whether a reader could not infer who creates and who deletes.
fn needs_marks(graph: &Graph) -> bool {
    let mut inferred = graph.clone();
    infer(&mut inferred);
    inferred != *graph
}

/// A path that a row of the file can hold.
fn is_plain(path: &str) -> bool {
    !path.contains([',', '#']) && path.trim() == path && path != NO_DIRECTORY
}

/// What is declared beyond directories and the one reject queue.
fn unsaid(graph: &Graph) -> Vec<String> {
    let mut rest = graph.clone();
    rest.defaults.reject = None;
    for queue in rest.queues.values_mut() {
        if queue.data.as_deref().is_some_and(is_plain) {
            queue.data = None;
        }
    }
    let declarations = declarations(&rest, |_| true);
    declarations.iter().map(ToString::to_string).collect()
}
