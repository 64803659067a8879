//! The services of a node as deterministic state machines.
mod arena;
mod command;
mod error;
mod event;
mod fence;
mod gate;
mod limits;
mod local;
mod name;
mod ownership;
mod replicated;
mod session;
mod timer;
mod wait;

pub use command::{
    Answer, Claim, ClaimEnd, Command, Grant, Lock, LockAll, Resumed, Settled, WaitEnd,
};
pub use error::{CycleLink, Refusal, Word};
pub use event::{Event, Loss, Turn};
pub use fence::{Epoch, Fence};
pub use gate::{Ask, Definition, Mode, Order, Rule};
pub use limits::Limits;
pub use local::{
    BlockedBy, Counters, Edge, GateView, HolderView, Image, Local, SessionView, WaiterView,
};
pub use name::{Name, fits};
pub use ownership::{NodeId, OneOwner, Ownership, Thing, Title, Travels};
pub use replicated::{
    Applied, Change, OnceAnswer, OnceStart, Outcome, Records, Replicated, SessionRecord,
};
pub use session::SessionId;
pub use wait::Ticket;
