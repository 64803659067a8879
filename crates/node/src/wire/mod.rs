//! The wire: commands as they arrive, replies as they leave. Nothing here knows what a command means.

mod frame;
pub(crate) mod http;
mod inline;
mod limits;
mod reply;
mod words;

pub(crate) use frame::{Frame, Framer, Progress};
pub use limits::WireLimits;
pub(crate) use reply::{
    Protocol, Reply, array_head, encode, encode_pair, map_head, push_head, text_head,
};
pub(crate) use words::{KeptCommand, RawCommand, Words, bad_arg, refuse, shown};
