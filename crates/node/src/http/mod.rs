//! The front door for people and operations: the console, JSON for everything that it shows, server-sent events, metrics,
//! health. hyper carries the requests and axum routes them, on the front door's own runtime. No rule of coordination lives
//! here, and no task holds the house's lock across an await.

mod agreed;
mod answer;
mod ask;
mod command;
mod connection;
mod door;
mod drawing;
mod elections;
mod events;
mod flows;
mod gathering;
mod guard;
mod idle;
mod labels;
mod limits;
mod making;
mod metrics;
mod pool_metrics;
mod pools;
mod post;
mod routes;
mod shortage;
mod state;
mod words;

pub(crate) use door::{DoorConfig, HttpDoor};
pub(crate) use flows::FlowsMaker;
pub use limits::HttpLimits;
pub(crate) use making::StateMaker;
pub(crate) use state::Part;
