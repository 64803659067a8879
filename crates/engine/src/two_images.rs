//! A store for tests that keeps two images, live and durable, and can crash or fail at any commit. A restart begins from the
//! durable one; the witness and the images are real files.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::directory::Directory;
use crate::error::{DiskError, OpenError};
use crate::open::{Examined, Opened, Opening};
use crate::setup::Setup;
use crate::store::{Change, Store, Stored};
use crate::witness::Witness;

/// What the next commits do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    /// The change is lost, and the caller is told so.
    Lost,
    /// The change is on disk and the caller is told that it failed.
    DoneButFailed,
}

#[derive(Debug)]
struct Disk {
    live: Stored,
    durable: Stored,
    commits: usize,
    flushes: usize,
    /// From which commit on there is another fate.
    fate: (usize, Fate),
}

#[derive(Debug, Clone)]
pub(crate) struct TwoImages(Arc<Mutex<Disk>>);

impl TwoImages {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Disk {
            live: Stored::default(),
            durable: Stored::default(),
            commits: 0,
            flushes: 0,
            fate: (usize::MAX, Fate::Done),
        })))
    }

    /// Opens from the durable image, as after a power cut.
    pub(crate) fn open(&self, path: &Path) -> Result<Opened, OpenError> {
        let mut disk = self
            .0
            .lock()
            .expect("no test panics while it holds the disk");
        disk.live = disk.durable.clone();
        let stored = disk.durable.clone();
        drop(disk);
        let dir = Directory::lock(path)?;
        let witness = Witness::read(&dir)?.unwrap_or_default();
        let examined = Examined::new(
            Arc::new(dir),
            stored,
            witness,
            Opening::Ordinary,
            Setup::default(),
        )?;
        examined.take_over(Box::new(self.clone()))
    }

    pub(crate) fn fate_after(&self, commits: usize, fate: Fate) {
        let mut disk = self
            .0
            .lock()
            .expect("no test panics while it holds the disk");
        disk.fate = (disk.commits + commits, fate);
    }

    pub(crate) fn flushes(&self) -> usize {
        self.0
            .lock()
            .expect("no test panics while it holds the disk")
            .flushes
    }
}

impl Store for TwoImages {
    fn commit(&mut self, change: Change) -> Result<(), DiskError> {
        let mut disk = self
            .0
            .lock()
            .expect("no test panics while it holds the disk");
        let (from, fate) = disk.fate;
        let fate = if disk.commits < from {
            Fate::Done
        } else {
            fate
        };
        disk.commits += 1;
        if fate == Fate::Lost {
            return Err(DiskError::Full("no room".into()));
        }
        let sync = change.sync;
        disk.live.take_over(change);
        if sync {
            disk.durable = disk.live.clone();
            disk.flushes += 1;
        }
        match fate {
            Fate::Done => Ok(()),
            _ => Err(DiskError::Failed("flush".into())),
        }
    }
}
