//! The engine under the services: a replicated log over one durable log.
//!
//! Entries are opaque bytes. They are proposed, made durable together by one flush, and come out
//! committed, in order. Beside the log there is the fencing epoch, which rises at every open.
//!
//! ```
//! use testigo_engine::{Engine, Start};
//!
//! # let dir = tempfile::tempdir()?;
//! let mut opened = Engine::open(dir.path(), Start::Ordinary)?;
//! let origin = opened.engine.propose(b"create gate deploy")?;
//! let committed = opened.engine.flush()?;
//! assert_eq!(committed[0].origin, Some(origin));
//! opened.engine.close(Some(b"nobody holds, nobody waits"))?;
//!
//! let again = Engine::open(dir.path(), Start::Ordinary)?;
//! assert_eq!(again.committed, committed);
//! assert_eq!(again.engine.epoch().number(), 2);
//! assert!(again.clean_stop.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bundle;
mod directory;
mod elections;
mod engine;
mod epoch;
mod error;
mod frame;
mod group;
mod image;
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
mod replay;
#[cfg(test)]
mod salvage_tests;
mod seal;
mod seam;
mod sectors;
mod segments;
mod shelf;
pub mod simulated;
mod specimen;
mod store;
mod submissions;
#[cfg(test)]
mod sweep_tests;
#[cfg(test)]
mod two_images;
mod wire;
mod witness;

pub use directory::free_bytes;
pub use elections::TICK_MS;
pub use engine::{
    Committed, DISK_RESERVE_BYTES, ENTRY_BYTES_MAX, Engine, LOG_BYTES_MAX, Position,
    SHORT_ENTRY_BYTES, UNFLUSHED_BYTES_MAX,
};
pub use epoch::{EPOCH_BITS, EPOCH_MAX, Epoch, GENERATION_EPOCHS};
pub use error::{DiskError, FlushError, OpenError, ProposeError, SnapshotError};
pub use group::LACKING_MAX;
pub use image::{IMAGE_BYTES_MAX, ImageWriter, WrittenSnapshot};
pub use log::LogSize;
pub use log_thread::{Applied, Delivery, Flusher, LogThread, QUICK};
pub use members::{MemberChange, MemberError, Members, NODES_MAX};
pub use open::{
    FILE_BYTES_MIN, Found, MESSAGE_BYTES_MAX, Opened, START_BYTES, Setup, Start, StoredSnapshot,
};
pub use origin::Origin;
pub use policy::SnapshotPolicy;
pub use queue::{QUEUED_BYTES_MAX, QUEUED_MAX, SubmitError};
pub use reads::ReadIndex;
pub use seam::Group;
#[doc(hidden)]
pub use specimen::Specimen;
pub use wire::{FRAME_BYTES_MAX, FrameError, Outgoing, WIRE_VERSION};
pub use witness::FORMAT;
