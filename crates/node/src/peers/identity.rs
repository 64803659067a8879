//! Who this node is to the others, and with whom it talks.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ClientConfig;
use testigo_core::{Cluster, ClusterId};
use testigo_engine::NODES_MAX;

use super::config::{ClusterConfig, ClusterSecret};
use super::greeting::{GreetingError, Hello, Purpose};
use super::warnings::{About, Warnings};
use crate::tls::{Tls, TlsError};

/// Who this node is, and how it recognises the others.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(super) node: u64,
    /// 0 while it asks to join and has not started yet.
    pub(super) start: u64,
    pub(super) secret: Option<ClusterSecret>,
    /// The node lease, in milliseconds.
    pub(super) lease_ms: u16,
    pub(super) dials: Option<Arc<ClientConfig>>,
    pub(super) accepts: Option<Arc<Tls>>,
    pub(super) warnings: Arc<Warnings>,
    roll: RwLock<Roll>,
}

#[derive(Debug, Default)]
struct Roll {
    cluster: Option<ClusterId>,
    removed: BTreeSet<u64>,
    /// The last node that took this one for a member of another cluster, and that cluster.
    sought: Option<(u64, ClusterId)>,
}

impl Identity {
    pub(crate) fn new(config: &ClusterConfig, start: u64) -> Result<Identity, TlsError> {
        let tls = config.tls.as_ref();
        let files = tls.map(super::tls::files);
        Ok(Identity {
            node: config.id,
            start,
            secret: config.secret.clone(),
            lease_ms: u16::try_from(config.lease_ms).unwrap_or(u16::MAX),
            dials: tls.map(super::tls::dials).transpose()?,
            accepts: files.as_ref().map(Tls::load).transpose()?,
            warnings: Arc::default(),
            roll: RwLock::default(),
        })
    }

    /// The cluster of this node, once it is known.
    pub(super) fn cluster(&self) -> Option<ClusterId> {
        let roll = self.roll.read().unwrap_or_else(PoisonError::into_inner);
        roll.cluster
    }

    pub(super) fn set_cluster(&self, cluster: ClusterId) {
        let mut roll = self.roll.write().unwrap_or_else(PoisonError::into_inner);
        roll.cluster = Some(cluster);
    }

    /// Follows what the log says about the cluster.
    pub(crate) fn follow(&self, cluster: &Cluster) {
        let mut roll = self.roll.write().unwrap_or_else(PoisonError::into_inner);
        roll.cluster = cluster.id().or(roll.cluster);
        let nodes = 1..=NODES_MAX;
        let removed = nodes.filter(|node| cluster.was_removed(testigo_core::NodeId(*node)));
        roll.removed = removed.collect();
    }

    pub(super) fn hello(&self, purpose: Purpose, to: u64) -> Result<Hello, GreetingError> {
        let cluster = match purpose {
            Purpose::Frames => self.cluster().unwrap_or_default(),
            Purpose::Join => ClusterId::default(),
        };
        let own = (self.node, self.start);
        Hello::new(
            purpose,
            self.secret.is_some(),
            self.lease_ms,
            cluster,
            own,
            to,
        )
    }

    /// Who took this node for a member of another cluster, if anybody did.
    pub(super) fn sought(&self) -> Option<String> {
        let roll = self.roll.read().unwrap_or_else(PoisonError::into_inner);
        let (from, cluster) = roll.sought?;
        Some(format!(
            "node {from} of cluster {cluster} takes this node for its node {}",
            self.node
        ))
    }

    fn note_sought(&self, hello: &Hello) {
        let mut roll = self.roll.write().unwrap_or_else(PoisonError::into_inner);
        let seeks = hello.purpose == Purpose::Frames && hello.to == self.node;
        let seen = Some((hello.from, hello.cluster));
        if !seeks || roll.cluster == Some(hello.cluster) || roll.sought == seen {
            return;
        }
        roll.sought = seen;
        let is_in_another = roll.cluster.is_some();
        drop(roll);
        if let Some(sought) = self.sought().filter(|_| is_in_another) {
            let said =
                || format!("{sought}; of two clusters that both believe so, one must be stopped");
            self.warnings.say(About::Sought, hello.from, said);
        }
    }

    /// Whether a node that knows the secret is let in; otherwise why not.
    pub(super) fn judge(&self, hello: &Hello) -> Result<(), String> {
        if !(1..=NODES_MAX).contains(&hello.from) {
            return Err(format!("{} is no number of a node", hello.from));
        }
        self.note_sought(hello);
        let roll = self.roll.read().unwrap_or_else(PoisonError::into_inner);
        let Some(cluster) = roll.cluster else {
            return Err(format!("node {} is in no cluster yet", self.node));
        };
        if hello.purpose == Purpose::Join {
            return Ok(());
        }
        match hello {
            Hello { from, .. } if *from == self.node => Err(format!("node {from} is this node")),
            Hello { to, .. } if *to != self.node => {
                Err(format!("this is node {}, not node {to}", self.node))
            }
            Hello { cluster: other, .. } if *other != cluster => Err(format!(
                "this node is of cluster {cluster}, not of cluster {other}"
            )),
            Hello { from, .. } if roll.removed.contains(from) => {
                Err(format!("node {from} was removed from the cluster"))
            }
            _ => Ok(()),
        }
    }
}
