//! The leader's work: it decides who is in and which orphans have run out. It does no I/O. It is told who was elected, who
//! asks for a read index and who was answered, and returns orders.
//!
//! A start is left out in three steps, because the leader's answers renew leases (case M). Its lease is over by the leader's
//! own count; the leader refuses its reads, and confirms that *after* every answer given before; and still nothing was
//! answered since. An order that is given twice, or for an older state of the log, does no harm: every change says what it
//! rests on.

use std::collections::{BTreeMap, BTreeSet};

use super::{Broken, Landlord, Peer};
use crate::ownership::{Index, NodeId, Start, View};
use crate::replicated::{Change, Replicated};
use crate::session::SessionId;

/// What the leader wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Stop answering this start. Confirm with [`Rule::refused`], once per order, after every answer that was given before.
    RefuseReads(Peer),
    /// Answer it again.
    AllowReads(Peer),
    /// Submit this.
    Propose(Change),
}

/// A node's rule, while it leads and before.
#[derive(Clone, Debug)]
pub struct Rule {
    own: Peer,
    lease_ms: u64,
    reign: Option<Reign>,
    /// Starts whose refusal was ordered. They outlive a reign: an order is confirmed before the next one is given.
    refusals: BTreeMap<Peer, Refusal>,
    /// The last start of each node that was seen in a view.
    known: BTreeMap<NodeId, Known>,
    /// A rule that a test breaks on purpose.
    pub broken: Option<Broken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Ordered and not yet confirmed.
    Ordered,
    /// In force.
    InForce,
    /// Ordered in an earlier reign and not yet confirmed.
    Recalled,
    /// No longer needed.
    Over,
}

/// The time from one election to the next.
#[derive(Clone, Debug)]
struct Reign {
    term: u64,
    landlord: Landlord,
    /// The latest start of each node that asks for a read index.
    asking: BTreeMap<NodeId, Asking>,
    /// Starts that a proposed view leaves out. They stay out, whatever they ask.
    leaving: BTreeSet<Peer>,
    /// The view that the last proposal rests on, and when it was proposed.
    proposed: Option<(Index, u64)>,
    /// The view for which the orphans were collected.
    viewed: Option<Index>,
    orphans: BTreeMap<SessionId, Orphan>,
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    start: Start,
    first: u64,
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Orphan {
    home: Index,
    /// When its end is to be proposed: after its TTL, then once per lease.
    due: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    start: Start,
    /// When it entered.
    entered: u64,
    /// How many starts in a row before it crashed soon after entering.
    crashes: u32,
    /// Whether it has stopped cleanly.
    stopped: bool,
}

impl Rule {
    /// A start that was in for this long did not crash soon.
    pub const STEADY_MS: u64 = 60_000;
    /// How long a node must ask to be let in after its first crash; each further crash doubles it.
    pub const RETURN_MS_MIN: u64 = 1_000;
    /// Cap on that time.
    pub const RETURN_MS_MAX: u64 = 60_000;
    /// How many ends of orphans are proposed in one tick.
    pub const ENDS_MAX: usize = 1_000;

    /// The rule of a start that does not lead.
    pub fn new(own: Peer, lease_ms: u64) -> Rule {
        Rule {
            own,
            lease_ms,
            reign: None,
            refusals: BTreeMap::new(),
            known: BTreeMap::new(),
            broken: None,
        }
    }

    /// Whether the node leads, as far as it was told.
    pub fn leads(&self) -> bool {
        self.reign.is_some()
    }

    /// This node now leads, in this term.
    pub fn elected(&mut self, now: u64, term: u64) {
        self.deposed();
        let since = match self.broken {
            Some(Broken::OldAnswer) => 0,
            _ => now,
        };
        self.reign = Some(Reign {
            term,
            landlord: Landlord::new(self.lease_ms, since),
            asking: BTreeMap::new(),
            leaving: BTreeSet::new(),
            proposed: None,
            viewed: None,
            orphans: BTreeMap::new(),
        });
    }

    /// This node no longer leads.
    pub fn deposed(&mut self) {
        self.reign = None;
        for refusal in self.refusals.values_mut() {
            *refusal = match refusal {
                Refusal::Ordered | Refusal::Recalled => Refusal::Recalled,
                Refusal::InForce | Refusal::Over => Refusal::Over,
            };
        }
    }

    /// A start has asked for a read index, so it wants to be in.
    pub fn asked(&mut self, now: u64, (node, start): Peer) {
        let Some(reign) = &mut self.reign else {
            return;
        };
        let new = Asking {
            start,
            first: now,
            last: now,
        };
        let asking = reign.asking.entry(node).or_insert(new);
        if asking.start < start {
            *asking = new;
        } else if asking.start == start {
            asking.last = now;
        }
    }

    /// A start was answered, which renews its lease.
    pub fn answered(&mut self, now: u64, start: Peer) {
        if let Some(reign) = &mut self.reign {
            reign.landlord.answered(now, start);
        }
    }

    /// A start has stopped cleanly: it no longer acts, whatever it is answered.
    pub fn gave_back(&mut self, start: Peer) {
        if let Some(reign) = &mut self.reign {
            reign.landlord.gave_back(start);
        }
        if let Some(known) = self.known.get_mut(&start.0) {
            known.stopped |= known.start == start.1;
        }
    }

    /// A start gets no more answers. [`Rule::answered`] was called for all that it got before.
    pub fn refused(&mut self, start: Peer) {
        if let Some(refusal) = self.refusals.get_mut(&start) {
            *refusal = match refusal {
                Refusal::Ordered => Refusal::InForce,
                Refusal::Recalled => Refusal::Over,
                Refusal::InForce | Refusal::Over => return,
            };
        }
    }

    /// What to do now, given the log as applied here and the voters.
    pub fn tick(&mut self, now: u64, replicated: &Replicated, voters: &[NodeId]) -> Vec<Order> {
        let mut orders = Vec::new();
        let view = replicated.view();
        let Some(mut reign) = self.reign.take() else {
            return orders;
        };
        self.meet(now, &reign, view);
        reign.asking.retain(|node, _| voters.contains(node));
        let (own, asking) = (self.own, &reign.asking);
        reign.landlord.keep(|(node, start)| {
            let asks = asking
                .get(&node)
                .is_some_and(|asking| asking.start == start);
            asks || (node, start) == own || view.has(node, start)
        });
        let members = self.next_members(now, &reign, view, voters, &mut orders);
        let leaving = view
            .members
            .iter()
            .map(|member| (member.node, member.start));
        let leaving: Vec<Peer> = leaving.filter(|peer| !members.contains(peer)).collect();
        let entering = members.iter().any(|(node, start)| !view.has(*node, *start));
        let voting = members.iter().filter(|(node, _)| voters.contains(node));
        let majority = voting.count() * 2 > voters.len();
        let under_way = reign
            .proposed
            .is_some_and(|(before, at)| before == view.index && now < at + self.lease_ms);
        if (entering || !leaving.is_empty()) && majority && !under_way {
            reign.leaving.extend(leaving);
            reign.proposed = Some((view.index, now));
            orders.push(Order::Propose(self.view(reign.term, view, members)));
        }
        reign
            .leaving
            .retain(|(node, start)| view.has(*node, *start));
        self.judge_orphans(now, &mut reign, replicated, &mut orders);
        self.reign = Some(reign);
        self.end_refusals(view, &mut orders);
        orders
    }

    fn view(&self, term: u64, view: &View, members: Vec<Peer>) -> Change {
        let (before, generation) = (view.index, view.generation);
        match self.broken {
            Some(Broken::ViewInAnyTerm) => Change::View {
                before,
                members,
                generation,
            },
            _ => Change::ViewInTerm {
                term,
                before,
                members,
                generation,
            },
        }
    }

    /// Notes who was let in, and when.
    fn meet(&mut self, now: u64, reign: &Reign, view: &View) {
        for member in &view.members {
            let before = self.known.get(&member.node);
            let asking = reign.asking.get(&member.node);
            let asking = asking.filter(|asking| asking.start == member.start);
            let crashed = asking.map_or(now, |asking| asking.first);
            if before.is_none_or(|known| known.start < member.start) {
                let crashes = before.map_or(0, |known| match known.stopped {
                    true => known.crashes,
                    false => known.crashes_at(crashed) + 1,
                });
                let known = Known {
                    start: member.start,
                    entered: now,
                    crashes,
                    stopped: false,
                };
                self.known.insert(member.node, known);
            }
        }
    }

    /// Who should be in, by node. Orders the refusal of those that should not.
    fn next_members(
        &mut self,
        now: u64,
        reign: &Reign,
        view: &View,
        voters: &[NodeId],
        orders: &mut Vec<Order>,
    ) -> Vec<Peer> {
        let own = self.own;
        // A node that was always alone has locked its disk: no other start of it acts.
        let is_alone = voters == [own.0] && view.members.iter().all(|member| member.node == own.0);
        if is_alone {
            return vec![own];
        }
        let mut members: BTreeMap<NodeId, Start> = BTreeMap::new();
        for member in &view.members {
            let peer = (member.node, member.start);
            if !self.may_leave(now, reign, peer, voters, orders) {
                members.insert(member.node, member.start);
            }
        }
        let coming = voters.iter().filter_map(|node| {
            let asking = reign.asking.get(node)?;
            let out = !members.contains_key(node) && now < asking.last + self.lease_ms;
            (out && self.is_new(*node, asking)).then_some((*node, asking))
        });
        let coming: Vec<(NodeId, &Asking)> = coming.collect();
        let waited = |(node, asking): &&(NodeId, &Asking)| {
            now >= asking.first + self.return_ms(*node, asking)
        };
        let entering: Vec<_> = coming.iter().filter(waited).copied().collect();
        let voting = members.keys().filter(|node| voters.contains(node));
        let majority = (voting.count() + entering.len()) * 2 > voters.len();
        // A view needs a majority of the voters. If only crashed nodes can complete one, nobody has to wait.
        let entering = if majority { entering } else { coming };
        members.extend(
            entering
                .into_iter()
                .map(|(node, asking)| (node, asking.start)),
        );
        members.into_iter().collect()
    }

    /// Whether a member may be left out now. If it should be but may not yet, orders what is missing.
    fn may_leave(
        &mut self,
        now: u64,
        reign: &Reign,
        peer: Peer,
        voters: &[NodeId],
        orders: &mut Vec<Order>,
    ) -> bool {
        let landlord = &reign.landlord;
        let (is_over, is_own) = (landlord.is_over(now, peer), peer == self.own);
        let asking = reign.asking.get(&peer.0);
        let later = asking.is_some_and(|asking| asking.start > peer.1);
        // A start that asks is alive. It was the leader that did not answer, because it was held up.
        let asks = asking.is_some_and(|asking| asking.start == peer.1)
            && asking.is_some_and(|asking| now < asking.last + self.lease_ms);
        let asks = asks && self.broken != Some(Broken::LeavesOutWhoAsks);
        let unwanted = landlord.has_back(peer) || later || !voters.contains(&peer.0);
        if reign.leaving.contains(&peer) {
            return true;
        }
        if !unwanted && (!is_over || is_own || asks) {
            if let Some(refusal) = self.refusals.get_mut(&peer)
                && *refusal == Refusal::InForce
            {
                *refusal = Refusal::Over;
            }
            return false;
        }
        if self.broken == Some(Broken::RemovalOnItsWay) {
            return is_over;
        }
        match self.refusals.get(&peer) {
            Some(refusal) => *refusal == Refusal::InForce && is_over,
            None => {
                self.refusals.insert(peer, Refusal::Ordered);
                orders.push(Order::RefuseReads(peer));
                false
            }
        }
    }

    /// Whether a start that asks has never been in.
    fn is_new(&self, node: NodeId, asking: &Asking) -> bool {
        let known = self.known.get(&node);
        known.is_none_or(|known| asking.start > known.start)
    }

    /// How long a start has to ask before it is let in: a node that keeps crashing has to stay alive for a while first (case
    /// X).
    fn return_ms(&self, node: NodeId, asking: &Asking) -> u64 {
        let known = self.known.get(&node);
        let known = known.filter(|known| !known.stopped);
        match known.filter(|_| self.broken != Some(Broken::CrashLoop)) {
            None => 0,
            Some(known) => {
                let doublings = known.crashes_at(asking.first).min(16);
                (Rule::RETURN_MS_MIN << doublings).min(Rule::RETURN_MS_MAX)
            }
        }
    }

    /// Ends sessions whose home has left, once they have been silent for their whole TTL since.
    fn judge_orphans(
        &self,
        now: u64,
        reign: &mut Reign,
        replicated: &Replicated,
        orders: &mut Vec<Order>,
    ) {
        // A session becomes an orphan with a view; later views leave its time as it is.
        let index = replicated.view().index;
        if reign.viewed.replace(index) != Some(index) {
            for (session, record) in replicated.sessions() {
                if replicated.is_orphan(record) {
                    let orphan = Orphan {
                        home: record.home.index,
                        due: now + record.ttl_ms,
                    };
                    let known = reign.orphans.entry(session).or_insert(orphan);
                    if known.home != orphan.home {
                        *known = orphan;
                    }
                }
            }
        }
        let mut ends = 0;
        reign.orphans.retain(|session, orphan| {
            let Some(record) = replicated.session(*session) else {
                return false;
            };
            let moved = !replicated.is_orphan(record) || record.home.index != orphan.home;
            if moved && self.broken != Some(Broken::LateEnd) {
                return false;
            }
            if now >= orphan.due && ends < Rule::ENDS_MAX {
                ends += 1;
                orphan.due = now + self.lease_ms;
                orders.push(Order::Propose(Change::CloseSession {
                    session: *session,
                    home: record.home.index,
                }));
            }
            true
        });
    }

    /// Takes back refusals that are no longer needed: a start that is out learns that from any answer.
    fn end_refusals(&mut self, view: &View, orders: &mut Vec<Order>) {
        self.refusals.retain(|(node, start), refusal| {
            let over = match refusal {
                Refusal::Over => true,
                Refusal::InForce => !view.has(*node, *start),
                Refusal::Ordered | Refusal::Recalled => false,
            };
            if over {
                orders.push(Order::AllowReads((*node, *start)));
            }
            !over
        });
    }
}

impl Known {
    /// How many starts in a row have crashed soon after entering, if this one has crashed now.
    fn crashes_at(&self, now: u64) -> u32 {
        match now >= self.entered + Rule::STEADY_MS {
            true => 0,
            false => self.crashes,
        }
    }
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
