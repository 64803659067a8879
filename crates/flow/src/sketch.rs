//! A sketch is a drawing as an editor holds it: processes and queues with their places and declarations, and arrows, each of which
//! does one of the four things that the thesis draws. A text becomes a sketch and a sketch a text again; on canonical
//! texts that is the identity, and every text of a valid flow keeps its comments and its order.
//!
//! Places are no part of a flow: they are laid out anew from the graph whenever a text is drawn.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::limits::{ARROWS_MAX, DIAGNOSTICS_MAX};
use crate::{
    About, DRAWN_MAX, Defaults, Diagnostic, Document, Drawing, Flow, Graph, Name, NodeKind,
    Notation, Problem, Process, Queue, QueueOrder, Reject, Rule, TooLarge, Weight, canonical,
    check, lay_out, read, revise,
};

/// An editable drawing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sketch {
    pub processes: Vec<SketchedProcess>,
    pub queues: Vec<SketchedQueue>,
    pub arrows: Vec<SketchedArrow>,
    /// The flow's own retries and reject queue.
    #[serde(default)]
    pub retries: Option<u32>,
    #[serde(default)]
    pub reject: Option<Name>,
}

/// A process, by its centre.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SketchedProcess {
    pub name: Name,
    #[serde(default)]
    pub x: f64,
    #[serde(default)]
    pub y: f64,
    #[serde(default)]
    pub limit: Option<u32>,
    #[serde(default)]
    pub rights: BTreeSet<Name>,
}

/// A queue, by its centre.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SketchedQueue {
    pub name: Name,
    #[serde(default)]
    pub x: f64,
    #[serde(default)]
    pub y: f64,
    #[serde(default)]
    pub limit: Option<u32>,
    #[serde(default)]
    pub order: QueueOrder,
    #[serde(default)]
    pub retries: Option<u32>,
    #[serde(default)]
    pub reject: Reject,
    #[serde(default)]
    pub rights: BTreeSet<Name>,
    #[serde(default)]
    pub data: Option<String>,
}

/// An arrow between a process and a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SketchedArrow {
    pub process: Name,
    pub queue: Name,
    pub does: Does,
}

/// What a process does along an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Does {
    /// Passes jobs that it took into the queue.
    Put,
    /// Creates jobs into the queue, and may pass others there.
    Create,
    /// Takes jobs from the queue.
    Take,
    /// Takes jobs from the queue and may delete them.
    Delete,
}

impl Does {
    /// Whether the arrow points to the queue.
    pub fn puts(self) -> bool {
        matches!(self, Does::Put | Does::Create)
    }
}

/// What a text gave: a sketch unless it cannot be read at all, where everything stands, and what is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sketched {
    pub sketch: Option<Sketch>,
    pub drawing: Option<Drawing>,
    pub findings: Vec<Finding>,
}

/// What a sketch gave: its text if it is a flow, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Written {
    pub text: Option<String>,
    pub findings: Vec<Finding>,
}

/// Something wrong with a text or a sketch, for an editor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: Rule,
    pub weight: Weight,
    /// What is wrong and how to mend it.
    pub message: String,
    /// Where in the text, from 1.
    pub line: Option<usize>,
    pub column: Option<usize>,
    /// What it is about in the sketch.
    pub process: Option<Name>,
    pub queue: Option<Name>,
}

/// Draws a text, as far as it can be read.
pub fn sketch(text: &str) -> Result<Sketched, TooLarge> {
    let reading = read(text);
    let findings = reading.findings.iter().map(Finding::from).collect();
    let readable = reading.document.is_some() || reading.flow.is_some();
    let drawing = match readable {
        true => Some(lay_out(&reading.graph, reading.document.as_ref())?),
        false => None,
    };
    let sketch = drawing.as_ref().map(|d| Sketch::of(&reading.graph, d));
    Ok(Sketched {
        sketch,
        drawing,
        findings,
    })
}

impl Sketch {
    /// A graph at the places of a drawing of it.
    pub fn of(graph: &Graph, drawing: &Drawing) -> Sketch {
        let places: BTreeMap<(bool, &Name), (f64, f64)> = drawing
            .nodes
            .iter()
            .map(|node| ((node.kind == NodeKind::Queue, &node.name), (node.x, node.y)))
            .collect();
        let place = |is_queue, name| places.get(&(is_queue, name)).copied().unwrap_or_default();
        let processes = graph.processes.iter().map(|(name, process)| {
            let (x, y) = place(false, name);
            SketchedProcess {
                name: name.clone(),
                x,
                y,
                limit: process.limit,
                rights: process.rights.clone(),
            }
        });
        let queues = graph.queues.iter().map(|(name, queue)| {
            let (x, y) = place(true, name);
            SketchedQueue {
                name: name.clone(),
                x,
                y,
                limit: queue.limit,
                order: queue.order,
                retries: queue.retries,
                reject: queue.reject.clone(),
                rights: queue.rights.clone(),
                data: queue.data.clone(),
            }
        });
        Sketch {
            processes: processes.collect(),
            queues: queues.collect(),
            arrows: arrows(graph),
            retries: graph.defaults.retries,
            reject: graph.defaults.reject.clone(),
        }
    }

    /// What the sketch says. It need not keep the rules, but its names are one each and its arrows have two ends.
    pub fn graph(&self) -> Result<Graph, Problem> {
        self.check_size()?;
        let mut graph = Graph {
            defaults: Defaults {
                reject: self.reject.clone(),
                retries: self.retries,
            },
            ..Graph::default()
        };
        for queue in &self.queues {
            let name = queue.name.clone();
            let declared = Queue {
                limit: queue.limit,
                order: queue.order,
                retries: queue.retries,
                reject: queue.reject.clone(),
                rights: queue.rights.clone(),
                data: queue.data.clone(),
            };
            if graph.queues.insert(name.clone(), declared).is_some() {
                let message = format!("two queues are called {name}");
                return Err(problem(Rule::Duplicate, About::Queue(name), message));
            }
        }
        for process in &self.processes {
            let name = process.name.clone();
            let declared = Process {
                limit: process.limit,
                rights: process.rights.clone(),
                ..Process::default()
            };
            if graph.processes.insert(name.clone(), declared).is_some() {
                let message = format!("two processes are called {name}");
                return Err(problem(Rule::Duplicate, About::Process(name), message));
            }
        }
        for arrow in &self.arrows {
            add(&mut graph, arrow)?;
        }
        Ok(graph)
    }

    /// The text of the sketch, if it is a flow. What still holds of `old` stays as it is, with its comments.
    pub fn write(&self, old: Option<&str>) -> Written {
        let problems = match self.graph() {
            Err(problem) => vec![problem],
            Ok(graph) => {
                let problems = check(&graph);
                match Flow::new(graph) {
                    Ok(flow) => return written(old, &flow, &problems),
                    Err(_) => problems,
                }
            }
        };
        let shown = problems.iter().take(DIAGNOSTICS_MAX);
        Written {
            text: None,
            findings: shown.map(Finding::from).collect(),
        }
    }

    fn check_size(&self) -> Result<(), Problem> {
        let nodes = self.processes.len() + self.queues.len();
        let sizes = [
            ("processes and queues", nodes, DRAWN_MAX),
            ("arrows", self.arrows.len(), ARROWS_MAX),
        ];
        match sizes.into_iter().find(|(_, number, most)| number > most) {
            None => Ok(()),
            Some((what, number, most)) => {
                let message = format!("the sketch has {number} {what}; at most {most} are drawn");
                Err(problem(Rule::Limit, About::Flow, message))
            }
        }
    }
}

fn written(old: Option<&str>, flow: &Flow, problems: &[Problem]) -> Written {
    let document = old.and_then(document);
    let text = match document {
        Some(document) => revise(&document, flow).to_string(),
        None => canonical(flow),
    };
    Written {
        text: Some(text),
        findings: problems.iter().map(Finding::from).collect(),
    }
}

/// The statements of a text, if it has any.
fn document(text: &str) -> Option<Document> {
    let read = match Notation::of(text) {
        Notation::Flow => Document::parse(text),
        Notation::Classic => Document::parse_classic(text),
        Notation::Config => return None,
    };
    read.ok()
}

/// All arrows of a graph, by process and queue.
fn arrows(graph: &Graph) -> Vec<SketchedArrow> {
    let mut arrows = Vec::new();
    for (name, process) in &graph.processes {
        let mut add = |queue: &Name, marked: bool, plain: Does, mark: Does| {
            arrows.push(SketchedArrow {
                process: name.clone(),
                queue: queue.clone(),
                does: if marked { mark } else { plain },
            });
        };
        for queue in &process.passes {
            add(
                queue,
                process.creates.contains(queue),
                Does::Put,
                Does::Create,
            );
        }
        for queue in &process.takes {
            add(
                queue,
                process.deletes.contains(queue),
                Does::Take,
                Does::Delete,
            );
        }
    }
    arrows
}

fn add(graph: &mut Graph, arrow: &SketchedArrow) -> Result<(), Problem> {
    let SketchedArrow {
        process: name,
        queue,
        does,
    } = arrow;
    if !graph.queues.contains_key(queue) {
        let message = format!("an arrow of {name} has no queue {queue} at its end");
        return Err(problem(
            Rule::UnknownName,
            About::Process(name.clone()),
            message,
        ));
    }
    let Some(process) = graph.processes.get_mut(name) else {
        let message = format!("an arrow of [{queue}] has no process {name} at its end");
        return Err(problem(
            Rule::UnknownName,
            About::Queue(queue.clone()),
            message,
        ));
    };
    let (along, marked) = match does.puts() {
        true => (&mut process.passes, &mut process.creates),
        false => (&mut process.takes, &mut process.deletes),
    };
    if matches!(does, Does::Create | Does::Delete) {
        marked.insert(queue.clone());
    }
    match along.insert(queue.clone()) {
        true => Ok(()),
        false => {
            let message = format!("there are two arrows the same way between {name} and [{queue}]");
            Err(problem(
                Rule::Duplicate,
                About::Process(name.clone()),
                message,
            ))
        }
    }
}

fn problem(rule: Rule, about: About, message: String) -> Problem {
    let mend = match rule {
        Rule::Duplicate => "remove one, or give it another name",
        Rule::UnknownName => "draw it, or remove the arrow",
        _ => "make two flows of it",
    };
    Problem {
        rule,
        weight: Weight::Error,
        about,
        message,
        mend: mend.into(),
    }
}

impl From<&Diagnostic> for Finding {
    fn from(found: &Diagnostic) -> Finding {
        Finding {
            rule: found.rule,
            weight: found.weight,
            message: found.message.clone(),
            line: Some(found.line),
            column: Some(found.column),
            process: None,
            queue: None,
        }
    }
}

impl From<&Problem> for Finding {
    fn from(found: &Problem) -> Finding {
        let (process, queue) = match &found.about {
            About::Flow => (None, None),
            About::Process(name) | About::Arrow(name, _) => (Some(name.clone()), None),
            About::Queue(name) | About::Reject(name) | About::RejectOf(name) => {
                (None, Some(name.clone()))
            }
        };
        Finding {
            rule: found.rule,
            weight: found.weight,
            message: format!("{}; {}", found.message, found.mend),
            line: None,
            column: None,
            process,
            queue,
        }
    }
}
