//! Every message-passing algorithm as a pure state machine: no I/O, no clock, no randomness.
//!
//! [`Protocol`] is what an algorithm implements and [`Problem`] what it solves. A [`Machine`] is an
//! algorithm with its types erased, once: the laboratory simulates it through a [`Cluster`] and
//! explores it through an [`Explorer`], and a node can host it. One folder a problem, one file an
//! algorithm; adding one is its file and one line in the problem's `family!`.

mod clock;
mod cluster;
mod explorer;
mod figure;
mod machine;
mod monitor;
mod node_id;
mod problem;
mod profile;
mod protocol;
mod registry;
mod setup;
mod shape;
mod tally;
mod user_id;

pub mod mutex;
pub mod quorum;
pub mod readers;
pub mod rooms;

pub use clock::{LamportClock, Stamp};
pub use cluster::{Cluster, Effects, Slot, Traffic};
pub use explorer::{Explorer, MessageId, Move, Outcome, StateId};
pub use figure::{Experiment, Figure};
pub use machine::{Machine, erase, erase_for};
pub use monitor::{Admission, Grant, Monitor};
pub use node_id::NodeId;
pub use problem::{Next, Phase, Problem, User};
pub use profile::{Channels, Claim, Cost, Measure, Profile, Range, Telling};
pub use protocol::{Input, Message, Output, Protocol, Timer, UnderWay, WordOf};
pub use registry::{Algorithm, Make};
pub use setup::{Setup, SetupError, Share, SpanningTree};
pub use shape::Shape;
pub use tally::Tally;
pub use user_id::UserId;
