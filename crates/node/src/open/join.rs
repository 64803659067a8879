//! Before a newcomer's directory is taken over: asks a member whether the newcomer's number is free and which starts the
//! number has had, and learns the addresses of the others.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use testigo_core::{Address, Newcomer, NodeId, Replicated, Start};
use testigo_engine::Found;

use super::{TakeOverError, seed};
use crate::peers::{ClusterConfig, Identity, JoinAnswer, Welcome, ask_to_join, sought};

/// The time between two attempts.
const AGAIN: Duration = Duration::from_millis(500);

/// A newcomer that a member has welcomed.
#[derive(Clone, Debug)]
pub(crate) struct Joining {
    pub(crate) newcomer: Newcomer,
    pub(crate) welcome: Welcome,
}

/// Asks until a member has answered. `None` if the directory is a member's already.
pub(super) fn join(
    cluster: &ClusterConfig,
    address: &Address,
    found: &mut Found,
    replicated: &Replicated,
) -> Result<Option<Joining>, TakeOverError> {
    if replicated.cluster().id().is_some() {
        return Ok(None);
    }
    let is_new = found.members().iter().next().is_none();
    let Some(at) = &cluster.join else {
        return match is_new {
            true => Err(TakeOverError::Membership(
                "this directory was made to join a cluster, and no member has let it in yet; say which with --join".into(),
            )),
            false => Ok(None),
        };
    };
    if !is_new {
        return Err(TakeOverError::Membership(
            "this directory holds the data of a node that is alone, and cannot join a cluster; \
             start it without --join to found one, or give --data a new directory"
                .into(),
        ));
    }
    let identity = Identity::new(cluster, 0)?;
    let mut newcomer = Newcomer {
        node: NodeId(cluster.id),
        start: Start(0),
        token: seed(),
        address: address.clone(),
    };
    let mut trouble = String::new();
    loop {
        newcomer.start = Start(found.start().number().into());
        let why = match ask_to_join(&identity, at, &newcomer) {
            Ok(JoinAnswer::Welcome(welcome)) => return Ok(Some(Joining { newcomer, welcome })),
            Ok(JoinAnswer::StartAbove(last)) => {
                let last = u32::try_from(last).unwrap_or(u32::MAX);
                found.start_above(last)?;
                continue;
            }
            Ok(JoinAnswer::Refused(why)) => {
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
