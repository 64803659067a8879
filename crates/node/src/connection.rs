//! A socket with its input and output.

use std::io::{self, Read, Write};

use bytes::{Buf, BytesMut};
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use crate::house::ClientId;
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
    pub(crate) output: BytesMut,
    /// How many bytes of the output's memory were sent.
    sent: usize,
    /// Whether there may be more to read.
    pub(crate) readable: bool,
    /// Whether the peer has said that it sends nothing more.
    pub(crate) read_closed: bool,
    /// Whether its commands wait until it has read its answers.
    pub(crate) paused: bool,
    /// The amount of output that the house was last told.
    pub(crate) told: usize,
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

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Sealed(sealed) => sealed.write(bytes),
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
            output: BytesMut::new(),
            sent: 0,
            readable: false,
            read_closed: false,
            paused: false,
            told: 0,
            leaving: false,
            overrun: false,
        }
    }

    /// Writes as much of the output as the socket takes.
    pub(crate) fn write(&mut self) -> Written {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(0) => return Written::Gone,
                Ok(written) => {
                    self.output.advance(written);
                    self.sent += written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.give_back_sent();
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
        self.sent = 0;
        // Clearing makes room again that advancing has used up; a large buffer is not kept.
        match self.output.capacity() > KEPT_BYTES {
            true => self.output = BytesMut::new(),
            false => self.output.clear(),
        }
        Written::All
    }

    /// As soon as most of a slow reader's output is sent, releases the memory of that part.
    fn give_back_sent(&mut self) {
        if self.sent > KEPT_BYTES.max(self.output.len()) {
            self.output = BytesMut::from(&self.output[..]);
            self.sent = 0;
        }
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

/// An output buffer larger than this is released when it is empty.
const KEPT_BYTES: usize = 64 << 10;
