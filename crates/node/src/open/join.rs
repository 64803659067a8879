//! Before a newcomer's directory is taken over: asks a member whether the newcomer's number is free and which starts the
//! number has had, and learns the addresses of the others.

use std::fmt::Display;
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use testigo_core::{Address, Newcomer, NodeId, Replicated, Start};
use testigo_engine::Found;

use super::{TakeOverError, seed};
use crate::kept;
use crate::peers::{ClusterConfig, Identity, JoinAnswer, Welcome, ask_to_join, sought};

/// The time between two attempts.
const AGAIN: Duration = Duration::from_millis(500);

/// The file with which a directory remembers that it is a newcomer's.
const FILE: &str = "joining.json";

/// A newcomer that a member has welcomed.
#[derive(Clone, Debug)]
pub(crate) struct Joining {
    pub(crate) newcomer: Newcomer,
    pub(crate) welcome: Welcome,
}

/// What a newcomer asks with. It is on disk before it asks, because the members remember it: a start after a crash asks with
/// the same, and is not taken for another directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    start: u32,
    token: u64,
}

/// Asks the member at an address.
pub(super) fn over_the_network(
    cluster: &ClusterConfig,
) -> Result<impl FnMut(&str, &Newcomer) -> Result<JoinAnswer, String> + use<>, TakeOverError> {
    let identity = Identity::new(cluster, 0)?;
    Ok(move |at: &str, newcomer: &Newcomer| ask_to_join(&identity, at, newcomer))
}

/// Asks until a member has answered. `None` if the directory is a member's already.
pub(super) fn join(
    (cluster, data): (&ClusterConfig, &Path),
    address: &Address,
    found: &mut Found,
    replicated: &Replicated,
    mut ask: impl FnMut(&str, &Newcomer) -> Result<JoinAnswer, String>,
) -> Result<Option<Joining>, TakeOverError> {
    let file = data.join(FILE);
    let not_kept = |error: &dyn Display| TakeOverError::NotLogged(error.to_string());
    let kept: Option<Asked> = kept::read(&file).map_err(|error| not_kept(&error))?;
    let own = NodeId(cluster.id);
    let known = replicated.cluster();
    let let_in = kept.is_none_or(|asked| known.last_start(own) >= Start(asked.start.into()));
    if known.id().is_some() && let_in {
        if kept.is_some() {
            // If it stays, the next start removes it.
            let _ = std::fs::remove_file(&file);
        }
        return Ok(None);
    }
    let is_new = found.members().iter().next().is_none();
    let founds = kept.is_none() && !is_new;
    let Some(at) = &cluster.join else {
        return match founds {
            true => Ok(None),
            false => Err(TakeOverError::Membership(
                "this directory was made to join a cluster, and no member has let it in yet; say which with --join".into(),
            )),
        };
    };
    if founds {
        return Err(TakeOverError::Membership(
            "this directory holds the data of a node that is alone, and cannot join a cluster; \
             start it without --join to found one, or give --data a new directory"
                .into(),
        ));
    }
    let token = kept.map_or_else(seed, |asked| asked.token);
    if let Some(asked) = kept {
        found.start_above(asked.start.saturating_sub(1))?;
    }
    let (mut asked, mut trouble) = (kept, String::new());
    loop {
        let start = found.start().number();
        let asks = Some(Asked { start, token });
        if asked != asks {
            kept::keep(&file, &asks).map_err(|error| not_kept(&error))?;
            asked = asks;
        }
        let newcomer = Newcomer {
            node: own,
            start: Start(start.into()),
            token,
            address: address.clone(),
        };
        let why = match ask(at, &newcomer) {
            Ok(JoinAnswer::Welcome(welcome)) => return Ok(Some(Joining { newcomer, welcome })),
            Ok(JoinAnswer::StartAbove(last)) => {
                let last = u32::try_from(last).unwrap_or(u32::MAX);
                found.start_above(last)?;
                continue;
            }
            Ok(JoinAnswer::Refused(why)) => {
                if kept.is_none() {
                    // A start that is refused leaves the directory as it was.
                    let _ = std::fs::remove_file(&file);
                }
                let why = format!("the node at {at} says: {why}");
                return Err(TakeOverError::Membership(why));
            }
            Ok(JoinAnswer::Later(why)) | Err(why) => why,
        };
        if why != trouble {
            log::warn!("the node at {at} cannot be joined yet: {why}");
            trouble = why;
        }
        thread::sleep(AGAIN);
    }
}

/// Refuses to found a cluster if another cluster looks for this node.
pub(super) fn refuse_second_cluster(
    cluster: &ClusterConfig,
    peers: &TcpListener,
) -> Result<(), TakeOverError> {
    let sought = sought(Identity::new(cluster, 0)?, peers).map_err(TakeOverError::Deaf)?;
    let Some(sought) = sought else {
        return Ok(());
    };
    Err(TakeOverError::Membership(format!(
        "{sought}, and this directory knows nothing of it: no second cluster is founded beside it. \
         Give --data the directory of before. If that is lost, say `testigo cluster remove {}` at a member, \
         and add --join HOST:PORT of one",
        cluster.id
    )))
}
