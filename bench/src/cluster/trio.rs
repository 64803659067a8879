//! Three nodes that form a cluster.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::service::running::{directory, free_address};
use crate::service::{self, Service};
use crate::wire::Asker;

pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Trio {
    binary: PathBuf,
    peers: Vec<SocketAddr>,
    /// Nothing in the place of one that was killed.
    nodes: Vec<Option<Service>>,
}

impl Trio {
    pub(crate) fn start(binary: &Path) -> Result<Trio, String> {
        let mut trio = Trio {
            binary: binary.to_owned(),
            peers: vec![free_address()?, free_address()?, free_address()?],
            nodes: Vec::new(),
        };
        for at in 0..3 {
            let join = (at > 0).then_some(trio.peers[0]);
            let (id, peer) = (at + 1, trio.peers[at]);
            let node = service::testigo::start_member(binary, directory()?, id, peer, join)?;
            trio.nodes.push(Some(node));
        }
        Ok(trio)
    }

    pub(super) fn binary(&self) -> &Path {
        &self.binary
    }

    /// Where the living ones answer.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let living = self.nodes.iter().flatten();
        living.map(|node| node.address).collect()
    }

    pub(crate) fn address(&self, at: usize) -> Result<SocketAddr, String> {
        let node = self.nodes[at].as_ref().ok_or("it is dead")?;
        Ok(node.address)
    }

    /// What a living one has said.
    pub(super) fn said_by(&self, at: usize) -> Result<String, String> {
        let node = self.nodes[at].as_ref().ok_or("it is dead")?;
        service::testigo::said_by(node.data().ok_or("it has no data")?)
    }

    /// The place of the node that leads, as it says itself.
    pub(super) fn leader(&self) -> Result<usize, String> {
        for at in 0..self.nodes.len() {
            let mut asker = Asker::connect(self.address(at)?, PATIENCE)?;
            let leader = asker.number(&["CLUSTER", "STATUS"], "leader");
            if leader.map_err(|why| format!("{why:?}"))? == Some(at as u64 + 1) {
                return Ok(at);
            }
        }
        Err("nobody leads".into())
    }

    /// `kill -9`, and a start on what it left, after what is done meanwhile by those that live.
    pub(super) fn without<T>(
        &mut self,
        at: usize,
        meanwhile: impl FnOnce(&Trio) -> Result<T, String>,
    ) -> Result<T, String> {
        let data = self.nodes[at].take().ok_or("it is dead")?.kill()?;
        let found = meanwhile(self)?;
        let other = self.peers[(at + 1) % self.peers.len()];
        let (binary, peer) = (&self.binary, self.peers[at]);
        let node = service::testigo::start_member(binary, data, at + 1, peer, Some(other))?;
        self.nodes[at] = Some(node);
        Ok(found)
    }
}
