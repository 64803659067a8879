//! Small files of the node's own in its data directory, as JSON. A crash leaves either the old one or the new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What was kept; `None` if there is no such file.
pub(crate) fn read<T: DeserializeOwned>(file: &Path) -> io::Result<Option<T>> {
    let wrong = |error: &dyn std::fmt::Display| {
        let why = format!("{} cannot be read: {error}", file.display());
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(&error)),
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| wrong(&error)),
    }
}

/// When this returns, it is on disk.
pub(crate) fn keep(file: &Path, kept: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec_pretty(kept)?;
    let new = file.with_extension("new");
    let mut written = File::create(&new)?;
    written.write_all(&bytes)?;
    written.sync_data()?;
    fs::rename(&new, file)?;
    match file.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}
