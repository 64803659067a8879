//! The links of a running log. A thread that says or hears something does their work, unless another is at it already, which
//! then goes on with it. They never wait for the log or its disk.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::delivery::Delivery;
use crate::links::{Links, Peer, SendError};
use crate::seam::{Group, Sends};

/// Where the log and its links send frames.
pub(crate) type SharedSends = Arc<Mutex<Box<dyn Sends>>>;

/// Where the log and its links deliver.
pub(crate) type Deliver = Arc<dyn Fn(Delivery) + Send + Sync>;

/// Cap on bytes of frames that wait for the links, 64 MiB. More are lost, as if on the way.
pub(crate) const LINK_BYTES_MAX: usize = 64 << 20;

pub(crate) struct LinkDesk {
    queue: Mutex<LinkQueue>,
    /// The thread with this lock does the links' work.
    links: Mutex<Links>,
    sends: SharedSends,
    deliver: Deliver,
    /// How many frames were invalid.
    refused: AtomicU64,
}

/// What is to be done, in order.
#[derive(Default)]
struct LinkQueue {
    asks: Vec<LinkAsk>,
    heard_bytes: usize,
}

pub(crate) enum LinkAsk {
    Heard { from: u64, frame: Bytes },
    Say { to: Peer, payload: Vec<u8> },
    End(Vec<Peer>),
    Tick,
}

impl fmt::Debug for LinkDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkDesk")
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

impl LinkDesk {
    pub(crate) fn new(engine: &dyn Group, sends: SharedSends, deliver: Deliver) -> Self {
        Self {
            queue: Mutex::default(),
            links: Mutex::new(engine.links()),
            sends,
            deliver,
            refused: AtomicU64::new(0),
        }
    }

    pub(crate) fn ask(&self, ask: LinkAsk) {
        let mut queue = self.queue();
        if let LinkAsk::Heard { frame, .. } = &ask {
            if queue.heard_bytes + frame.len() > LINK_BYTES_MAX {
                return;
            }
            queue.heard_bytes += frame.len();
        }
        queue.asks.push(ask);
    }

    /// Does what was asked for, unless another thread is at it.
    pub(crate) fn pass(&self) {
        // A thread that finds another at work has queued its asks before, so the other finds them when it looks again.
        while !self.queue().asks.is_empty() {
            let Ok(mut links) = self.links.try_lock() else {
                return;
            };
            let LinkQueue { asks, .. } = std::mem::take(&mut *self.queue());
            self.work(&mut links, asks);
        }
    }

    fn work(&self, links: &mut Links, asks: Vec<LinkAsk>) {
        for ask in asks {
            match ask {
                LinkAsk::Heard { from, frame } => {
                    if links.step(from, &frame).is_err() {
                        self.refuse();
                    }
                }
                LinkAsk::Say { to, payload } => match links.send(to, payload) {
                    // The receiver is gone.
                    Ok(()) | Err(SendError::Ended(_)) => {}
                    Err(error) => (self.deliver)(Delivery::NotSent { to, error }),
                },
                LinkAsk::End(peers) => links.end(&peers),
                LinkAsk::Tick => links.tick(),
            }
        }
        let outgoing = links.take_outgoing();
        if !outgoing.is_empty() {
            send(&self.sends, outgoing);
        }
        let received = links.take_received();
        if !received.is_empty() {
            (self.deliver)(Delivery::Received(received));
        }
    }

    /// Counts an invalid frame, which is lost as if on the way.
    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// No code panics while it holds the lock, so a poisoned one is intact.
    fn queue(&self) -> MutexGuard<'_, LinkQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn send(sends: &SharedSends, outgoing: Vec<crate::wire::Outgoing>) {
    let mut sends = sends.lock().unwrap_or_else(PoisonError::into_inner);
    for frame in outgoing {
        sends.send(frame.to, frame.frame);
    }
    sends.flush();
}
