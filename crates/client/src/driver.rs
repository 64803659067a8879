//! The task behind a client: it does what the machine wants on a real connection, and passes answers to those who wait for
//! them. All decisions are made in the machine.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::{sleep_until, timeout};

use crate::connector::{BoxStream, Connector};
use crate::machine::{Again, CallId, Effect, Entered, HoldId, Machine};
use crate::pool::Take;
use crate::refusal::Call;
use crate::request::Lock;
use crate::standing::{HoldStanding, SessionStanding};
use crate::value::{Value, decode};

/// What a client's handles ask of its task.
#[derive(Debug)]
pub(crate) enum Errand {
    Ask {
        line: Vec<String>,
        again: Again,
        end: oneshot::Sender<Call<Value>>,
    },
    /// A command of any bytes, which is not repeated.
    Say {
        line: Vec<Vec<u8>>,
        end: oneshot::Sender<Call<Value>>,
    },
    Open {
        ttl: Duration,
        label: Option<String>,
        end: oneshot::Sender<Call<Opened>>,
    },
    Lock {
        lock: Lock,
        /// Identifies the call, so that the caller can take it back.
        token: u64,
        end: oneshot::Sender<Call<Option<Vec<Inside>>>>,
    },
    Take {
        take: Take,
        token: u64,
        end: oneshot::Sender<Call<Option<Vec<Inside>>>>,
    },
    /// The caller of a lock or a take is gone.
    Cancel {
        token: u64,
    },
    Release {
        hold: HoldId,
        end: Option<oneshot::Sender<Call<Value>>>,
    },
    /// A leader changes what it says of itself.
    Update {
        hold: HoldId,
        rank: i64,
        value: String,
        end: oneshot::Sender<Call<Value>>,
    },
    Downgrade {
        hold: HoldId,
        end: oneshot::Sender<Call<Value>>,
    },
    Close {
        end: oneshot::Sender<Call<Value>>,
    },
    Subscribe {
        channel: String,
        end: oneshot::Sender<Call<Value>>,
    },
}

/// An opened session: its number, and its standing from now on.
pub(crate) type Opened = (u64, watch::Receiver<SessionStanding>);

/// A gate that was entered, and the standing of the hold from now on.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) hold: HoldId,
    pub(crate) gate: String,
    pub(crate) standing: watch::Receiver<HoldStanding>,
}

/// Who waits for an answer.
enum Waiting {
    Ask(oneshot::Sender<Call<Value>>),
    Open(oneshot::Sender<Call<Opened>>),
    Lock(u64, oneshot::Sender<Call<Option<Vec<Inside>>>>),
    Nobody,
}

pub(crate) struct Driver {
    machine: Machine,
    connector: Connector,
    errands: mpsc::UnboundedReceiver<Errand>,
    waiting: HashMap<CallId, Waiting>,
    tokens: HashMap<u64, CallId>,
    next_call: CallId,
    session: Option<watch::Sender<SessionStanding>>,
    holds: HashMap<HoldId, watch::Sender<HoldStanding>>,
    published: broadcast::Sender<(String, Vec<u8>)>,
    stream: Option<Stream>,
    connecting: Option<Connecting>,
    /// The node of the last connection.
    at: Option<usize>,
    received: BytesMut,
}

type Stream = (ReadHalf<BoxStream>, WriteHalf<BoxStream>);
type Connecting = Pin<Box<dyn Future<Output = io::Result<BoxStream>> + Send>>;

/// What happened next.
enum Happened {
    Sent(Option<Errand>),
    Connected(io::Result<BoxStream>),
    Read(io::Result<usize>),
    Written(io::Result<usize>),
    TimePassed,
}

/// The client's clock: tokio's, so that tests can move it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl Driver {
    pub(crate) fn new(
        machine: Machine,
        connector: Connector,
        errands: mpsc::UnboundedReceiver<Errand>,
        published: broadcast::Sender<(String, Vec<u8>)>,
    ) -> Driver {
        Driver {
            machine,
            connector,
            errands,
            waiting: HashMap::new(),
            tokens: HashMap::new(),
            next_call: 0,
            session: None,
            holds: HashMap::new(),
            published,
            stream: None,
            connecting: None,
            at: None,
            received: BytesMut::new(),
        }
    }

    /// Runs until all handles are gone and everything that they asked for has ended.
    pub(crate) async fn run(mut self) {
        let mut left = false;
        loop {
            self.carry_out();
            if left && self.machine.is_quiet() {
                return;
            }
            match self.next(left).await {
                Happened::Sent(Some(errand)) => self.errand(errand),
                Happened::Sent(None) => {
                    left = true;
                    let call = self.call(Waiting::Nobody);
                    self.machine.leave(now(), call);
                }
                Happened::Connected(Ok(stream)) => {
                    self.connecting = None;
                    self.received.clear();
                    self.stream = Some(tokio::io::split(stream));
                    self.machine.connected(now());
                }
                Happened::Connected(Err(error)) => {
                    self.connecting = None;
                    self.machine.unreachable(now(), &error.to_string());
                }
                Happened::Read(Ok(1..)) => self.read_frames(),
                Happened::Read(Ok(0)) => self.lose("the node closed the connection"),
                Happened::Read(Err(error)) | Happened::Written(Err(error)) => {
                    self.lose(&error.to_string());
                }
                Happened::Written(Ok(0)) => self.lose("the connection takes nothing more"),
                Happened::Written(Ok(_)) => {}
                Happened::TimePassed => self.machine.tick(now()),
            }
        }
    }

    async fn next(&mut self, left: bool) -> Happened {
        let due = self.machine.timeout();
        let due = due.map(|due| sleep_until(due.into()));
        let out = self.machine.transmit();
        let (read, write) = match &mut self.stream {
            Some((read, write)) => (Some(read), Some(write)),
            None => (None, None),
        };
        tokio::select! {
            biased;
            () = maybe(due) => Happened::TimePassed,
            count = maybe(read.map(|read| read.read_buf(&mut self.received))) => Happened::Read(count),
            stream = maybe(self.connecting.as_mut()) => Happened::Connected(stream),
            errand = self.errands.recv(), if !left => Happened::Sent(errand),
            count = maybe(write.filter(|_| !out.is_empty()).map(|write| write.write_buf(out))) => Happened::Written(count),
        }
    }

    fn read_frames(&mut self) {
        loop {
            match decode(&mut self.received) {
                Ok(Some(received)) => self.machine.received(now(), received),
                Ok(None) => return,
                Err(garbled) => return self.lose(&garbled.0),
            }
        }
    }

    fn lose(&mut self, why: &str) {
        self.stream = None;
        self.machine.broken(now(), why);
    }

    fn call(&mut self, waiting: Waiting) -> CallId {
        self.next_call += 1;
        self.waiting.insert(self.next_call, waiting);
        self.next_call
    }

    fn errand(&mut self, errand: Errand) {
        let now = now();
        match errand {
            Errand::Ask { line, again, end } => {
                let call = self.call(Waiting::Ask(end));
                self.machine.ask(now, call, line, again);
            }
            Errand::Say { line, end } => {
                let call = self.call(Waiting::Ask(end));
                self.machine.say(now, call, line);
            }
            Errand::Open { ttl, label, end } => {
                let call = self.call(Waiting::Open(end));
                self.machine.open(now, call, ttl, label);
            }
            Errand::Lock { lock, token, end } => {
                let call = self.call(Waiting::Lock(token, end));
                self.tokens.insert(token, call);
                self.machine.lock(now, call, lock);
            }
            Errand::Take { take, token, end } => {
                let call = self.call(Waiting::Lock(token, end));
                self.tokens.insert(token, call);
                self.machine.take(now, call, take);
            }
            Errand::Cancel { token } => {
                if let Some(call) = self.tokens.remove(&token) {
                    self.waiting.remove(&call);
                    self.machine.cancel(now, call);
                }
            }
            Errand::Release { hold, end } => {
                self.holds.remove(&hold);
                let call = self.call(end.map_or(Waiting::Nobody, Waiting::Ask));
                self.machine.release(now, call, hold);
            }
            Errand::Update {
                hold,
                rank,
                value,
                end,
            } => {
                let call = self.call(Waiting::Ask(end));
                self.machine.update(now, call, hold, rank, value);
            }
            Errand::Downgrade { hold, end } => {
                let call = self.call(Waiting::Ask(end));
                self.machine.downgrade(now, call, hold);
            }
            Errand::Close { end } => {
                let call = self.call(Waiting::Ask(end));
                self.machine.close(now, call);
            }
            Errand::Subscribe { channel, end } => {
                let call = self.call(Waiting::Ask(end));
                self.machine.subscribe(now, call, channel);
            }
        }
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.machine.effect() {
            match effect {
                Effect::Connect => {
                    if let Some(at) = self.at {
                        self.connector.left(at);
                    }
                    let (at, connecting) = self.connector.connect();
                    self.at = Some(at);
                    let patience = self.machine.connect_patience();
                    self.connecting = Some(Box::pin(async move {
                        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
                        timeout(patience, connecting).await.map_err(late)?
                    }));
                }
                Effect::Disconnect => {
                    self.stream = None;
                    self.connecting = None;
                }
                Effect::Answer(call, end) => self.answer(call, end),
                Effect::Opened(call, id, standing) => {
                    let (sender, receiver) = watch::channel(standing);
                    self.session = Some(sender);
                    if let Some(Waiting::Open(end)) = self.waiting.remove(&call) {
                        // If nobody is there any more, the session is closed with the last handle.
                        drop(end.send(Ok((id, receiver))));
                    }
                }
                Effect::Entered(call, entered) => self.entered(call, entered),
                Effect::Session(standing) => {
                    if let Some(session) = &self.session {
                        session.send_replace(standing);
                    }
                }
                Effect::Hold(hold, standing) => {
                    if let Some(hold) = self.holds.get(&hold) {
                        hold.send_replace(standing);
                    }
                }
                // It does not matter if nobody listens.
                Effect::Published(channel, line) => drop(self.published.send((channel, line))),
            }
        }
    }

    fn answer(&mut self, call: CallId, end: Call<Value>) {
        match self.waiting.remove(&call) {
            Some(Waiting::Ask(waiting)) => drop(waiting.send(end)),
            Some(Waiting::Open(waiting)) => {
                if let Err(not_done) = end {
                    drop(waiting.send(Err(not_done)));
                }
            }
            Some(Waiting::Lock(token, waiting)) => {
                self.tokens.remove(&token);
                drop(waiting.send(end.map(|_| None)));
            }
            Some(Waiting::Nobody) | None => {}
        }
    }

    fn entered(&mut self, call: CallId, entered: Vec<Entered>) {
        let mut inside = Vec::new();
        for Entered {
            hold,
            gate,
            standing,
        } in entered
        {
            let (sender, standing) = watch::channel(standing);
            self.holds.insert(hold, sender);
            inside.push(Inside {
                hold,
                gate,
                standing,
            });
        }
        let unheard = match self.waiting.remove(&call) {
            Some(Waiting::Lock(token, waiting)) => {
                self.tokens.remove(&token);
                waiting.send(Ok(Some(inside))).err()
            }
            _ => Some(Ok(Some(inside))),
        };
        // The caller left at the last moment: what it was granted is given back.
        for inside in unheard.and_then(Result::ok).flatten().unwrap_or_default() {
            self.errand(Errand::Release {
                hold: inside.hold,
                end: None,
            });
        }
    }
}

/// Waits for a future that may not exist.
async fn maybe<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
