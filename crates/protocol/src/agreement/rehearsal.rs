//! For tests: a whole machine of agreement played by hand, message by message.

use std::collections::VecDeque;

use super::user::{Agreement, Instance, User, Value};
use crate::{Cluster, Effects, Machine, Next, NodeId, Problem, Slot, Timer, User as _, UserId};

/// What a liar says instead, from its number, the receiver's, and the true message's label.
type Liar = fn(u32, u32, &str) -> Option<String>;

pub(super) struct Rehearsal {
    cluster: Box<dyn Cluster<Agreement>>,
    pub(super) users: Vec<User>,
    /// In the order in which they were sent.
    under_way: VecDeque<(NodeId, NodeId, Slot)>,
    timers: Vec<(u64, NodeId, Timer)>,
    now: u64,
    /// Down: what is sent to them is lost.
    down: Vec<NodeId>,
    pub(super) liar: Option<Liar>,
    /// A liar, and what it does with each of its messages in turn: 0 the truth, then its lies, then silence. What is
    /// beyond the script is true, and `open` counts the choices that there were.
    pub(super) script: Option<(u32, Vec<usize>)>,
    pub(super) open: Vec<usize>,
    /// What no well-formed node would have told its user.
    ill_formed: Option<String>,
    /// Says nothing at all.
    pub(super) silent: Option<u32>,
}

impl Rehearsal {
    pub(super) fn new(machine: &dyn Machine<Agreement>) -> Rehearsal {
        let shape = machine.shape();
        let mut run = Rehearsal {
            cluster: machine.cluster(),
            users: UserId::all(shape.users).map(|u| machine.user(u)).collect(),
            under_way: VecDeque::new(),
            timers: Vec::new(),
            now: 0,
            down: Vec::new(),
            liar: None,
            script: None,
            open: Vec::new(),
            ill_formed: None,
            silent: None,
        };
        for node in NodeId::all(shape.nodes()) {
            let mut effects = Effects::default();
            run.cluster.start(node, &mut effects);
            run.carry(node, effects);
        }
        run
    }

    /// The user proposes what it would.
    pub(super) fn propose(&mut self, user: u32) {
        self.propose_choice(user, 0);
    }

    pub(super) fn propose_choice(&mut self, user: u32, choice: u32) {
        let asker = &mut self.users[user as usize];
        let Next::May(ask) = asker.choose(choice) else {
            panic!("p{user} has nothing to propose");
        };
        asker.asked(ask);
        let mut effects = Effects::default();
        self.cluster.ask(NodeId(user), ask, &mut effects);
        self.carry(NodeId(user), effects);
    }

    /// Delivers the first message under way from `from` to `to`; its label.
    pub(super) fn deliver(&mut self, from: u32, to: u32) -> String {
        let found = |(f, t, _): &(NodeId, NodeId, Slot)| (f.0, t.0) == (from, to);
        let place = self.under_way.iter().position(found);
        let place = place.unwrap_or_else(|| panic!("nothing is under way from p{from} to p{to}"));
        self.deliver_at(place)
    }

    /// Delivers everything from `from` to `to` that is under way.
    pub(super) fn deliver_all(&mut self, from: u32, to: u32) {
        let between = |(f, t, _): &&(NodeId, NodeId, Slot)| (f.0, t.0) == (from, to);
        for _ in 0..self.under_way.iter().filter(between).count() {
            self.deliver(from, to);
        }
    }

    /// What is under way from `from` to `to`.
    pub(super) fn labels(&self, from: u32, to: u32) -> Vec<String> {
        let between = self.under_way.iter();
        let between = between.filter(|(f, t, _)| (f.0, t.0) == (from, to));
        between
            .map(|(_, _, slot)| self.cluster.label(*slot))
            .collect()
    }

    /// Loses everything from `from` to `to` that is under way.
    pub(super) fn lose_all(&mut self, from: u32, to: u32) {
        let cluster = &mut self.cluster;
        self.under_way.retain(|(f, t, slot)| {
            let lost = (f.0, t.0) == (from, to);
            if lost {
                cluster.forget(*slot);
            }
            !lost
        });
    }

    fn deliver_at(&mut self, place: usize) -> String {
        let (from, to, slot) = self.under_way.remove(place).expect("a place of it");
        let label = self.cluster.label(slot);
        if self.down.contains(&to) {
            self.cluster.forget(slot);
            return label;
        }
        let mut effects = Effects::default();
        self.cluster.deliver(from, to, slot, &mut effects);
        self.carry(to, effects);
        label
    }

    /// Delivers all messages in the order of sending; timers stay.
    pub(super) fn settle(&mut self) {
        let mut delivered = 0;
        while !self.under_way.is_empty() {
            self.deliver_at(0);
            delivered += 1;
            assert!(delivered < 1_000_000, "messages without end");
        }
    }

    /// Plays to the end, a timer only when no message is under way.
    pub(super) fn play(&mut self) {
        let mut fired = 0;
        loop {
            self.settle();
            if !self.fire() {
                return;
            }
            fired += 1;
            assert!(fired < 10_000, "timers without end");
        }
    }

    /// Fires the next timer; false when there is none.
    pub(super) fn fire(&mut self) -> bool {
        let next = (0..self.timers.len()).min_by_key(|&at| self.timers[at]);
        let Some(next) = next else {
            return false;
        };
        let (at, node, timer) = self.timers.remove(next);
        self.users[node.index()].timed_out();
        self.now = at;
        if !self.down.contains(&node) {
            let mut effects = Effects::default();
            self.cluster.fire(node, timer, &mut effects);
            self.carry(node, effects);
        }
        true
    }

    /// The node stops, and keeps its stable storage.
    pub(super) fn crash(&mut self, node: u32) {
        self.cluster.crash(NodeId(node), true);
        self.timers.retain(|(_, at, _)| *at != NodeId(node));
        self.down.push(NodeId(node));
        let user = &mut self.users[node as usize];
        *user = user.crashed(user);
    }

    pub(super) fn restart(&mut self, node: u32) {
        self.down.retain(|down| *down != NodeId(node));
        let mut effects = Effects::default();
        self.cluster.start(NodeId(node), &mut effects);
        self.users[node as usize].restarted();
        self.carry(NodeId(node), effects);
    }

    fn carry(&mut self, node: NodeId, effects: Effects<Agreement>) {
        for (to, slot) in effects.sends {
            if self.silent == Some(node.0) || self.follow_script(node, slot) {
                self.cluster.forget(slot);
                self.users[node.index()].deceived();
                continue;
            }
            if let Some(lie) = self
                .liar
                .and_then(|liar| liar(node.0, to.0, &self.cluster.label(slot)))
            {
                self.lie(node, slot, &lie);
            }
            self.under_way.push_back((node, to, slot));
        }
        // The latest that a timer may fire: a rehearsal has no lots to draw.
        let due =
            |span: std::ops::Range<u64>| self.now + span.end.saturating_sub(1).max(span.start);
        self.timers.extend(
            effects
                .timers
                .into_iter()
                .map(|(span, timer)| (due(span), node, timer)),
        );
        for tell in effects.tells {
            if let Err(what) = self.users[node.index()].told(tell) {
                self.ill_formed = Some(format!("p{node}: {what}"));
            }
        }
    }

    /// Whether the script keeps this message back; it may replace it.
    fn follow_script(&mut self, node: NodeId, slot: Slot) -> bool {
        let Some((liar, script)) = &self.script else {
            return false;
        };
        if *liar != node.0 {
            return false;
        }
        let choice = script.get(self.open.len()).copied().unwrap_or(0);
        let lies = lies(&mut *self.cluster, slot);
        self.open.push(lies + 2);
        if (1..=lies).contains(&choice) {
            self.cluster.lie(slot, choice as u64 - 1);
            self.users[node.index()].deceived();
        }
        choice == lies + 1
    }

    fn lie(&mut self, node: NodeId, slot: Slot, lie: &str) {
        if self.cluster.label(slot) == lie {
            return;
        }
        for choice in 0..100 {
            let trial = self.cluster.copy(slot);
            let told = self.cluster.lie(trial, choice) && self.cluster.label(trial) == lie;
            self.cluster.forget(trial);
            if told {
                self.cluster.lie(slot, choice);
                self.users[node.index()].deceived();
                return;
            }
        }
        panic!("{} has no lie {lie}", self.cluster.label(slot));
    }

    pub(super) fn messages(&self) -> u64 {
        self.cluster.traffic().messages
    }

    pub(super) fn kinds(&self) -> Vec<(String, u64)> {
        self.cluster.traffic().kinds
    }

    /// What every user was told of an instance.
    pub(super) fn decisions(&self, instance: Instance) -> Vec<Option<Value>> {
        self.users
            .iter()
            .map(|user| user.decision(instance))
            .collect()
    }

    pub(super) fn violation(&self) -> Option<String> {
        Agreement::violation(&self.users).or(self.ill_formed.clone())
    }

    pub(super) fn unserved(&self) -> Option<String> {
        Agreement::unserved(&self.users)
    }
}

/// How many lies a message has.
fn lies(cluster: &mut dyn Cluster<Agreement>, slot: Slot) -> usize {
    let mut labels = Vec::new();
    for choice in 0..100 {
        let trial = cluster.copy(slot);
        let label = cluster.lie(trial, choice).then(|| cluster.label(trial));
        cluster.forget(trial);
        match label {
            Some(label) if !labels.contains(&label) => labels.push(label),
            _ => break,
        }
    }
    labels.len()
}

/// Plays every script of one liar, whichever node it is: how many plays there were, and the first that ends badly.
pub(super) fn every_lie(make: impl Fn() -> Rehearsal) -> (usize, Option<(u32, String)>) {
    let mut plays = 0;
    for liar in 0..make().users.len() as u32 {
        let mut script: Vec<usize> = Vec::new();
        loop {
            let mut run = make();
            run.script = Some((liar, script.clone()));
            run.propose(0);
            run.play();
            plays += 1;
            if let Some(what) = run.violation().or_else(|| run.unserved()) {
                return (plays, Some((liar, what)));
            }
            // The next script in the order of an odometer.
            script.resize(run.open.len(), 0);
            while script
                .last()
                .is_some_and(|last| last + 1 == run.open[script.len() - 1])
            {
                script.pop();
            }
            match script.last_mut() {
                Some(last) => *last += 1,
                None => break,
            }
        }
    }
    (plays, None)
}
