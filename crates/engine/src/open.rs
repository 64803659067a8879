//! Opening: checks what the directory holds, begins a new start, and replays the log.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use raft::{Config, RawNode, ReadOnlyOption};

use crate::directory::Directory;
use crate::elections::{ELECTION_TICKS, Elections, HEARTBEAT_TICKS, Standing};
use crate::engine::{Committed, DISK_RESERVE_BYTES, Engine, LOG_BYTES_MAX, UNFLUSHED_BYTES_MAX};
use crate::error::{DiskError, OpenError};
use crate::image::{self, CLEAN_STOP};
use crate::log::Log;
use crate::members::Members;
use crate::pieces::Transfers;
use crate::reads::{self, Reads};
use crate::refound::handed_out;
use crate::replay::{Replayed, replay};
use crate::room::Rooms;
use crate::scratch::{self, ScratchRecord};
use crate::sectors::byte_of;
use crate::segments::{Damage, STEP_BYTES_MAX, Segments, file_name};
use crate::setup::{Setup, settle_members};
use crate::shelf::Shelf;
use crate::specimen::Specimen;
use crate::start::Start;
use crate::store::{Base, Change, CleanStopMark, Flushed, Store, Stored};
use crate::submissions::{Intake, Submissions};
use crate::witness::Witness;

/// What is known about the directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Opening {
    /// It is what this machine last wrote.
    #[default]
    Ordinary,
    /// It is a backup that was copied back, or the rest of a damaged store. Its starts may have been used since, so a new
    /// generation of starts begins; what a clean stop left in it is dropped.
    Restored,
}

/// What an open found. To rebuild the state machine, load the snapshot and apply the committed entries in order. Entries may
/// have been applied and acted on before the last stop, so applying them must not depend on that: after the last snapshot,
/// every entry comes at least once.
#[derive(Debug)]
pub struct Opened {
    /// Ready to propose.
    pub engine: Engine,
    /// The last snapshot, if one was taken.
    pub snapshot: Option<StoredSnapshot>,
    /// Everything committed after it.
    pub committed: Vec<Committed>,
    /// What the last [`Engine::close`] left, if nothing was opened since. If it is damaged, there is none: the start is then
    /// as careful as after a crash.
    pub clean_stop: Option<Vec<u8>>,
    /// Where the log of a restored directory is broken; what came after that is lost.
    pub cut_off: Option<String>,
    /// What an operator should know, for example files that were open to others, or a damaged image of a clean stop.
    pub notes: Vec<String>,
}

/// A state machine's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// The last index applied to it.
    pub index: u64,
    /// The bytes given to [`Engine::snapshot`].
    pub image: Vec<u8>,
}

/// How many messages with entries may be on their way to a member without an answer.
const MESSAGES_MAX: usize = 64;

/// How much uncommitted data a leader's log may hold, 128 MiB: twice what it proposes itself.
const UNCOMMITTED_BYTES_MAX: u64 = 2 * UNFLUSHED_BYTES_MAX as u64;

const STORE: &str = "store";

/// The free space that a start needs, 2 MiB: it writes its number and the witness, and perhaps begins or extends a segment. A
/// damaged log that is rewritten needs its own length, too.
pub const START_BYTES: u64 = 2 << 20;

/// The witness, and the names of new files.
const _: () = assert!(START_BYTES >= STEP_BYTES_MAX + (64 << 10));

/// The file length that the process must be allowed to write, 80 MiB: one flush holds up to [`UNFLUSHED_BYTES_MAX`].
pub const FILE_BYTES_MIN: u64 = 80 << 20;

/// A data directory that was read and found intact. Nothing in it has been changed yet; [`Found::take_over`] is the first to
/// do so.
#[derive(Debug)]
pub struct Found {
    dir: Directory,
    pub(crate) examined: Examined,
    replayed: Replayed,
    /// What every segment begins with, and the entries if they are to be rewritten.
    remembered: Change,
    scratch: Option<Vec<ScratchRecord>>,
}

impl Engine {
    /// Opens or creates a data directory. When this returns, the number of this start has durably risen, and a clean stop's
    /// image, if there was one, is durably consumed. A directory that is refused stays as it was, byte for byte.
    pub fn open(path: impl AsRef<Path>, opening: Opening) -> Result<Opened, OpenError> {
        Engine::examine(path, opening)?.take_over()
    }

    /// Reads and locks the data directory of node 1, or of a group of one, without changing anything.
    pub fn examine(path: impl AsRef<Path>, opening: Opening) -> Result<Found, OpenError> {
        Engine::examine_as(path, opening, Setup::default())
    }

    /// Reads and locks a data directory without changing anything.
    pub fn examine_as(
        path: impl AsRef<Path>,
        opening: Opening,
        setup: Setup,
    ) -> Result<Found, OpenError> {
        let dir = Directory::lock(path.as_ref())?;
        let witness = witness(&dir, opening)?;
        let store = dir.file(STORE);
        let damage = match opening {
            Opening::Ordinary => Damage::Refused,
            Opening::Restored => Damage::CutOff,
        };
        let Flushed { segment, sequence } = witness.flushed;
        let missing = sequence > 0 && !store.join(file_name(segment)).exists();
        if missing && opening == Opening::Ordinary {
            return Err(lost(segment, "is missing"));
        }
        let mut replayed = replay(&store, damage)?;
        let remembered = replayed.remembered();
        let behind = replayed.sequence < sequence;
        let mut stored = std::mem::take(&mut replayed.stored);
        if (missing || behind) && opening == Opening::Restored && stored.cut_off.is_none() {
            stored.cut_off = Some(format!(
                "the log's segment {} is missing or has lost its end",
                file_name(segment)
            ));
        }
        let scratch = match opening {
            Opening::Ordinary => scratch::read(&dir, stored.start),
            // Whatever the directory is, it is not what the last start has left.
            Opening::Restored => None,
        };
        let shelf = Arc::new(dir.clone());
        let examined = Examined::new(shelf, stored, witness, opening, setup)?;
        if behind && opening == Opening::Ordinary {
            return Err(lost(segment, "has lost its end, which was acknowledged"));
        }
        Ok(Found {
            dir,
            examined,
            replayed,
            remembered,
            scratch,
        })
    }
}

fn lost(segment: u64, how: &str) -> OpenError {
    let name = file_name(segment);
    OpenError::Damaged(format!("the log's segment {name} {how}"))
}

impl Found {
    /// The last snapshot, if one was taken.
    pub fn snapshot(&self) -> Option<&StoredSnapshot> {
        self.examined.snapshot.as_ref()
    }

    /// The records of the last start's [`Scratch`](crate::Scratch) file, if they can be trusted: all of them are there, and
    /// the machine has not been rebooted since.
    pub fn scratch(&self) -> Option<&[ScratchRecord]> {
        self.scratch.as_deref()
    }

    /// Everything committed after it.
    pub fn committed(&self) -> &[Committed] {
        &self.examined.committed
    }

    /// The members, as far as the directory knows; empty if no group has let its node in yet.
    pub fn members(&self) -> &Members {
        &self.examined.base.members
    }

    /// The start that would begin.
    pub fn start(&self) -> Start {
        self.examined.start
    }

    /// Makes the next start later than this one: the node had it before, with another directory.
    pub fn start_above(&mut self, last: u32) -> Result<(), OpenError> {
        let start = self.examined.start;
        if start.number() <= last {
            let above = Start::new(last, start.generation()).risen();
            self.examined.start = above.ok_or(OpenError::StartsExhausted)?;
        }
        Ok(())
    }

    /// Whether it is still empty.
    pub(crate) fn is_new(&self) -> bool {
        !self.dir.file(STORE).exists()
    }

    /// With shorter segments, so that a small directory has many.
    #[cfg(test)]
    pub(crate) fn with_segments_of(mut self, bytes: u64) -> Self {
        self.replayed.segment_bytes = bytes;
        self
    }

    /// Takes the directory over: from here on it is written to.
    pub fn take_over(self) -> Result<Opened, OpenError> {
        let dir = &self.dir;
        enough_room(dir, START_BYTES + rewritten_bytes(&self.remembered))?;
        if !dir.file(STORE).exists() {
            // Before the store, so that a store without a witness is never one of ours.
            Witness::default().write(dir)?;
        }
        let mut notes = dir.tighten();
        let path = dir.file(STORE);
        let mut remembered = self.remembered;
        if self.replayed.rewrite {
            // If this start is interrupted, any later one takes the new log for what it is.
            remembered.start = Some(self.examined.start);
            remembered.clean_stop = Some(CleanStopMark::Consumed);
        }
        let store = Segments::take_over(&path, self.replayed, remembered)?;
        let mut opened = self.examined.take_over(Box::new(store))?;
        notes.append(&mut opened.notes);
        opened.notes = notes;
        Ok(opened)
    }
}

/// The length of the rewritten log; 0 without a rewrite, because then there are no entries.
pub(crate) fn rewritten_bytes(remembered: &Change) -> u64 {
    // More than an entry has in addition to its data.
    const HEAD_BYTES: u64 = 64;
    let entries = remembered.entries.iter();
    byte_of(
        entries
            .map(|entry| HEAD_BYTES + entry.data.len() as u64)
            .sum(),
    )
}

/// Refuses a start that would fail half-way.
fn enough_room(dir: &Directory, needed: u64) -> Result<(), OpenError> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    if let Some(limit) = limit.current.filter(|limit| *limit < FILE_BYTES_MIN) {
        let needed = FILE_BYTES_MIN;
        return Err(OpenError::FileLimit { limit, needed });
    }
    let free_bytes = dir.free_bytes().unwrap_or(u64::MAX);
    if free_bytes < needed {
        let why = format!(
            "{} has {free_bytes} bytes free, and a start needs {needed}",
            dir.path().display()
        );
        return Err(DiskError::Full(why).into());
    }
    Ok(())
}

/// The witness of an existing directory, or a new one.
fn witness(dir: &Directory, opening: Opening) -> Result<Witness, OpenError> {
    let has_store = dir.file(STORE).exists();
    match (Witness::read(dir), has_store) {
        (Ok(Some(witness)), true) => Ok(witness),
        (Ok(Some(witness)), false) if witness == Witness::default() => Ok(witness),
        (Ok(None), false) => {
            let names = dir.names().map_err(DiskError::from)?;
            match names.iter().find(|name| image::is_image(name)) {
                Some(image) => Err(OpenError::Damaged(format!(
                    "there is {image}, and neither the witness file nor the store"
                ))),
                None => Ok(Witness::default()),
            }
        }
        (Err(error @ OpenError::Format { .. }), _) => Err(error),
        (Ok(None) | Err(OpenError::Damaged(_)), true) if opening == Opening::Restored => {
            Ok(Witness::default())
        }
        (Ok(None), true) => Err(OpenError::Damaged("the witness file is missing".into())),
        (Ok(Some(_)), false) => Err(OpenError::Damaged("the store is missing".into())),
        (Err(error), _) => Err(error),
    }
}

/// What the directory holds, checked, and the raft node that will go on with it.
pub(crate) struct Examined {
    shelf: Arc<dyn Shelf>,
    pub(crate) setup: Setup,
    pub(crate) node: RawNode<Log>,
    pub(crate) start: Start,
    base: Base,
    snapshot: Option<StoredSnapshot>,
    committed: Vec<Committed>,
    clean_stop: Option<Vec<u8>>,
    cut_off: Option<String>,
    notes: Vec<String>,
}

impl fmt::Debug for Examined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Examined")
            .field("shelf", &self.shelf)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

impl Examined {
    pub(crate) fn new(
        shelf: Arc<dyn Shelf>,
        mut stored: Stored,
        witness: Witness,
        opening: Opening,
        setup: Setup,
    ) -> Result<Self, OpenError> {
        settle_members(&mut stored, setup)?;
        let start = next_start(&stored, witness, opening, setup.generation)?;
        let index = stored.snapshot.index;
        let snapshot = match index {
            0 => None,
            index => Some(StoredSnapshot {
                index,
                image: shelf.read_image(&image::snapshot_name(index), index)?,
            }),
        };
        let mut notes = Vec::new();
        let clean_stop = match stored.clean_stop {
            Some(start) if opening == Opening::Ordinary => {
                let image = shelf.read_image(CLEAN_STOP, start);
                image.map_err(|error| notes.push(format!("{error}; the start is as after a crash")))
            }
            _ => Err(()),
        };
        if setup.specimen == Some(Specimen::ForgetVote) {
            stored.hard_state.vote = 0;
        }
        let cut_off = stored.cut_off.take();
        let log = Log::new(stored)?;
        Ok(Self {
            committed: committed(&log, setup)?,
            shelf,
            setup,
            start,
            base: log.base(),
            node: raft_node(log, setup)?,
            snapshot,
            clean_stop: clean_stop.ok(),
            cut_off,
            notes,
        })
    }

    pub(crate) fn take_over(self, mut store: Box<dyn Store>) -> Result<Opened, OpenError> {
        let Base {
            mark,
            members,
            origins,
        } = self.base;
        store.commit(Change {
            start: Some(self.start),
            node: Some(self.setup.node),
            members: Some(members.clone()),
            clean_stop: Some(CleanStopMark::Consumed),
            sync: true,
            ..Change::default()
        })?;
        self.shelf.sweep(&image::snapshot_name(mark.index))?;

        let start = self.start.number().into();
        let mut engine = Engine {
            standing: Standing::of(&self.node),
            node: self.node,
            witnessed_segment: store.flushed().segment,
            store,
            shelf: self.shelf,
            start: self.start,
            delivered: mark.index,
            origins,
            members,
            submissions: Submissions::new(self.setup.node, start),
            intake: Intake::default(),
            reads: Reads::default(),
            transfers: Transfers::default(),
            asks: reads::Desk::default(),
            elections: Elections::new(self.setup.seed),
            setup: self.setup,
            begun: None,
            outgoing: Vec::new(),
            read_indexes: Vec::new(),
            arrived: None,
            restored: None,
            rooms: Rooms::new(DISK_RESERVE_BYTES),
            handed_to: None,
            refused: None,
            stuck: None,
            log_bytes_max: LOG_BYTES_MAX,
            failed: None,
        };
        engine.elections.draw();
        // What is known to be committed, with all the members that it brings.
        let mut committed = engine.flush().map_err(|error| error.0)?;
        if engine.is_alone() {
            let elected = engine.node.campaign();
            elected.map_err(|error| OpenError::Damaged(format!("raft refused it: {error}")))?;
            committed.extend(engine.flush().map_err(|error| error.0)?);
        }
        debug_assert_eq!(committed, self.committed);
        engine.bear_witness().map_err(|error| error.0)?;
        Ok(Opened {
            engine,
            snapshot: self.snapshot,
            committed,
            clean_stop: self.clean_stop,
            cut_off: self.cut_off,
            notes: self.notes,
        })
    }
}

/// What a start may hand out: in a group, only what is known to be committed.
fn committed(log: &Log, setup: Setup) -> Result<Vec<Committed>, OpenError> {
    // An uncommitted removal of the others does not make a node the only one.
    let base = log.base_at(log.commit().max(log.snapshot_mark().index));
    let members = base.map(|base| base.members).unwrap_or_default();
    let alone = members.is_alone(setup.node);
    handed_out(log, setup, |entry| alone || entry.index <= log.commit())
}

fn next_start(
    stored: &Stored,
    witness: Witness,
    opening: Opening,
    generation: u32,
) -> Result<Start, OpenError> {
    let last = stored.entries.last();
    let index = last.map_or(stored.snapshot.index, |entry| entry.index);
    let next = match opening {
        Opening::Restored => stored.start.max(witness.start).jumped(generation),
        Opening::Ordinary if stored.start < witness.start || index < witness.index => {
            return Err(OpenError::Behind {
                start: stored.start.number(),
                start_witnessed: witness.start.number(),
                index,
                index_witnessed: witness.index,
                segment: match witness.flushed {
                    // A witness of the previous format knows no segment.
                    Flushed { sequence: 0, .. } => "the log".into(),
                    Flushed { segment, .. } => format!("the log's segment {}", file_name(segment)),
                },
            });
        }
        Opening::Ordinary => stored.start.risen(),
    };
    next.ok_or(OpenError::StartsExhausted)
}

fn raft_node(log: Log, setup: Setup) -> Result<RawNode<Log>, OpenError> {
    let config = Config {
        id: setup.node,
        applied: log.snapshot_mark().index,
        election_tick: ELECTION_TICKS,
        heartbeat_tick: HEARTBEAT_TICKS,
        max_size_per_msg: setup.message_bytes,
        max_inflight_msgs: MESSAGES_MAX,
        max_uncommitted_size: UNCOMMITTED_BYTES_MAX,
        check_quorum: true,
        pre_vote: true,
        read_only_option: ReadOnlyOption::Safe,
        ..Config::default()
    };
    let silent = slog::Logger::root(slog::Discard, slog::o!());
    let refused = |error: raft::Error| OpenError::Damaged(format!("raft refused it: {error}"));
    RawNode::new(&config, log, &silent).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Bundle;
    use crate::origin::Origin;
    use raft::eraftpb::{Entry, EntryType};

    /// A founder that has removed the other of two members, and has not heard that it agreed.
    #[test]
    fn a_removal_that_is_not_committed_commits_nothing() {
        let entry = |index: u64, sequence: u64| {
            let (node, start) = (1, 1);
            let origin = Origin {
                node,
                start,
                sequence,
            };
            let mut bundle = Bundle::default();
            bundle.push(origin, b"one");
            Entry {
                index,
                term: 1,
                data: bundle.take().into(),
                ..Entry::default()
            }
        };
        let mut alone = Vec::new();
        Members::alone(1).write(&mut alone);
        let removal = Entry {
            entry_type: EntryType::EntryConfChange,
            context: alone.into(),
            index: 2,
            term: 1,
            ..Entry::default()
        };
        let mut stored = Stored {
            entries: vec![entry(1, 1), removal, entry(3, 2)],
            members: Members {
                voters: vec![1, 2],
                ..Members::default()
            },
            ..Stored::default()
        };
        stored.hard_state.term = 1;
        let handed_out = |commit| {
            let mut stored = stored.clone();
            stored.hard_state.commit = commit;
            let log = Log::new(stored).unwrap();
            committed(&log, Setup::default()).unwrap().len()
        };
        assert_eq!([1, 2].map(handed_out), [1, 2], "alone, all of it counts");
    }
}
