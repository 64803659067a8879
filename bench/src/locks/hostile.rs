//! What strangers cost a node with users: a thousand connections that never authenticate, and what a user's PING takes
//! meanwhile.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::report::{Bar, Report, Unit, memory_of};
use crate::service;
use crate::wire::Client;
use crate::wire::resp::command;

const STRANGERS: usize = 1_000;
/// Between two looks at a stranger; whoever drips sends a byte each time, ten a second.
const BEAT: Duration = Duration::from_millis(100);
/// Whoever was closed comes back after so many beats.
const BACK_AFTER: usize = 10;
/// Strangers are there for so long before a round measures: all have connected, dripped and said what they have to say.
const WARM_UP: Duration = Duration::from_millis(1_500);
const PASSWORD: &str = "a password for strangers to guess";
/// The most that strangers may add to the node's memory.
const MEMORY_BYTES: f64 = 64.0 * 1_048_576.0;
/// PING may take this many times as long as before, or this long.
const SLOWER: f64 = 3.0;
const PING_SECONDS: f64 = 0.001;

pub(crate) fn measure(
    binary: &Path,
    rounds: usize,
    span: Duration,
    report: &mut Report,
) -> Result<(), String> {
    let node = service::testigo::start_guarded(binary, PASSWORD)?;
    let mut user = Client::connect(node.address)?;
    user.say(&command(&["AUTH", PASSWORD]))?;
    user.expect("+OK")?;
    ping_p99(&mut user, span)?;
    let before = memory_of(node.process())?;
    let (mut quiet, mut beset, mut memory, mut closed) = (Vec::new(), Vec::new(), 0, 0);
    for _ in 0..rounds {
        quiet.push(ping_p99(&mut user, span)?);
        let strangers = Strangers::come(node.address);
        thread::sleep(WARM_UP);
        beset.push(ping_p99(&mut user, span)?);
        memory = memory.max(memory_of(node.process())?.saturating_sub(before));
        closed += strangers.leave()?;
    }
    let (quiet, beset) = (median(&mut quiet), median(&mut beset));
    report.row(
        "memory that 1,000 strangers add",
        Bar::AtMost(MEMORY_BYTES, Unit::Bytes),
        memory as f64,
        &format!(
            "the most of {rounds} rounds; {} before; {closed} were closed and came back",
            Unit::Bytes.show(before as f64)
        ),
    );
    report.row(
        "PING of a user beside 1,000 strangers, p99",
        Bar::AtMost((SLOWER * quiet).max(PING_SECONDS), Unit::Seconds),
        beset,
        &format!("{} without them", Unit::Seconds.show(quiet)),
    );
    Ok(())
}

/// The 99th percentile of a round trip, one after the other.
fn ping_p99(user: &mut Client, span: Duration) -> Result<f64, String> {
    let ping = command(&["PING"]);
    let mut taken = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < span {
        let start = Instant::now();
        user.say(&ping)?;
        user.expect("+PONG")?;
        taken.push(start.elapsed().as_secs_f64());
    }
    taken.sort_by(f64::total_cmp);
    Ok(taken[taken.len() * 99 / 100])
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How a stranger behaves. None is ever authenticated.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Sends a command byte by byte.
    Drips,
    /// Sends as much of a large command as it can.
    Partial,
    Silent,
    /// Asks for a page.
    Http,
}

const KINDS: [Kind; 4] = [Kind::Drips, Kind::Partial, Kind::Silent, Kind::Http];

struct Stranger {
    kind: Kind,
    stream: Option<TcpStream>,
    /// Bytes that were dripped.
    sent: usize,
    /// Beats until it comes back.
    away: usize,
}

/// What drips: a command that would be whole after more than a minute.
const DRIPPED: &[u8] = b"*2\r\n$4\r\nAUTH\r\n$1000\r\n";

/// The thousand, on a thread of their own.
struct Strangers {
    over: Arc<AtomicBool>,
    closed: Arc<AtomicUsize>,
    thread: thread::JoinHandle<Result<(), String>>,
}

impl Strangers {
    fn come(address: SocketAddr) -> Strangers {
        let (over, closed) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let (is_over, count) = (Arc::clone(&over), Arc::clone(&closed));
        let thread = thread::spawn(move || beset(address, &is_over, &count));
        Strangers {
            over,
            closed,
            thread,
        }
    }

    /// Gives how many were closed by the node.
    fn leave(self) -> Result<usize, String> {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.thread.join().map_err(|_| "the strangers panicked")?;
        ended.map(|()| self.closed.load(Ordering::Relaxed))
    }
}

fn beset(address: SocketAddr, over: &AtomicBool, closed: &AtomicUsize) -> Result<(), String> {
    let stranger = |at: usize| Stranger {
        kind: KINDS[at % KINDS.len()],
        stream: None,
        sent: 0,
        away: 0,
    };
    let mut all: Vec<Stranger> = (0..STRANGERS).map(stranger).collect();
    let part = [&b"*2\r\n$4\r\nAUTH\r\n$2000000\r\n"[..], &[b'x'; 1 << 20]].concat();
    while !over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        for stranger in &mut all {
            if stranger.away > 0 {
                stranger.away -= 1;
            } else if !stranger.beat(address, &part)? {
                closed.fetch_add(1, Ordering::Relaxed);
                stranger.stream = None;
                stranger.away = BACK_AFTER;
            }
        }
        thread::sleep(BEAT.saturating_sub(begin.elapsed()));
    }
    Ok(())
}

impl Stranger {
    /// Connects, or goes on; false if the node has closed the connection.
    fn beat(&mut self, address: SocketAddr, part: &[u8]) -> Result<bool, String> {
        let failed = |error: std::io::Error| format!("a stranger cannot connect: {error}");
        let Some(stream) = &mut self.stream else {
            let mut stream = TcpStream::connect(address).map_err(failed)?;
            stream.set_nonblocking(true).map_err(failed)?;
            let first = match self.kind {
                Kind::Partial => part,
                Kind::Drips | Kind::Silent => b"",
                Kind::Http => b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nFLUSHALL\r\n",
            };
            let sent = stream.write(first);
            (self.stream, self.sent) = (Some(stream), 0);
            return Ok(sent.is_ok());
        };
        if let Kind::Drips = self.kind {
            let byte = DRIPPED.get(self.sent).unwrap_or(&b'x');
            self.sent += 1;
            if stream.write(&[*byte]).is_err() {
                return Ok(false);
            }
        }
        match stream.read(&mut [0; 256]) {
            Ok(0) => Ok(false),
            Ok(_) => Ok(true),
            Err(error) => Ok(error.kind() == ErrorKind::WouldBlock),
        }
    }
}
