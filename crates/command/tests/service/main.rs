//! The commands against a running node: the real binary, real processes, and `kill -9`.

mod decide;
mod elect;
mod examples;
mod gate;
mod group;
mod guard;
mod leash;
mod lock;
mod loss;
mod once;
mod pool;
mod pool_examples;
mod race;
mod running;
#[path = "../terminal/mod.rs"]
mod terminal;
mod tls;
mod top;
mod users;
mod visible;
