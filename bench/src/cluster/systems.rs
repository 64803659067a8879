//! What is measured beside each other: three servers of each system, with clients spread over them.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::trio::Trio;
use crate::jobs::dialect::Dialect as JobDialect;
use crate::jobs::generator as job_loops;
use crate::jobs::rabbit::Rabbit;
use crate::jobs::resp::Testigo as TestigoJobs;
use crate::locks::dialect::Dialect as LockDialect;
use crate::locks::etcd::Etcd;
use crate::locks::generator as lock_loops;
use crate::locks::resp::{Ping, Testigo as TestigoLocks};
use crate::service::{self, Service};
use crate::tally::Tally;
use crate::wire::Asker;
use crate::wire::resp::Reply;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Testigo,
    /// The same, with a gate whose ownership travels by Raymond's tree.
    Raymond,
    /// The same, by the box-office token.
    BoxOffice,
    /// Two `PING`s to the same nodes.
    Ping,
    Etcd,
    Rabbit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Situation {
    /// Each client at a gate of its own, which its node owns.
    Own,
    /// All at one gate.
    Contended,
    /// Jobs of one queue.
    Jobs,
}

impl System {
    pub(super) fn name(self) -> &'static str {
        match self {
            System::Testigo => "Testigo",
            System::Raymond => "Testigo USING raymond",
            System::BoxOffice => "Testigo USING box-office",
            System::Ping => "  limit: two PINGs to it",
            System::Etcd => "etcd lock service",
            System::Rabbit => "RabbitMQ quorum queue",
        }
    }

    /// The algorithm by which its gate's ownership travels.
    pub(super) fn using(self) -> Option<&'static str> {
        match self {
            System::Raymond => Some("raymond"),
            System::BoxOffice => Some("box-office"),
            _ => None,
        }
    }

    pub(super) fn is_rival(self) -> bool {
        matches!(self, System::Etcd | System::Rabbit)
    }
}

impl Situation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Situation::Own => "own gates",
            Situation::Contended => "one gate",
            Situation::Jobs => "jobs",
        }
    }
}

/// The leases of the probes; the clients' leases are numbered from 1.
const PROBE_LEASE: u64 = 1 << 32;
/// Of a measurement: ownership has followed its use by then.
pub(super) const WARM_UP: Duration = Duration::from_millis(500);
/// The gates whose ownership travels by an algorithm, called as it is.
const USING: [&str; 2] = ["raymond", "box-office"];
/// How long a job may be nowhere to be found.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Systems {
    testigo: Option<Trio>,
    etcd: Vec<Service>,
    rabbit: Vec<Service>,
    /// No key, lease or queue is used by two measurements.
    measurements: Cell<usize>,
}

impl Systems {
    pub(super) fn start(binary: Option<&Path>, jobs: bool) -> Result<Systems, String> {
        // A lease is known to all three.
        let probes = Cell::new(PROBE_LEASE);
        let probe = |stream: &mut _| {
            probes.set(probes.get() + 1);
            Etcd::new("probe", probes.get()).greet(stream)
        };
        let testigo = binary.map(Trio::start).transpose()?;
        if let Some(trio) = &testigo {
            for using in USING {
                let mut asker = Asker::connect(trio.address(0)?, PATIENCE)?;
                let create = ["GATE", "CREATE", using, "MUTEX", "USING", using];
                let created = asker.ask(&create, |_| ());
                created.map_err(|why| format!("{create:?}: {why:?}"))?;
            }
        }
        Ok(Systems {
            testigo,
            etcd: service::etcd::start_three(probe)?,
            rabbit: match jobs {
                true => service::rabbit::start_three()?,
                false => Vec::new(),
            },
            measurements: Cell::new(0),
        })
    }

    pub(super) fn versions(&self) -> String {
        let rivals = self.etcd.first().into_iter().chain(self.rabbit.first());
        let versions: Vec<&str> = rivals.map(|rival| rival.version.trim()).collect();
        versions.join(", ")
    }

    /// What a gate has cost so far: messages between nodes, and hand-overs; and its burst.
    pub(super) fn travelled(&self, gate: &str) -> Result<[u64; 3], String> {
        let trio = self.testigo.as_ref().ok_or("no nodes")?;
        let mut asker = Asker::connect(trio.address(0)?, PATIENCE)?;
        let found = asker.ask(&["GATE", "SHOW", gate], |map| {
            let nodes = value(map, "nodes")?;
            let sum = |key| {
                let nodes = nodes.list().iter();
                nodes
                    .map(|node| value(node, key)?.number())
                    .sum::<Option<u64>>()
            };
            let burst = value(map, "burst")?.number()?;
            Some([sum("messages")?, sum("hand_overs")?, burst])
        });
        let found = found.map_err(|why| format!("GATE SHOW {gate}: {why:?}"))?;
        found.ok_or_else(|| format!("GATE SHOW {gate} says nothing of its nodes"))
    }

    /// What the laboratory forecasts for whoever came to a gate in the last while, by the algorithm that it travels by: messages
    /// per hand-over, and how far to both sides 95 % of such times lie.
    pub(super) fn forecast(&self, gate: &str, since: Duration) -> Result<(f64, f64), String> {
        let trio = self.testigo.as_ref().ok_or("no nodes")?;
        let since = format!("{}ms", since.as_millis());
        let address = trio.address(0)?.to_string();
        let advise = ["advise", gate, "--since", &since, "--resp", &address];
        let said = Command::new(trio.binary()).args(advise).output();
        let said = said.map_err(|error| format!("testigo advise {gate}: {error}"))?;
        let told = String::from_utf8_lossy(&said.stdout);
        forecast_in(&told).ok_or_else(|| {
            let why = String::from_utf8_lossy(&said.stderr);
            format!("testigo advise {gate} says no interval: {told}{why}")
        })
    }

    fn servers(&self, system: System) -> Vec<SocketAddr> {
        let addresses = |services: &[Service]| services.iter().map(|s| s.address).collect();
        match system {
            System::Testigo | System::Raymond | System::BoxOffice | System::Ping => {
                let trio = self.testigo.as_ref();
                trio.map(Trio::addresses).unwrap_or_default()
            }
            System::Etcd => addresses(&self.etcd),
            System::Rabbit => addresses(&self.rabbit),
        }
    }

    pub(super) fn measure(
        &self,
        system: System,
        situation: Situation,
        clients: usize,
        span: Duration,
    ) -> Result<Tally, String> {
        let number = self.measurements.get() + 1;
        self.measurements.set(number);
        let servers = self.servers(system);
        let tally = match situation {
            Situation::Jobs => jobs(&servers, system, clients, number, span),
            _ => locks(&servers, system, situation, clients, number, span),
        };
        let what = format!("{}, {}, {clients}", system.name().trim(), situation.name());
        tally.map_err(|why| format!("{what} clients: {why}"))
    }
}

/// The first column of the row with a star, that of the algorithm in use: `raymond * 2.57 ±0.05 …`.
fn forecast_in(table: &str) -> Option<(f64, f64)> {
    let mut rows = table.lines().map(|line| line.split_whitespace());
    rows.find_map(|mut words| {
        let (_, star) = (words.next()?, words.next()?);
        let (mean, reach) = (words.next()?, words.next()?.strip_prefix('±')?);
        (star == "*").then_some((mean.parse().ok()?, reach.parse().ok()?))
    })
}

/// What a map has under a key.
fn value<'r, 'b>(map: &'r Reply<'b>, key: &str) -> Option<&'r Reply<'b>> {
    let mut pairs = map.list().chunks_exact(2);
    let pair = pairs.find(|pair| pair[0].bytes() == Some(key.as_bytes()));
    pair.map(|pair| &pair[1])
}

fn locks(
    servers: &[SocketAddr],
    system: System,
    situation: Situation,
    clients: usize,
    number: usize,
    span: Duration,
) -> Result<Tally, String> {
    /// No two clients of a run have the same lease.
    const CLIENTS_MAX: usize = 1 << 10;
    let contended = situation == Situation::Contended;
    let dialects = (0..clients).map(|client| {
        let dialect: Box<dyn LockDialect> = match system {
            System::Raymond | System::BoxOffice => {
                Box::new(TestigoLocks::new(system.using().unwrap_or_default()))
            }
            System::Testigo if contended => Box::new(TestigoLocks::new("contended")),
            // The same gates in every round: they are where they are used by now.
            System::Testigo => Box::new(TestigoLocks::new(&format!("own-{clients}-{client}"))),
            System::Ping => Box::new(Ping::default()),
            _ => {
                let gate = if contended { 0 } else { client };
                let lease = (number * CLIENTS_MAX + client + 1) as u64;
                Box::new(Etcd::new(&format!("m{number}-g{gate}"), lease))
            }
        };
        dialect
    });
    let load = lock_loops::Load {
        contended,
        slots: false,
        warm_up: WARM_UP,
        span,
    };
    lock_loops::drive(servers, dialects.collect(), load)
}

fn jobs(
    servers: &[SocketAddr],
    system: System,
    clients: usize,
    number: usize,
    span: Duration,
) -> Result<Tally, String> {
    let queue = format!("run{number}");
    let dialects = (0..clients).map(|_| {
        let dialect: Box<dyn JobDialect> = match system {
            System::Rabbit => Box::new(Rabbit::new(&queue)),
            _ => Box::new(TestigoJobs::new(&queue)),
        };
        dialect
    });
    let load = job_loops::Load {
        warm_up: WARM_UP,
        span,
        patience: PATIENCE,
    };
    let outcome = job_loops::drive(servers, dialects.collect(), load, number)?;
    Ok(outcome.tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_the_algorithm_in_use_is_found() {
        let table = "\
gate g: 9 arrivals in 20 s, at 3 nodes

ALGORITHM  MESSAGES/HAND-OVER  MESSAGES/ENTRY
log        2.76 ±0.12          1.96 ±0.04
raymond *  2.66 ±0.07          1.82 ±0.06
  measured 2.63                -
";
        assert_eq!(forecast_in(table), Some((2.66, 0.07)));
        assert_eq!(forecast_in("nobody came to gate g"), None);
    }
}
