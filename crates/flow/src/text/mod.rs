//! The language: text to statements, statements to a graph, and back. docs/flow.md has the grammar.

mod build;
mod declaration;
mod document;
mod parser;
mod token;
mod write;

pub use document::{
    Attribute, Declaration, Document, Line, Statement, StatementKind, Subject, Value,
};

pub(crate) use build::{Built, Places};
pub(crate) use declaration::check_path;
pub(crate) use parser::too_long;
