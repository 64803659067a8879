//! The world that algorithms are tried in: virtual time, one seeded generator, links with their
//! latency and losses, and the faults of the literature by name. It knows nodes by number and
//! messages not at all, so every driver (a protocol, an engine, a flow) can use it.
//!
//! Nothing here reads a clock or a source of randomness: the same seed gives the same run, byte
//! for byte, on every machine.

mod agenda;
mod faults;
mod generator;
mod latency;
mod links;
mod parse;
mod time;

pub use agenda::Agenda;
pub use faults::{Fault, Memory, Outage, Partition, Share, Window};
pub use generator::Generator;
pub use latency::Latency;
pub use links::{Fate, LinkOrder, Links, Loss};
pub use parse::ParseError;
pub use time::Time;
