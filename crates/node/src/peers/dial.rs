//! Dialling another node, up to its verdict.

use std::io;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use super::frames::{FramesError, Opener, Sealer};
use super::greeting::{GreetingError, HELLO_BYTES, Hello, Purpose, Secrets, Side};
use super::identity::Identity;
use super::stream::Stream;

/// How long a connection may take, including name lookup, handshake and greeting.
pub(super) const DIAL_MAX: Duration = Duration::from_millis(2_000);

/// The longest verdict.
const VERDICT_BYTES_MAX: usize = 1024;

/// A node that has let this one in.
#[derive(Debug)]
pub(super) struct Dialled {
    pub(super) stream: Stream,
    pub(super) sealer: Sealer,
    pub(super) start: u64,
    opener: Opener,
    heard: BytesMut,
}

/// Why no node has.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Greeting(#[from] GreetingError),
    #[error("it sends {0}")]
    Frames(#[from] FramesError),
    #[error("it says: {0}")]
    Refused(String),
}

/// Dials a node, and checks, if possible, that it belongs to the cluster.
pub(super) fn dial(
    identity: &Identity,
    address: &str,
    purpose: Purpose,
    to: u64,
) -> Result<Dialled, DialError> {
    let deadline = Instant::now() + DIAL_MAX;
    let mut stream = Stream::dial(address, identity.dials.as_ref(), deadline)?;
    let mut heard = BytesMut::new();
    let mine = identity.hello(purpose, to)?.write();
    stream.block_until(deadline)?;
    stream.write_all(&mine)?;
    let theirs: [u8; HELLO_BYTES] = exactly(&mut stream, &mut heard, deadline)?;
    let hello = Hello::read(&theirs)?;
    hello.fits(identity.secret.is_some(), identity.lease_ms)?;
    if purpose == Purpose::Frames && hello.from != to {
        let (is, wanted) = (hello.from, to);
        return Err(GreetingError::Node { is, wanted }.into());
    }
    let secrets = identity.secret.as_ref();
    let secrets = secrets.map(|secret| Secrets::new(secret, &mine, &theirs));
    if let Some(secrets) = &secrets {
        stream.write_all(&secrets.proof())?;
    }
    let key = |side| secrets.as_ref().map(|secrets| secrets.frame_key(side));
    let mut dialled = Dialled {
        stream,
        sealer: Sealer::new(key(Side::Dialler)),
        start: hello.start,
        opener: Opener::new(key(Side::Acceptor), VERDICT_BYTES_MAX),
        heard,
    };
    let verdict = dialled.frame(VERDICT_BYTES_MAX, deadline);
    let verdict = verdict.map_err(|error| match error {
        // The code of the verdict is the acceptor's proof.
        DialError::Frames(FramesError::Code) => GreetingError::Proof.into(),
        error => error,
    })?;
    match verdict.is_empty() {
        true => Ok(dialled),
        false => Err(DialError::Refused(
            String::from_utf8_lossy(&verdict).into_owned(),
        )),
    }
}

impl Dialled {
    /// Waits for a frame from the acceptor.
    pub(super) fn frame(
        &mut self,
        bytes_max: usize,
        deadline: Instant,
    ) -> Result<Bytes, DialError> {
        self.opener.allow(bytes_max);
        loop {
            if let Some(frame) = self.opener.next(&mut self.heard)? {
                return Ok(frame);
            }
            more(&mut self.stream, &mut self.heard, deadline)?;
        }
    }

    /// Says one thing.
    pub(super) fn say(&mut self, frame: &[u8], deadline: Instant) -> Result<(), DialError> {
        let mut bytes = Vec::new();
        self.sealer.seal(frame, &mut bytes);
        self.stream.block_until(deadline)?;
        Ok(self.stream.write_all(&bytes)?)
    }
}

fn exactly<const N: usize>(
    stream: &mut Stream,
    heard: &mut BytesMut,
    deadline: Instant,
) -> Result<[u8; N], DialError> {
    while heard.len() < N {
        more(stream, heard, deadline)?;
    }
    let mut bytes = [0; N];
    bytes.copy_from_slice(&heard.split_to(N));
    Ok(bytes)
}

fn more(stream: &mut Stream, heard: &mut BytesMut, deadline: Instant) -> Result<(), DialError> {
    let mut buffer = [0; 4096];
    stream.block_until(deadline)?;
    match stream.read(&mut buffer) {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has hung up").into()),
        Ok(count) => {
            heard.extend_from_slice(&buffer[..count]);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let late = "it does not answer in time";
            Err(io::Error::new(io::ErrorKind::TimedOut, late).into())
        }
        Err(error) => Err(error.into()),
    }
}
