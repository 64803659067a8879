//! What clients do and hear: they connect, open sessions, enter and leave gates, and resume their sessions elsewhere. They
//! speak the protocol as any program does.

use bytes::Bytes;
use testigo_core::{Name, bare_name};

use super::agreeing::Membership;
use super::machine::{Heard, Inbound};
use super::reply::Said;
use super::world::{Event, TTL_MS, World};

/// One client. It has one connection at a time, and one command under way.
#[derive(Debug, Default)]
pub(super) struct Client {
    /// Whether it opens sessions.
    pub(super) opens: bool,
    /// Whether it is a worker: it takes jobs, and enters no gates.
    pub(super) works: bool,
    pub(super) node: u64,
    /// How often it has connected.
    pub(super) times: u64,
    pub(super) connected: bool,
    greeted: bool,
    /// The command that waits for an answer, since when, and how long at most.
    under_way: Option<(Asked, u64, u64)>,
    pub(super) session: Option<u64>,
    pub(super) membership: Membership,
    /// Whether the session is to be resumed on this connection.
    resumes: bool,
    /// Until then its session certainly lives.
    deadline: u64,
    pub(super) hold: Option<Hold>,
    /// Whether its node is held up, so that it does not know what holds.
    pub(super) suspended: bool,
    due: u64,
    unread: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) gate: String,
    pub(super) fence: u64,
    receipt: Option<String>,
    /// The job, if it is one in hand under an attempt.
    pub(super) job: Option<u64>,
}

impl Hold {
    pub(super) fn of_job(gate: String, fence: u64, job: u64) -> Hold {
        Hold {
            gate,
            fence,
            receipt: None,
            job: Some(job),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Hello,
    Open,
    Resume,
    Lock(String),
    Unlock,
    Ping,
    Create(String),
    Take,
    Done(u64),
    Decide(u64),
    Join(Option<u64>),
    Send(String),
}

/// How long a client waits for an answer that should come at once.
const PATIENCE_MS: u64 = 2_500;

impl Client {
    pub(super) fn new(opens: bool, works: bool) -> Client {
        Client {
            opens: opens && !works,
            works,
            ..Client::default()
        }
    }
}

impl World {
    /// A client does what it wants next.
    pub(super) fn act(&mut self, which: usize) {
        let next = self.chance.between(10, 250);
        self.plan(next, Event::Act(which));
        let now = self.now();
        let client = &self.clients[which];
        if client.opens && client.session.is_some() && client.deadline <= now {
            // It can no longer know.
            self.forget_session(which);
            self.hang_up(which);
        }
        let client = &self.clients[which];
        if now < client.due {
            return;
        }
        if !client.connected {
            return self.connect(which);
        }
        if let Some((_, since, patience)) = client.under_way {
            if now > since + patience {
                self.hang_up(which);
            }
            return;
        }
        if !client.greeted {
            return self.ask(which, Asked::Hello, "HELLO 3");
        }
        if client.opens && client.session.is_none() {
            return self.ask(which, Asked::Open, &format!("SESSION OPEN TTL {TTL_MS}"));
        }
        if client.resumes {
            return self.resume(which);
        }
        if client.works {
            return self.work(which);
        }
        let (holds, opens) = (client.hold.is_some(), client.opens);
        if holds && opens && !self.using.is_empty() && self.chance.chance(0.2) {
            // It moves on with what it holds.
            return self.hang_up(which);
        }
        match self.clients[which].hold.clone() {
            Some(hold) if self.chance.chance(0.3) => {
                // From here on it does not rely on being inside.
                self.leave(which);
                let fence = hold.fence.to_string();
                self.ask(which, Asked::Unlock, &giving_back(&hold.gate, &fence));
            }
            Some(_) => self.ask(which, Asked::Ping, "PING"),
            None if self.agrees && self.chance.chance(0.6) => self.agree(which),
            None if self.chance.chance(0.2) => self.ask(which, Asked::Ping, "PING"),
            None => {
                let gate = self.any_gate();
                let wait_ms = match self.chance.below(3) {
                    0 if !self.healed => 0,
                    _ => self.chance.between(200, 2_000),
                };
                let receipt = if self.clients[which].opens {
                    " RECEIPT"
                } else {
                    ""
                };
                let shared = if self.asks_to_read(which, &gate) {
                    " SHARED"
                } else {
                    ""
                };
                let lock = match bare_name(&gate) {
                    election if election != gate => {
                        let rank = self.chance.below(3);
                        format!(
                            "ELECT CAMPAIGN {election} {which} RANK {rank} WAIT {wait_ms}{receipt}"
                        )
                    }
                    gate => format!("LOCK {gate}{shared} WAIT {wait_ms}{receipt}"),
                };
                self.ask(which, Asked::Lock(gate), &lock);
            }
        }
    }

    /// Whether a client asks as a reader this time; only created gates have readers here.
    fn asks_to_read(&mut self, which: usize, gate: &str) -> bool {
        let reads = !self.using.is_empty() && self.chance.chance(0.5);
        let reader = (which, gate.to_owned());
        match reads {
            true => self.monitors.readers.insert(reader),
            false => self.monitors.readers.remove(&reader),
        };
        reads
    }

    fn connect(&mut self, which: usize) {
        let node = self.any_node();
        if self.machine(node).running.is_none() {
            return;
        }
        let client = &mut self.clients[which];
        (client.node, client.connected, client.greeted) = (node, true, false);
        client.times += 1;
        client.resumes = client.session.is_some();
        client.unread.clear();
        client.membership.joined = false;
        client.suspended = false;
        let line = (which, client.times);
        self.send_to_node(node, Inbound::Connect(line));
    }

    pub(super) fn ask(&mut self, which: usize, asked: Asked, command: &str) {
        let now = self.now();
        let patience = match &asked {
            Asked::Lock(_) | Asked::Take => PATIENCE_MS + 2_000,
            _ => PATIENCE_MS,
        };
        let client = &mut self.clients[which];
        client.under_way = Some((asked, now, patience));
        let (node, line) = (client.node, (which, client.times));
        self.note(|_| format!("client {which} to {node}: {command}"));
        let command = Bytes::from(format!("{command}\r\n"));
        self.send_to_node(node, Inbound::Command(line, command));
    }

    fn resume(&mut self, which: usize) {
        let client = &self.clients[which];
        let session = client.session.unwrap_or_default();
        let claim = client.hold.as_ref().map_or_else(String::new, |hold| {
            let receipt = hold.receipt.as_deref().unwrap_or("-");
            let (name, fence) = (bare_name(&hold.gate), hold.fence);
            let how = match name == hold.gate {
                true if self.monitors.reads(which, name) => " SHARED".into(),
                true => String::new(),
                false => format!(" LEADER 0 {which}"),
            };
            format!(" HOLDING 1 {name} {fence}{how} RECEIPTS {receipt}")
        });
        // Some clients number their resumes, as the Rust client does; others do not.
        let serial = match which % 2 {
            0 => format!(" SERIAL {}", client.times),
            _ => String::new(),
        };
        let resume = format!("SESSION RESUME {session}{serial}{claim}");
        self.ask(which, Asked::Resume, &resume);
    }

    /// A client gives its connection up, or finds it closed. If it has opened a session, it resumes it elsewhere with what it
    /// holds.
    pub(super) fn hang_up(&mut self, which: usize) {
        let wait = self.chance.between(20, 1_000);
        let now = self.now();
        let client = &mut self.clients[which];
        client.due = now + wait;
        client.under_way = None;
        if !std::mem::take(&mut client.connected) {
            return;
        }
        let (node, line) = (client.node, (which, client.times));
        if !client.opens {
            self.leave(which);
        }
        self.send_to_node(node, Inbound::HangUp(line));
    }

    fn forget_session(&mut self, which: usize) {
        self.leave(which);
        self.clients[which].session = None;
        self.clients[which].membership = Membership::default();
    }

    /// It no longer believes that it is inside.
    pub(super) fn leave(&mut self, which: usize) {
        if let Some(hold) = self.clients[which].hold.take() {
            self.monitors.leaves(which, &hold.gate);
        }
    }

    /// A node was paused: a client that holds something through a connection to it knows nothing of it meanwhile.
    pub(super) fn suspend(&mut self, node: u64) {
        for which in 0..self.clients.len() {
            let client = &mut self.clients[which];
            if client.connected && client.node == node && !client.opens {
                client.suspended = true;
                if let Some(hold) = &client.hold {
                    self.monitors.leaves(which, &hold.gate);
                }
            }
        }
    }

    /// The node has gone on since, and has told the clients that have lost something.
    pub(super) fn trust_again(&mut self, node: u64) -> Result<(), String> {
        for which in 0..self.clients.len() {
            let client = &mut self.clients[which];
            if client.node == node && std::mem::take(&mut client.suspended) && client.connected {
                let hold = client.hold.clone();
                self.lapse();
                if let Some(Hold { gate, fence, .. }) = hold {
                    self.monitors.stays(which, &gate, fence)?;
                }
            }
        }
        Ok(())
    }

    /// A client that knows that its session may have ended believes nothing any more.
    pub(super) fn lapse(&mut self) {
        let now = self.now();
        for (which, client) in self.clients.iter().enumerate() {
            if client.opens
                && client.deadline <= now
                && let Some(hold) = &client.hold
            {
                self.monitors.leaves(which, &hold.gate);
            }
        }
    }

    /// A client is told something, or its connection is closed.
    pub(super) fn hear(&mut self, heard: Heard) -> Result<(), String> {
        let Heard {
            line: (which, times),
            bytes,
            closed,
        } = heard;
        let Some(client) = self.clients.get_mut(which) else {
            return Ok(());
        };
        if !client.connected || client.times != times {
            return Ok(());
        }
        client.unread.extend_from_slice(&bytes);
        while let Some(said) = Said::read(&mut self.clients[which].unread) {
            self.note(|world| {
                format!(
                    "client {which} at {} hears {said:?} closed {closed}",
                    world.clients[which].node
                )
            });
            match said {
                Said::Push(push) => self.pushed(which, &push)?,
                said => self.answered(which, &said)?,
            }
            if !self.clients[which].connected {
                return Ok(());
            }
        }
        if closed {
            self.hang_up(which);
        }
        Ok(())
    }

    fn pushed(&mut self, which: usize, push: &[Said]) -> Result<(), String> {
        let word = push.first().map_or("", Said::text);
        match word {
            "lost" | "deposed" => {
                let name = push.get(1).map_or("", Said::text);
                let gate = named(name, word == "deposed");
                let hold = self.clients[which].hold.as_ref();
                if hold.is_some_and(|hold| hold.gate == gate) {
                    self.leave(which);
                }
            }
            "ended" => {
                self.forget_session(which);
                self.hang_up(which);
            }
            "suspect" => self.hang_up(which),
            "message" => return self.group_line(which, push.get(2).map_or("", Said::text)),
            _ => {}
        }
        Ok(())
    }

    fn answered(&mut self, which: usize, said: &Said) -> Result<(), String> {
        let Some((asked, since, _)) = self.clients[which].under_way.take() else {
            return Err(format!("client {which} is told {said:?} unasked"));
        };
        self.tally.answers += 1;
        if let Said::Error(error) = said {
            self.refused(which, &asked, error);
            return Ok(());
        }
        // The node has heard of it then or later. Its clock may be faster, so a client believes for nine tenths of the TTL.
        let deadline = since + TTL_MS * 9 / 10;
        let client = &mut self.clients[which];
        if client.session.is_some() && !client.resumes {
            client.deadline = client.deadline.max(deadline);
        }
        match asked {
            Asked::Hello => client.greeted = true,
            Asked::Open => {
                client.session = said.number();
                client.deadline = deadline;
                client.resumes = false;
            }
            Asked::Resume => self.resumed(which, deadline, said)?,
            Asked::Lock(gate) => self.locked(which, gate, said)?,
            Asked::Create(name) => self.created(name, said)?,
            Asked::Take => self.took(which, said)?,
            Asked::Done(job) => self.finished(job)?,
            Asked::Decide(decision) => self.decided(decision, said)?,
            Asked::Join(after) => self.joined(which, after, said)?,
            Asked::Send(body) => self.sent(which, &body, said)?,
            Asked::Unlock | Asked::Ping => {}
        }
        Ok(())
    }

    fn refused(&mut self, which: usize, asked: &Asked, error: &str) {
        let word = error.split(' ').next().unwrap_or_default();
        *self.tally.refused.entry(word.to_owned()).or_default() += 1;
        match (word, asked) {
            // The session has ended.
            (
                "STALE",
                Asked::Resume | Asked::Ping | Asked::Lock(_) | Asked::Join(_) | Asked::Send(_),
            ) => {
                self.forget_session(which);
                self.hang_up(which);
            }
            // It was granted after the client had stopped waiting.
            ("HELD", Asked::Lock(gate)) => {
                self.ask(which, Asked::Unlock, &giving_back(gate, ""));
            }
            ("UNAVAILABLE" | "UNKNOWN" | "LOADING", _) | (_, Asked::Resume) => self.hang_up(which),
            _ => {}
        }
    }

    fn locked(&mut self, which: usize, gate: String, said: &Said) -> Result<(), String> {
        let (fence, receipt) = match said {
            Said::List(grant) => (
                grant.first().and_then(Said::number),
                grant.get(1).map(|receipt| receipt.text().to_owned()),
            ),
            said => (said.number(), None),
        };
        let Some(fence) = fence else {
            return Ok(());
        };
        let now = self.now();
        self.tally.grants += 1;
        self.granted.insert(gate.clone(), now);
        let client = &mut self.clients[which];
        let knows = !client.suspended && (!client.opens || client.deadline > now);
        client.hold = Some(Hold {
            gate: gate.clone(),
            fence,
            receipt,
            job: None,
        });
        if knows {
            self.lapse();
            self.monitors.enters(which, &gate, fence)?;
        }
        Ok(())
    }

    fn resumed(&mut self, which: usize, deadline: u64, said: &Said) -> Result<(), String> {
        self.tally.resumed += 1;
        let now = self.now();
        let kept = said.of("claims").first().map(Said::text) == Some("HELD");
        let client = &mut self.clients[which];
        let believed = client.deadline > now;
        client.resumes = false;
        if let Some(hold) = client.hold.as_ref().filter(|_| believed && !kept) {
            return Err(format!(
                "client {which} has lost {} ({}) although it resumed in time: {said:?}",
                hold.gate, hold.fence
            ));
        }
        client.deadline = client.deadline.max(deadline);
        match client.hold.clone() {
            Some(hold) if kept && !believed => {
                self.lapse();
                self.monitors.stays(which, &hold.gate, hold.fence)?;
            }
            Some(_) if kept => {}
            Some(_) => self.leave(which),
            None => {}
        }
        // It gives back what it did not know of.
        let own = self.clients[which].hold.as_ref();
        let own = own.map(|hold| hold.gate.clone());
        let held = [("holds", false), ("leads", true)].into_iter();
        let mut held = held.flat_map(|(field, leads)| {
            let rows = said.of(field).iter();
            rows.filter_map(move |row| Some(named(row.list().first()?.text(), leads)))
        });
        let strange = held.find(|gate| own.as_ref() != Some(gate));
        if let Some(gate) = strange {
            self.ask(which, Asked::Unlock, &giving_back(&gate, ""));
        }
        Ok(())
    }
}

/// The name of a gate or an election among the monitors.
fn named(name: &str, election: bool) -> String {
    match Name::election(name) {
        Ok(inner) if election => inner.to_string(),
        _ => name.to_owned(),
    }
}

/// The command that gives a gate back, or resigns.
fn giving_back(gate: &str, fence: &str) -> String {
    match bare_name(gate) {
        election if election != gate => format!("ELECT RESIGN {election} {fence}"),
        gate => format!("UNLOCK {gate} {fence}"),
    }
}
