//! What the leader does, and what goes wrong.

use std::collections::BTreeMap;

use testigo_core::estate::{Estate, Landlord, Peer};
use testigo_core::{Change, Limits, Start};

use crate::links::Links;
use crate::world::{Event, LEASE_MS, World};

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

    /// The leader's work: who is in, and which orphans are over.
    pub(crate) fn rule(&mut self) {
        let rules = self.leader.filter(|leader| self.has_majority(*leader));
        let Some(leader) = rules else {
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
            self.landlord = Landlord::new(LEASE_MS, self.now);
            self.orphans.clear();
            return;
        };
        // A leader speaks only for a log that it has applied.
        if (self.nodes[leader].replicated.index().0 as usize) < self.log.len() {
            return;
        }
        let view = self.nodes[leader].replicated.view().clone();
        let mut members: Vec<Peer> = Vec::new();
        for at in 0..self.nodes.len() {
            let (id, start) = (self.nodes[at].id, self.nodes[at].start);
            let present = view.members.iter().find(|member| member.node == id);
            let wants = self.works(at) && self.talks(leader, at);
            match present {
                Some(member) if !self.landlord.is_over(self.now, id, member.start) => {
                    members.push((id, member.start));
                }
                Some(member) if wants && start > member.start => {
                    self.landlord.leave_out(id, member.start);
                    members.push((id, start));
                }
                Some(member) if member.start == start && wants => {
                    members.push((id, start));
                }
                Some(member) => self.landlord.leave_out(id, member.start),
                None if wants && start > Start(1) => members.push((id, start)),
                None => {}
            }
        }
        let present: Vec<Peer> = view.members.iter().map(|m| (m.node, m.start)).collect();
        if members != present && members.len() * 2 > self.nodes.len() {
            self.submit(
                leader,
                Change::View {
                    before: view.index,
                    members,
                    generation: 0,
                },
            );
        }
        let replicated = &self.nodes[leader].replicated;
        let mut over = Vec::new();
        let mut orphans = BTreeMap::new();
        for (session, record) in replicated.sessions() {
            if replicated.is_orphan(record) {
                let since = *self.orphans.get(&session).unwrap_or(&self.now);
                orphans.insert(session, since);
                if self.now >= since + record.ttl_ms {
                    over.push(Change::CloseSession {
                        session,
                        home: record.home.index,
                    });
                }
            }
        }
        self.orphans = orphans;
        for change in over {
            self.submit(leader, change);
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
    }
}
