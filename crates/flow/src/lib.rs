//! The language of process graphs. A flow says which processes there are, which queues stand between them, and so what
//! every process may do; it is checked before it runs.
//!
//! [`parse()`] reads a text into a [`Flow`], which is a [`Graph`] that keeps the rules. The passes are functions from a graph
//! to something else. Nothing here does I/O, reads a clock or draws a random number.

mod advice;
mod canonical;
mod chain;
mod check;
mod config;
mod cover;
mod deep;
mod diagnostic;
mod draw;
mod edit;
mod flow;
pub mod fuzz;
mod graph;
mod index;
pub mod limits;
mod load;
mod model;
mod models;
mod name;
mod notation;
mod parse;
mod plan;
mod report;
mod revise;
mod rule;
mod simulate;
mod sketch;
mod summary;
mod text;
mod ways;

pub use canonical::canonical;
pub use chain::{Chain, Step};
pub use check::check;
pub use config::{Config, NoConfigName, config, revise_config};
pub use deep::{Deep, Move, Round, Standstill, deep_check};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use draw::{Arrow, BENDS_MAX, DRAWN_MAX, Drawing, Node, NodeKind, TooLarge, draw, lay_out};
pub use flow::Flow;
pub use graph::{Defaults, Graph, Process, Queue, QueueOrder, Reject};
pub use load::{
    Arrivals, Distribution, Load, Measured, MeasuredProcess, MeasuredQueue, WORKERS_MAX, Work,
};
pub use model::{Endless, Forecast, ProcessForecast, QueueForecast, model};
pub use models::{MODELS, Model};
pub use name::{BadName, Name};
pub use notation::Notation;
pub use parse::{Reading, parse, read};
pub use plan::{AtWork, Change, ChangeKind, Losing, Plan, Stranded, plan};
pub use report::report;
pub use revise::revise;
pub use rule::{About, Problem, Rule, Weight};
pub use simulate::{
    CreatorRun, EVENTS_MAX, JOBS_MAX, ProcessRun, QueueRun, Simulation, Span, simulate,
};
pub use sketch::{
    Does, Finding, Sketch, Sketched, SketchedArrow, SketchedProcess, SketchedQueue, Written, sketch,
};
pub use summary::{ListedProcess, ListedQueue, Summary};
pub use text::{
    Attribute, Classic, Declaration, Document, NoClassicName, Statement, StatementKind, Subject,
    Trivia, Value,
};
