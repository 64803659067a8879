//! What can be wrong with a flow, by name: the five rules of the thesis, and what its acceptance checks ask besides.

use std::fmt;

use serde::{Serialize, Serializer};

/// A rule that a text or a graph can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The text is not of the language.
    Syntax,
    /// Something is larger than its named limit.
    Limit,
    /// Every queue has a process that puts into it and one that takes from it.
    R1,
    /// A process that puts a job got it: it takes, or it creates.
    R2,
    /// A process that takes a job puts it on or deletes it.
    R3,
    /// Some process creates.
    R4,
    /// Some process deletes.
    R5,
    /// A queue or process that is named exists.
    UnknownName,
    /// A reject queue that is named exists.
    RejectQueue,
    /// Nothing is declared twice.
    Duplicate,
    /// A configuration file counts what it lists.
    Count,
    /// A queue that a process uses is not removed.
    InUse,
    /// Every arrow lies on a way from a creator to a deleter.
    Way,
}

impl Rule {
    /// How it is called in answers: `R1` to `R5` for the five, a word for the others.
    pub fn word(self) -> &'static str {
        match self {
            Rule::Syntax => "syntax",
            Rule::Limit => "limit",
            Rule::R1 => "R1",
            Rule::R2 => "R2",
            Rule::R3 => "R3",
            Rule::R4 => "R4",
            Rule::R5 => "R5",
            Rule::UnknownName => "unknown-name",
            Rule::RejectQueue => "reject-queue",
            Rule::Duplicate => "duplicate",
            Rule::Count => "count",
            Rule::InUse => "in-use",
            Rule::Way => "way",
        }
    }

    /// The rule in a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Rule::Syntax => "flows and loads are written in the language of docs/flow.md",
            Rule::Limit => "whatever can grow has a limit",
            Rule::R1 => "every queue has a process that puts into it and one that takes from it",
            Rule::R2 => "a process that puts a job has taken or created it",
            Rule::R3 => "a process that takes a job puts it into a queue or deletes it",
            Rule::R4 => "at least one process creates",
            Rule::R5 => "at least one process deletes",
            Rule::UnknownName => "what is named exists",
            Rule::RejectQueue => "a reject queue is a queue of the flow",
            Rule::Duplicate => "nothing is declared twice",
            Rule::Count => "the counts of a configuration file are right",
            Rule::InUse => "a queue is removed only when no process uses it",
            Rule::Way => "every arrow lies on a way from a creator to a deleter",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// What a problem is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// The flow as a whole.
    Flow,
    Process(crate::Name),
    Queue(crate::Name),
    /// A queue where it is named as a reject queue.
    Reject(crate::Name),
    /// What a queue declares as its reject queue.
    RejectOf(crate::Name),
    /// A process where it names a queue.
    Arrow(crate::Name, crate::Name),
}

/// A rule that a graph breaks, before it is known where that stands in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub rule: Rule,
    pub weight: Weight,
    pub about: About,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub mend: String,
}

/// Whether a problem makes a flow invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    Error,
    Warning,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.rule, self.message, self.mend)
    }
}

impl std::error::Error for Problem {}
