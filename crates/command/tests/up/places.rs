//! Where the nodes of a cluster live and are reached.

use std::net::TcpListener;
use std::path::Path;

use tempfile::TempDir;

use super::Up;

/// Where the nodes live and are reached.
pub(crate) struct Places {
    dir: TempDir,
    pub(crate) peers: Vec<String>,
}

impl Places {
    pub(crate) fn new(count: usize) -> Places {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("secret");
        std::fs::write(secret, "the secret of these nodes\n").unwrap();
        // All at once, so that no two are the same.
        let free: Vec<_> = (0..count)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let address = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
        let peers = free.iter().map(address).collect();
        Places { dir, peers }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a node, counted from 1; `more` is what it is told besides.
    pub(crate) fn up(&self, id: usize, more: &[&str]) -> Up {
        let data = self.dir.path().join(format!("node-{id}"));
        let (number, secret) = (id.to_string(), self.dir.path().join("secret"));
        let own = ["--id", &number, "--peer", &self.peers[id - 1]];
        let secret = ["--secret-file", secret.to_str().unwrap()];
        Up::start(&data, &[&own[..], &secret, more].concat())
    }

    pub(crate) fn join(&self, id: usize) -> Up {
        self.up(id, &["--join", &self.peers[0]])
    }

    pub(crate) fn three(&self) -> [Up; 3] {
        [self.up(1, &[]), self.join(2), self.join(3)]
    }
}
