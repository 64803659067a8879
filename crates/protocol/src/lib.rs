//! Every message-passing algorithm as a pure state machine: no I/O, no clock, no randomness.
//!
//! [`Protocol`] is what an algorithm implements and [`Problem`] what it solves. A [`Machine`] is an
//! algorithm with its types erased, once: the laboratory simulates it through a [`Cluster`] and
//! explores it through an [`Explorer`], and a node hosts one [`Member`] of it. One folder per problem, one
//! file per algorithm; adding one takes its file and one line in the problem's `family!`.

mod clock;
mod cluster;
mod explorer;
mod figure;
mod machine;
mod member;
mod monitor;
mod node_id;
mod packet;
mod problem;
mod profile;
mod protocol;
mod record;
mod registry;
mod ring_order;
mod setup;
mod shape;
mod tally;
mod user_id;

pub mod agreement;
pub mod election;
pub mod multicast;
pub mod mutex;
pub mod quorum;
pub mod readers;
pub mod register;
pub mod rooms;
pub mod slots;

pub use clock::{LamportClock, Stamp};
pub use cluster::{Cluster, Effects, Slot, Traffic};
pub use explorer::{Explorer, MessageId, Move, Outcome, StateId};
pub use figure::{Experiment, Figure};
pub use machine::{Machine, erase, erase_for};
pub use member::{MEMBERS_MAX, Member, Packet, tries_a_step};
pub use monitor::{Admission, Grant, Monitor};
pub use node_id::NodeId;
pub use packet::{PACKET_BYTES_MAX, PACKET_FORMAT, PACKET_HEAD_BYTES, PacketError, PacketTag};
pub use problem::{Counted, Next, Phase, Problem, User};
pub use profile::{Channels, Claim, Cost, Faults, Measure, Profile, Range, Telling};
pub use protocol::{Input, Message, Output, Protocol, Timer, UnderWay, WordOf};
pub use record::{
    GATE_RECORD_BYTES_MAX, NODE_RECORD_BYTES_MAX, RECORD_BYTES_MAX, RECORD_BYTES_SPARE,
    RECORD_FORMAT, RECORDS_PER_GATE_MAX, Record, RecordAllowance, RecordError, RecordHead,
    RecordedInput, RecordedStep, Recording, Records,
};
pub use registry::{Algorithm, Make};
pub use ring_order::RingOrder;
pub use setup::{Setup, SetupError, Share, SpanningTree};
pub use shape::Shape;
pub use tally::Tally;
pub use user_id::UserId;
