//! A text as its statements and comments: what `fmt` writes again, and what a graph is built from.

use std::ops::Range;

use crate::{Chain, Name, QueueOrder};

/// The statements of a text, in its order.
#[derive(Clone, Debug, Default)]
pub struct Document {
    pub statements: Vec<Statement>,
    /// What stands below the last statement.
    pub tail: Vec<Trivia>,
}

/// A line that is no statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trivia {
    Blank,
    /// From the `#` on.
    Comment(String),
}

#[derive(Clone, Debug)]
pub struct Statement {
    /// What stands above it.
    pub lead: Vec<Trivia>,
    pub kind: StatementKind,
    /// The comment behind it on its last line.
    pub trailing: Option<String>,
}

#[derive(Clone, Debug)]
pub enum StatementKind {
    Chain {
        chain: Chain,
        /// The places of its processes and queues, in turn.
        spans: Vec<Range<usize>>,
    },
    Declaration(Declaration),
}

/// What is declared, with its attributes.
#[derive(Clone, Debug)]
pub struct Declaration {
    pub subject: Subject,
    pub span: Range<usize>,
    pub attributes: Vec<Attribute>,
    /// Comments between the last attribute and the closing brace.
    pub tail: Vec<Trivia>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    Flow,
    Queue(Name),
    Process(Name),
}

#[derive(Clone, Debug)]
pub struct Attribute {
    pub lead: Vec<Trivia>,
    pub value: Value,
    pub span: Range<usize>,
    pub trailing: Option<String>,
}

/// An attribute's word and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Limit(u32),
    Order(QueueOrder),
    Retries(u32),
    /// `None`: `reject none`.
    Reject(Option<Name>),
    Rights(Vec<Name>),
    Data(String),
}

impl Value {
    pub fn word(&self) -> &'static str {
        match self {
            Value::Limit(_) => "limit",
            Value::Order(_) => "order",
            Value::Retries(_) => "retries",
            Value::Reject(_) => "reject",
            Value::Rights(_) => "rights",
            Value::Data(_) => "data",
        }
    }
}

impl Statement {
    /// A statement that no text had yet.
    pub(crate) fn new(kind: StatementKind) -> Statement {
        Statement {
            lead: Vec::new(),
            kind,
            trailing: None,
        }
    }

    pub(crate) fn chain(chain: Chain) -> Statement {
        let spans = Vec::new();
        Statement::new(StatementKind::Chain { chain, spans })
    }
}

impl Document {
    /// Puts comments above all statements, as a block of their own.
    pub(crate) fn put_above<'a>(&mut self, comments: impl Iterator<Item = &'a str>) {
        let mut head: Vec<Trivia> = comments
            .map(|comment| Trivia::Comment(comment.to_owned()))
            .collect();
        match self.statements.first_mut() {
            Some(first) if !head.is_empty() => {
                head.push(Trivia::Blank);
                head.append(&mut first.lead);
                first.lead = head;
            }
            Some(_) => {}
            None => self.tail = head,
        }
    }

    /// The chains of the text, in its order.
    pub fn chains(&self) -> impl Iterator<Item = &Chain> {
        self.statements
            .iter()
            .filter_map(|statement| match &statement.kind {
                StatementKind::Chain { chain, .. } => Some(chain),
                StatementKind::Declaration(_) => None,
            })
    }
}
