//! The commands against a running node: the real binary, real processes, and `kill -9`.

mod elect;
mod examples;
mod gate;
mod guard;
mod lock;
mod loss;
mod once;
mod race;
mod running;
mod tls;
mod top;
mod users;
