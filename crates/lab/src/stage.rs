//! The stage that every run is played on: the nodes, their users, the messages under way, the
//! observer, and the trace if one is kept. A simulation decides what happens next by drawing lots, a
//! replay by reading a trace, a counterexample by the checker's schedule; all of them do it here.

use testigo_protocol::{
    Admission, Claim, Cluster, Effects, Grant, Machine, Monitor, Next, NodeId, PacketError, Phase,
    Problem, Shape, Slot, Timer, User, UserId, WordOf,
};
use testigo_sim::{Memory, Time};

use crate::line::UserLine;
use crate::observer::Observer;
use crate::trace::{AskKind, Event, TellKind, Trace};

/// A message under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    pub number: u64,
    pub slot: Slot,
    pub from: NodeId,
    pub to: NodeId,
}

/// Why a message is lost that a liar does not send.
pub(crate) const SILENCE: &str = "silence";

/// A run in progress.
pub struct Stage<Q: Problem> {
    pub shape: Shape,
    pub cluster: Box<dyn Cluster<Q>>,
    pub users: Vec<Q::User>,
    pub observer: Observer,
    /// What was sent, and the timers that were set, by the last step; the driver takes them away.
    pub sent: Vec<Flight>,
    pub timers: Vec<(NodeId, std::ops::Range<u64>, Timer)>,
    /// Who got what they asked for by the last step, without being inside; the driver takes them away.
    pub served: Vec<UserId>,
    trace: Option<Vec<(Time, Event)>>,
    /// Whether the trace has the bytes of messages, too.
    pub(crate) shows_bytes: bool,
    effects: Effects<Q>,
    /// The users before their first request.
    first: Vec<Q::User>,
    /// Judges grants, where something is promised of them.
    monitor: Option<Q::Monitor>,
    /// What is to be said of whoever enters next in this step.
    admission: Admission,
    /// Places in the lines of users that share a node.
    places: Vec<u32>,
    under_way: u64,
    /// Whether a message was lost or a node stopped: then a wait at rest is no fault of the algorithm.
    disturbed: bool,
    numbered: u64,
    reported: usize,
}

impl<Q: Problem> std::fmt::Debug for Stage<Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage")
            .field("shape", &self.shape)
            .field("users", &self.users)
            .finish_non_exhaustive()
    }
}

impl<Q: Problem> Stage<Q> {
    /// The most lies that a message may have.
    const LIES_MAX: u64 = 1_000;

    /// Sets the stage; every node must still be started.
    pub fn new(machine: &dyn Machine<Q>, claims: &[Claim], keep_trace: bool) -> Stage<Q> {
        let shape = machine.shape().clone();
        let first: Vec<Q::User> = UserId::all(shape.users).map(|u| machine.user(u)).collect();
        let observer = Observer::new(&shape, claims);
        let monitored = claims.contains(&Claim::Bypass) && observer.watches_knowledge();
        Stage {
            cluster: machine.cluster(),
            users: first.clone(),
            monitor: monitored.then(|| Q::Monitor::new(&first)),
            admission: Admission::Decided,
            observer,
            first,
            places: vec![0; UserLine::places(&shape)],
            under_way: 0,
            disturbed: false,
            sent: Vec::new(),
            timers: Vec::new(),
            served: Vec::new(),
            trace: keep_trace.then(Vec::new),
            shows_bytes: false,
            effects: Effects::default(),
            numbered: 0,
            reported: 0,
            shape,
        }
    }

    pub fn start(&mut self, now: Time, node: NodeId) {
        self.record(now, || Event::Start(node));
        self.cluster.start(node, &mut self.effects);
        self.absorb(now, node);
    }

    /// The user does what it does next, by this choice; false when it has nothing to do.
    pub fn ask(&mut self, now: Time, user: UserId, choice: u32) -> bool {
        let asker = &mut self.users[user.index()];
        let (Next::May(ask) | Next::Must(ask)) = asker.choose(choice) else {
            return false;
        };
        let before = asker.phase();
        asker.asked(ask);
        let kind = AskKind::of(before, asker.phase());
        self.record(now, || Event::Ask(user, kind, format!("{ask:?}")));
        self.moved(now, user, before);
        let home = self.shape.home(user);
        self.cluster.ask(home, ask, &mut self.effects);
        self.absorb(now, home);
        true
    }

    /// The user asks what reads so; false when it has nothing like it to ask.
    pub(crate) fn ask_as(&mut self, now: Time, user: UserId, label: &str) -> bool {
        let Some(asker) = self.users.get(user.index()) else {
            return false;
        };
        let reads_so = |choice: &u32| match asker.choose(*choice) {
            Next::May(ask) | Next::Must(ask) => format!("{ask:?}") == label,
            Next::Nothing => false,
        };
        match (0..asker.choices()).find(reads_so) {
            Some(choice) => self.ask(now, user, choice),
            None => false,
        }
    }

    fn moved(&mut self, now: Time, user: UserId, before: Phase) {
        let state = &self.users[user.index()];
        let after = state.phase();
        if before != after {
            let mut line = UserLine::new(&self.shape, &mut self.places);
            match (before, after) {
                (_, Phase::Waiting) => line.join(user),
                (Phase::Waiting, _) => line.leave(user),
                _ => {}
            }
        }
        self.observer.phase::<Q>(now, user, state, before);
        if (before, after) == (Phase::Waiting, Phase::Idle) {
            self.served.push(user);
        }
        if (before, after) == (Phase::Waiting, Phase::Inside) {
            self.observer.passes::<Q>(now, user, &self.users);
            if let Some(monitor) = &mut self.monitor {
                let home = self.shape.home(user);
                let known = |other| self.observer.knows(home, other);
                let broken = monitor.entered(&self.users, user, self.admission, &known);
                self.observer.broken(now, broken);
            }
            if self.admission == Admission::Decided {
                self.admission = Admission::Together;
            }
        }
    }

    pub fn deliver(&mut self, now: Time, flight: Flight) {
        self.record(now, || Event::Deliver(flight.number));
        self.under_way -= 1;
        self.observer.delivered(flight.to, flight.slot);
        if let Some(monitor) = &mut self.monitor
            && let Some(grant) = self.cluster.grant(flight.slot)
        {
            if matches!(grant, Grant::Entry(_)) {
                self.admission = Admission::Granted;
            }
            if !self.disturbed {
                let broken = monitor.received(&self.users, flight.to, grant);
                self.observer.broken(now, broken);
            }
        }
        self.cluster
            .deliver(flight.from, flight.to, flight.slot, &mut self.effects);
        self.absorb(now, flight.to);
    }

    pub fn fire(&mut self, now: Time, node: NodeId, timer: Timer) {
        self.record(now, || Event::Fire(node, timer.0));
        for user in self.shape.users_at(node) {
            self.users[user.index()].timed_out();
        }
        self.cluster.fire(node, timer, &mut self.effects);
        self.absorb(now, node);
    }

    /// A message is lost; where it is a liar's silence, the liar's users are deceived.
    pub fn lose(&mut self, now: Time, flight: Flight, why: &str) {
        self.record(now, || Event::Lose(flight.number, why.into()));
        if why == SILENCE {
            self.deceive(flight.from);
        }
        self.under_way -= 1;
        self.disturbed = true;
        self.cluster.forget(flight.slot);
    }

    /// The same message once more.
    pub fn copy(&mut self, now: Time, flight: Flight) -> Flight {
        let slot = self.cluster.copy(flight.slot);
        let cluster = &self.cluster;
        self.observer
            .sent(flight.from, slot, || cluster.word_of(slot));
        self.under_way += 1;
        self.disturbed = true;
        self.numbered += 1;
        let copy = Flight {
            number: self.numbered,
            slot,
            ..flight
        };
        self.record(now, || Event::Copy(flight.number, copy.number));
        copy
    }

    /// A message comes from a node of which nothing is known here, so nothing is said of what it could know.
    pub(crate) fn hear(
        &mut self,
        now: Time,
        from: NodeId,
        to: NodeId,
        message: &[u8],
    ) -> Result<(), PacketError> {
        let slot = self.cluster.hear(message)?;
        (self.monitor, self.disturbed, self.observer.blind) = (None, true, true);
        self.observer.sent(from, slot, || WordOf::Nothing);
        self.under_way += 1;
        self.numbered += 1;
        let number = self.numbered;
        let label = self.cluster.label(slot);
        let message = message.to_vec();
        self.record(now, || Event::Heard {
            number,
            from,
            to,
            message,
            label,
        });
        self.sent.push(Flight {
            number,
            slot,
            from,
            to,
        });
        Ok(())
    }

    /// The sender lies, by the `choice`-th lie that the message has.
    pub fn lie(&mut self, now: Time, flight: Flight, choice: u64) {
        self.disturbed = true;
        if !self.cluster.lie(flight.slot, choice) {
            return;
        }
        self.deceive(flight.from);
        if self.trace.is_some() {
            let label = self.cluster.label(flight.slot);
            self.record(now, || Event::Lie(flight.number, label));
        }
    }

    fn deceive(&mut self, liar: NodeId) {
        for user in self.shape.users_at(liar) {
            self.users[user.index()].deceived();
        }
    }

    /// The sender lies, by the lie that reads so.
    pub(crate) fn lie_as(
        &mut self,
        now: Time,
        flight: Flight,
        label: &str,
    ) -> Result<(), &'static str> {
        for choice in 0..Self::LIES_MAX {
            let trial = self.cluster.copy(flight.slot);
            let told = self.cluster.lie(trial, choice) && self.cluster.label(trial) == label;
            self.cluster.forget(trial);
            if told {
                self.lie(now, flight, choice);
                return Ok(());
            }
        }
        Err("a message that has no such lie")
    }

    /// A node stops. Unless it is only paused, of its users is left what the problem says.
    pub fn crash(&mut self, now: Time, node: NodeId, memory: Memory) {
        self.record(now, || Event::Crash(node, memory));
        self.disturbed = true;
        if memory == Memory::Whole {
            return;
        }
        self.cluster.crash(node, memory == Memory::Stable);
        for user in self.shape.users_at(node) {
            let user_then = &mut self.users[user.index()];
            *user_then = user_then.crashed(&self.first[user.index()]);
            UserLine::new(&self.shape, &mut self.places).leave(user);
            self.observer.gone(now, user);
        }
    }

    /// A node is back; `memory` says from what.
    pub fn restart(&mut self, now: Time, node: NodeId, memory: Memory) {
        self.record(now, || Event::Restart(node));
        if memory != Memory::Whole {
            for user in self.shape.users_at(node) {
                self.users[user.index()].restarted();
            }
            self.cluster.start(node, &mut self.effects);
            self.absorb(now, node);
        }
    }

    /// Nothing more will happen; `stopped` says why, where that is itself a failure.
    pub fn end(&mut self, now: Time, stopped: Option<&str>) {
        self.record(now, || Event::End(stopped.unwrap_or_default().into()));
        if self.under_way == 0 && !Q::COUNTED.has_inside() {
            self.observer.look_at_rest::<Q>(now, &self.users);
        }
        self.observer.end::<Q>(now, &self.users, stopped);
        self.record_violations(now);
    }

    /// What was done since the cycle began can be repeated for ever, and a user never gets in.
    pub fn repeat(&mut self, now: Time, victim: UserId) {
        self.record(now, || Event::Repeat(victim));
        let has_inside = Q::COUNTED.has_inside();
        self.observer.starves(now, victim, has_inside);
        self.record_violations(now);
    }

    pub fn phase(&self, user: UserId) -> Phase {
        self.users[user.index()].phase()
    }

    /// Adds a line to the trace, if there is one.
    pub fn record(&mut self, now: Time, event: impl FnOnce() -> Event) {
        if let Some(trace) = &mut self.trace {
            trace.push((now, event()));
        }
    }

    /// Gives up a trace that nobody could read: it is too long.
    pub(crate) fn limit_trace(&mut self) {
        if self.events().len() > Trace::EVENTS_MAX {
            self.trace = None;
        }
    }

    pub fn events(&self) -> &[(Time, Event)] {
        self.trace.as_deref().unwrap_or_default()
    }

    /// The trace, where one was kept to the end.
    pub(crate) fn into_trace(mut self) -> Option<Vec<(Time, Event)>> {
        self.limit_trace();
        self.trace
    }

    /// Takes in what a step did.
    fn absorb(&mut self, now: Time, node: NodeId) {
        self.sent.clear();
        self.served.clear();
        let hosts = self.shape.nodes() - self.shape.extra.len();
        let mut sends = std::mem::take(&mut self.effects.sends);
        for (to, slot) in sends.drain(..) {
            self.numbered += 1;
            let number = self.numbered;
            if let Some(trace) = &mut self.trace {
                let label = self.cluster.label(slot);
                let message = self.shows_bytes.then(|| self.cluster.message(slot));
                trace.push((
                    now,
                    Event::Send {
                        number,
                        from: node,
                        to,
                        message,
                        label,
                    },
                ));
            }
            let cluster = &self.cluster;
            self.observer.sent(node, slot, || cluster.word_of(slot));
            if let Some(monitor) = &mut self.monitor
                && let Some(grant) = self.cluster.grant(slot)
            {
                let known = |user| self.observer.knows(node, user);
                let broken = monitor.sent(&self.users, node, grant, &known);
                self.observer.broken(now, broken);
            }
            self.under_way += 1;
            self.observer.measures.behind +=
                u64::from(node.index() >= hosts && to.index() >= hosts);
            self.sent.push(Flight {
                number,
                slot,
                from: node,
                to,
            });
        }
        self.effects.sends = sends;
        self.timers.clear();
        for (span, timer) in std::mem::take(&mut self.effects.timers) {
            self.record(now, || Event::Timer(node, timer.0));
            self.timers.push((node, span, timer));
        }
        if !self.effects.tells.is_empty() {
            for tell in std::mem::take(&mut self.effects.tells) {
                self.tell(now, node, tell);
            }
            self.observer.look::<Q>(now, &self.users);
        }
        self.admission = Admission::Decided;
        if self.under_way == 0 && !self.disturbed && Q::COUNTED.has_inside() {
            self.observer.look_at_rest::<Q>(now, &self.users);
        }
        self.record_violations(now);
    }

    fn tell(&mut self, now: Time, node: NodeId, tell: Q::Tell) {
        let users = &self.users;
        let line = UserLine::new(&self.shape, &mut self.places);
        let Some(hearer) = line.hearer(node, |user| users[user.index()].hears(&tell)) else {
            let (who, what) = (
                self.shape.name(node),
                format!("told {tell:?}, and has no user"),
            );
            self.observer.ill_formed(now, &who, &what);
            return;
        };
        let user = &mut self.users[hearer.index()];
        let before = user.phase();
        let told = user.told(tell);
        let kind = TellKind::of(before, user.phase());
        self.record(now, || Event::Tell(hearer, kind, format!("{tell:?}")));
        match told {
            Ok(()) => {
                self.moved(now, hearer, before);
            }
            Err(what) => self.observer.ill_formed(now, &format!("p{hearer}"), &what),
        }
    }

    fn record_violations(&mut self, now: Time) {
        while let Some(violation) = self.observer.violations.get(self.reported) {
            let event = Event::Violation(violation.kind.word().into(), violation.what.clone());
            self.record(now, || event);
            self.reported += 1;
        }
    }
}
