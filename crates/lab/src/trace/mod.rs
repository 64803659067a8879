//! Traces: one text format for every run, simulated, checked or real.

mod event;
mod format;
mod replay;

pub use event::{Event, Header, Trace};
pub use format::TraceError;
pub use replay::{Difference, Replayed};

pub(crate) use replay::replay;
