//! Jobs created on one connection with many requests under way, beside units of work as large, and Redis streams with
//! as many under way. Every answer must come in order, and in the end every job must be there.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use super::body::body;
use crate::report::{Bar, Report, Unit};
use crate::service::{redis, testigo};
use crate::sockets::PATIENCE;
use crate::tally::median;
use crate::wire::resp::{Reply, command, reply, write};

/// Requests under way, and commands of a unit of work.
const DEEP: usize = 256;

/// How jobs are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Pipelined,
    Units,
    Streams,
}

pub(crate) fn measure(
    binary: &Path,
    rounds: usize,
    span: Duration,
    alone: bool,
    report: &mut Report,
) -> Result<(), String> {
    let node = testigo::start(binary)?;
    let redis = match alone {
        true => None,
        false => Some(redis::start("always")?),
    };
    let mut ways = vec![(Way::Pipelined, &node), (Way::Units, &node)];
    ways.extend(redis.as_ref().map(|redis| (Way::Streams, redis)));
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for round in 0..rounds {
        for ((way, service), rates) in ways.iter().zip(&mut rates) {
            let name = format!("{way:?}{round}").to_lowercase();
            let rate = Creator::connect(service.address, *way, &name)?.run(span)?;
            rates.push(rate);
        }
    }
    let middle = |way: usize| rates.get(way).map_or(0.0, |r| median(r.iter().copied()));
    let ratio = |other: usize| {
        let pairs = rates[0].iter().zip(&rates[other]);
        median(pairs.map(|(one, other)| one / other))
    };
    report.row(
        &format!("{DEEP} creates under way to units of {DEEP}"),
        Bar::AtLeast(0.5, Unit::Ratio),
        ratio(1),
        &format!("{:.0} and {:.0} jobs/s", middle(0), middle(1)),
    );
    if rates.len() > 2 {
        report.show(
            &format!("{DEEP} creates under way to Redis streams'"),
            ratio(2),
            Unit::Ratio,
            &format!("{:.0} jobs/s there, flush always", middle(2)),
        );
    }
    Ok(())
}

/// One connection that creates jobs in a queue of its own.
struct Creator {
    stream: TcpStream,
    way: Way,
    queue: String,
    sent: u64,
    /// The identity that the last created job had.
    last: Vec<u8>,
    created: u64,
    heard: Vec<u8>,
}

impl Creator {
    fn connect(address: SocketAddr, way: Way, name: &str) -> Result<Creator, String> {
        let failed = |error| format!("cannot connect to {address}: {error}");
        let stream = TcpStream::connect(address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let queue = match way {
            Way::Streams => name.to_owned(),
            _ => format!("{name}/jobs"),
        };
        let mut creator = Creator {
            stream,
            way,
            queue,
            sent: 0,
            last: Vec::new(),
            created: 0,
            heard: Vec::new(),
        };
        if way != Way::Streams {
            let apply = ["FLOW", "APPLY", name, "make -> [jobs] -> work"];
            creator.say(&command(&apply))?;
            creator.hear(|_, reply| match reply {
                Reply::Said("OK") => Ok(1),
                other => Err(format!("the node said {other:?}")),
            })?;
        }
        Ok(creator)
    }

    /// Creates jobs for so long; the rate. All of them must be there then.
    fn run(&mut self, span: Duration) -> Result<f64, String> {
        let begin = Instant::now();
        self.request(DEEP)?;
        while begin.elapsed() < span {
            let created = self.hear(Creator::note)?;
            self.request(created)?;
        }
        while self.created < self.sent {
            self.hear(Creator::note)?;
        }
        let taken = begin.elapsed();
        let count = match self.way {
            Way::Streams => ["XLEN", &self.queue].map(str::to_owned).to_vec(),
            _ => ["JOB", "COUNT", &self.queue].map(str::to_owned).to_vec(),
        };
        let count: Vec<&str> = count.iter().map(String::as_str).collect();
        self.say(&command(&count))?;
        let sent = self.sent;
        self.hear(|_, reply| match reply.number() {
            Some(found) if found == sent => Ok(1),
            _ => Err(format!("of {sent} created jobs there are {reply:?}")),
        })?;
        Ok(sent as f64 / taken.as_secs_f64())
    }

    /// Asks for so many more jobs; in units, once a whole one was answered.
    fn request(&mut self, count: usize) -> Result<(), String> {
        let mut bytes = Vec::new();
        if self.way == Way::Units && count > 0 {
            write(&mut bytes, &[b"MULTI"]);
        }
        for _ in 0..count {
            let (queue, body) = (self.queue.as_bytes(), body(self.sent));
            match self.way {
                Way::Streams => write(&mut bytes, &[b"XADD", queue, b"*", b"body", &body]),
                _ => write(&mut bytes, &[b"JOB", b"CREATE", queue, b"*", &body]),
            }
            self.sent += 1;
        }
        if self.way == Way::Units && count > 0 {
            write(&mut bytes, &[b"EXEC"]);
        }
        self.say(&bytes)
    }

    fn say(&mut self, bytes: &[u8]) -> Result<(), String> {
        let said = self.stream.write_all(bytes);
        said.map_err(|error| format!("the server does not listen: {error}"))
    }

    /// Waits for answers and understands all that came; the sum of what they mean.
    fn hear(
        &mut self,
        mut means: impl FnMut(&mut Creator, &Reply<'_>) -> Result<usize, String>,
    ) -> Result<usize, String> {
        let mut sum = 0;
        while sum == 0 {
            let mut chunk = [0; 16 << 10];
            let read = self.stream.read(&mut chunk);
            match read.map_err(|error| format!("the server does not answer: {error}"))? {
                0 => return Err("the server closed the connection".into()),
                read => self.heard.extend_from_slice(&chunk[..read]),
            }
            let heard = std::mem::take(&mut self.heard);
            let mut used = 0;
            while let Some((length, reply)) = reply(&heard[used..])? {
                used += length;
                sum += means(self, &reply)?;
            }
            self.heard = heard[used..].to_vec();
        }
        Ok(sum)
    }

    /// How many jobs an answer says were created. Their identities only grow.
    fn note(&mut self, reply: &Reply<'_>) -> Result<usize, String> {
        let created = match reply {
            Reply::Said("OK" | "QUEUED") => return Ok(0),
            Reply::List(jobs) => jobs.as_slice(),
            one => std::slice::from_ref(one),
        };
        for job in created {
            let identity = match job {
                Reply::Number(number) => format!("{number:020}").into_bytes(),
                Reply::Bytes(entry) => in_order(entry),
                other => return Err(format!("{other:?} is no created job")),
            };
            if identity <= self.last {
                return Err("an answer came out of order".into());
            }
            self.last = identity;
        }
        self.created += created.len() as u64;
        Ok(created.len())
    }
}

/// The identity of a stream's entry, a time and a count, so that bytes compare as the numbers do.
fn in_order(entry: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(entry);
    let (time, count) = text.split_once('-').unwrap_or((&text, "0"));
    format!("{time:0>20}{count:0>20}").into_bytes()
}
