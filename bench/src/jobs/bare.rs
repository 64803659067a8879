//! The limit of a durable loop: a server of one thread that only keeps bodies in memory and writes what it is told into a
//! file, with one flush for everybody who waits, in the fastest way that was found on Linux: over what is already there,
//! past the system's cache. It checks nothing, reads nothing again, and could not be restarted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use rustix::fs::{OFlags, fcntl_setfl};

use super::body::BODY_BYTES;
use super::dialect::{Answer, Dialect};
use crate::sockets::hurry;

const CREATE: u8 = b'C';
const TAKE: u8 = b'T';
const DELETE: u8 = b'D';
const EMPTY: u8 = b'E';

/// A letter, and a body where there is one.
#[derive(Debug)]
pub(crate) struct Bare;

impl Dialect for Bare {
    fn create(&mut self, body: &[u8], out: &mut Vec<u8>) {
        out.push(CREATE);
        out.extend_from_slice(body);
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        out.push(TAKE);
    }

    fn delete(&mut self, out: &mut Vec<u8>) {
        out.push(DELETE);
    }

    fn read<'a>(
        &mut self,
        input: &'a [u8],
        _: &mut Vec<u8>,
    ) -> Result<Option<(usize, Answer<'a>)>, String> {
        Ok(match input.first() {
            None => None,
            Some(&CREATE) => Some((1, Answer::Created)),
            Some(&DELETE) => Some((1, Answer::Deleted)),
            Some(&EMPTY) => Some((1, Answer::Empty)),
            Some(&TAKE) => {
                let body = input.get(1..=BODY_BYTES);
                body.map(|body| (1 + BODY_BYTES, Answer::Taken(Some(body))))
            }
            Some(other) => return Err(format!("the bare log said {other}")),
        })
    }
}

/// As the node does.
const LINGER: Duration = Duration::from_micros(30);
const QUIET: Duration = Duration::from_micros(15);

const PAGE_BYTES: usize = 4096;
const FILE_BYTES: usize = 8 << 20;
/// What a delete takes in the file.
const NOTE_BYTES: usize = 64;

/// Serves for ever. Prints its address first.
pub(crate) fn serve() -> Result<(), String> {
    let failed = |error: io::Error| format!("the bare log failed: {error}");
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(address).map_err(failed)?;
    println!("{}", listener.local_addr().map_err(failed)?);
    Server::new(listener)
        .and_then(|mut server| server.run())
        .map_err(failed)
}

struct Server {
    poll: Poll,
    listener: TcpListener,
    clients: Vec<Option<Client>>,
    waiting: VecDeque<Vec<u8>>,
    /// The clients whose answer waits for the flush, and the answer.
    unanswered: Vec<(usize, u8)>,
    /// Bodies that may be taken after it.
    fresh: Vec<Vec<u8>>,
    log: Log,
}

struct Client {
    stream: TcpStream,
    input: Vec<u8>,
}

const LISTENER: Token = Token(usize::MAX);

impl Server {
    fn new(mut listener: TcpListener) -> io::Result<Server> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Server {
            poll,
            listener,
            clients: Vec::new(),
            waiting: VecDeque::new(),
            unanswered: Vec::new(),
            fresh: Vec::new(),
            log: Log::new()?,
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        loop {
            match self.wait(&mut events) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                waited => waited?,
            }
            if events.is_empty() {
                self.flush()?;
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.welcome()?,
                    Token(at) => self.hear(at)?,
                }
            }
        }
    }

    /// Waits for sockets; nothing comes when it is time to flush.
    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let start = Instant::now();
        let unanswered = !self.unanswered.is_empty();
        let patience = if unanswered { QUIET } else { LINGER };
        while start.elapsed() < patience {
            self.poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() {
                return Ok(());
            }
        }
        match unanswered {
            true => Ok(()),
            false => self.poll.poll(events, None),
        }
    }

    fn welcome(&mut self) -> io::Result<()> {
        while let Ok((mut stream, _)) = self.listener.accept() {
            stream.set_nodelay(true)?;
            hurry(&stream);
            let token = Token(self.clients.len());
            let registry = self.poll.registry();
            registry.register(&mut stream, token, Interest::READABLE)?;
            let input = Vec::new();
            self.clients.push(Some(Client { stream, input }));
        }
        Ok(())
    }

    fn hear(&mut self, at: usize) -> io::Result<()> {
        let Some(Some(client)) = self.clients.get_mut(at) else {
            return Ok(());
        };
        let mut read = [0; 2 * BODY_BYTES];
        match client.stream.read(&mut read) {
            Ok(0) => self.clients[at] = None,
            Ok(length) => {
                client.input.extend_from_slice(&read[..length]);
                self.obey(at)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.clients[at] = None,
        }
        Ok(())
    }

    /// A client says one thing at a time.
    fn obey(&mut self, at: usize) -> io::Result<()> {
        let Some(Some(client)) = self.clients.get_mut(at) else {
            return Ok(());
        };
        match client.input.first() {
            Some(&CREATE) if client.input.len() <= BODY_BYTES => return Ok(()),
            Some(&CREATE) => {
                self.log.note(&client.input);
                self.fresh.push(client.input[1..].to_vec());
                self.unanswered.push((at, CREATE));
            }
            Some(&TAKE) => match self.waiting.pop_front() {
                None => client.stream.write_all(&[EMPTY])?,
                Some(mut answer) => {
                    answer.insert(0, TAKE);
                    client.stream.write_all(&answer)?;
                }
            },
            _ => {
                self.log.note(&[DELETE; NOTE_BYTES]);
                self.unanswered.push((at, DELETE));
            }
        }
        client.input.clear();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.flush()?;
        self.waiting.extend(self.fresh.drain(..));
        for (at, answer) in self.unanswered.drain(..) {
            if let Some(Some(client)) = self.clients.get_mut(at) {
                // Whoever is gone is noticed when it is heard.
                let _ = client.stream.write_all(&[answer]);
            }
        }
        Ok(())
    }
}

/// A file that is written again and again from its beginning.
struct Log {
    file: File,
    at: usize,
    /// What is to be written, from memory that begins at a page.
    bytes: Vec<u8>,
    start: usize,
    used: usize,
}

impl Log {
    fn new() -> io::Result<Log> {
        let mut file = tempfile::tempfile()?;
        file.write_all(&vec![0; FILE_BYTES])?;
        file.sync_all()?;
        // Where the system cannot, it goes through its cache.
        let _ = fcntl_setfl(&file, OFlags::DIRECT);
        let bytes = vec![0; FILE_BYTES + PAGE_BYTES];
        let address = bytes.as_ptr().addr();
        Ok(Log {
            file,
            at: 0,
            start: address.next_multiple_of(PAGE_BYTES) - address,
            bytes,
            used: 0,
        })
    }

    fn note(&mut self, note: &[u8]) {
        let at = self.start + self.used;
        self.bytes[at..at + note.len()].copy_from_slice(note);
        self.used += note.len();
    }

    fn flush(&mut self) -> io::Result<()> {
        let length = self.used.next_multiple_of(PAGE_BYTES);
        if self.at + length > FILE_BYTES {
            self.at = 0;
        }
        self.file.seek(SeekFrom::Start(self.at as u64))?;
        let pages = &self.bytes[self.start..self.start + length];
        self.file.write_all(pages)?;
        self.file.sync_data()?;
        self.at += length;
        self.used = 0;
        Ok(())
    }
}
