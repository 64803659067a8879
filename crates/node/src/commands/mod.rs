//! The commands of the wire, one file per family. Each reads its words, asks the house, and answers at once or leaves the
//! connection blocked.

mod auth;
mod cells;
mod client;
mod clients;
mod cluster;
mod decide;
mod elect;
mod flow;
mod gate;
mod group;
mod hello;
mod job;
mod lock;
mod once;
mod page;
mod pool;
mod pool_shown;
mod pubsub;
mod queue;
mod redis;
mod routes;
mod server;
mod session;
mod show;
mod stats;
mod table;
mod trace;
mod travels;
mod unit;

pub(crate) use auth::{Afterwards, Attempt};
pub(crate) use group::joined_reply;
pub(crate) use routes::{Effect, Merge, Route};
pub(crate) use stats::FlowSums;
pub(crate) use table::{Answered, Known, Outcome, Serves, Turn, route_of, serve_settled};
pub(crate) use travels::Travelling;
