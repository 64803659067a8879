//! From statements to the graph, with the places of what they name, so that a broken rule can be shown in the text.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::document::{Declaration, Document, StatementKind, Subject, Value};
use crate::limits::DIAGNOSTICS_MAX;
use crate::{About, Chain, Diagnostic, Graph, Name, Problem, Reject, Rule, Step, Weight};

/// A graph that comes from a text.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) graph: Graph,
    pub(crate) places: Places,
    /// What only the text can get wrong.
    pub(crate) errors: Vec<Diagnostic>,
}

/// Where a text names what a problem is about.
#[derive(Debug, Default)]
pub(crate) struct Places(BTreeMap<About, Range<usize>>);

impl Places {
    /// The first mention counts.
    pub(crate) fn note(&mut self, about: About, span: &Range<usize>) {
        self.0.entry(about).or_insert_with(|| span.clone());
    }

    /// What has no place of its own stands where it belongs.
    pub(crate) fn of(&self, about: &About) -> Range<usize> {
        let owner = match about {
            About::Arrow(process, _) => About::Process(process.clone()),
            About::RejectOf(queue) => About::Queue(queue.clone()),
            about => about.clone(),
        };
        let place = self.0.get(about).or_else(|| self.0.get(&owner));
        place.cloned().unwrap_or(0..0)
    }

    pub(crate) fn diagnostic(&self, text: &str, problem: Problem) -> Diagnostic {
        let Problem {
            rule,
            weight,
            about,
            message,
            mend,
        } = problem;
        let span = self.of(&about);
        Diagnostic::new(text, span, rule, weight, message, mend)
    }
}

impl Built {
    pub(crate) fn from_document(text: &str, document: &Document) -> Built {
        let mut built = Built::default();
        let mut declared = HashSet::new();
        for statement in &document.statements {
            match &statement.kind {
                StatementKind::Chain { chain, spans } => built.chain(chain, spans),
                StatementKind::Declaration(declaration) => {
                    let new = declared.insert(declaration.subject.clone());
                    if !new && built.errors.len() < DIAGNOSTICS_MAX {
                        built.errors.push(twice(text, declaration));
                    }
                    built.declare(declaration);
                }
            }
        }
        built.check_starts(text, document);
        built
    }

    fn chain(&mut self, chain: &Chain, spans: &[Range<usize>]) {
        self.graph.add_chain(chain);
        for (step, span) in chain.steps().iter().zip(spans) {
            let about = match step {
                Step::Process(name) => About::Process((*name).clone()),
                Step::Queue(name) => About::Queue((*name).clone()),
            };
            self.places.note(about, span);
        }
    }

    fn declare(&mut self, declaration: &Declaration) {
        let values = || declaration.attributes.iter();
        for attribute in values() {
            if let Value::Reject(Some(name)) = &attribute.value {
                let about = About::Reject(name.clone());
                self.places.note(about, &attribute.span);
                if let Subject::Queue(queue) = &declaration.subject {
                    let about = About::RejectOf(queue.clone());
                    self.places.note(about, &attribute.span);
                }
            }
        }
        match &declaration.subject {
            Subject::Flow => {
                for attribute in values() {
                    self.graph.defaults.set(&attribute.value);
                }
            }
            Subject::Queue(name) => {
                self.places
                    .note(About::Queue(name.clone()), &declaration.span);
                let queue = self.graph.queues.entry(name.clone()).or_default();
                for attribute in values() {
                    queue.set(&attribute.value);
                }
            }
            Subject::Process(name) => {
                self.places
                    .note(About::Process(name.clone()), &declaration.span);
                let process = self.graph.processes.entry(name.clone()).or_default();
                for attribute in values() {
                    process.set(&attribute.value);
                }
            }
        }
    }

    /// Only a reject queue may start a chain: the node puts into it.
    fn check_starts(&mut self, text: &str, document: &Document) {
        let rejects: HashSet<Name> = self.graph.reject_queues().into_iter().cloned().collect();
        for statement in &document.statements {
            let StatementKind::Chain { chain, spans } = &statement.kind else {
                continue;
            };
            let Some(first) = chain.queues.first().filter(|_| chain.from_reject) else {
                continue;
            };
            if !rejects.contains(first) && self.errors.len() < DIAGNOSTICS_MAX {
                let span = spans.first().cloned().unwrap_or(0..0);
                let wrong = format!("the chain starts with [{first}]: nothing puts into it there");
                let mend = format!(
                    "start with the process that creates: process -> [{first}]; only a reject queue may start a chain"
                );
                let (rule, weight) = (Rule::R1, Weight::Error);
                self.errors
                    .push(Diagnostic::new(text, span, rule, weight, wrong, mend));
            }
        }
    }
}

fn twice(text: &str, declaration: &Declaration) -> Diagnostic {
    let what = match &declaration.subject {
        Subject::Flow => "the flow".to_owned(),
        Subject::Queue(name) => format!("the queue {name}"),
        Subject::Process(name) => format!("the process {name}"),
    };
    Diagnostic::new(
        text,
        declaration.span.clone(),
        Rule::Duplicate,
        Weight::Error,
        format!("{what} is declared twice"),
        "make one declaration of the two",
    )
}

// An attribute that does not fit its subject is refused by the parser.

impl crate::Defaults {
    fn set(&mut self, value: &Value) {
        match value {
            Value::Retries(retries) => self.retries = Some(*retries),
            Value::Reject(reject) => self.reject.clone_from(reject),
            _ => {}
        }
    }
}

impl crate::Queue {
    fn set(&mut self, value: &Value) {
        match value {
            Value::Limit(limit) => self.limit = Some(*limit),
            Value::Order(order) => self.order = *order,
            Value::Retries(retries) => self.retries = Some(*retries),
            Value::Reject(Some(name)) => self.reject = Reject::To(name.clone()),
            Value::Reject(None) => self.reject = Reject::Never,
            Value::Rights(users) => self.rights = users.iter().cloned().collect(),
            Value::Data(path) => self.data = Some(path.clone()),
        }
    }
}

impl crate::Process {
    fn set(&mut self, value: &Value) {
        match value {
            Value::Limit(limit) => self.limit = Some(*limit),
            Value::Rights(users) => self.rights = users.iter().cloned().collect(),
            _ => {}
        }
    }
}
