//! The door for people and operations: the console, JSON for everything that it shows, server-sent events, metrics.
//! One thread a connection, and few of them; every answer ends its connection. No rule of coordination lives here.

mod answer;
mod events;
mod flows;
mod metrics;
mod request;
mod server;
mod state;

pub(crate) use server::HttpDoor;
pub(crate) use state::state_json;
