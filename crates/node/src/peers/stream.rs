//! A connection between nodes, plain or TLS, blocking or not, depending on its socket.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConnection};
use socket2::SockRef;

use super::config::host_and_port;
use crate::listen::{hurry, notice_vanishing};
use crate::tls::Tls;

/// If the other side takes nothing for this long, the connection is given up. After a cut, TCP itself would wait longer and
/// longer before it retries, and a cut of two seconds must not cost a lease of three.
#[cfg(target_os = "linux")]
const UNTAKEN_MAX: Duration = Duration::from_millis(1_000);

/// How long one address may take to accept. TCP itself retries only after a second.
const CONNECT_MAX: Duration = Duration::from_millis(500);

/// Cap on encrypted bytes that TLS keeps for a slow socket.
const TLS_BYTES_MAX: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Stream {
    socket: TcpStream,
    tls: Option<Box<Connection>>,
}

impl Stream {
    /// Dials an address, given by name or not, and is ready to speak.
    pub(super) fn dial(
        address: &str,
        tls: Option<&Arc<ClientConfig>>,
        deadline: Instant,
    ) -> io::Result<Stream> {
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        let (host, port) = host_and_port(address).map_err(invalid)?;
        let mut last = None;
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, remaining(deadline)?.min(CONNECT_MAX)) {
                Err(error) => last = Some(error),
                Ok(socket) => {
                    prepare(&socket, address)?;
                    let tls = tls.map(|config| {
                        let name = ServerName::try_from(host.to_owned());
                        let name = name.map_err(io::Error::other)?;
                        let tls = ClientConnection::new(Arc::clone(config), name);
                        Ok::<_, io::Error>(Connection::Client(tls.map_err(io::Error::other)?))
                    });
                    return Stream::new(socket, tls.transpose()?);
                }
            }
        }
        Err(last.unwrap_or_else(|| invalid("the name has no address")))
    }

    /// A connection that was accepted. It does not block.
    pub(super) fn accepted(
        socket: TcpStream,
        from: SocketAddr,
        tls: Option<&Arc<Tls>>,
    ) -> io::Result<Stream> {
        prepare(&socket, from)?;
        socket.set_nonblocking(true)?;
        let tls = tls.map(|tls| ServerConnection::new(tls.current()).map(Connection::Server));
        Stream::new(socket, tls.transpose().map_err(io::Error::other)?)
    }

    fn new(socket: TcpStream, mut tls: Option<Connection>) -> io::Result<Stream> {
        if let Some(tls) = &mut tls {
            tls.set_buffer_limit(Some(TLS_BYTES_MAX));
        }
        Ok(Stream {
            socket,
            tls: tls.map(Box::new),
        })
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Lets it block until `deadline`, but no longer.
    pub(super) fn block_until(&self, deadline: Instant) -> io::Result<()> {
        let left = Some(remaining(deadline)?);
        self.socket.set_read_timeout(left)?;
        self.socket.set_write_timeout(left)
    }

    /// Lets it block for as long as it takes.
    pub(super) fn block(&self) -> io::Result<()> {
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(None)?;
        self.socket.set_write_timeout(None)
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(tls) = &mut self.tls else {
                match self.socket.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => return read,
                }
            };
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            match tls.read_tls(&mut self.socket) {
                Ok(0) => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            let processed = tls.process_new_packets();
            // Even if the other side is refused, because this tells it why.
            self.send()?;
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    /// Takes bytes, as many as there is room for.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.tls.is_none() {
            return match self.socket.write(bytes) {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                written => written,
            };
        }
        if !self.send()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let tls = self.tls.as_mut().expect("it was looked at");
        let taken = tls.writer().write(bytes)?;
        self.send()?;
        match taken {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    /// Writes all of it to a blocking socket.
    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends what TLS has encrypted; false if the socket does not take all of it.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else {
            return Ok(true);
        };
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    pub(super) fn end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = self.send();
        }
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

fn prepare(socket: &TcpStream, other: SocketAddr) -> io::Result<()> {
    socket.set_nodelay(true)?;
    notice_vanishing(SockRef::from(socket))?;
    #[cfg(target_os = "linux")]
    SockRef::from(socket).set_tcp_user_timeout(Some(UNTAKEN_MAX))?;
    hurry(SockRef::from(socket), other);
    Ok(())
}

/// The remaining time, which must not be zero.
pub(super) fn remaining(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long")),
        false => Ok(left),
    }
}
