//! Traces: one text format for every run, simulated, checked or real.

mod event;
mod format;
mod kind;
mod live_rules;
mod network;
mod referee;
mod replay;
mod under_way;

pub use event::{Clock, Event, Header, Trace};
pub use format::TraceError;
pub use kind::{AskKind, TellKind};
pub use network::Network;
pub use replay::{Difference, Replayed};

pub(crate) use replay::replay;
