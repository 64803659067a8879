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
mod engine;
mod epoch;
mod error;
mod frame;
mod image;
mod log;
mod log_thread;
mod open;
mod origin;
mod pages;
mod policy;
mod queue;
mod replay;
#[cfg(test)]
mod salvage_tests;
mod seal;
mod sectors;
mod segments;
mod store;
#[cfg(test)]
mod sweep_tests;
#[cfg(test)]
mod two_images;
mod witness;

pub use directory::free_bytes;
pub use engine::{
    Committed, DISK_RESERVE_BYTES, ENTRY_BYTES_MAX, Engine, LOG_BYTES_MAX, Position,
    SHORT_ENTRY_BYTES, UNFLUSHED_BYTES_MAX,
};
pub use epoch::{EPOCH_BITS, EPOCH_MAX, Epoch, GENERATION_EPOCHS};
pub use error::{DiskError, FlushError, OpenError, ProposeError, SnapshotError};
pub use image::{IMAGE_BYTES_MAX, ImageWriter, WrittenSnapshot};
pub use log::LogSize;
pub use log_thread::{Applied, Delivery, Flusher, LogThread, QUICK};
pub use open::{FILE_BYTES_MIN, Found, Opened, START_BYTES, Start, StoredSnapshot};
pub use origin::Origin;
pub use policy::SnapshotPolicy;
pub use queue::{QUEUED_BYTES_MAX, QUEUED_MAX, SubmitError};
pub use witness::FORMAT;
