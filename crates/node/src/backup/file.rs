//! The file of a backup: a line that says what the file is, a line of JSON that describes the backup, the image, and a
//! checksum of everything.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use serde::{Deserialize, Serialize};
use testigo_core::{Records, Replicated};
use testigo_engine::{IMAGE_BYTES_MAX, OpenError, RefoundError};

use crate::clock::wall_ms;
use crate::house::{read_records, written};

/// The first line of the file.
const MAGIC: &[u8] = b"testigo backup\n";
/// The format of the rest.
const FORMAT: u32 = 1;
/// The longest line of JSON.
const HEADER_BYTES_MAX: usize = 1 << 20;

/// A backup in memory.
#[derive(Debug)]
pub struct Backup {
    /// What the backup contains.
    pub header: BackupHeader,
    image: Vec<u8>,
}

/// The description of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupHeader {
    /// The format of the file.
    pub format: u32,
    /// The cluster's identity; `None` for a node that was alone.
    pub cluster: Option<String>,
    /// The generation that it belongs to.
    pub generation: u32,
    /// How many changes it contains.
    pub index: u64,
    /// The wall clock when it was made.
    pub made_ms: u64,
    /// The members, and their addresses.
    pub members: Vec<BackupMember>,
    /// The length of the image.
    pub image_bytes: u64,
}

/// A member at the time of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupMember {
    /// Its number.
    pub node: u64,
    /// Its address for the other nodes.
    pub peer: String,
    /// Its address for clients.
    pub client: Option<String>,
}

/// Why a backup cannot be used, or nothing was founded from it.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file cannot be read or written.
    #[error("{0}: {1}")]
    File(String, io::Error),
    /// It is not a backup, or not complete.
    #[error("{path} {why}")]
    Unreadable {
        /// The file or directory.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The surviving directory cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The new directory was not made.
    #[error(transparent)]
    Refound(#[from] RefoundError),
    /// The clock shows an earlier time than when the backup was made.
    #[error(
        "the backup was made {} s later than it is now by this clock: set the clock, or fences might repeat", .0.div_ceil(1000)
    )]
    Behind(u64),
    /// There is no higher generation: the numbers of shards, starts or generations are used up.
    #[error("{0}")]
    NotRaised(String),
}

impl BackupHeader {
    pub(crate) fn of(replicated: &Replicated, image_bytes: u64) -> BackupHeader {
        let cluster = replicated.cluster();
        let members = cluster.addresses().map(|(node, address)| BackupMember {
            node: node.0,
            peer: address.peer.clone(),
            client: address.client.clone(),
        });
        BackupHeader {
            format: FORMAT,
            cluster: cluster.id().map(|id| id.to_string()),
            generation: replicated.view().generation,
            index: replicated.index().0,
            made_ms: wall_ms(),
            members: members.collect(),
            image_bytes,
        }
    }
}

impl Backup {
    /// The backup of this state.
    pub(crate) fn of(replicated: &Replicated) -> Backup {
        let image = written(replicated.records());
        let header = BackupHeader::of(replicated, image.len() as u64);
        Backup { header, image }
    }

    /// A backup whose image came in pieces.
    pub fn from_parts(header: BackupHeader, image: Vec<u8>) -> Result<Backup, BackupError> {
        let backup = Backup { header, image };
        backup.records("the backup")?;
        Ok(backup)
    }

    /// Reads a file. A damaged or incomplete one is refused.
    pub fn read(path: &Path) -> Result<Backup, BackupError> {
        let shown = path.display().to_string();
        let bytes = fs::read(path).map_err(|error| BackupError::File(shown.clone(), error))?;
        let wrong = |why: &str| BackupError::Unreadable {
            path: shown.clone(),
            why: why.into(),
        };
        let rest = bytes
            .strip_prefix(MAGIC)
            .ok_or_else(|| wrong("is no backup of testigo"))?;
        let (covered, sum) = bytes
            .split_last_chunk::<SHA256_OUTPUT_LEN>()
            .filter(|(covered, _)| covered.len() >= MAGIC.len())
            .ok_or_else(|| wrong("is not whole"))?;
        if sum[..] != checksum(&[covered])[..] {
            return Err(wrong("is damaged or not whole: it fails its checksum"));
        }
        let line = rest
            .iter()
            .take(HEADER_BYTES_MAX)
            .position(|byte| *byte == b'\n');
        let (line, rest) = rest.split_at(line.ok_or_else(|| wrong("does not say what it is"))?);
        let header: BackupHeader = serde_json::from_slice(line)
            .map_err(|error| wrong(&format!("does not say what it is: {error}")))?;
        if header.format != FORMAT {
            let format = header.format;
            return Err(wrong(&format!(
                "has format {format}; this version reads {FORMAT}"
            )));
        }
        let image = rest[1..rest.len() - SHA256_OUTPUT_LEN].to_vec();
        if image.len() as u64 != header.image_bytes {
            return Err(wrong("is not whole"));
        }
        let backup = Backup { header, image };
        backup.records(&shown)?;
        Ok(backup)
    }

    /// Writes a new file, complete and flushed. An existing one is not replaced.
    pub fn write(&self, path: &Path) -> Result<(), BackupError> {
        let failed = |error| BackupError::File(path.display().to_string(), error);
        let mut header = serde_json::to_vec(&self.header).expect("a header can be written");
        header.push(b'\n');
        let sum = checksum(&[MAGIC, &header, &self.image]);
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let file = file.map_err(failed)?;
        let written = write_all(&file, &[MAGIC, &header, &self.image, &sum]);
        written.map_err(|error| {
            // Half a backup is worse than none.
            let _ = fs::remove_file(path);
            failed(error)
        })
    }

    /// The length of the image.
    pub fn image_bytes(&self) -> u64 {
        self.image.len() as u64
    }

    pub(super) fn records(&self, path: &str) -> Result<Records, BackupError> {
        let unreadable = |why| BackupError::Unreadable {
            path: path.to_owned(),
            why,
        };
        if self.image_bytes() > IMAGE_BYTES_MAX {
            return Err(unreadable(format!(
                "is longer than {IMAGE_BYTES_MAX} bytes"
            )));
        }
        read_records(&self.image).map_err(|why| unreadable(format!("cannot be read: {why}")))
    }
}

fn write_all(mut file: &File, parts: &[&[u8]]) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // It contains the bodies of jobs and the key of receipts.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()
}

fn checksum(parts: &[&[u8]]) -> [u8; SHA256_OUTPUT_LEN] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let digest = context.finish();
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use testigo_core::{Limits, NodeId, Start};

    fn backup() -> Backup {
        let mut log = Replicated::new(Limits::default());
        let view = log.view_alone(NodeId(1), Start(1), 0);
        drop(log.apply(0, &view).unwrap());
        Backup::of(&log)
    }

    #[test]
    fn a_backup_is_read_only_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("backup");
        let backup = backup();
        backup.write(&path).unwrap();
        let read = Backup::read(&path).unwrap();
        assert_eq!((&read.header, &read.image), (&backup.header, &backup.image));
        let good = fs::read(&path).unwrap();
        for byte in (0..good.len()).step_by(7) {
            let mut bad = good.clone();
            bad[byte] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert!(Backup::read(&path).is_err(), "byte {byte}");
            fs::write(&path, &good[..byte]).unwrap();
            assert!(Backup::read(&path).is_err(), "length {byte}");
        }
        fs::write(&path, &good).unwrap();
        assert!(
            matches!(backup.write(&path), Err(BackupError::File(..))),
            "it is there"
        );
    }
}
