//! A node in this process and a small blocking client, for the tests.

#![allow(
    dead_code,
    unused_imports,
    reason = "every test file uses its own part of it"
)]

pub(crate) mod http;
mod resp;

use std::net::SocketAddr;
use std::path::Path;

use tempfile::TempDir;
use testigo_node::{Config, Node, Secret, User};

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

    /// A node on a directory that was made before.
    pub(crate) fn over(make: impl FnOnce(&Path)) -> House {
        let mut house = House {
            dir: tempfile::tempdir().unwrap(),
            node: None,
            configure: |_| {},
        };
        make(&house.dir.path().join("data"));
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

    /// As [`House::restart`], with another configuration.
    #[allow(dead_code, reason = "not every test changes it")]
    pub(crate) fn restart_with(&mut self, configure: fn(&mut Config)) {
        self.configure = configure;
        self.restart();
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.node.as_ref().unwrap().resp_address().unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address())
    }
}

/// A password, and no delay after a wrong one.
pub(crate) fn with_password(config: &mut Config) {
    config.password = Secret::read("secret").ok();
    config.wire.password_delay_ms = 0;
}

/// The default user with all rights, `alice` who deploys, `bob` who looks at everything, `carol` with a hashed password
/// who defines reports.
pub(crate) fn with_users(config: &mut Config) {
    with_password(config);
    let carol = Secret::hash("carol's").unwrap().to_string();
    for (name, password, rights) in [
        ("alice", "alice's", "deploy/* : use"),
        ("bob", "bob's", "* : show"),
        ("carol", &carol, "report/* : use define, deploy/web : show"),
    ] {
        let (secret, rights) = (Secret::read(password).unwrap(), rights.parse().unwrap());
        config.users.push(User::new(name, secret, rights).unwrap());
    }
}
