//! What a house does when it leads: it decides who is in, which orphans have run out ([`Rule`](testigo_core::estate::Rule)),
//! and who votes. A node in the log's list of addresses becomes a member step by step: it listens, catches up, votes, and is
//! let into the view when it asks.

use testigo_core::estate::Order;
use testigo_core::pool::PoolRecord;
use testigo_core::{Admission, Change, Newcomer, NodeId, Refusal, Word};
use testigo_engine::{MemberChange, MemberError};

use super::super::letters::Letter;
use super::super::{Answers, ClientId, House};
use super::{RULE_MS, to_engine};
use crate::peers::{JoinAnswer, Welcome};
use crate::wire::refuse;

impl House {
    pub(super) fn lead(&mut self) {
        let now = self.now;
        let Some(member) = &mut self.member else {
            return;
        };
        if !member.rule.leads() || now < member.rule_due {
            return;
        }
        member.rule_due = now + RULE_MS;
        let voters = member.standing.members.voters.iter();
        let voters: Vec<NodeId> = voters.map(|node| NodeId(*node)).collect();
        let orders = member.rule.tick(now, self.services.replicated(), &voters);
        for order in orders {
            match order {
                Order::RefuseReads(peer) => self.submissions.refuse_reads(to_engine(peer)),
                Order::AllowReads(peer) => self.submissions.allow_reads(to_engine(peer)),
                Order::Propose(change) => {
                    if let Change::ViewInTerm { members, .. } = &change {
                        log::info!("as the leader this node proposes the view {members:?}");
                    }
                    let _ = self.submit(change, Answers::Nobody);
                }
            }
        }
        self.change_members();
    }

    /// Takes the next step towards the members that the log wants.
    fn change_members(&mut self) {
        let Some(member) = &mut self.member else {
            return;
        };
        if member.changing.is_some() {
            return;
        }
        let replicated = self.services.replicated();
        let (cluster, members) = (replicated.cluster(), &member.standing.members);
        let mut wanted = cluster.addresses().map(|(node, _)| node);
        let newcomer = wanted.find(|node| !members.contains(node.0));
        let removed = members.iter().find(|node| {
            let in_view = replicated.view().members.iter();
            let mut in_view = in_view.filter(|member| member.node.0 == *node);
            // Of two voters, the other's vote is needed for the removal, so it cannot have left before.
            let gone = in_view.next().is_none() || members.voters.len() <= 2;
            cluster.was_removed(NodeId(*node)) && gone
        });
        let change = match (newcomer, members.learners.first(), removed) {
            (.., Some(node)) => MemberChange::Remove(node),
            (Some(node), ..) => MemberChange::AddLearner(node.0),
            (None, Some(node), None) => MemberChange::Promote(*node),
            (None, None, None) => return,
        };
        member.next_change += 1;
        member.changing = Some(member.next_change);
        self.submissions.change_members(member.next_change, change);
    }

    pub(super) fn members_changed(&mut self, tag: u64, result: Result<(), MemberError>) {
        let Some(member) = &mut self.member else {
            return;
        };
        if member.changing == Some(tag) {
            // If it was not proposed, or fails with its leader, it is tried again.
            member.changing = None;
        }
        match result {
            Ok(()) | Err(MemberError::UnderWay | MemberError::Behind(..)) => {}
            Err(error) => log::info!("the members stay as they are: {error}"),
        }
    }

    /// Removes a node from the cluster, at any member's request. The client is answered when the log has decided; the node
    /// then leaves, or is left out when its lease is over.
    pub(crate) fn remove_member(&mut self, id: ClientId, node: NodeId) -> Result<(), Refusal> {
        let cluster = self.replicated().cluster();
        if cluster.address(node).is_none() {
            let why = format!("node {node} is not a member; CLUSTER STATUS lists them");
            return Err(refuse(Word::BadArg, why));
        }
        if cluster.addresses().count() == 1 {
            let why = format!("node {node} is the only member: stop it instead");
            return Err(refuse(Word::BadArg, why));
        }
        self.check_nobody_has_slots_of(node)?;
        let change = Change::Address {
            node,
            address: None,
        };
        self.submit(change, Answers::Client(id))
    }

    /// A removed node's slots go to the others. Sessions whose home is still there may use some, and nobody else knows which.
    fn check_nobody_has_slots_of(&self, node: NodeId) -> Result<(), Refusal> {
        let replicated = self.replicated();
        let mut pools = replicated.pools().iter();
        let owns = |record: &PoolRecord| {
            let place = record.place(node);
            place.is_some_and(|place| record.state().table.of(place).next().is_some())
        };
        let Some((pool, _)) = pools.find(|(_, record)| owns(record)) else {
            return Ok(());
        };
        if let Some(session) = replicated.unsaid().left(node).next() {
            let why = format!(
                "session {session} went elsewhere and has not said which slots of node {node} it uses, of pool {pool} perhaps; end it \
                 first: testigo session end {session}"
            );
            return Err(refuse(Word::Busy, why));
        }
        let there = replicated.sessions();
        let there = there.filter(|(_, record)| record.home.node == node);
        match there.map(|(_, record)| record.ttl_ms).max() {
            None => Ok(()),
            Some(ttl_ms) => Err(refuse(
                Word::Busy,
                format!(
                    "sessions that are at home at node {node} may use slots that it owns, of pool {pool}; once the node is stopped they \
                     resume elsewhere or end, at the latest {} s after it was left out: try again then",
                    ttl_ms.div_ceil(1_000)
                ),
            )),
        }
    }

    /// A node wants to become a member, and has asked this one, which need not be the leader. The newcomer repeats its
    /// request until it is a member.
    pub(crate) fn wants_to_join(&mut self, newcomer: Newcomer) -> Result<Admission, Refusal> {
        let admission = self.replicated().cluster().admits(&newcomer)?;
        if admission == Admission::New {
            self.check_acts()?;
            self.check_is_out(newcomer.node)?;
            let Some(member) = &self.member else {
                return Ok(admission);
            };
            let leader = member.standing.leader.map(NodeId);
            let leads = member.standing.leads;
            let others = self.services.estate().into_iter().flat_map(|e| e.others());
            let leader = others.into_iter().find(|peer| Some(peer.0) == leader);
            match leader {
                _ if leads => self.wants_to_join_here(newcomer),
                Some(leader) => self.say(leader, &Letter::Join(newcomer)),
                None => {}
            }
        }
        Ok(admission)
    }

    /// A removed node's number is free once that node is no longer a member of the log's group: its successor has none of the
    /// entries that the leader believes it to have.
    fn check_is_out(&self, node: NodeId) -> Result<(), Refusal> {
        let mut standing = self.member.iter().map(|member| &member.standing);
        let is_member = standing.any(|standing| standing.members.contains(node.0));
        match is_member && self.replicated().cluster().was_removed(node) {
            true => Err(refuse(
                Word::Unavailable,
                format!("node {node} was removed, and is not out yet"),
            )),
            false => Ok(()),
        }
    }

    /// The answer to a newcomer that has asked this node.
    pub(crate) fn answer_newcomer(&mut self, newcomer: Newcomer) -> JoinAnswer {
        match self.wants_to_join(newcomer) {
            Ok(Admission::StartAbove(last)) => JoinAnswer::StartAbove(last.0),
            Err(refusal) if refusal.word == Word::Unavailable => {
                JoinAnswer::Later(refusal.sentence)
            }
            Err(refusal) => JoinAnswer::Refused(refusal.sentence),
            Ok(Admission::New | Admission::Known) => {
                let cluster = self.replicated().cluster();
                let addresses = cluster.addresses();
                let addresses = addresses.map(|(node, address)| (node.0, address.clone()));
                let addresses = addresses.collect();
                match cluster.id() {
                    Some(cluster) => JoinAnswer::Welcome(Welcome { cluster, addresses }),
                    None => JoinAnswer::Later("this node is in no cluster yet".into()),
                }
            }
        }
    }

    /// As the leader, logs a newcomer.
    pub(super) fn wants_to_join_here(&mut self, newcomer: Newcomer) {
        let admits = self.replicated().cluster().admits(&newcomer);
        if admits != Ok(Admission::New) || !self.acts() {
            return;
        }
        if self.check_is_out(newcomer.node).is_err() {
            return;
        }
        let change = Change::Admit(newcomer);
        let mut under_way = self.submissions.changes();
        if !under_way.any(|other| *other == change) {
            drop(under_way);
            let _ = self.submit(change, Answers::Nobody);
        }
    }
}
