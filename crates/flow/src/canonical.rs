//! A graph as statements, in one order: equal graphs give equal texts.

use std::collections::HashSet;

use crate::cover::chains;
use crate::text::{
    Attribute, Declaration, Document, Statement, StatementKind, Subject, Trivia, Value,
};
use crate::{Graph, Name, Process, Queue, QueueOrder, Reject};

/// The canonical text of a graph: its chains, then what is declared. Reading it gives the graph again if the graph keeps
/// the rules.
pub fn canonical(graph: &Graph) -> String {
    document(graph).to_string()
}

/// The canonical statements of a graph.
pub(crate) fn document(graph: &Graph) -> Document {
    let chains = chains(graph, []);
    let mut document = Document::default();
    let mentioned: HashSet<Name> = chains.iter().flat_map(|c| c.queues.clone()).collect();
    let declarations = declarations(graph, |name| mentioned.contains(name));
    document
        .statements
        .extend(chains.into_iter().map(Statement::chain));
    let between = !document.statements.is_empty();
    for (at, declaration) in declarations.into_iter().enumerate() {
        let mut statement = Statement::new(StatementKind::Declaration(declaration));
        if at == 0 && between {
            statement.lead.push(Trivia::Blank);
        }
        document.statements.push(statement);
    }
    document
}

/// What chains cannot say.
pub(crate) fn declarations(graph: &Graph, mentioned: impl Fn(&Name) -> bool) -> Vec<Declaration> {
    let flow = declaration(Subject::Flow, defaults(graph));
    let queues = graph.queues.iter().map(|(name, queue)| {
        let declaration = declaration(Subject::Queue(name.clone()), queue_values(queue));
        (declaration, !mentioned(name))
    });
    let processes = graph.processes.iter().map(|(name, process)| {
        let values = process_values(process);
        (declaration(Subject::Process(name.clone()), values), false)
    });
    let all = [(flow, false)].into_iter().chain(queues).chain(processes);
    all.filter(|(declaration, needed)| *needed || !declaration.attributes.is_empty())
        .map(|(declaration, _)| declaration)
        .collect()
}

pub(crate) fn values(graph: &Graph, subject: &Subject) -> Vec<Value> {
    match subject {
        Subject::Flow => defaults(graph),
        Subject::Queue(name) => graph.queues.get(name).map(queue_values).unwrap_or_default(),
        Subject::Process(name) => {
            let process = graph.processes.get(name);
            process.map(process_values).unwrap_or_default()
        }
    }
}

fn defaults(graph: &Graph) -> Vec<Value> {
    let retries = graph.defaults.retries.map(Value::Retries);
    let reject = graph
        .defaults
        .reject
        .clone()
        .map(|name| Value::Reject(Some(name)));
    retries.into_iter().chain(reject).collect()
}

fn queue_values(queue: &Queue) -> Vec<Value> {
    let mut values = Vec::new();
    values.extend(queue.limit.map(Value::Limit));
    if queue.order != QueueOrder::Arrival {
        values.push(Value::Order(queue.order));
    }
    values.extend(queue.retries.map(Value::Retries));
    match &queue.reject {
        Reject::Inherited => {}
        Reject::Never => values.push(Value::Reject(None)),
        Reject::To(name) => values.push(Value::Reject(Some(name.clone()))),
    }
    if !queue.rights.is_empty() {
        values.push(Value::Rights(queue.rights.iter().cloned().collect()));
    }
    values.extend(queue.data.clone().map(Value::Data));
    values
}

fn process_values(process: &Process) -> Vec<Value> {
    let mut values = Vec::new();
    values.extend(process.limit.map(Value::Limit));
    if !process.rights.is_empty() {
        values.push(Value::Rights(process.rights.iter().cloned().collect()));
    }
    values
}

pub(crate) fn declaration(subject: Subject, values: Vec<Value>) -> Declaration {
    let attribute = |value| Attribute {
        lead: Vec::new(),
        value,
        span: 0..0,
        trailing: None,
    };
    Declaration {
        subject,
        span: 0..0,
        attributes: values.into_iter().map(attribute).collect(),
        tail: Vec::new(),
    }
}
