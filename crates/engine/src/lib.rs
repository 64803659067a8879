//! The engine under the services: a replicated log over one durable log.
//!
//! Entries are opaque bytes. They are proposed, made durable together by one flush, and come out committed, in order. Beside
//! the log there is the number of this start, which rises with every open.
//!
//! ```
//! use testigo_engine::{Engine, Opening};
//!
//! # let dir = tempfile::tempdir()?;
//! let mut opened = Engine::open(dir.path(), Opening::Ordinary)?;
//! let origin = opened.engine.propose(b"create gate deploy")?;
//! let committed = opened.engine.flush()?;
//! assert_eq!(committed[0].origin, Some(origin));
//! opened.engine.close(Some(b"nobody holds, nobody waits"))?;
//!
//! let again = Engine::open(dir.path(), Opening::Ordinary)?;
//! assert_eq!(again.committed, committed);
//! assert_eq!(again.engine.start().number(), 2);
//! assert!(again.clean_stop.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Alone, that is all. In a group ([`Setup`], [`Engine::change_members`]) a driver passes frames and time to the engine
//! ([`Engine::step`], [`Engine::tick`]) and sends what it has to say ([`Engine::take_outgoing`]), before and after the disk
//! ([`Engine::begin`], [`Engine::flush`]). The trait [`Group`] has all that a node needs; [`simulated`] has a disk on which
//! the same engine runs in virtual time.

mod bundle;
mod delivery;
mod directory;
mod elections;
mod engine;
mod error;
mod frame;
mod group;
#[cfg(test)]
mod hostile_tests;
mod image;
mod link_desk;
mod links;
mod log;
mod log_thread;
mod members;
mod message;
mod open;
mod origin;
mod pages;
mod pieces;
mod policy;
mod queue;
mod reads;
mod refound;
mod replay;
mod room;
#[cfg(test)]
mod salvage_tests;
mod scratch;
mod seal;
mod seam;
mod sectors;
mod segments;
mod setup;
mod shelf;
pub mod simulated;
mod specimen;
mod start;
mod store;
mod submissions;
#[cfg(test)]
mod sweep_tests;
#[cfg(test)]
mod two_images;
mod wire;
mod witness;
mod worker;

pub use delivery::{Applied, Delivery, DiskRoom, Standing};
pub use directory::free_bytes;
pub use elections::TICK_MS;
pub use engine::{
    Committed, DISK_RESERVE_BYTES, ENTRY_BYTES_MAX, Engine, LOG_BYTES_MAX, Position,
    SHORT_ENTRY_BYTES, UNFLUSHED_BYTES_MAX,
};
pub use error::{DiskError, FlushError, OpenError, ProposeError, SnapshotError};
pub use group::LACKING_MAX;
pub use image::{IMAGE_BYTES_MAX, ImageWriter, WrittenSnapshot};
pub use links::{Links, PAYLOAD_BYTES_MAX, Peer, Received, SendError, UNACKNOWLEDGED_BYTES_MAX};
pub use log::LogSize;
pub use log_thread::{ByHand, Flusher, Hearer, LogThread, QUICK};
pub use members::{MemberChange, MemberError, Members, NODES_MAX};
pub use open::{FILE_BYTES_MIN, Found, Opened, Opening, START_BYTES, StoredSnapshot};
pub use origin::Origin;
pub use policy::SnapshotPolicy;
pub use queue::{HEARD_BYTES_MAX, QUEUED_BYTES_MAX, QUEUED_MAX, SubmitError};
pub use reads::ReadIndex;
pub use refound::RefoundError;
pub use room::Room;
pub use scratch::{SCRATCH_RECORD_BYTES, SCRATCH_RECORDS_MAX, Scratch, ScratchRecord};
pub use seam::{Group, Sends};
pub use setup::{MESSAGE_BYTES_MAX, Setup};
#[doc(hidden)]
pub use specimen::Specimen;
pub use start::{GENERATION_STARTS, START_MAX, Start};
pub use wire::{FRAME_BYTES_MAX, FrameError, Outgoing, WIRE_VERSION};
pub use witness::FORMAT;
