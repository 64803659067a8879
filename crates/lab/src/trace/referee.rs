//! The rules of a run: whether what a trace says was done could have been done then. Time runs forward,
//! links keep their promise, nodes that are down do nothing, timers fire when they are due, and a run starts
//! and ends once.

use testigo_protocol::{Channels, NodeId, Profile, Timer};
use testigo_sim::{Fault, LinkOrder, Memory, Partition, Time};

use super::live_rules::Live;
use super::under_way::{Sent, UnderWay};
use super::{Clock, Event, Header, Network};
use crate::stage::{Flight, SILENCE};

/// Follows a replay.
#[derive(Debug)]
pub(super) struct Referee<'a> {
    pub(super) header: &'a Header,
    order: LinkOrder,
    idle_traffic: bool,
    now: Time,
    /// How many steps were taken, where they are counted.
    steps: u64,
    started: usize,
    in_cycle: bool,
    pub(super) over: bool,
    pub(super) under_way: UnderWay,
    /// What each node that is down will remember, and since when it is.
    down: Vec<Option<(Memory, Time)>>,
    /// The last pause of each node, from when and until when.
    paused: Vec<(Time, Time)>,
    /// Timers that are set: the node, the timer, and when it may fire.
    timers: Vec<(NodeId, Timer, Time, Time)>,
    /// What the network was said to do, and whether it has.
    due: Vec<(Time, Change, bool)>,
    cuts: Vec<Partition>,
    /// What a live run has instead.
    pub(super) live: Live,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Down(NodeId, Memory),
    Up(NodeId),
    Cut(String),
    Heal(String),
}

pub(super) type Allowed = Result<(), String>;

pub(super) fn unless(wrong: bool, what: impl FnOnce() -> String) -> Allowed {
    if wrong { Err(what()) } else { Ok(()) }
}

impl<'a> Referee<'a> {
    pub(super) fn new(header: &'a Header, profile: &Profile) -> Referee<'a> {
        let nodes = header.names.len();
        let order = match (&header.network, profile.channels) {
            (Some(network), _) => network.order,
            (None, Channels::AnyOrder) if header.clock != Clock::Milliseconds => LinkOrder::Any,
            (None, _) => LinkOrder::Fifo,
        };
        Referee {
            header,
            order,
            idle_traffic: profile.idle_traffic,
            now: Time::ZERO,
            steps: 0,
            started: 0,
            in_cycle: false,
            over: false,
            under_way: UnderWay::default(),
            down: vec![None; nodes],
            paused: vec![(Time::ZERO, Time::ZERO); nodes],
            timers: Vec::new(),
            due: header.network.as_ref().map(changes).unwrap_or_default(),
            cuts: Vec::new(),
            live: Live::new(nodes),
        }
    }

    /// What a step sent, and the timers that it set.
    pub(super) fn saw(
        &mut self,
        at: Time,
        sent: &[Flight],
        timers: &[(NodeId, std::ops::Range<u64>, Timer)],
    ) {
        for flight in sent {
            self.under_way.sent(at, *flight);
        }
        for (node, span, timer) in timers {
            let last = span.end.saturating_sub(1).max(span.start);
            let (earliest, latest) = (at + Time(span.start), at + Time(last));
            self.timers.push((*node, *timer, earliest, latest));
        }
    }

    /// A node comes back; what it remembers.
    pub(super) fn restarted(&mut self, node: NodeId) -> Option<Memory> {
        let (memory, since) = self.down[node.index()].take()?;
        if memory == Memory::Whole {
            self.paused[node.index()] = (since, self.now);
        }
        Some(memory)
    }

    /// Whether this could be done now.
    pub(super) fn allow(&mut self, at: Time, event: &Event) -> Allowed {
        unless(self.over, || "a run that is over".into())?;
        self.allow_time(at, event)?;
        if self.header.clock == Clock::Milliseconds {
            return self.allow_live(event);
        }
        let starts = matches!(event, Event::Start(_));
        let on_sending = matches!(event, Event::Lose(..) | Event::Copy(..) | Event::Lie(..));
        let nodes = self.header.names.len();
        unless(!starts && !on_sending && self.started < nodes, || {
            format!("a run that starts all its {nodes} nodes first")
        })?;
        let simulated = self.header.clock == Clock::Units;
        let only = |of_this: bool| unless(!of_this, || "nothing that such a trace has".into());
        match event {
            Event::Start(node) => {
                let right = node.index() == self.started && at == Time::ZERO;
                unless(!right, || {
                    "a node that starts once, in its turn, at 0".into()
                })?;
                self.started += 1;
                Ok(())
            }
            Event::Ask(user, ..) => self.is_up(self.header.home(*user)),
            Event::Deliver(number) => self.allow_arrival(*number, true),
            Event::Fire(node, timer) => self.allow_fire(*node, Timer(*timer)),
            Event::Crash(node, memory) => {
                unless(self.down[node.index()].is_some(), || {
                    "a node that is down".into()
                })?;
                self.happens(Change::Down(*node, *memory))?;
                self.down[node.index()] = Some((*memory, at));
                if *memory != Memory::Whole {
                    self.timers.retain(|(other, ..)| other != node);
                }
                Ok(())
            }
            Event::Restart(node) => self.happens(Change::Up(*node)),
            Event::Cut(sides) => {
                only(simulated)?;
                self.happens(Change::Cut(sides.clone()))?;
                self.cuts.extend(sides.parse::<Partition>());
                Ok(())
            }
            Event::Heal(sides) => {
                only(simulated)?;
                self.happens(Change::Heal(sides.clone()))
            }
            Event::Lose(number, why) => self.allow_loss(*number, why),
            Event::Copy(number, _) => {
                let sent = self.under_way.of(*number)?;
                let twice = self.has_fault(|fault| matches!(fault, Fault::Duplicate(_)));
                self.on_sending(&sent, twice && !sent.copied, "a message that arrives once")
            }
            Event::Lie(number, _) => {
                let sent = self.under_way.of(*number)?;
                let from = sent.flight.from.0;
                let lies = self.has_fault(|fault| {
                    matches!(fault, Fault::Wrong(n, _) | Fault::Arbitrary(n, _) if *n == from)
                });
                self.under_way.lied(*number);
                self.on_sending(&sent, lies && !sent.lied, "a node that does not lie")
            }
            Event::Cycle => {
                only(!simulated && !self.in_cycle)?;
                self.in_cycle = true;
                Ok(())
            }
            Event::Repeat(_) => {
                only(self.in_cycle)?;
                self.over = true;
                Ok(())
            }
            Event::End(_) => {
                only(!self.in_cycle)?;
                self.over = true;
                Ok(())
            }
            Event::Heard { .. } | Event::Stop(_) | Event::Set(..) | Event::Access(..) => {
                only(false)
            }
            Event::Send { .. } | Event::Tell(..) | Event::Timer(..) | Event::Violation(..) => {
                Ok(())
            }
        }
    }

    /// Time runs forward; where steps are counted, by one.
    fn allow_time(&mut self, at: Time, event: &Event) -> Allowed {
        let now = self.now;
        unless(at < now, || format!("{now} already: time runs forward"))?;
        self.now = at;
        if self.header.clock == Clock::Steps {
            let step = match event {
                Event::Start(_) => 0,
                _ => self.steps + 1,
            };
            if !matches!(event, Event::Cycle) {
                self.steps = step;
            }
            return unless(at != Time::units(step), || format!("step {step}"));
        }
        for (due, change, done) in &mut self.due {
            if *done || *due >= at {
                continue;
            }
            // A node that is down cannot go down, and one that is up cannot come back.
            let is_down = |node: &NodeId| self.down[node.index()].is_some();
            *done = match change {
                Change::Down(node, _) => is_down(node),
                Change::Up(node) => !is_down(node),
                Change::Cut(_) | Change::Heal(_) => false,
            };
            unless(!*done, || {
                format!("{change:?} at {due}, as the header says")
            })?;
        }
        Ok(())
    }

    /// The network does what its header says, when it says so.
    fn happens(&mut self, change: Change) -> Allowed {
        if self.header.network.is_none() {
            return Ok(());
        }
        let now = self.now;
        let is_due = |due: &&mut (Time, Change, bool)| due.0 == now && due.1 == change && !due.2;
        match self.due.iter_mut().find(is_due) {
            Some((.., done)) => {
                *done = true;
                Ok(())
            }
            None => Err("no such fault in the header at this time".into()),
        }
    }

    pub(super) fn is_up(&self, node: NodeId) -> Allowed {
        unless(self.down[node.index()].is_some(), || {
            "a node that is down".into()
        })
    }

    pub(super) fn allow_fire(&mut self, node: NodeId, timer: Timer) -> Allowed {
        self.is_up(node)?;
        let (now, timed) = (self.now, self.header.clock == Clock::Units);
        let (paused, until) = self.paused[node.index()];
        let is_due = |(at, set, earliest, latest): &(NodeId, Timer, Time, Time)| {
            let waited = now == until && *latest >= paused;
            let due = *earliest <= now && (now <= *latest || waited);
            (*at, *set) == (node, timer) && (!timed || due)
        };
        let place = self.timers.iter().position(is_due);
        let place = place.ok_or("no such timer that is due")?;
        self.timers.remove(place);
        Ok(())
    }
}

/// Messages.
impl Referee<'_> {
    /// Whether a message can be at the end of its way now, and be received, where it is.
    pub(super) fn allow_arrival(&mut self, number: u64, received: bool) -> Allowed {
        let sent = self.under_way.of(number)?;
        let Flight { from, to, .. } = sent.flight;
        if received {
            self.is_up(to)?;
            unless(self.separated(from, to), || {
                "a partition between them".into()
            })?;
        }
        let first = self
            .under_way
            .before(number)
            .filter(|_| self.order == LinkOrder::Fifo);
        if let Some(first) = first {
            return Err(format!(
                "#{first} before it, on a link that keeps the order"
            ));
        }
        if self.header.clock == Clock::Units {
            let (now, (earliest, latest)) = (self.now, self.window(&sent));
            unless(now < earliest || now > latest, || {
                format!("a message that arrives from {earliest} to {latest}")
            })?;
        }
        self.under_way.arrived(self.now, sent.flight);
        Ok(())
    }

    /// When a message may arrive.
    fn window(&self, sent: &Sent) -> (Time, Time) {
        const EVER: Time = Time(u64::MAX);
        let Flight { from, to, .. } = sent.flight;
        let (earliest, latest) = match &self.header.network {
            Some(network) => {
                let latency = network.latency_of(from.0, to.0);
                let late = network.faults.iter().map(|fault| match fault {
                    Fault::Late(_, by) => *by,
                    _ => Time::ZERO,
                });
                let late = late.fold(Time::ZERO, |sum, by| sum + by);
                (
                    sent.at + latency.shortest(),
                    sent.at + latency.longest() + late,
                )
            }
            None if self.header.delay_bound > Time::ZERO => {
                (sent.at, sent.at + self.header.delay_bound)
            }
            None => (sent.at, EVER),
        };
        // Behind another on its link, it arrives with it; before a node that is paused, it waits.
        let behind = match self.order {
            LinkOrder::Fifo => self.under_way.last_arrival(sent.flight),
            LinkOrder::Any => Time::ZERO,
        };
        let latest = latest.max(behind);
        let (paused, until) = self.paused[to.index()];
        match latest >= paused {
            true => (earliest, latest.max(until)),
            false => (earliest, latest),
        }
    }

    fn separated(&self, from: NodeId, to: NodeId) -> bool {
        let network = self.header.network.as_ref();
        let cuts = network.map_or(&self.cuts, |network| &network.partitions);
        cuts.iter().any(|cut| cut.separates(self.now, from.0, to.0))
    }

    /// Why a message is lost: on its link as it is sent, or at the end of its way.
    fn allow_loss(&mut self, number: u64, why: &str) -> Allowed {
        let sent = self.under_way.of(number)?;
        let Flight { from, to, .. } = sent.flight;
        let scheduled = self.header.clock == Clock::Steps;
        let loss = self
            .header
            .network
            .as_ref()
            .is_some_and(|n| n.loss.probability() > 0.0);
        match why {
            "partition" => {
                unless(!self.separated(from, to), || {
                    "no partition between them".into()
                })?;
                match sent.at == self.now {
                    true => Ok(()),
                    false => self.allow_arrival(number, false),
                }
            }
            "down" => {
                let memory = self.down[to.index()].map(|(memory, _)| memory);
                let lost = memory.is_some_and(|memory| memory != Memory::Whole);
                unless(!lost, || "a node that is not down".into())?;
                self.allow_arrival(number, false)
            }
            // In a schedule, a message meets its fate when it would arrive; a crash takes the last ones with it.
            "channel" | SILENCE if scheduled => self.allow_arrival(number, true),
            "sender" if scheduled => unless(self.down[from.index()].is_none(), || {
                "a sender that is not down".into()
            }),
            "channel" => {
                let link = |fault: &Fault| matches!(fault, Fault::OmitChannel(a, b, _) if (*a, *b) == (from.0, to.0));
                let loses = loss || self.has_fault(link);
                self.on_sending(&sent, loses, "a channel that loses nothing")
            }
            "sender" => {
                let omits =
                    self.has_fault(|fault| matches!(fault, Fault::OmitSend(n, _) if *n == from.0));
                self.on_sending(&sent, omits, "a sender that omits nothing")
            }
            "receiver" => {
                let omits =
                    self.has_fault(|fault| matches!(fault, Fault::OmitReceive(n, _) if *n == to.0));
                self.on_sending(&sent, omits, "a receiver that omits nothing")
            }
            _ => Err("no such reason to lose a message".into()),
        }
    }

    /// Whether the run may have such a fault; an old trace does not say which it has.
    fn has_fault(&self, which: impl Fn(&Fault) -> bool) -> bool {
        let network = self.header.network.as_ref();
        network.is_none_or(|network| network.faults.iter().any(which))
    }

    /// Something befalls a message as it is sent.
    fn on_sending(&self, sent: &Sent, may: bool, otherwise: &str) -> Allowed {
        unless(!may, || otherwise.into())?;
        let scheduled = self.header.clock == Clock::Steps;
        unless(sent.at != self.now && !scheduled, || {
            "a message that was sent before".into()
        })
    }
}

/// The end.
impl Referee<'_> {
    /// Whether a run can end so: with those inside at these nodes, and with or without somebody who waits.
    pub(super) fn allow_end(
        &self,
        why: &str,
        mut inside: impl Iterator<Item = NodeId>,
        somebody_waits: bool,
    ) -> Allowed {
        let paused = |node: &NodeId| {
            let memory = self.down[node.index()].map(|(memory, _)| memory);
            memory == Some(Memory::Whole)
        };
        let now = self.now;
        let overdue = |sent: &&Sent| self.window(sent).1 < now && !paused(&sent.flight.to);
        if let Some(sent) = self
            .under_way
            .all()
            .find(overdue)
            .filter(|_| self.header.clock == Clock::Units)
        {
            return Err(format!("#{} first, which is overdue", sent.flight.number));
        }
        let overdue =
            |(node, _, _, latest): &&(NodeId, Timer, Time, Time)| *latest < now && !paused(node);
        if let Some((node, timer, ..)) = self
            .timers
            .iter()
            .find(overdue)
            .filter(|_| self.header.clock == Clock::Units)
        {
            return Err(format!(
                "timer {} of node {node} first, which is overdue",
                timer.0
            ));
        }
        if !why.is_empty() {
            return Ok(());
        }
        unless(inside.any(|node| !paused(&node)), || {
            "somebody inside, who leaves".into()
        })?;
        let moving = self.under_way.all().any(|sent| !paused(&sent.flight.to));
        unless(moving && (somebody_waits || !self.idle_traffic), || {
            "messages under way".into()
        })?;
        let ticking = self.timers.iter().any(|(node, ..)| !paused(node));
        unless(ticking && somebody_waits, || "timers that will fire".into())
    }

    /// Nothing more is written: whether the run was over. A schedule may also end with what it shows.
    pub(super) fn finish(&self, shows_wrong: bool) -> Allowed {
        let over = self.over || self.header.clock == Clock::Steps && shows_wrong && !self.in_cycle;
        unless(!over, || "a run that goes on to its end".into())
    }
}

/// What the faults and partitions of a network do to it, and when.
fn changes(network: &Network) -> Vec<(Time, Change, bool)> {
    let mut changes = Vec::new();
    for fault in &network.faults {
        if let Fault::Outage(outage) = fault {
            let node = NodeId(outage.node);
            changes.push((outage.window.from, Change::Down(node, outage.memory), false));
            let until = outage.window.until;
            changes.extend(until.map(|until| (until, Change::Up(node), false)));
        }
    }
    for cut in &network.partitions {
        let sides = cut.to_string();
        changes.push((cut.window.from, Change::Cut(sides.clone()), false));
        let until = cut.window.until;
        changes.extend(until.map(|until| (until, Change::Heal(sides), false)));
    }
    changes
}
