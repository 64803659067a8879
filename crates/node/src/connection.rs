//! A socket with its input and output.

use std::io::{self, IoSlice, Read, Write};

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use crate::house::ClientId;
use crate::output::{Amount, Output};
use crate::tls::Sealed;
use crate::unfinished::Kept;
use crate::wire::Progress;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Sealed(Box<Sealed>),
}

/// A connection as the reactor keeps it. An idle one has no buffers.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) client: ClientId,
    /// What was read and not served yet: part of a command, or commands behind a blocked one.
    pub(crate) input: Vec<u8>,
    /// How far its first command was read.
    pub(crate) progress: Progress,
    /// How it is counted among the unfinished input.
    pub(crate) kept: Kept,
    /// Whether its user was known at the last command.
    pub(crate) is_user: bool,
    pub(crate) output: Output,
    /// Whether there may be more to read.
    pub(crate) readable: bool,
    /// Whether the peer has said that it sends nothing more.
    pub(crate) read_closed: bool,
    /// Whether its commands wait until it has read its answers.
    pub(crate) paused: bool,
    /// The amount of output that the house was last told.
    pub(crate) told: Amount,
    /// To be closed after everything is sent.
    pub(crate) leaving: bool,
    /// To be closed at once.
    pub(crate) overrun: bool,
}

/// The result of an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    All,
    /// The peer does not read; the socket reports when it does.
    Some,
    /// The peer is gone.
    Gone,
}

impl Stream {
    /// Registers for both directions, edge-triggered, so that nothing must ever be registered again.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        match self {
            Stream::Tcp(stream) => registry.register(stream, token, both),
            Stream::Unix(stream) => registry.register(stream, token, both),
            Stream::Sealed(sealed) => registry.register(&mut sealed.socket, token, both),
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Sealed(sealed) => sealed.read(buffer),
        }
    }

    /// Takes the beginning of these, one after the other.
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(slices),
            Stream::Unix(stream) => stream.write_vectored(slices),
            Stream::Sealed(sealed) => sealed.write(slices),
        }
    }

    /// Bytes that were accepted and not sent yet.
    fn unsent(&self) -> usize {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => 0,
            Stream::Sealed(sealed) => sealed.unsent(),
        }
    }

    /// Sends what was accepted and not sent yet; false if the peer does not read.
    fn flush(&mut self) -> io::Result<bool> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => Ok(true),
            Stream::Sealed(sealed) => sealed.send(),
        }
    }

    pub(crate) fn has_unsent(&self) -> bool {
        matches!(self, Stream::Sealed(sealed) if sealed.has_unsent())
    }

    /// Whether reading less than requested means that there is no more. TLS data comes in records.
    pub(crate) fn is_drained_by(&self, read: usize, asked: usize) -> bool {
        read < asked && !matches!(self, Stream::Sealed(_))
    }

    /// Whether the peer has not finished the TLS handshake.
    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(self, Stream::Sealed(sealed) if sealed.is_handshaking())
    }

    /// Says that nothing more comes, where the protocol has a way to say so.
    pub(crate) fn end(&mut self) {
        if let Stream::Sealed(sealed) = self {
            sealed.end();
        }
    }
}

impl Connection {
    pub(crate) fn new(stream: Stream, client: ClientId, is_user: bool) -> Connection {
        Connection {
            stream,
            client,
            input: Vec::new(),
            progress: Progress::default(),
            kept: Kept::default(),
            is_user,
            output: Output::default(),
            readable: false,
            read_closed: false,
            paused: false,
            told: Amount::default(),
            leaving: false,
            overrun: false,
        }
    }

    /// Writes as much of the output as the socket takes.
    pub(crate) fn write(&mut self) -> Written {
        while !self.output.is_empty() {
            let (slices, count) = self.output.slices();
            match self.stream.write(&slices[..count]) {
                Ok(0) => return Written::Gone,
                Ok(written) => self.output.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.output.give_back_sent();
                    return Written::Some;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Written::Gone,
            }
        }
        match self.stream.flush() {
            Ok(true) => {}
            Ok(false) => return Written::Some,
            Err(_) => return Written::Gone,
        }
        self.output.clear();
        Written::All
    }

    /// What the peer has not been sent yet, encrypted or not.
    pub(crate) fn unwritten(&self) -> Amount {
        let (mut amount, sealed) = (self.output.amount(), self.stream.unsent());
        amount.all += sealed;
        amount.own += sealed;
        amount
    }

    /// After some input was served, decides whether to keep the memory of the rest.
    pub(crate) fn tidy_input(&mut self) {
        if self.input.is_empty() {
            self.input = Vec::new();
        } else if self.input.capacity() > KEPT_BYTES.max(4 * self.input.len()) {
            self.input.shrink_to_fit();
        }
    }
}

/// More memory than this is not kept for little input.
const KEPT_BYTES: usize = 64 << 10;
