//! Flows with real processes: harnesses, programs and nodes that are stopped, killed and started again.

mod admin;
mod confirm;
mod examples;
mod files;
mod input;
mod lives;
#[path = "../service/running.rs"]
#[allow(dead_code, reason = "every test uses its own part of it")]
mod running;
mod scene;
mod stats;
#[path = "../terminal/mod.rs"]
mod terminal;
mod work;
