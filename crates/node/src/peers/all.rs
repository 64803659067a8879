//! All other nodes: a cable to each, and the connections from them.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use testigo_core::{Cluster, Newcomer, NodeId};
use testigo_engine::Sends;

use super::cable::Cable;
use super::config::{ClusterConfig, host_and_port};
use super::door::Door;
use super::hearing::Hearing;
use super::identity::Identity;
use super::join::{JoinAnswer, Welcome};
use crate::listen::ListenError;

/// The connections to and from all other nodes.
#[derive(Debug)]
pub(crate) struct Peers {
    identity: Arc<Identity>,
    cables: Arc<Cables>,
    hearing: Arc<Hearing>,
    door: Mutex<Option<Door>>,
}

#[derive(Debug)]
struct Cables {
    identity: Arc<Identity>,
    cables: RwLock<BTreeMap<u64, Arc<Cable>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The state of the connections with another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerStatus {
    /// The other node.
    pub(crate) node: u64,
    /// Where it is.
    pub(crate) address: Option<String>,
    /// Whether this node can send to it.
    pub(crate) connected: bool,
    /// Whether it can send to this node.
    pub(crate) heard: bool,
    /// How long nothing has come from it, if anything ever has.
    pub(crate) silent: Option<Duration>,
    /// Why this node cannot send to it.
    pub(crate) trouble: Option<String>,
    /// How many frames were lost, because there was no connection or too much waited.
    pub(crate) frames_lost: u64,
}

/// Listens at this node's address for the others.
pub(crate) fn listen_for_peers(config: &ClusterConfig) -> Result<TcpListener, ListenError> {
    let failed = |error| ListenError::Peer {
        address: config.peer.clone(),
        error,
    };
    let addresses: Vec<SocketAddr> = match config.listen {
        Some(address) => vec![address],
        None => {
            let invalid = |why| failed(io::Error::new(io::ErrorKind::InvalidInput, why));
            let (host, port) = host_and_port(&config.peer).map_err(invalid)?;
            let resolved = (host, port).to_socket_addrs().map_err(failed)?;
            resolved.collect()
        }
    };
    if let Some(open) = addresses.iter().find(|address| !address.ip().is_loopback())
        && !config.is_guarded()
    {
        let why =
            format!("it is {open}, which others can reach, and there is neither a secret nor TLS");
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
    }
    TcpListener::bind(&addresses[..]).map_err(failed)
}

impl Peers {
    /// Opens the door between nodes. `hear` is called with what one read of a connection has brought from a node. `answers`
    /// answers newcomers; it must not wait. A node is dialled once its address is known.
    pub(crate) fn start(
        identity: Identity,
        listener: TcpListener,
        hear: impl Fn(u64, &mut Vec<Bytes>) + Send + Sync + 'static,
        answers: impl Fn(Newcomer) -> JoinAnswer + Send + Sync + 'static,
    ) -> io::Result<Peers> {
        let identity = Arc::new(identity);
        let cables = Arc::new(Cables {
            identity: Arc::clone(&identity),
            cables: RwLock::default(),
            threads: Mutex::default(),
        });
        let ours = Arc::clone(&cables);
        let met = move |node, start| {
            if let Some(cable) = ours.cable(node) {
                cable.nudge(start);
            }
        };
        let hearing = Hearing::new(
            Box::new(hear),
            Box::new(met),
            Arc::clone(&identity.warnings),
        );
        let hearing = Arc::new(hearing);
        let (own, ears) = (Arc::clone(&identity), Arc::clone(&hearing));
        let door = Door::open(listener, own, ears, Box::new(answers))?;
        Ok(Peers {
            identity,
            cables,
            hearing,
            door: Mutex::new(Some(door)),
        })
    }

    /// Follows what the log says about the cluster; call it whenever that changes. A node that `still_decides` keeps its old
    /// address: the log has removed it, but it must agree to that.
    pub(crate) fn follow(&self, cluster: &Cluster, still_decides: impl Fn(u64) -> bool) {
        if cluster.id().is_none() {
            return;
        }
        self.identity.follow(cluster);
        let addresses = cluster.addresses();
        let addresses = addresses.map(|(node, address)| (node.0, address.peer.as_str()));
        // If the log here has no address of this node itself, it was not read to its end yet.
        let all = cluster.address(NodeId(self.identity.node)).is_some();
        self.cables
            .set(&addresses.collect(), |node| !all || still_decides(node));
    }

    /// Follows what a member has said, until the log says it.
    pub(crate) fn be_welcome(&self, welcome: &Welcome) {
        self.identity.set_cluster(welcome.cluster);
        let addresses = welcome.addresses.iter();
        let addresses = addresses.map(|(node, address)| (*node, address.peer.as_str()));
        self.cables.set(&addresses.collect(), |_| false);
    }

    /// Sends the log's frames.
    pub(crate) fn sender(&self) -> Box<dyn Sends> {
        Box::new(Sender {
            cables: Arc::clone(&self.cables),
            unflushed: Vec::new(),
        })
    }

    /// The state of the connections with each other node, by number.
    pub(crate) fn status(&self) -> Vec<PeerStatus> {
        let cables = self.cables.cables.read();
        let cables = cables.unwrap_or_else(PoisonError::into_inner);
        let status = cables.iter().map(|(node, cable)| {
            let (address, connected, trouble, frames_lost) = cable.status();
            let (heard, silent) = self.hearing.status(*node);
            PeerStatus {
                node: *node,
                address,
                connected,
                heard,
                silent,
                trouble,
                frames_lost,
            }
        });
        status.filter(|status| status.address.is_some()).collect()
    }

    /// Closes all connections. Nothing is heard after this returns.
    pub(crate) fn stop(&self) {
        let door = self
            .door
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut door) = door {
            door.close();
        }
        self.hearing.stop();
        self.cables.stop();
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Cables {
    fn cable(&self, node: u64) -> Option<Arc<Cable>> {
        let cables = self.cables.read().unwrap_or_else(PoisonError::into_inner);
        cables.get(&node).cloned()
    }

    /// Sets the addresses of all nodes, this one included. A node without one is no longer dialled, unless it is kept.
    fn set(&self, addresses: &BTreeMap<u64, &str>, kept: impl Fn(u64) -> bool) {
        let mut cables = self.cables.write().unwrap_or_else(PoisonError::into_inner);
        for (node, cable) in cables.iter() {
            match addresses.get(node) {
                None if kept(*node) => {}
                address => cable.set_address(address.copied()),
            }
        }
        for (node, address) in addresses {
            if *node == self.identity.node || cables.contains_key(node) {
                continue;
            }
            match Cable::start(*node, Arc::clone(&self.identity)) {
                Ok((cable, thread)) => {
                    cable.set_address(Some(address));
                    cables.insert(*node, cable);
                    let mut threads = self.threads.lock();
                    threads
                        .as_mut()
                        .unwrap_or_else(|poisoned| poisoned.get_mut())
                        .push(thread);
                }
                Err(error) => log::error!("node {node} cannot be dialled: {error}"),
            }
        }
    }

    fn stop(&self) {
        let cables = self.cables.read().unwrap_or_else(PoisonError::into_inner);
        cables.values().for_each(|cable| cable.stop());
        drop(cables);
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                log::error!("a thread that dialled another node had failed");
            }
        }
    }
}

/// Sends frames on the cables.
struct Sender {
    cables: Arc<Cables>,
    /// Cables with something to write.
    unflushed: Vec<(u64, Arc<Cable>)>,
}

impl Sends for Sender {
    fn send(&mut self, to: u64, frame: Bytes) {
        let known = self.unflushed.iter().find(|(node, _)| *node == to);
        if let Some((_, cable)) = known {
            return cable.send(&frame);
        }
        if let Some(cable) = self.cables.cable(to) {
            cable.send(&frame);
            self.unflushed.push((to, cable));
        }
    }

    fn flush(&mut self) {
        for (_, cable) in self.unflushed.drain(..) {
            cable.flush();
        }
    }
}
