//! The language: text to statements, statements to a graph, and back. docs/flow.md has the grammar.

mod build;
mod classic;
mod declaration;
mod document;
mod parser;
mod token;
mod write;

pub use document::{
    Attribute, Declaration, Document, Statement, StatementKind, Subject, Trivia, Value,
};

pub use classic::{Classic, NoClassicName};

pub(crate) use build::Built;
pub(crate) use declaration::check_path;
pub(crate) use parser::too_long;
