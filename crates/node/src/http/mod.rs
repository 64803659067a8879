//! The door for people and operations: the console, JSON for everything that it shows, server-sent events, metrics.
//! One thread a connection, and few of them; every answer ends its connection. No rule of coordination lives here.

mod answer;
mod ask;
mod command;
mod drawing;
mod events;
mod flows;
mod metrics;
mod post;
mod request;
mod server;
mod state;
mod words;

pub(crate) use server::HttpDoor;
pub(crate) use state::state_json;
