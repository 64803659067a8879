//! Opening a house: restores the two halves from the data directory, and logs a new view before the first grant.

mod join;
mod member;

pub(crate) use join::Joining;

use std::fmt::Display;
use std::net::TcpListener;
use std::sync::Arc;

use testigo_core::{
    Applied, Change, Limits, Local, Newcomer, NodeId, ReceiptKey, Replicated, Start, Touches,
};
use testigo_engine::{
    Committed, Engine, Found, OpenError, Opened, Opening, ProposeError, Scratch, Setup,
    StoredSnapshot,
};

use crate::clock::Clock;
use crate::config::Config;
use crate::generation;
use crate::house::{
    Entry, Foundations, Half, House, KeptTouches, Snapshots, read_image, read_records,
    read_touches, replay, written,
};
use crate::peers::JoinAnswer;
use crate::random;
use crate::tls::TlsError;
use crate::users::Users;

/// Why a data directory was not taken over.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    /// The engine did not open it.
    #[error(transparent)]
    Engine(#[from] OpenError),
    /// Something in it is not in a format of this version.
    #[error("{what} cannot be read: {why}")]
    Unreadable {
        /// The record.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The view of this start could not be made durable.
    #[error("the start could not be recorded: {0}")]
    NotLogged(String),
    /// TLS between nodes cannot be used.
    #[error("TLS between nodes: {0}")]
    Tls(#[from] TlsError),
    /// It could not be found out whether others look for the node.
    #[error("the nodes' port cannot be listened at: {0}")]
    Deaf(std::io::Error),
    /// It cannot be, or become, a member of the cluster, or it is one and was started alone.
    #[error("{0}")]
    Membership(String),
}

/// Opens the directory; returns the house for it, and the engine that will be its log. Does not ask a cluster to join.
#[cfg(test)]
pub(crate) fn open(config: &Config, clock: Clock) -> Result<(House, Engine), TakeOverError> {
    let found = Engine::examine_as(&config.data, config.opening, setup(config)?)?;
    let state = State::replay(found.snapshot(), found.committed())?;
    take_over(config, clock, found, state, false)
}

/// Opens the directory; returns the house for it, and the engine that will be its log. A newcomer first asks to join, for as
/// long as it takes.
pub(crate) fn open_or_join(
    config: &Config,
    clock: Clock,
    peers: Option<&TcpListener>,
) -> Result<(House, Engine, Option<Joining>), TakeOverError> {
    match &config.cluster {
        Some(cluster) => open_asking(config, clock, peers, join::over_the_network(cluster)?),
        None => open_asking(
            config,
            clock,
            peers,
            |_, _| Err("this node is alone".into()),
        ),
    }
}

/// The same, with something that asks a member at an address.
pub(crate) fn open_asking(
    config: &Config,
    clock: Clock,
    peers: Option<&TcpListener>,
    ask: impl FnMut(&str, &Newcomer) -> Result<JoinAnswer, String>,
) -> Result<(House, Engine, Option<Joining>), TakeOverError> {
    #[cfg(debug_assertions)]
    let broken = crate::house::broken_on_purpose().map_err(TakeOverError::Membership)?;
    let mut found = Engine::examine_as(&config.data, config.opening, setup(config)?)?;
    let state = State::replay(found.snapshot(), found.committed())?;
    let joining = match &config.cluster {
        Some(cluster) => {
            let address = member::address(config, cluster);
            let at = (cluster, config.data.as_path());
            let joining = join::join(at, &address, &mut found, &state.replicated, ask)?;
            if let (None, None, Some(peers)) = (&joining, state.replicated.cluster().id(), peers) {
                join::refuse_second_cluster(cluster, peers)?;
            }
            joining
        }
        None if state.replicated.cluster().id().is_some() => {
            return Err(TakeOverError::Membership(
                "this directory is a member's of a cluster; say --id and --peer".into(),
            ));
        }
        None => None,
    };
    let (house, engine) = take_over(config, clock, found, state, joining.is_some())?;
    #[cfg(debug_assertions)]
    let house = {
        let mut house = house;
        house.break_on_purpose(broken);
        house
    };
    Ok((house, engine, joining))
}

fn take_over(
    config: &Config,
    clock: Clock,
    found: Found,
    state: State,
    joins: bool,
) -> Result<(House, Engine), TakeOverError> {
    let new_key = match (state.replicated.receipt_key(), &config.cluster) {
        (None, None) => Some(draw_receipt_key()?),
        _ => None,
    };
    let touches = found.scratch().and_then(read_touches);
    // Everything is valid. Only now is anything changed.
    let opened = found.take_over()?;
    if let Some(what) = &opened.cut_off {
        log::warn!("the data directory is restored, but {what}: all that came after it is lost");
    }
    for note in &opened.notes {
        log::warn!("{note}");
    }
    match &config.cluster {
        Some(cluster) => member::found((config, cluster, joins), clock, opened.engine, state),
        None => alone(config, clock, opened, state, new_key, touches),
    }
}

/// Like [`open`], for a member with a simulated disk.
#[cfg(test)]
pub(crate) fn on(
    opened: Opened,
    config: &Config,
    clock: Clock,
) -> Result<(House, Engine), TakeOverError> {
    let state = State::replay(opened.snapshot.as_ref(), &opened.committed)?;
    let cluster = config.cluster.as_ref().expect("a member");
    member::found((config, cluster, false), clock, opened.engine, state)
}

/// Which node opens the directory, and how.
fn setup(config: &Config) -> Result<Setup, TakeOverError> {
    Ok(match &config.cluster {
        Some(cluster) => Setup {
            node: cluster.id,
            joins: cluster.join.is_some(),
            seed: seed(),
            ..Setup::default()
        },
        None if config.opening == Opening::Restored => {
            let seconds = generation::wait_secs();
            log::warn!(
                "the data directory was restored: the start waits {seconds} s for a generation that no other can begin in"
            );
            Setup {
                generation: generation::next().map_err(TakeOverError::NotLogged)?,
                ..Setup::default()
            }
        }
        None => Setup::default(),
    })
}

/// The replicated half according to the directory.
pub(crate) struct State {
    pub(crate) replicated: Replicated,
    /// The length of the last snapshot, and the weight of the jobs in it.
    image_bytes: u64,
    jobs_bytes: u64,
    /// The last entry of the log, if it has one.
    last: Option<u64>,
    /// The last index that is applied.
    applied: u64,
}

impl State {
    pub(crate) fn replay(
        snapshot: Option<&StoredSnapshot>,
        committed: &[Committed],
    ) -> Result<State, TakeOverError> {
        let image_bytes = snapshot.map_or(0, |snapshot| snapshot.image.len() as u64);
        // Every log begins with these limits, and changes them by itself.
        let mut replicated = match snapshot {
            None => Replicated::new(Limits::default()),
            Some(snapshot) => restored(snapshot)?,
        };
        let (_, jobs_bytes) = replicated.job_sizes();
        let unreadable = |index, why| TakeOverError::Unreadable {
            what: format!("the log's entry {index}"),
            why,
        };
        for logged in committed {
            let applied = replay(&mut replicated, logged);
            let _ = applied.map_err(|why| unreadable(logged.position.index, why))?;
        }
        Ok(State {
            replicated,
            image_bytes,
            jobs_bytes,
            last: committed.last().map(|logged| logged.position.index),
            applied: committed
                .last()
                .map(|logged| logged.position.index)
                .or(snapshot.map(|snapshot| snapshot.index))
                .unwrap_or_default(),
        })
    }

    fn snapshots(&self, config: &Config, applied: u64) -> Snapshots {
        Snapshots {
            policy: config.snapshots,
            image_bytes: self.image_bytes,
            jobs_bytes: self.jobs_bytes,
            drawn_bytes: 0,
            applied,
        }
    }
}

/// The replicated half according to a snapshot.
pub(crate) fn restored(snapshot: &StoredSnapshot) -> Result<Replicated, TakeOverError> {
    let records = read_records(&snapshot.image).map_err(|why| {
        let what = format!("the snapshot at index {}", snapshot.index);
        TakeOverError::Unreadable { what, why }
    })?;
    Ok(Replicated::restore(records))
}

/// The house of a lone node: it owns everything from its first entry on.
fn alone(
    config: &Config,
    clock: Clock,
    opened: Opened,
    mut state: State,
    new_key: Option<ReceiptKey>,
    touches: Option<Touches>,
) -> Result<(House, Engine), TakeOverError> {
    let Opened {
        mut engine,
        clean_stop,
        ..
    } = opened;
    let own = (NodeId(engine.node()), Start(engine.start().number().into()));
    let replicated = &mut state.replicated;
    let view = replicated.view_alone(own.0, own.1, engine.start().generation());
    let (mut applied, _) = record(&mut engine, state.last, replicated, view)?;
    if let Some(key) = new_key {
        let share = Change::ShareReceiptKey { key };
        (applied, _) = record(&mut engine, Some(applied), replicated, share)?;
    }
    let limits = Box::new(config.limits.shared());
    if *limits != *replicated.limits() {
        let change = Change::Limits { limits };
        (applied, _) = record(&mut engine, Some(applied), replicated, change)?;
    }
    let image = clean_stop.and_then(|bytes| match read_image(&bytes) {
        Ok(image) => Some(image),
        Err(why) => {
            log::warn!("what the last stop left cannot be read: {why}; recovering instead");
            None
        }
    });
    let seed = seed();
    let (now, limits) = (clock.now(), config.limits.clone());
    let local = Local::start_after(now, limits, seed, replicated, (image, touches));
    let scratch = Scratch::new(&config.data, engine.start());
    let touches = KeptTouches::begin(scratch, &local, now);
    let house = House::new(Foundations {
        own,
        clock,
        half: Half::Alone(local),
        touches: Some(touches),
        snapshots: state.snapshots(config, applied),
        replicated: state.replicated,
        limits: config.limits.clone(),
        wire: config.wire.clone(),
        users: Arc::new(Users::new(&config.guests())),
        files_root: config.files_root.clone(),
        log_size: engine.log_size(),
        member: None,
    });
    Ok((house, engine))
}

/// Makes a change of this start durable and applies it; returns its place in the log. If a crash has left the log full, it is
/// merged first: `last` is its end.
fn record(
    engine: &mut Engine,
    last: Option<u64>,
    replicated: &mut Replicated,
    change: Change,
) -> Result<(u64, Applied), TakeOverError> {
    let entry = Entry::new(change);
    let not_logged = |why: &dyn Display| TakeOverError::NotLogged(why.to_string());
    let bytes = written(&entry);
    let proposed = match (engine.propose(&bytes), last) {
        (Err(ProposeError::LogFull), Some(last)) => {
            let merged = engine.snapshot(last, &written(replicated.records()));
            merged.map_err(|error| not_logged(&error))?;
            engine.propose(&bytes)
        }
        (proposed, _) => proposed,
    };
    proposed.map_err(|error| not_logged(&error))?;
    let logged = engine.flush().map_err(|error| not_logged(&error))?;
    let logged = logged.last();
    let logged = logged.ok_or_else(|| not_logged(&"the log did not commit it"))?;
    let applied = replicated.apply(entry.stamp(logged), &entry.change);
    let applied = applied.map_err(|refusal| not_logged(&refusal))?;
    Ok((logged.position.index, applied))
}

/// The key of receipts, drawn once in the life of a log. It is durable before the first receipt is made with it.
fn draw_receipt_key() -> Result<ReceiptKey, TakeOverError> {
    let mut bytes = [0; ReceiptKey::BYTES];
    random::fill(&mut bytes).map_err(|error| {
        let why = format!("the system gives no random numbers for the key of receipts: {error}");
        TakeOverError::NotLogged(why)
    })?;
    Ok(ReceiptKey::new(bytes))
}

/// Keys a hash table against hostile names; without randomness the table is merely predictable.
pub(crate) fn seed() -> u64 {
    random::number()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testigo_core::SessionId;
    use testigo_engine::Opening;

    #[test]
    fn a_log_that_cannot_be_read_is_refused_and_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = Engine::open(dir.path(), Opening::Ordinary).unwrap().engine;
        engine.propose(b"no change of this version").unwrap();
        engine.flush().unwrap();
        drop(engine);
        let bytes = || {
            ["witness", "store/000000000000.log"]
                .map(|file| std::fs::read(dir.path().join(file)).unwrap())
        };
        let before = bytes();
        let refused = open(&Config::embedded(dir.path()), Clock::start()).unwrap_err();
        assert!(
            matches!(refused, TakeOverError::Unreadable { .. }),
            "{refused}"
        );
        assert!(bytes() == before);
    }

    #[test]
    fn a_log_without_room_for_the_start_is_merged() {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = Engine::open(dir.path(), Opening::Ordinary).unwrap().engine;
        // Labels longer than any start allows, as long as there is room, then shorter ones.
        for length in [1 << 19, 1 << 13, 1 << 8, 1] {
            let change = Change::OpenSession {
                session: SessionId::opened(1),
                ttl_ms: 1,
                label: Some("x".repeat(length)),
                user: None,
            };
            let bytes = written(&Entry { at: 0, change });
            let full = loop {
                match engine.propose(&bytes) {
                    Ok(_) => {}
                    Err(ProposeError::Backlog) => drop(engine.flush().unwrap()),
                    Err(error) => break error,
                }
            };
            assert_eq!(full, ProposeError::LogFull);
            engine.flush().unwrap();
        }
        drop(engine);
        for _ in 0..2 {
            let (_, engine) = open(&Config::embedded(dir.path()), Clock::start()).unwrap();
            assert!(engine.log_size().entries < 10);
        }
    }
}
