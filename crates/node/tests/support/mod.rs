//! A node in this process and a small blocking client, for the tests.

#![allow(
    dead_code,
    unused_imports,
    reason = "every test file uses its own part of it"
)]

mod resp;

use std::net::SocketAddr;

use tempfile::TempDir;
use testigo_node::{Config, Node};

pub(crate) use resp::{Client, Value};

/// A node on a port of its own and a directory that is gone with it.
pub(crate) struct House {
    pub(crate) dir: TempDir,
    pub(crate) node: Option<Node>,
    configure: fn(&mut Config),
}

impl House {
    pub(crate) fn open() -> House {
        House::with(|_| {})
    }

    pub(crate) fn with(configure: fn(&mut Config)) -> House {
        let mut house = House {
            dir: tempfile::tempdir().unwrap(),
            node: None,
            configure,
        };
        house.start();
        house
    }

    fn start(&mut self) {
        let mut config = Config::embedded(self.dir.path().join("data"));
        config.resp = Some("127.0.0.1:0".parse().unwrap());
        (self.configure)(&mut config);
        self.node = Some(Node::start(config).unwrap());
    }

    /// A clean stop and a start on the same directory.
    pub(crate) fn restart(&mut self) {
        self.node.take().unwrap().stop().unwrap();
        self.start();
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.node.as_ref().unwrap().resp_address().unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address())
    }
}
