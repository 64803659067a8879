//! Backups: the replicated half of a running cluster in one file, and founding anew from it. Fences never go down: whatever
//! is founded from a backup, or from the one directory that survived, belongs to a higher generation.

mod file;
mod found;
mod running;

pub use file::{Backup, BackupError, BackupHeader, BackupMember};
pub use found::{Refounded, refound, salvage};
pub(crate) use running::{Drawn, PIECE_BYTES_MAX};
