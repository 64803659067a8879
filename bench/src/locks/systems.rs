//! What is measured beside each other: each system with its server and the clients that it wants.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;

use super::dialect::Dialect;
use super::generator::{Load, drive};
use super::resp::{Ping, Redis};
use crate::service::{self, Service};
use crate::tally::Tally;

pub(crate) const CLIENTS: usize = 16;
/// The argument that makes this program the echo server.
pub(crate) const BATON_SERVER: &str = "--baton-server";

/// The lease of the probe; the clients' leases are numbered from 1.
const PROBE_LEASE: u64 = 1 << 32;

/// A system in a situation: all clients at one gate, or each at its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Testigo,
    TestigoPing,
    Postgres,
    Etcd,
    RedisAlways,
    RedisEachSecond,
    RedisPing,
    Baton,
}

use System::*;

/// Each client at a gate of its own.
pub(crate) const DISTINCT: &[System] = &[
    Testigo,
    TestigoPing,
    RedisPing,
    RedisEachSecond,
    RedisAlways,
    Postgres,
    Etcd,
];

/// All clients at one gate.
pub(crate) const CONTENDED: &[System] =
    &[Testigo, Baton, Postgres, RedisEachSecond, RedisAlways, Etcd];

impl System {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Testigo => "Testigo",
            TestigoPing => "  limit: two PINGs to it",
            Postgres => "PostgreSQL advisory locks",
            Etcd => "etcd lock service",
            RedisAlways => "Redis SET NX, flush always",
            RedisEachSecond => "Redis SET NX, flush each second",
            RedisPing => "  two PINGs to Redis",
            Baton => "  limit: the baton",
        }
    }
}

/// All servers.
#[derive(Debug)]
pub(crate) struct Systems {
    testigo: Service,
    postgres: Service,
    etcd: Service,
    redis_always: Service,
    redis_each_second: Service,
    baton: Service,
    /// No gate, key or lease is used by two measurements.
    measurements: Cell<usize>,
}

impl Systems {
    pub(crate) fn start(binary: &Path) -> Result<Systems, String> {
        Ok(Systems {
            testigo: service::testigo::start(binary)?,
            postgres: service::postgres::start()?,
            etcd: service::etcd::start(|stream| {
                super::etcd::Etcd::new("probe", PROBE_LEASE).greet(stream)
            })?,
            redis_always: service::redis::start("always")?,
            redis_each_second: service::redis::start("everysec")?,
            baton: service::echo::start(&["locks", BATON_SERVER])?,
            measurements: Cell::new(0),
        })
    }

    pub(crate) fn versions(&self) -> String {
        let rivals = [&self.postgres, &self.etcd, &self.redis_always];
        let versions: Vec<&str> = rivals.map(|rival| rival.version.trim()).to_vec();
        versions.join(", ")
    }

    pub(crate) fn measure(&self, system: System, load: Load) -> Result<Tally, String> {
        let number = self.measurements.get();
        self.measurements.set(number + 1);
        let dialects = (0..CLIENTS).map(|client| {
            let gate = if load.contended { 0 } else { client };
            let name = format!("m{number}-g{gate}");
            let dialect: Box<dyn Dialect> = match system {
                Testigo => Box::new(super::resp::Testigo::new(&name)),
                TestigoPing | RedisPing => Box::new(Ping::default()),
                Postgres => Box::new(super::postgres::Postgres::new(number * CLIENTS + gate)),
                Etcd => Box::new(super::etcd::Etcd::new(
                    &name,
                    (number * CLIENTS + client + 1) as u64,
                )),
                RedisAlways | RedisEachSecond => Box::new(Redis::new(&name, client)),
                Baton => Box::new(super::baton::Baton),
            };
            dialect
        });
        let tally = drive(&[self.address(system)], dialects.collect(), load);
        let place = if load.contended {
            "one gate"
        } else {
            "distinct gates"
        };
        tally.map_err(|why| format!("{}, {place}: {why}", system.name().trim()))
    }

    fn address(&self, system: System) -> SocketAddr {
        let server = match system {
            Testigo | TestigoPing => &self.testigo,
            Postgres => &self.postgres,
            Etcd => &self.etcd,
            RedisAlways => &self.redis_always,
            RedisEachSecond | RedisPing => &self.redis_each_second,
            Baton => &self.baton,
        };
        server.address
    }
}
