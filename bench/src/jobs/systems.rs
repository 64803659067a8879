//! What is measured beside each other: each system with its server and the clients that it wants.

use std::cell::Cell;
use std::path::Path;

use super::bare::Bare;
use super::dialect::Dialect;
use super::generator::{Load, Outcome, drive};
use super::nats::Nats;
use super::postgres::Postgres;
use super::rabbit::Rabbit;
use super::resp::{Ping, Redis, Testigo};
use crate::service::{self, Service};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Testigo,
    TestigoPing,
    BareLog,
    Postgres,
    Redis,
    Rabbit,
    Nats,
}

/// What this program is told to be the bare log.
pub(crate) const BARE_LOG_SERVER: &str = "--bare-log-server";

pub(crate) const RIVALS: [System; 4] = [
    System::Postgres,
    System::Redis,
    System::Rabbit,
    System::Nats,
];

impl System {
    pub(crate) fn name(self) -> &'static str {
        match self {
            System::Testigo => "Testigo",
            System::TestigoPing => "  limit: three PINGs to it",
            System::BareLog => "  limit: a bare log",
            System::Postgres => "PostgreSQL, SKIP LOCKED",
            System::Redis => "Redis streams, flush always",
            System::Rabbit => "RabbitMQ quorum queue",
            System::Nats => "NATS JetStream work queue",
        }
    }

    /// What is known of the flushes that its create, take and delete wait for, where they cannot be counted.
    pub(crate) fn flushes_by_settings(self) -> [u32; 3] {
        match self {
            System::TestigoPing => [0, 0, 0],
            // Written so.
            System::BareLog => [1, 0, 1],
            // A take is the log's business only when its worker dies.
            System::Testigo => [1, 0, 1],
            // `synchronous_commit` flushes at each commit; the take is inside of the transaction that deletes.
            System::Postgres => [1, 0, 1],
            // `appendfsync always` flushes before every answer to a command that writes, and reading for a group writes.
            System::Redis => [1, 1, 1],
            // A get goes through the queue's log; an acknowledgement is not answered.
            System::Rabbit => [1, 1, 0],
            // The version of Debian 12 flushes now and then only.
            System::Nats => [0, 0, 0],
        }
    }
}

/// All servers that could be started.
#[derive(Debug)]
pub(crate) struct Systems {
    services: Vec<(System, Service)>,
    /// Rivals that could not, and why.
    pub(crate) skipped: Vec<(System, String)>,
    /// No queue or job is used by two measurements.
    runs: Cell<usize>,
}

impl Systems {
    /// The product, and its rivals unless it is to be alone.
    pub(crate) fn start(binary: &Path, alone: bool) -> Result<Systems, String> {
        let node = service::testigo::start(binary)?;
        let bare = service::echo::start(&["jobs", BARE_LOG_SERVER])?;
        let mut systems = Systems {
            services: vec![(System::Testigo, node), (System::BareLog, bare)],
            skipped: Vec::new(),
            runs: Cell::new(0),
        };
        let rivals = RIVALS.into_iter().filter(|_| !alone);
        for rival in rivals {
            let started = match rival {
                System::Redis => service::redis::start("always"),
                System::Rabbit => service::rabbit::start(),
                System::Nats => service::nats::start(),
                _ => service::postgres::start(),
            };
            match started {
                Ok(service) => systems.services.push((rival, service)),
                Err(why) => systems.skipped.push((rival, why)),
            }
        }
        Ok(systems)
    }

    /// What there is to measure, in the order of the table.
    pub(crate) fn all(&self) -> Vec<System> {
        let services = self.services.iter().map(|(system, _)| *system);
        let mut all: Vec<System> = services.collect();
        all.insert(1, System::TestigoPing);
        all
    }

    pub(crate) fn versions(&self) -> String {
        let services = self.services.iter();
        let rivals = services.filter(|(system, _)| RIVALS.contains(system));
        let versions: Vec<&str> = rivals.map(|(_, rival)| rival.version.trim()).collect();
        versions.join(", ")
    }

    pub(crate) fn service(&self, system: System) -> Result<&Service, String> {
        let system = match system {
            System::TestigoPing => System::Testigo,
            other => other,
        };
        let mut found = self.services.iter().filter(|(found, _)| *found == system);
        let (_, service) = found.next().ok_or("it does not run")?;
        Ok(service)
    }

    /// Drives so many clients at a queue of their own.
    pub(crate) fn measure(
        &self,
        system: System,
        clients: usize,
        load: Load,
    ) -> Result<Outcome, String> {
        let run = self.runs.get() + 1;
        self.runs.set(run);
        let queue = format!("run{run}");
        let dialects = (0..clients).map(|client| {
            let dialect: Box<dyn Dialect> = match system {
                System::Testigo => Box::new(Testigo::new(&queue)),
                System::TestigoPing => Box::new(Ping::new()),
                System::BareLog => Box::new(Bare),
                System::Postgres => Box::new(Postgres::new(&queue)),
                System::Redis => Box::new(Redis::new(&queue, client)),
                System::Rabbit => Box::new(Rabbit::new(&queue)),
                System::Nats => Box::new(Nats::new(&queue, client)),
            };
            dialect
        });
        let address = self.service(system)?.address;
        let outcome = drive(&[address], dialects.collect(), load, run);
        outcome.map_err(|why| format!("{}, {clients} clients: {why}", system.name().trim()))
    }
}
