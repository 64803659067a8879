//! The house as a member of a cluster: what its log delivers besides entries, its lease, letters of other houses, and when it
//! has to start anew. What it does as the leader is in [`lead`], how it leaves in [`leave`], whether it belongs in
//! [`membership`].

mod lead;
mod leave;
mod membership;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[cfg(any(test, debug_assertions))]
use testigo_core::estate::Broken;
use testigo_core::estate::{Estate, Peer, Rule};
use testigo_core::{Address, NodeId, Refusal, Start, Word};
use testigo_engine::{self as engine, Delivery, Received, SendError, Standing, StoredSnapshot};

use super::letters::{Letter, Parts};
use super::{ClientId, Half, House, Membership, Receipts, Services};
use crate::cluster::{Link, Times};
use crate::open;
use crate::peers::{PeerStatus, Peers};
use crate::wire::refuse;
use leave::Leaving;

/// What a member has besides its estate.
#[derive(Debug)]
pub(crate) struct Member {
    lease_ms: u64,
    /// The address of this node.
    address: Address,
    standing: Standing,
    /// The last leader that this start has known.
    last_leader: Option<u64>,
    /// Whether the cluster has removed this node.
    removed: bool,
    /// Since when others wait.
    pub(super) times: Times,
    /// The last index of the engine's log that is applied here. The log's read indexes are of this kind.
    delivered: u64,
    next_read: u64,
    /// Unanswered reads, in the order of the asks.
    asked: VecDeque<(u64, Reads)>,
    /// Answered reads, each with the index up to which the log must be applied first.
    answered: VecDeque<(u64, Reads)>,
    /// Letters whose parts have not all come.
    parts: BTreeMap<engine::Peer, Parts>,
    /// The members of the last view that was applied.
    viewed: Vec<Peer>,
    rule: Rule,
    rule_due: u64,
    /// The tag of a change of the members that is under way.
    changing: Option<u64>,
    next_change: u64,
    leaving: Option<Leaving>,
    /// The directory is a newcomer's: until the log lets this start in, what it says about this number concerns an earlier
    /// directory.
    newcomer: bool,
    /// The sockets between the nodes; a simulated house has none.
    peers: Option<Arc<Peers>>,
    /// Why this start cannot go on.
    anew: Option<&'static str>,
}

/// What a read index is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// For the node's lease, by its ask.
    Lease(u64),
    /// For commands that wait for it, by their batch.
    Commands(u64),
}

/// Cap on unanswered reads for a lease. A later answer counts for them, too.
const READS_MAX: usize = 16;
/// How often a leader looks after the cluster, in milliseconds.
const RULE_MS: u64 = 50;

impl Member {
    pub(super) fn new(now: u64, own: Peer, membership: Membership, services: &Services) -> Member {
        let Membership {
            lease_ms,
            address,
            delivered,
            joins,
        } = membership;
        let viewed = services.estate().map_or_else(Vec::new, viewed);
        Member {
            lease_ms,
            address,
            standing: Standing::default(),
            last_leader: None,
            removed: false,
            times: Times::from(now),
            delivered,
            next_read: 0,
            asked: VecDeque::new(),
            answered: VecDeque::new(),
            parts: BTreeMap::new(),
            viewed,
            rule: Rule::new(own, lease_ms),
            rule_due: 0,
            changing: None,
            next_change: 0,
            leaving: None,
            newcomer: joins || services.replicated().cluster().last_start(own.0) == Start(0),
            peers: None,
            anew: None,
        }
    }

    /// Breaks a rule, so that a test can prove that it would notice.
    #[cfg(any(test, debug_assertions))]
    pub(super) fn break_on_purpose(&mut self, broken: Broken) {
        self.rule.broken = Some(broken);
    }

    /// Who leads and who is in, as far as this node knows.
    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The last leader that this start has known; it may lead no longer.
    pub(crate) fn last_leader(&self) -> Option<u64> {
        self.last_leader
    }

    /// Whether the cluster has removed this node for good.
    pub(crate) fn was_removed(&self) -> bool {
        self.removed
    }

    /// The length of a lease.
    pub(crate) fn lease_ms(&self) -> u64 {
        self.lease_ms
    }

    /// The state of the links to the others.
    pub(crate) fn links(&self) -> BTreeMap<u64, Link> {
        let peers = self.peers.iter().flat_map(|peers| peers.status());
        peers
            .map(|peer| match peer {
                PeerStatus {
                    connected: true,
                    heard: true,
                    ..
                } => (peer.node, Link::Up),
                _ => {
                    let silent = peer.silent.unwrap_or_default().as_millis();
                    (
                        peer.node,
                        Link::Silent(u64::try_from(silent).unwrap_or(u64::MAX)),
                    )
                }
            })
            .collect()
    }

    /// How far the engine's log is applied here.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }
}

/// The members of the last view.
fn viewed(estate: &Estate) -> Vec<Peer> {
    let own = estate.is_in().then_some(estate.own());
    estate.others().chain(own).collect()
}

/// A node's start in the engine's terms.
fn to_engine((node, start): Peer) -> engine::Peer {
    engine::Peer {
        node: node.0,
        start: start.0,
    }
}

fn from_engine(peer: engine::Peer) -> Peer {
    (NodeId(peer.node), Start(peer.start))
}

impl House {
    /// The house as a member of a cluster; `None` alone.
    pub(crate) fn member(&self) -> Option<&Member> {
        self.member.as_deref()
    }

    /// Whether the node may act: always if it is alone, as a member while its lease lasts.
    pub(crate) fn acts(&self) -> bool {
        let estate = self.services.estate();
        estate.is_none_or(|estate| estate.acts(self.now))
    }

    /// Refuses what a node without a lease must not do.
    pub(crate) fn check_acts(&self) -> Result<(), Refusal> {
        match self.acts() {
            true => Ok(()),
            false => Err(refuse(
                Word::Unavailable,
                "this node is not in its cluster, or has not heard from a majority for a whole lease; try another one",
            )),
        }
    }

    /// Called before anything is told: if the lease has run out since the turn began, what was to be told under it is not
    /// told.
    pub(crate) fn look_before_telling(&mut self) {
        let Some(estate) = self.services.estate() else {
            return;
        };
        if !estate.acts(self.now) || self.clock.now() < estate.lease_until() {
            return;
        }
        self.look_at_the_clock();
        let told = self.connections.iter();
        let told = told.filter(|client| !client.outbox.is_empty());
        let told: Vec<ClientId> = told.map(|client| client.id).collect();
        for id in told {
            self.connections.cut_off(id, None);
        }
        self.services.expire(self.now);
        self.pass_on();
    }

    /// From now on the others can be reached, at the addresses in the log.
    pub(crate) fn meet(&mut self, peers: Arc<Peers>) {
        if let Some(member) = &mut self.member {
            member.peers = Some(peers);
            self.cluster_changed();
        }
    }

    /// Why this start cannot go on, if so: the node must open its directory again.
    pub(crate) fn must_start_anew(&self) -> Option<&'static str> {
        self.member().and_then(|member| member.anew)
    }

    fn start_anew(&mut self, why: &'static str) {
        let Some(member) = &mut self.member else {
            return;
        };
        if member.leaving.is_none() && member.anew.is_none() {
            member.anew = Some(why);
        }
    }

    /// A member's share of a turn.
    pub(super) fn member_turn(&mut self) {
        if self.member.is_none() {
            return;
        }
        self.ask_for_lease();
        self.lead();
        self.go_on_leaving();
    }

    /// When a member next has something to do.
    pub(super) fn member_deadline(&self) -> Option<u64> {
        let member = self.member()?;
        let rule = member.rule.leads().then_some(member.rule_due);
        let leaving = member.leaving.as_ref().map(Leaving::due);
        rule.into_iter().chain(leaving).min()
    }

    fn ask_for_lease(&mut self) {
        let now = self.now;
        let Some(member) = self.member.as_mut().filter(|member| !member.gave_back()) else {
            return;
        };
        let estate = self.services.estate_mut().expect("a member has an estate");
        if let Some(ask) = estate.lease().due(now) {
            member.next_read += 1;
            let leases = |(_, reads): &(u64, Reads)| matches!(reads, Reads::Lease(_));
            if member.asked.iter().filter(|read| leases(read)).count() >= READS_MAX
                && let Some(oldest) = member.asked.iter().position(leases)
            {
                member.asked.remove(oldest);
            }
            member
                .asked
                .push_back((member.next_read, Reads::Lease(ask)));
            self.submissions.ask_read(member.next_read);
            self.look_at_the_links();
            self.log_own_address();
        }
    }

    /// Asks for a read index for which commands wait.
    pub(super) fn ask_read_for_commands(&mut self, batch: u64) {
        let Some(member) = &mut self.member else {
            return;
        };
        member.next_read += 1;
        let reads = Reads::Commands(batch);
        member
            .asked
            .retain(|(_, other)| !matches!(other, Reads::Commands(_)));
        member.asked.push_back((member.next_read, reads));
        self.submissions.ask_read(member.next_read);
    }

    /// Takes a delivery that the log of a lone node never makes.
    pub(super) fn deliver_to_member(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Restored { snapshot, unknown } => self.restored(&snapshot, unknown),
            Delivery::Read { tag, index } => {
                let Some(member) = &mut self.member else {
                    return;
                };
                while let Some(&(asked, reads)) = member.asked.front()
                    && asked <= tag
                {
                    member.asked.pop_front();
                    member.answered.push_back((index, reads));
                }
                self.read();
            }
            Delivery::Received(received) => {
                for received in received {
                    self.received(&received);
                }
                self.pass_on();
            }
            // The other node has started anew, and will soon be in no view.
            Delivery::NotSent {
                error: SendError::Ended(_),
                ..
            } => {}
            Delivery::NotSent { to, error } => {
                log::error!("node {} cannot be told something: {error}", to.node);
                self.start_anew("a link to another node has broken");
            }
            Delivery::Standing(standing) => self.stand(standing),
            Delivery::Asked(peers) => {
                let now = self.now;
                let rule = self.member.as_mut().map(|member| &mut member.rule);
                if let Some(rule) = rule {
                    peers
                        .into_iter()
                        .for_each(|peer| rule.asked(now, from_engine(peer)));
                }
            }
            Delivery::Answered(peers) => {
                let now = self.now;
                let rule = self.member.as_mut().map(|member| &mut member.rule);
                if let Some(rule) = rule {
                    peers
                        .into_iter()
                        .for_each(|peer| rule.answered(now, from_engine(peer)));
                }
            }
            Delivery::ReadsRefused { peer, .. } => {
                if let Some(member) = &mut self.member {
                    member.rule.refused(from_engine(peer));
                    member.rule_due = 0;
                }
            }
            Delivery::MembersChanged { tag, result } => self.members_changed(tag, result),
            Delivery::Committed { .. }
            | Delivery::Refused { .. }
            | Delivery::Full { .. }
            | Delivery::Snapshot(_)
            | Delivery::Stopped { .. } => unreachable!("a log that is alone says it, too"),
        }
    }

    /// Entries were applied up to this index of the engine's log.
    pub(super) fn delivered_up_to(&mut self, delivered: u64) {
        if let Some(member) = &mut self.member {
            member.delivered = member.delivered.max(delivered);
            self.read();
        }
    }

    /// Does what waited for the log to be applied this far.
    fn read(&mut self) {
        let Some(member) = &mut self.member else {
            return;
        };
        let mut ready = Vec::new();
        while let Some(&(index, reads)) = member.answered.front()
            && index <= member.delivered
        {
            member.answered.pop_front();
            ready.push(reads);
        }
        for reads in ready {
            match reads {
                Reads::Lease(ask) => self.services.leased(ask),
                Reads::Commands(batch) => self.reads_ready(batch),
            }
        }
    }

    /// A view was applied: links to those who have left end, and a node that was itself left out starts anew.
    pub(super) fn viewed(&mut self) {
        let (Some(member), Some(estate)) = (&mut self.member, self.services.estate()) else {
            return;
        };
        let before = std::mem::replace(&mut member.viewed, viewed(estate));
        let left = before.iter().filter(|peer| !member.viewed.contains(peer));
        let left: Vec<engine::Peer> = left.map(|peer| to_engine(*peer)).collect();
        member.parts.retain(|peer, _| !left.contains(peer));
        let out = estate.was_member() && !estate.is_in();
        let let_in = estate.is_in() && !before.contains(&self.own);
        if !left.is_empty() {
            self.submissions.end_links(left);
        }
        if let Some(estate) = self.services.estate_mut().filter(|_| let_in) {
            log::info!("this node is a member of the cluster");
            estate.lease().ask_now();
        }
        self.callees_left();
        if out {
            self.start_anew("the cluster has left this node out");
        }
    }

    /// Another member's snapshot has replaced the log.
    fn restored(&mut self, snapshot: &StoredSnapshot, unknown: Vec<u64>) {
        for tag in unknown {
            if let Some(lost) = self.submissions.take(tag) {
                let why = "the node has fallen behind its cluster; whether it was done shows there";
                let unknown = refuse(Word::Unknown, why);
                self.answer(tag, lost.answers, &lost.entry.change, Err(unknown));
            }
        }
        let joined = self.services.estate().is_some_and(Estate::was_member);
        if joined {
            return self.start_anew("the node has fallen behind its cluster");
        }
        // No node is let in before it votes.
        let voted = self.member().is_some_and(|member| {
            !member.newcomer || member.standing.members.voters.contains(&self.own.0.0)
        });
        let replicated = match open::restored(snapshot) {
            Ok(replicated) => replicated,
            Err(error) => {
                log::error!("{error}");
                return self.start_anew("another node's snapshot cannot be read");
            }
        };
        let (node, start) = self.own;
        let known = replicated.cluster().last_start(node) >= start;
        if replicated.view().has(node, start) || voted && known {
            // It was let in, and perhaps left out again, and has missed what was reported to it meanwhile.
            return self.start_anew("the node has missed being let in");
        }
        let limits = self.services.limits().clone();
        let lease_ms = self.member().map_or(0, |member| member.lease_ms);
        let mut estate = Estate::new(
            self.now,
            self.own,
            lease_ms,
            limits,
            open::seed(),
            &replicated,
        );
        if let Some(before) = self.services.estate_mut() {
            estate.inherit(before);
        }
        self.receipts = replicated.receipt_key().map(Receipts::new);
        self.services
            .restore(self.now, Half::Member(Box::new(estate)), replicated);
        self.snapshots.applied = snapshot.index;
        self.snapshots.image_bytes = snapshot.image.len() as u64;
        self.snapshots.jobs_bytes = self.replicated().job_sizes().1;
        self.viewed();
        self.chapters.follow(self.services.replicated());
        self.delivered_up_to(snapshot.index);
        self.cluster_changed();
    }

    fn received(&mut self, received: &Received) {
        let Some(member) = &mut self.member else {
            return;
        };
        let parts = member.parts.entry(received.from).or_default();
        let from = from_engine(received.from);
        match parts.take(&received.payload) {
            Ok(None) => {}
            Ok(Some(letter)) => self.take_letter(from, letter),
            Err(why) => {
                log::error!("node {} has sent what is no letter: {why}", from.0);
                self.start_anew("another node speaks another language");
            }
        }
    }

    fn take_letter(&mut self, from: Peer, letter: Letter) {
        match letter {
            Letter::Estate(frame) => self.services.receive(self.now, from, frame),
            Letter::Leaving => self.say(from, &Letter::Heard),
            Letter::Heard => self.heard_by(from),
            Letter::Call(call) => self.take_call(from, *call),
            Letter::Reply { call, replied } => self.replied(from, call, replied),
            Letter::CallOff { call } => self.visit_called_off(from, call),
            Letter::Want { shards } => self.take_want(from, &shards),
            Letter::Listens { listens } => self.listens(from, listens),
            Letter::Publish { gate, message } => self.publish_here(&gate, &message),
            Letter::GivesBack => {
                if let Some(member) = &mut self.member {
                    member.rule.gave_back(from);
                    member.rule_due = 0;
                }
            }
            Letter::Join(newcomer) => self.wants_to_join_here(newcomer),
            Letter::Chapter(letter) => self.chapters.take_letter(from, *letter),
        }
    }

    fn stand(&mut self, standing: Standing) {
        let now = self.now;
        let Some(member) = &mut self.member else {
            return;
        };
        let before = std::mem::replace(&mut member.standing, standing);
        let standing = &member.standing;
        member.last_leader = standing.leader.or(member.last_leader);
        if before.leader != standing.leader {
            member.times.led(now, standing.leader);
        }
        if (before.leader, before.term) != (standing.leader, standing.term) {
            match standing.leader {
                Some(leader) => log::info!("node {leader} leads in term {}", standing.term),
                None => log::info!("nobody leads in term {}", standing.term),
            }
        }
        let reigns = before.leads && before.term == standing.term;
        match standing.leads {
            true if reigns => {}
            true => {
                member.rule.elected(now, standing.term);
                member.rule_due = now;
                member.changing = None;
            }
            false => member.rule.deposed(),
        }
        if before.members != member.standing.members {
            self.cluster_changed();
        }
    }

    /// Nothing is handed over while a member cannot be reached.
    fn look_at_the_links(&mut self) {
        let (Some(member), Some(estate)) = (&self.member, self.services.estate_mut()) else {
            return;
        };
        if member.peers.is_none() {
            return;
        }
        let links = member.links();
        let others: Vec<Peer> = estate.others().collect();
        for peer in others {
            let silent = links.get(&peer.0.0) != Some(&Link::Up);
            estate.link_silent(peer, silent);
        }
    }
}
