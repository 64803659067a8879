//! Opening a house: what the data directory holds becomes the two halves again, and a new reign is logged before the
//! first grant.

use std::sync::Arc;

use testigo_core::{Change, Epoch, Image, Limits, Local, Records, Replicated};
use testigo_engine::{Engine, OpenError, Opened};

use crate::clock::Clock;
use crate::config::Config;
use crate::house::{Entry, Foundations, House, NODE, read, written};
use crate::users::Users;

/// Why a data directory was not taken over.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    /// The engine did not open it.
    #[error(transparent)]
    Engine(#[from] OpenError),
    /// Something in it is not what this version writes.
    #[error("{what} cannot be read: {why}")]
    Unreadable {
        /// Which record.
        what: String,
        /// Why not.
        why: String,
    },
    /// The new reign could not be made durable.
    #[error("the start could not be recorded: {0}")]
    NotLogged(String),
}

/// Opens the directory and gives the house that stands on it, with the engine that is to become its log.
pub(crate) fn open(config: &Config) -> Result<(House, Engine), TakeOverError> {
    let Opened {
        mut engine,
        snapshot,
        committed,
        clean_stop,
        cut_off,
    } = Engine::open(&config.data, config.start)?;
    if let Some(what) = cut_off {
        log::warn!("the data directory is restored, but {what}: all that came after it is lost");
    }
    let image_bytes = snapshot
        .as_ref()
        .map_or(0, |snapshot| snapshot.image.len() as u64);
    // The log was written under these limits, whatever this start's configuration says.
    let mut replicated = match snapshot {
        None => Replicated::new(Limits::default()),
        Some(snapshot) => {
            let records: Records = read(&snapshot.image).map_err(|why| {
                let what = format!("the snapshot at index {}", snapshot.index);
                TakeOverError::Unreadable { what, why }
            })?;
            Replicated::restore(Limits::default(), records)
        }
    };
    let unreadable = |index, why| TakeOverError::Unreadable {
        what: format!("the log's entry {index}"),
        why,
    };
    for logged in &committed {
        let entry: Entry =
            read(&logged.data).map_err(|why| unreadable(logged.ticket.index, why))?;
        // What was refused then is refused again.
        let _ = replicated.apply(entry.at, &entry.change);
    }
    reign(&mut engine, &mut replicated)?;
    let image = clean_stop.and_then(|bytes| match read::<Image>(&bytes) {
        Ok(image) => Some(image),
        Err(why) => {
            log::warn!("what the last stop left cannot be read: {why}; recovering instead");
            None
        }
    });
    let clock = Clock::start();
    let seed = seed();
    let local = Local::start(clock.now(), config.limits.clone(), seed, &replicated, image);
    let house = House::new(Foundations {
        clock,
        local,
        replicated,
        limits: config.limits.clone(),
        wire: config.wire.clone(),
        users: Arc::new(Users::new(config.password.as_ref(), &config.users)),
        log_size: engine.log_size(),
        image_bytes,
        snapshots: config.snapshots,
    });
    Ok((house, engine))
}

/// Makes this start's epoch durable and applies it.
fn reign(engine: &mut Engine, replicated: &mut Replicated) -> Result<(), TakeOverError> {
    let entry = Entry::new(Change::Reign {
        node: NODE,
        at_least: Epoch(engine.epoch().number().into()),
    });
    let not_logged = |why: String| TakeOverError::NotLogged(why);
    engine
        .propose(&written(&entry))
        .map_err(|error| not_logged(error.to_string()))?;
    engine
        .flush()
        .map_err(|error| not_logged(error.to_string()))?;
    let applied = replicated
        .apply(entry.at, &entry.change)
        .map_err(|refusal| not_logged(refusal.to_string()))?;
    drop(applied);
    Ok(())
}

/// Keys a hash table against hostile names; without randomness it only hashes predictably.
fn seed() -> u64 {
    getrandom::u64().unwrap_or_default()
}
