//! The turn loop: one thread at a time reads all sockets that have something, serves all their commands, and writes each
//! connection's answers once. Only this thread touches sockets; it holds the house's lock while it serves.

mod accept;
mod ready;
#[cfg(test)]
mod turn_tests;
mod waits;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use slab::Slab;
use testigo_engine::{Delivery, FlushError};

use self::ready::{Among, Ready};
use self::waits::Hearing;
use crate::among::Anew;
use crate::clock::Clock;
use crate::connection::{Connection, Written};
use crate::house::{CALL_COST, ClientId, Closing, OLDER_COST, Outlet, SHARE_COST, TURN_COST};
use crate::linger::Linger;
use crate::listen::Listener;
use crate::relay::Flushes;
use crate::serve::{Served, serve};
use crate::shared::Shared;
use crate::unfinished::{Cause, Unfinished};
use crate::wire::{Framer, WireLimits};

pub(crate) const BELL: Token = Token(usize::MAX);
/// Listeners come first among the tokens, sockets after them.
const LISTENERS_MAX: usize = 16;
const EVENTS: usize = 1024;
const READ_BYTES: usize = 64 << 10;
/// How much is read where a command may begin: about a share of short commands, so that little is kept of those that wait for
/// their turn.
const FIRST_BYTES: usize = 4 << 10;
/// How many full buffers are read from one socket and served before the others have their turn.
const READS_MAX: usize = 4;
/// How many listeners that were only told something are written to before the others have their turn.
const TOLD_MAX: usize = 200;
/// The same with more than this in the outboxes, so that what was told does not pile up.
const TOLD_MANY: usize = 2_000;
const TOLD_BYTES: usize = 8 << 20;
/// With this much in the outboxes, the turn's answers are written before further commands are served.
const OUTBOXES_BYTES: usize = 1 << 20;
/// How often a member whose disk was full looks whether there is room for its next start.
const ROOM_RETRY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Reactor {
    poll: Poll,
    shared: Arc<Shared>,
    listeners: Vec<Listener>,
    /// A listener has connections that could not be accepted: the next attempt is at this time.
    accept_again: Option<Instant>,
    sockets: Slab<Connection>,
    /// Connections that have begun the TLS handshake, oldest first, and when each must have finished it.
    greeting: VecDeque<(Instant, usize, ClientId)>,
    /// What all connections have sent and is not served yet.
    unfinished: Unfinished,
    /// Whether the outboxes hold much.
    crowded: bool,
    wire: WireLimits,
    framer: Framer,
    scratch: Box<[u8]>,
    flusher: Arc<dyn Flushes>,
    /// Begins the next start of a member.
    anew: Option<Anew>,
    /// There was no room to begin it: the next attempt is at this time.
    anew_at: Option<Instant>,
    deliveries: Vec<Delivery>,
    /// Since when there has been something for a flush that this thread will do.
    gathering: Option<Instant>,
    /// Whether the last turn had something to do.
    worked: bool,
    clock: Clock,
    /// Connections that have something to be served.
    ready: Ready,
    /// The turn is over when so much is spent.
    turn_until: u64,
    hearing: Option<Hearing>,
    linger: Linger,
}

/// Why the reactor was put down.
#[derive(Debug)]
pub(crate) enum Paused {
    /// There is something to flush, for the thread that drove the reactor.
    ToFlush,
    /// The node has stopped, and this is how the log was closed.
    Stopped(Result<(), FlushError>),
}

/// What a thread hears from the sockets.
#[derive(Debug)]
pub(crate) struct Heard(Events);

impl Default for Heard {
    fn default() -> Heard {
        Heard(Events::with_capacity(EVENTS))
    }
}

impl Reactor {
    pub(crate) fn new(
        poll: Poll,
        shared: Arc<Shared>,
        mut listeners: Vec<Listener>,
        wire: WireLimits,
        flusher: Arc<dyn Flushes>,
        anew: Option<Anew>,
    ) -> io::Result<Reactor> {
        for (at, listener) in listeners.iter_mut().enumerate().take(LISTENERS_MAX) {
            listener.register(poll.registry(), Token(at))?;
        }
        let clock = shared.house().clock();
        Ok(Reactor {
            poll,
            clock,
            hearing: None,
            ready: Ready::default(),
            turn_until: 0,
            shared,
            listeners,
            accept_again: None,
            sockets: Slab::new(),
            greeting: VecDeque::new(),
            unfinished: Unfinished::default(),
            crowded: false,
            wire,
            framer: Framer::default(),
            scratch: vec![0; READ_BYTES].into(),
            flusher,
            anew,
            anew_at: None,
            deliveries: Vec::new(),
            gathering: None,
            worked: false,
            linger: Linger::default(),
        })
    }

    /// Runs until there is something to flush or the node is stopped.
    pub(crate) fn run(&mut self, Heard(events): &mut Heard) -> Paused {
        loop {
            match self.gather_or_wait(events) {
                Ok(true) => return Paused::ToFlush,
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    log::error!("waiting for sockets failed: {error}");
                    self.shared.house().begin_stop();
                }
            }
            self.begin_turn();
            for event in &*events {
                self.worked = true;
                self.react(event);
            }
            self.end_slow_greetings();
            if self.accept_again.is_some() {
                self.accept_all();
            }
            self.finish_turn();
            self.make_slice();
            let heard_until = self.heard_until(events);
            let mut house = self.shared.house();
            if heard_until.is_some_and(|until| {
                house.judge_silence(until) | house.connections.close_strangers(until)
            }) {
                drop(house);
                self.finish_turn();
                house = self.shared.house();
            }
            if let Some(why) = house.must_start_anew()
                && !house.is_stopping()
                && self.anew_at.is_none_or(|at| at <= Instant::now())
            {
                drop(house);
                self.start_anew(why);
                continue;
            }
            if house.is_stopping() {
                self.listeners.clear();
                // Clients that were sent away since the turn ended are heard in the next one.
                let all_told = house.connections.is_quiet() && house.connections.are_told();
                // Without a lease the log may never answer.
                let all_done = house.submissions.len() == 0 || !house.acts();
                if all_told && all_done && !house.is_leaving() {
                    return Paused::Stopped(house.end());
                }
            }
        }
    }

    /// The house's start cannot go on: sends all clients away, and opens its directory again.
    fn start_anew(&mut self, why: &str) {
        let again = self.anew_at.take().is_some();
        if !again {
            log::warn!("{why}: this node starts anew");
        }
        self.shared.house().send_everybody_away();
        self.finish_turn();
        let sockets: Vec<usize> = self.sockets.iter().map(|(key, _)| key).collect();
        for key in sockets {
            self.close(key);
        }
        let ended = self.shared.house().end_start();
        let begun = match (&self.anew, ended) {
            // Without a log it ended before, or for lack of room.
            (Some(_), Err(error)) if !error.0.is_full() => Err(error.to_string()),
            (Some(anew), _) => match anew.begin(&self.shared) {
                Err(error) if error.is_for_room() => {
                    if !again {
                        log::warn!("this node starts anew when there is room: {error}");
                    }
                    self.anew_at = Some(Instant::now() + ROOM_RETRY);
                    return;
                }
                begun => begun.map_err(|error| error.to_string()),
            },
            (None, _) => Err("it is alone".into()),
        };
        match begun {
            Ok(()) => log::info!("this node has started anew"),
            Err(error) => {
                log::error!("this node could not start anew, and stops: {error}");
                self.shared.house().begin_stop();
            }
        }
    }

    /// All short commands are answered: continues some long work.
    fn make_slice(&mut self) {
        let mut house = self.shared.house();
        if house.long_work_due_ms() != Some(0) {
            return;
        }
        house.make_slice();
        drop(house);
        self.finish_turn();
    }

    fn begin_turn(&mut self) {
        self.shared.take_deliveries(&mut self.deliveries);
        let mut house = self.shared.house();
        house.begin_turn();
        house.connections.note_unfinished(self.unfinished.bytes());
        for delivery in self.deliveries.drain(..) {
            house.deliver(delivery);
        }
        self.turn_until = house.connections.cost.spent() + TURN_COST;
    }

    fn react(&mut self, event: &mio::event::Event) {
        let token = event.token();
        if token == BELL {
            return;
        }
        if token.0 < LISTENERS_MAX {
            self.accept_all();
            return;
        }
        let key = token.0 - LISTENERS_MAX;
        let Some(connection) = self.sockets.get_mut(key) else {
            return;
        };
        connection.readable |= event.is_readable() || event.is_read_closed();
        connection.read_closed |= event.is_read_closed();
        let unsent = !connection.output.is_empty() || connection.stream.has_unsent();
        let client = connection.client;
        if event.is_writable() && unsent {
            self.write(key);
        }
        self.ready.come(client);
    }

    /// Reads and serves as long as the socket has something and the connection may go on, or until the others have their
    /// turn.
    fn read(&mut self, key: usize) {
        for _ in 0..READS_MAX {
            let Some(connection) = self.sockets.get_mut(key) else {
                return;
            };
            if !connection.readable || connection.leaving {
                return;
            }
            let most = match connection.is_user {
                true => self.wire.frame_bytes,
                false => self.wire.preauth_frame_bytes,
            };
            let room = most.saturating_sub(connection.input.len());
            let room = room.min(match connection.input.is_empty() {
                true => FIRST_BYTES,
                false => self.scratch.len(),
            });
            if room == 0 {
                return;
            }
            match connection.stream.read(&mut self.scratch[..room]) {
                Ok(0) => return self.peer_ended(key),
                Ok(read) => {
                    // A socket that gave less than was requested has no more; it reports the next bytes.
                    let drained = connection.stream.is_drained_by(read, room);
                    if drained && !connection.read_closed {
                        connection.readable = false;
                    }
                    let client = connection.client;
                    self.feed(key, read);
                    if self.ready.has(client) {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.readable = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.close(key),
            }
        }
        if let Some(socket) = self.sockets.get(key).filter(|socket| socket.readable) {
            self.ready.come_again(socket.client);
        }
    }

    /// The peer sends nothing more. It gets the answers that are there; if it waits for something else, it is gone.
    fn peer_ended(&mut self, key: usize) {
        let client = self.sockets[key].client;
        if self.sockets[key].paused {
            // First what it has sent is served; then its end is read again.
            return;
        }
        let mut house = self.shared.house();
        match house.connections.client(client) {
            // The answer comes soon. Then the rest that it has sent is served, and its end is read again.
            Some(known) if known.has_under_way() => return,
            // It goes on soon.
            Some(known)
                if known.blocked.is_none()
                    && (house.connections.goes_on(client) || self.ready.has(client)) =>
            {
                return;
            }
            Some(known) if known.blocked.is_none() => {
                house.connections.dismiss(client);
                self.sockets[key].readable = false;
                return;
            }
            Some(known) if known.is_answered_soon() => return,
            _ => {}
        }
        drop(house);
        self.close(key);
    }

    /// Serves the first `read` bytes of the scratch buffer, and keeps what cannot be served yet.
    fn feed(&mut self, key: usize, read: usize) {
        let connection = &mut self.sockets[key];
        let fresh = &self.scratch[..read];
        if !connection.input.is_empty() {
            connection.input.extend_from_slice(fresh);
            return self.serve_input(key);
        }
        let served = serve(
            &mut self.shared.house(),
            &mut self.framer,
            &self.wire,
            connection.client,
            fresh,
            &mut connection.progress,
        );
        connection.input.extend_from_slice(&fresh[served.used..]);
        self.keep(key, served);
    }

    /// Serves what a connection has already sent.
    fn serve_input(&mut self, key: usize) {
        let connection = &mut self.sockets[key];
        let served = serve(
            &mut self.shared.house(),
            &mut self.framer,
            &self.wire,
            connection.client,
            &connection.input,
            &mut connection.progress,
        );
        connection.input.drain(..served.used);
        self.keep(key, served);
    }

    /// Notes what is left of a connection's input. If all connections together have left too much, the oldest are closed.
    fn keep(&mut self, key: usize, served: Served) {
        self.crowded |= served.in_outboxes > OUTBOXES_BYTES;
        let connection = &mut self.sockets[key];
        if served.waits_its_turn {
            self.ready.come_again(connection.client);
        }
        connection.paused = served.paused;
        connection.is_user = served.is_user;
        connection.tidy_input();
        let cause = Cause {
            anew: served.used > 0,
            behind: served.blocked || served.waits_its_turn,
        };
        let bytes = connection.input.capacity();
        self.unfinished
            .keep(key, &mut connection.kept, bytes, cause);
        while let Some(key) = self.unfinished.first_beyond(self.wire.unfinished_bytes) {
            let client = self.sockets[key].client;
            let mut house = self.shared.house();
            house.connections.count_closing(client, Closing::Unfinished);
            drop(house);
            self.close(key);
        }
    }

    /// Serves who is ready and writes all output, until nothing is left to do or the turn is over.
    fn finish_turn(&mut self) {
        let (mut owed, mut told): (Vec<usize>, usize) = (Vec::new(), 0);
        let in_outboxes = self.shared.house().connections.unread().in_outboxes();
        let told_max = match in_outboxes > TOLD_BYTES {
            true => TOLD_MANY,
            false => TOLD_MAX,
        };
        loop {
            self.crowded = false;
            let over = self.serve_ready();
            let mut house = self.shared.house();
            match self.flusher.is_quick() {
                true if house.submissions.is_unbegun() => {
                    self.gathering.get_or_insert_with(Instant::now);
                }
                true => self.gathering = None,
                // The disk works while the answers are sent.
                false => {
                    house.submissions.begin_flush();
                    self.gathering = None;
                }
            }
            let told_all = told >= told_max || house.connections.are_told();
            if house.connections.is_quiet() && told_all && (over || self.ready.is_empty()) {
                return;
            }
            house.look_before_telling();
            let mut unsent = house.connections.take_told(told_max - told);
            told += unsent.len();
            unsent.extend(house.connections.take_unsent());
            // The connection that was let in is written before the one that let it in: the gate is held, and nothing waits
            // for the other answer.
            for client in unsent.into_iter().rev() {
                let Some(known) = house.connections.client(client) else {
                    continue;
                };
                let key = match &known.outlet {
                    Outlet::Socket(key) => *key,
                    Outlet::Pipe(_) => {
                        house.pour(client);
                        continue;
                    }
                    Outlet::Visit => continue,
                };
                let (leaving, overrun) = (known.leaving, known.overrun);
                let Some(connection) = self.sockets.get_mut(key) else {
                    continue;
                };
                house
                    .connections
                    .take_outbox(client, &mut connection.output);
                house.connections.cost.spend(CALL_COST);
                connection.leaving |= leaving;
                connection.overrun |= overrun;
                owed.push(key);
            }
            drop(house);
            for key in owed.drain(..) {
                if self.sockets.contains(key) {
                    self.write(key);
                }
            }
        }
    }

    /// Serves who is ready, a share at a time. Stops when all were served, when there is much to be written, or when the turn
    /// is over; returns whether it is over.
    fn serve_ready(&mut self) -> bool {
        while !self.crowded {
            let mut house = self.shared.house();
            for client in house.connections.take_unblocked() {
                self.ready.come(client);
            }
            let cost = &mut house.connections.cost;
            let left = self.turn_until.saturating_sub(cost.spent());
            if left == 0 {
                return true;
            }
            let among = match left > OLDER_COST {
                true => Among::All,
                false => Among::Older,
            };
            let Some(client) = self.ready.next(among) else {
                return false;
            };
            cost.allow(SHARE_COST.min(left));
            drop(house);
            self.go_on(client);
        }
        false
    }

    fn go_on(&mut self, client: ClientId) {
        let mut house = self.shared.house();
        let key = match house.connections.client(client).map(|known| &known.outlet) {
            Some(Outlet::Socket(key)) => *key,
            Some(Outlet::Pipe(_)) => return house.serve_pipe(client, &mut self.framer),
            Some(Outlet::Visit) | None => return,
        };
        drop(house);
        if !self.sockets.contains(key) {
            return;
        }
        if !self.sockets[key].input.is_empty() {
            self.serve_input(key);
        }
        if !self.ready.has(client) {
            self.read(key);
        }
    }

    fn write(&mut self, key: usize) {
        let connection = &mut self.sockets[key];
        let before = connection.unwritten();
        let written = connection.write();
        let over = connection.overrun || written == Written::All && connection.leaving;
        if written == Written::Gone || over {
            return self.close(key);
        }
        // The house counts a connection's unread output against its limits.
        let unwritten = connection.unwritten();
        let go_on = written == Written::All && std::mem::take(&mut connection.paused);
        if connection.told == unwritten && before.lent == 0 && !go_on {
            return;
        }
        connection.told = unwritten;
        let id = connection.client;
        let mut house = self.shared.house();
        house
            .connections
            .note_unwritten(id, unwritten, unwritten.all < before.all);
        if go_on {
            house.connections.let_go_on(id);
        }
    }

    fn close(&mut self, key: usize) {
        let mut connection = self.sockets.remove(key);
        self.unfinished.forget(key, connection.kept);
        connection.stream.end();
        self.shared.house().farewell(connection.client);
    }
}
