//! The backup of a running node: taken once, on a thread of its own, and then handed out in pieces.

use std::sync::{Arc, OnceLock};
use std::{io, thread};

use testigo_core::Replicated;

use super::file::BackupHeader;
use crate::house::written;

/// The longest piece.
pub(crate) const PIECE_BYTES_MAX: usize = 1 << 20;
/// A backup that nobody has fetched for this long is dropped, in milliseconds.
const KEPT_MS: u64 = 60_000;

/// A backup that is being fetched.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) id: u64,
    pub(crate) header: BackupHeader,
    image: Arc<OnceLock<Vec<u8>>>,
    fetched: u64,
}

impl Drawn {
    /// Begins a backup of the present state.
    pub(crate) fn begin(now: u64, id: u64, replicated: &Replicated) -> io::Result<Drawn> {
        let header = BackupHeader::of(replicated, 0);
        // Cheap: jobs are shared with the copy until they change.
        let records = replicated.records().clone();
        let image = Arc::new(OnceLock::new());
        let own = Arc::clone(&image);
        let draw = move || drop(own.set(written(&records)));
        thread::Builder::new()
            .name("testigo-backup".into())
            .spawn(draw)?;
        Ok(Drawn {
            id,
            header,
            image,
            fetched: now,
        })
    }

    /// Whether the client that wanted it has left.
    pub(crate) fn is_forgotten(&self, now: u64) -> bool {
        now >= self.fetched + KEPT_MS
    }

    /// The complete image, once it is ready.
    pub(crate) fn image(&mut self, now: u64) -> Option<&[u8]> {
        self.fetched = now;
        self.image.get().map(Vec::as_slice)
    }
}
