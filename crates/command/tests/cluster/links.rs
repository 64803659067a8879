//! Links with a delay: this kernel has none to offer, so some links between nodes go through the harness, which passes
//! everything on, in order, as late as it is told.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::net::{LINK_PORT, PEER_PORT, Party, address, proxy_address};

/// Pieces on their way in one direction of a connection; more wait in the sockets.
const PIECES: usize = 4_096;
const PIECE_BYTES: usize = 16 << 10;
const CONNECT: Duration = Duration::from_secs(2);

/// A link from one node to another. Ends with the process, or when it is dropped and spoken to once more.
#[derive(Debug)]
pub(crate) struct Link {
    delay_ms: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    at: SocketAddr,
}

impl Link {
    pub(crate) fn open(from: Party, to: Party) -> Result<Link, String> {
        let own = SocketAddr::from((proxy_address(from), LINK_PORT + u16::from(to)));
        let far = SocketAddr::from((address(to), PEER_PORT));
        Link::between(own, Some(own.ip()), far)
    }

    /// Passes on what comes to an address, from an address, to another.
    fn between(at: SocketAddr, from: Option<IpAddr>, to: SocketAddr) -> Result<Link, String> {
        let listener = TcpListener::bind(at).map_err(|e| format!("no link at {at}: {e}"))?;
        let at = listener.local_addr().map_err(|e| e.to_string())?;
        let link = Link {
            delay_ms: Arc::default(),
            over: Arc::default(),
            at,
        };
        let (delay, over) = (link.delay_ms.clone(), link.over.clone());
        thread::spawn(move || {
            for near in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let delay = delay.clone();
                let connected = near.and_then(|near| Ok((near, connect(from, to)?)));
                if let Ok((near, far)) = connected {
                    pass_both_ways(near, far, &delay);
                }
            }
        });
        Ok(link)
    }

    /// From now on everything arrives so much later.
    pub(crate) fn delay(&self, ms: u64) {
        self.delay_ms.store(ms, Ordering::Relaxed);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the listener.
        let _ = TcpStream::connect_timeout(&self.at, CONNECT);
    }
}

fn connect(from: Option<IpAddr>, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    socket.connect_timeout(&to.into(), CONNECT)?;
    Ok(socket.into())
}

fn pass_both_ways(near: TcpStream, far: TcpStream, delay: &Arc<AtomicU64>) {
    for (from, to) in [(&near, &far), (&far, &near)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
            return;
        };
        let _ = to.set_nodelay(true);
        let (pieces, arrived) = sync_channel(PIECES);
        let delay = delay.clone();
        thread::spawn(move || read(from, &pieces, &delay));
        thread::spawn(move || write(to, &arrived));
    }
}

/// What is to be passed on, and when. Nothing for the end.
type Piece = (Instant, Vec<u8>);

fn read(mut from: TcpStream, pieces: &SyncSender<Piece>, delay: &AtomicU64) {
    let mut buffer = [0; PIECE_BYTES];
    let mut last = Instant::now();
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        let ms = delay.load(Ordering::Relaxed);
        // A delay that shrinks lets nothing overtake.
        last = last.max(Instant::now() + Duration::from_millis(ms));
        if pieces.send((last, buffer[..read].to_vec())).is_err() || read == 0 {
            return;
        }
    }
}

fn write(mut to: TcpStream, arrived: &Receiver<Piece>) {
    for (due, piece) in arrived {
        while let Some(early) = due.checked_duration_since(Instant::now()) {
            thread::park_timeout(early);
        }
        if piece.is_empty() || to.write_all(&piece).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives_in_order_and_late() {
        let far = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = far.local_addr().unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let link = Link::between(any, None, to).unwrap();
        let mut near = TcpStream::connect(link.at).unwrap();
        let (mut heard, _) = far.accept().unwrap();
        link.delay(150);
        let begin = Instant::now();
        let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_be_bytes).collect();
        near.write_all(&text[..4]).unwrap();
        let mut got = vec![0; 4];
        heard.read_exact(&mut got).unwrap();
        // At least so late; how much later is the machine's affair.
        assert!(begin.elapsed() >= Duration::from_millis(150));
        link.delay(0);
        near.write_all(&text[4..]).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        heard.read_to_end(&mut got).unwrap();
        assert!(got == text);
    }
}
