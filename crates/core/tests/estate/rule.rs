//! What the leader does, and what goes wrong.

use testigo_core::estate::{Estate, Order, Rule};
use testigo_core::{Limits, NodeId, Start};

use crate::links::Links;
use crate::world::{Event, LEASE_MS, Said, World};

impl World {
    pub(crate) fn end_faults(&mut self) {
        self.calm = true;
        self.cut.clear();
        for at in 0..self.nodes.len() {
            self.nodes[at].paused = false;
            if !self.nodes[at].up {
                self.restart(at);
            }
        }
    }

    /// Elects a leader where there is none, and lets everybody that believes to lead do its work. A leader of before may
    /// believe so until it hears of the present one.
    pub(crate) fn rule(&mut self) {
        let rules = self.leader.filter(|leader| self.has_majority(*leader));
        if rules.is_none() {
            self.elect();
        }
        for at in 0..self.nodes.len() {
            if !self.works(at) || !self.nodes[at].rule.leads() {
                continue;
            }
            let next = self.leader.filter(|leader| *leader != at);
            if next.is_some_and(|next| self.talks(next, at)) {
                self.nodes[at].rule.deposed();
                continue;
            }
            let voters: Vec<NodeId> = self.nodes.iter().map(|node| node.id).collect();
            let node = &mut self.nodes[at];
            for order in node.rule.tick(self.now, &node.replicated, &voters) {
                match order {
                    Order::Propose(change) => self.submit(at, change),
                    order => {
                        self.nodes[at].orders.push_back(order);
                        let (wait, start) = (self.latency(), self.nodes[at].start);
                        self.after(wait, Event::Obey(at, start));
                    }
                }
            }
        }
    }

    fn elect(&mut self) {
        if self.leader.take().is_some() {
            self.vacant_since = self.now;
        }
        if self.now < self.vacant_since + 1_000 {
            return;
        }
        let mut able: Vec<usize> = (0..self.nodes.len())
            .filter(|at| self.has_majority(*at))
            .collect();
        if able.is_empty() {
            return;
        }
        let chosen = able.swap_remove(self.random.below(able.len() as u64) as usize);
        self.leader = Some(chosen);
        self.term += 1;
        self.nodes[chosen].rule.elected(self.now, self.term);
    }

    /// A leader's engine has something to say, which its rule hears later, in order.
    pub(crate) fn say(&mut self, at: usize, said: Said) {
        self.nodes[at].said.push_back(said);
        let (wait, start) = (self.latency(), self.nodes[at].start);
        self.after(wait, Event::Heed(at, start));
    }

    pub(crate) fn obey(&mut self, at: usize, start: Start) {
        if self.nodes[at].start != start {
            return;
        }
        if !self.works(at) {
            return self.after(50, Event::Obey(at, start));
        }
        match self.nodes[at].orders.pop_front() {
            Some(Order::RefuseReads(peer)) => {
                self.nodes[at].refused.insert(peer);
                self.say(at, Said::Refused(peer));
            }
            Some(Order::AllowReads(peer)) => {
                self.nodes[at].refused.remove(&peer);
            }
            Some(Order::Propose(_)) | None => {}
        }
    }

    pub(crate) fn heed(&mut self, at: usize, start: Start) {
        if self.nodes[at].start != start {
            return;
        }
        if !self.works(at) {
            return self.after(50, Event::Heed(at, start));
        }
        let (now, node) = (self.now, &mut self.nodes[at]);
        match node.said.pop_front() {
            Some(Said::Asked(peer)) => node.rule.asked(now, peer),
            Some(Said::Answered(peer)) => node.rule.answered(now, peer),
            Some(Said::Refused(peer)) => node.rule.refused(peer),
            None => {}
        }
    }

    pub(crate) fn fault(&mut self) -> Result<(), String> {
        let at = self.random.below(self.nodes.len() as u64) as usize;
        let working = (0..self.nodes.len()).filter(|at| self.works(*at)).count();
        match self.random.below(6) {
            0 | 1 if self.works(at) && (working - 1) * 2 > self.nodes.len() => {
                self.tally.crashes += 1;
                self.crash(at);
            }
            2 if self.works(at) && (working - 1) * 2 > self.nodes.len() => {
                self.nodes[at].paused = true;
                // A stopped process cannot tell anybody that its lease is over: those without a session of their own rely on
                // their fence alone then, and here they go away.
                for which in 0..self.clients.len() {
                    let client = &self.clients[which];
                    if client.node == at && !client.opened {
                        self.lose_connection(which);
                    }
                }
            }
            3 => {
                self.tally.cuts += 1;
                let one_way = self.random.one_in(2);
                for other in 0..self.nodes.len() {
                    if other != at {
                        self.cut.insert((at, other));
                        if !one_way {
                            self.cut.insert((other, at));
                        }
                    }
                }
                let wait = self.random.between(200, 8_000);
                self.after(wait, Event::Heal);
            }
            _ => {
                for at in 0..self.nodes.len() {
                    self.nodes[at].paused = false;
                    if !self.nodes[at].up {
                        self.restart(at);
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn crash(&mut self, at: usize) {
        self.nodes[at].up = false;
        self.connections_end(at);
    }

    /// A node starts again: it has its log, and nothing else.
    pub(crate) fn restart(&mut self, at: usize) {
        self.connections_end(at);
        self.forget_visits(at);
        if self.leader.take_if(|leader| *leader == at).is_some() {
            self.vacant_since = self.now;
        }
        let node = &mut self.nodes[at];
        node.up = true;
        node.start = Start(node.start.0 + 1);
        node.submitted.clear();
        node.hung_up.clear();
        node.sequence = 0;
        let own = (node.id, node.start);
        let limits = Limits::default();
        node.links = Links::new(own);
        node.estate = Estate::new(self.now, own, LEASE_MS, limits, 7, &node.replicated);
        node.estate.broken = self.broken;
        node.rule = Rule::new(own, LEASE_MS);
        node.rule.broken = self.broken;
        node.orders.clear();
        node.said.clear();
        node.refused.clear();
    }
}
