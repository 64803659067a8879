//! Queues that are wrong on purpose. Before anything is measured the referee must stop them; if it lets one pass, it would
//! have let a wrong number pass as well.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::dialect::Dialect;
use super::generator::{Load, drive};
use super::resp::Testigo;

const CLIENTS: usize = 16;
/// One in so many goes wrong.
const EVERY: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Acknowledges a job and forgets it.
    Loses,
    /// Gives a job to two.
    Doubles,
    /// Acknowledges a delete and keeps the job.
    Keeps,
    /// Gives another body than it got.
    Mangles,
}

/// Fails unless the referee stops each of them, and lets one pass that is right.
pub(crate) fn referee_sees() -> Result<(), String> {
    let found = |fault| {
        let dialects = (0..CLIENTS).map(|_| Box::new(Testigo::new("run")) as Box<dyn Dialect>);
        let load = Load {
            warm_up: Duration::ZERO,
            span: Duration::from_millis(200),
            patience: Duration::from_millis(500),
        };
        drive(&[start(fault)?], dialects.collect(), load, 1).map(drop)
    };
    found(Fault::None)
        .map_err(|why| format!("the referee stopped a queue that is right: {why}"))?;
    for (fault, signs) in [
        (Fault::Loses, &["not found"][..]),
        // Whoever is first may have deleted it already.
        (Fault::Doubles, &["in the hands of", "came back"]),
        (Fault::Keeps, &["came back"]),
        (Fault::Mangles, &["nobody created"]),
    ] {
        let found = found(fault);
        let seen = |why: &String| signs.iter().any(|sign| why.contains(sign));
        if !found.as_ref().is_err_and(seen) {
            return Err(format!(
                "the referee missed a queue that {fault:?}: {found:?}"
            ));
        }
    }
    Ok(())
}

/// What a specimen has.
#[derive(Default)]
struct Jobs {
    waiting: VecDeque<(u64, Vec<u8>)>,
    held: Vec<(u64, Vec<u8>)>,
    commands: u64,
    last: u64,
}

fn start(fault: Fault) -> Result<SocketAddr, String> {
    let failed = |error| format!("the specimen cannot listen: {error}");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let jobs = Arc::new(Mutex::new(Jobs::default()));
    thread::spawn(move || {
        // The first connection prepares.
        for stream in listener.incoming().take(CLIENTS + 1).flatten() {
            let jobs = Arc::clone(&jobs);
            // It ends with its client.
            thread::spawn(move || serve(stream, &jobs, fault).unwrap_or_default());
        }
    });
    Ok(address)
}

fn serve(mut stream: TcpStream, jobs: &Mutex<Jobs>, fault: Fault) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(words) = words(&mut reader)? {
        let answer = {
            let mut jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
            jobs.obey(&words, fault)
        };
        stream.write_all(&answer)?;
    }
    Ok(())
}

/// One command; nothing when the client is gone.
fn words(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<Vec<u8>>>> {
    let count = number(reader)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let length = number(reader)?;
        let mut word = vec![0; length + 2];
        reader.read_exact(&mut word)?;
        word.truncate(length);
        words.push(word);
    }
    Ok((count > 0).then_some(words))
}

/// The number in a line such as `*3`; 0 at the end.
fn number(reader: &mut BufReader<TcpStream>) -> io::Result<usize> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let number = line.trim_end().get(1..).and_then(|n| n.parse().ok());
    Ok(number.unwrap_or(0))
}

impl Jobs {
    fn obey(&mut self, words: &[Vec<u8>], fault: Fault) -> Vec<u8> {
        self.commands += 1;
        let wrong = |kind| fault == kind && self.commands.is_multiple_of(EVERY);
        let text = |at: usize| words.get(at).map_or(&[][..], Vec::as_slice);
        match (text(0), text(1)) {
            (b"JOB", b"CREATE") => {
                let (lost, mangled) = (wrong(Fault::Loses), wrong(Fault::Mangles));
                let mut body = text(4).to_vec();
                if let Some(byte) = body.last_mut().filter(|_| mangled) {
                    *byte ^= 1;
                }
                self.last += 1;
                if !lost {
                    self.waiting.push_back((self.last, body));
                }
                format!(":{}\r\n", self.last).into_bytes()
            }
            (b"JOB", b"TAKE") => {
                let doubled = wrong(Fault::Doubles);
                let Some((id, body)) = self.waiting.pop_front() else {
                    return b"$-1\r\n".to_vec();
                };
                if doubled {
                    self.waiting.push_front((id, body.clone()));
                }
                let mut answer =
                    format!("*5\r\n:{id}\r\n$1\r\nn\r\n$1\r\nq\r\n:1\r\n").into_bytes();
                answer.extend(format!("${}\r\n", body.len()).bytes());
                answer.extend_from_slice(&body);
                answer.extend(b"\r\n");
                self.held.push((id, body));
                answer
            }
            (b"JOB", b"DELETE") => {
                let kept = wrong(Fault::Keeps);
                let id = String::from_utf8_lossy(text(2)).parse().unwrap_or(0);
                let at = self.held.iter().position(|(held, _)| *held == id);
                let job = at.map(|at| self.held.swap_remove(at));
                self.waiting.extend(job.filter(|_| kept));
                b"+OK\r\n".to_vec()
            }
            _ => b"+OK\r\n".to_vec(),
        }
    }
}
