//! The language of process graphs. A flow says which processes there are, which queues stand between them, and so what
//! every process may do; it is checked before it runs.
//!
//! [`parse`] reads a text into a [`Flow`], which is a [`Graph`] that keeps the rules. The passes are functions from a graph
//! to something else. Nothing here does I/O, reads a clock or draws a random number.

mod canonical;
mod chain;
mod check;
mod cover;
mod diagnostic;
mod flow;
mod graph;
mod index;
pub mod limits;
mod name;
mod parse;
mod rule;
mod text;
mod ways;

pub use canonical::canonical;
pub use chain::{Chain, Step};
pub use check::check;
pub use diagnostic::{Diagnostic, Diagnostics};
pub use flow::Flow;
pub use graph::{Defaults, Graph, Order, Process, Queue, Reject};
pub use name::{BadName, Name};
pub use parse::{Reading, parse, read};
pub use rule::{About, Problem, Rule, Weight};
pub use text::{Attribute, Declaration, Document, Line, Statement, StatementKind, Subject, Value};
