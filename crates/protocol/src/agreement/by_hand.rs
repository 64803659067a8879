//! A cluster driven by hand, for the worked examples: a test says which message arrives and which timer fires.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    Algorithm, Cluster, Effects, Machine, Next, NodeId, Problem, Setup, Slot, Timer, User, UserId,
};

pub(super) struct ByHand<Q: Problem> {
    machine: Box<dyn Machine<Q>>,
    cluster: Box<dyn Cluster<Q>>,
    pub(super) users: Vec<Q::User>,
    under_way: VecDeque<(NodeId, NodeId, Slot)>,
    pub(super) tells: Vec<(u32, Q::Tell)>,
    /// Nodes whose messages are lost, and nodes that get none.
    pub(super) silent: Vec<u32>,
    pub(super) deaf: Vec<u32>,
    effects: Effects<Q>,
}

impl<Q: Problem> ByHand<Q> {
    pub(super) fn new(algorithm: &Algorithm<Q>, setup: &Setup) -> Self {
        let machine = (algorithm.machine)(setup).expect("a valid setup");
        let shape = machine.shape();
        let mut run = ByHand {
            cluster: machine.cluster(),
            users: UserId::all(shape.users).map(|u| machine.user(u)).collect(),
            under_way: VecDeque::new(),
            tells: Vec::new(),
            silent: Vec::new(),
            deaf: Vec::new(),
            effects: Effects::default(),
            machine,
        };
        for node in NodeId::all(run.machine.shape().nodes()) {
            run.start(node.0);
        }
        run
    }

    fn start(&mut self, node: u32) {
        self.cluster.start(NodeId(node), &mut self.effects);
        self.absorb(node);
    }

    /// The user asks what it would ask first.
    pub(super) fn ask(&mut self, user: u32) {
        self.choose(user, 0);
    }

    pub(super) fn choose(&mut self, user: u32, choice: u32) {
        let asker = &mut self.users[user as usize];
        let (Next::May(ask) | Next::Must(ask)) = asker.choose(choice) else {
            panic!("p{user} has nothing to ask");
        };
        asker.asked(ask);
        self.cluster.ask(NodeId(user), ask, &mut self.effects);
        self.absorb(user);
    }

    pub(super) fn fire(&mut self, node: u32, timer: Timer) {
        self.users[node as usize].timed_out();
        self.cluster.fire(NodeId(node), timer, &mut self.effects);
        self.absorb(node);
    }

    /// A node crashes and comes back with its stable storage.
    pub(super) fn crash_and_restart(&mut self, node: u32) {
        self.cluster.crash(NodeId(node), true);
        let user = &mut self.users[node as usize];
        *user = user.crashed(&self.machine.user(UserId(node)));
        user.restarted();
        self.start(node);
    }

    /// Every message on this link arrives, in order.
    pub(super) fn deliver(&mut self, from: u32, to: u32) {
        let (this, others): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.under_way)
            .into_iter()
            .partition(|(f, t, _)| (f.0, t.0) == (from, to));
        self.under_way = others;
        assert!(
            !this.is_empty(),
            "nothing is under way from p{from} to p{to}"
        );
        for (from, to, slot) in this {
            self.arrive(from, to, slot);
        }
    }

    /// Messages arrive in the order in which they were sent, until none is under way.
    pub(super) fn deliver_all(&mut self) {
        while let Some((from, to, slot)) = self.under_way.pop_front() {
            self.arrive(from, to, slot);
        }
    }

    /// Everything that is under way is lost.
    pub(super) fn lose_all(&mut self) {
        for (.., slot) in self.under_way.drain(..) {
            self.cluster.forget(slot);
        }
    }

    /// What is under way between two nodes, as it reads.
    pub(super) fn labels(&self, from: u32, to: u32) -> Vec<String> {
        let here = self
            .under_way
            .iter()
            .filter(|(f, t, _)| (f.0, t.0) == (from, to));
        here.map(|(.., slot)| self.cluster.label(*slot)).collect()
    }

    /// The sender of the only message on this link lies, by the lie that reads so.
    pub(super) fn lie(&mut self, from: u32, to: u32, label: &str) {
        let mut here = self
            .under_way
            .iter()
            .filter(|(f, t, _)| (f.0, t.0) == (from, to));
        let (.., slot) = *here.next().expect("a message is under way");
        assert!(here.next().is_none(), "one message is under way");
        let mut heard = Vec::new();
        for choice in 0..100 {
            let trial = self.cluster.copy(slot);
            self.cluster.lie(trial, choice);
            let reads = self.cluster.label(trial);
            self.cluster.forget(trial);
            if reads == label {
                self.cluster.lie(slot, choice);
                return self.users[from as usize].deceived();
            }
            heard.push(reads);
        }
        panic!("no lie reads {label}: {heard:?}");
    }

    /// How many messages of each kind were sent.
    pub(super) fn kinds(&self) -> BTreeMap<String, u64> {
        self.cluster.traffic().kinds.into_iter().collect()
    }

    pub(super) fn messages(&self) -> u64 {
        self.cluster.traffic().messages
    }

    pub(super) fn violation(&self) -> Option<String> {
        Q::violation(&self.users)
    }

    fn arrive(&mut self, from: NodeId, to: NodeId, slot: Slot) {
        self.cluster.deliver(from, to, slot, &mut self.effects);
        self.absorb(to.0);
    }

    fn absorb(&mut self, node: u32) {
        for (to, slot) in self.effects.sends.drain(..) {
            match self.silent.contains(&node) || self.deaf.contains(&to.0) {
                true => self.cluster.forget(slot),
                false => self.under_way.push_back((NodeId(node), to, slot)),
            }
        }
        for tell in self.effects.tells.drain(..) {
            let told = self.users[node as usize].told(tell);
            told.unwrap_or_else(|why| panic!("p{node} was {why}"));
            self.tells.push((node, tell));
        }
    }
}
