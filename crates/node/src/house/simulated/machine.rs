//! One simulated machine: a disk, and the house on it while it runs. Its log and its clock are driven by hand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use testigo_core::estate::Broken;
use testigo_core::{Address, Newcomer, NodeId, OneOwner, Shard};
use testigo_engine::simulated::{Disk, Fate};
use testigo_engine::{ByHand, Delivery, Hearer, LogThread, OpenError, Sends, Setup};

use crate::clock::Clock;
use crate::config::Config;
use crate::house::{ClientId, House, Outlet};
use crate::open;
use crate::peers::ClusterConfig;
use crate::serve::serve;
use crate::wire::{Framer, Progress, WireLimits};

/// A connection as both sides know it: the client, and how often it has connected.
pub(super) type Dial = (usize, u64);

/// What arrives at a machine.
#[derive(Clone, Debug)]
pub(super) enum Inbound {
    Frame { from: u64, frame: Bytes },
    Connect(Dial),
    Command(Dial, Bytes),
    HangUp(Dial),
}

/// What a client hears: bytes, and whether the connection is closed after them.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) line: Dial,
    pub(super) bytes: Bytes,
    pub(super) closed: bool,
}

pub(super) struct Machine {
    pub(super) id: u64,
    pub(super) disk: Disk,
    pub(super) running: Option<Running>,
    /// Counts starts and ends, to recognise what was planned for an earlier life.
    pub(super) life: u64,
    pub(super) paused: bool,
    /// What has arrived and was not heard yet.
    pub(super) inbox: Vec<Inbound>,
    /// How fast its clock runs, in thousandths of the right speed.
    rate: u64,
    clock: Arc<AtomicU64>,
}

pub(super) struct Running {
    pub(super) house: House,
    pub(super) hand: ByHand,
    hearer: Hearer,
    deliveries: Pile<Delivery>,
    sent: Pile<(u64, Bytes)>,
    lines: BTreeMap<Dial, Connection>,
    clients: BTreeMap<ClientId, Dial>,
    framer: Framer,
}

struct Connection {
    id: ClientId,
    input: Vec<u8>,
    progress: Progress,
}

/// What one half of a machine leaves for the other.
struct Pile<T>(Arc<Mutex<Vec<T>>>);

impl<T> Pile<T> {
    fn put(&self, one: T) {
        let mut pile = self.0.lock().expect("there is one thread");
        pile.push(one);
    }

    fn take(&self) -> Vec<T> {
        let mut pile = self.0.lock().expect("there is one thread");
        std::mem::take(&mut *pile)
    }
}

impl<T> Default for Pile<T> {
    fn default() -> Self {
        Pile(Arc::default())
    }
}

impl<T> Clone for Pile<T> {
    fn clone(&self) -> Self {
        Pile(Arc::clone(&self.0))
    }
}

impl Sends for Pile<(u64, Bytes)> {
    fn send(&mut self, to: u64, frame: Bytes) {
        self.put((to, frame));
    }
}

impl Machine {
    pub(super) fn new(id: u64, rate: u64) -> Machine {
        Machine {
            id,
            disk: Disk::default(),
            running: None,
            life: 0,
            paused: false,
            inbox: Vec::new(),
            rate,
            clock: Arc::default(),
        }
    }

    /// Whether it runs and is not held up.
    pub(super) fn works(&self) -> bool {
        self.running.is_some() && !self.paused
    }

    pub(super) fn set_clock(&self, now: u64) {
        let now = now * self.rate / 1_000;
        self.clock.store(now, Ordering::Relaxed);
    }

    /// Starts the house; says whether the disk allowed it.
    pub(super) fn boot(&mut self, seed: u64, broken: Option<Broken>) -> Result<bool, String> {
        self.life += 1;
        self.inbox.clear();
        let setup = Setup {
            node: self.id,
            joins: self.id > 1,
            seed,
            piece_bytes: 2_000,
            ..Setup::default()
        };
        let opened = match self.disk.open(setup) {
            Ok(opened) => opened,
            Err(OpenError::Disk(_)) => return Ok(false),
            Err(error) => return Err(format!("node {} does not start: {error}", self.id)),
        };
        let mut config = Config::embedded("nowhere");
        let mut cluster = ClusterConfig::new(self.id, address(self.id));
        cluster.join = (self.id > 1).then(|| address(1));
        config.cluster = Some(cluster);
        config.snapshots.entries = 60;
        let clock = Clock::Hand(Arc::clone(&self.clock));
        let (mut house, engine) = match open::on(opened, &config, clock) {
            Ok(opened) => opened,
            Err(open::TakeOverError::NotLogged(_)) => return Ok(false),
            Err(error) => return Err(format!("node {} does not start: {error}", self.id)),
        };
        house.break_on_purpose(broken);
        let deliveries = Pile::default();
        let sent = Pile::default();
        let own = deliveries.clone();
        let deliver = move |delivery| own.put(delivery);
        let (log, hand) = LogThread::by_hand(engine, Box::new(sent.clone()), deliver);
        let hearer = log.hearer();
        house.move_in(log);
        self.running = Some(Running {
            house,
            hand,
            hearer,
            deliveries,
            sent,
            lines: BTreeMap::new(),
            clients: BTreeMap::new(),
            framer: Framer::default(),
        });
        Ok(true)
    }

    /// The process ends. If a flush is under way, `fate` says how much of it is on disk. Returns who was connected.
    pub(super) fn crash(&mut self, fate: Fate) -> Vec<Dial> {
        self.life += 1;
        self.paused = false;
        let waiting = self.inbox.drain(..).filter_map(|inbound| match inbound {
            Inbound::Connect(line) => Some(line),
            _ => None,
        });
        let mut lines: Vec<Dial> = waiting.collect();
        if let Some(running) = self.running.take() {
            lines.extend(running.lines.keys());
            if running.hand.is_begun() {
                self.disk.next_flush(fate);
                running.hand.flush();
                self.disk.next_flush(Fate::Done);
            }
        }
        lines
    }

    /// How this machine introduces itself to whoever lets it in.
    pub(super) fn newcomer(&self) -> Option<Newcomer> {
        let running = self.running.as_ref()?;
        Some(Newcomer {
            node: NodeId(self.id),
            start: running.house.start(),
            token: self.id,
            address: Address {
                peer: address(self.id),
                client: None,
            },
        })
    }

    /// Hears what has arrived and does what there is to do, as the reactor does in its turns. Returns what clients are told.
    pub(super) fn turn(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        let Some(running) = self.running.as_mut().filter(|_| !self.paused) else {
            return heard;
        };
        // What is due must happen before anybody is heard.
        running.house.begin_turn();
        for inbound in self.inbox.drain(..) {
            running.hear(inbound);
        }
        running.settle(&mut heard);
        heard
    }
}

fn address(id: u64) -> String {
    format!("127.0.0.1:{}", 7_000 + id)
}

impl Running {
    fn hear(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Frame { from, frame } => self.hearer.hear(from, frame),
            Inbound::Connect(line) => {
                let id = self.house.welcome(Outlet::Socket(0), "client".into());
                let connection = Connection {
                    id,
                    input: Vec::new(),
                    progress: Progress::default(),
                };
                self.lines.insert(line, connection);
                self.clients.insert(id, line);
            }
            Inbound::Command(line, bytes) => {
                if let Some(connection) = self.lines.get_mut(&line) {
                    connection.input.extend_from_slice(&bytes);
                }
                self.serve(line);
            }
            Inbound::HangUp(line) => {
                if let Some(connection) = self.lines.remove(&line) {
                    self.clients.remove(&connection.id);
                    self.house.farewell(connection.id);
                }
            }
        }
    }

    fn serve(&mut self, line: Dial) {
        let Some(connection) = self.lines.get_mut(&line) else {
            return;
        };
        let Connection {
            id,
            input,
            progress,
        } = connection;
        let wire = WireLimits::default();
        self.house.connections.cost.allow(u64::MAX);
        let served = serve(
            &mut self.house,
            &mut self.framer,
            &wire,
            *id,
            input,
            progress,
        );
        input.drain(..served.used);
    }

    /// Does everything that can be done now, up to a flush of the disk.
    fn settle(&mut self, heard: &mut Vec<Heard>) {
        loop {
            self.hand.begin();
            let deliveries = self.deliveries.take();
            let mut busy = !deliveries.is_empty();
            for delivery in deliveries {
                self.house.deliver(delivery);
            }
            self.house.pass_on();
            for id in self.house.connections.take_unblocked() {
                busy = true;
                if let Some(line) = self.clients.get(&id) {
                    self.serve(*line);
                }
            }
            while self.house.has_long_work() {
                self.house.make_slice();
            }
            busy |= self.house.submissions.is_unbegun();
            self.house.submissions.begin_flush();
            for id in self.house.connections.take_unsent() {
                heard.extend(self.pour(id));
            }
            if !busy && !self.is_asked() {
                return;
            }
        }
    }

    /// Whether there is work that no flush under way holds up.
    fn is_asked(&self) -> bool {
        !self.hand.is_begun() && self.hand.is_asked()
    }

    fn pour(&mut self, id: ClientId) -> Option<Heard> {
        let bytes = self.house.connections.take_written(id);
        self.house.connections.was_sent(id);
        let closed = self.house.connections.client(id)?.leaving;
        let line = *self.clients.get(&id)?;
        if closed {
            self.lines.remove(&line);
            self.clients.remove(&id);
            self.house.farewell(id);
        }
        Some(Heard {
            line,
            bytes: bytes.freeze(),
            closed,
        })
    }

    pub(super) fn take_sent(&self) -> Vec<(u64, Bytes)> {
        self.sent.take()
    }

    /// Everything that was to be heard has been heard.
    pub(super) fn judge_silence(&mut self) {
        let now = self.house.now();
        self.house.judge_silence(now);
    }

    /// Shows the monitor the titles on which this node acts.
    pub(super) fn show_titles(
        &self,
        gates: &[String],
        owners: &mut OneOwner,
    ) -> Result<(), String> {
        if !self.house.acts() {
            return Ok(());
        }
        let own = self.house.own;
        for gate in gates {
            let shard = Shard::of(gate);
            let title = self.house.replicated().ownership().title(shard);
            if let Some(title) = title.filter(|title| (title.owner, title.start) == own) {
                owners.saw(shard, title)?;
            }
        }
        Ok(())
    }
}
