//! What no later step of Paxos can tell apart, for the checker: ballots are not used twice, promises only rise, and what is
//! decided stays so.

use super::super::ballot::{Ballot, Nodes};
use super::{Config, Flaw, Paxos, Proposer, Talk};
use crate::{NodeId, UnderWay};

pub(super) fn canonical(nodes: &mut [Paxos], messages: &mut Vec<UnderWay<Talk>>, config: &Config) {
    // Who forgets promises on a crash may vote in any ballot again.
    if config.flaw == Some(Flaw::Forgetful) {
        return;
    }
    messages.retain(|flight| {
        let (from, to) = (&nodes[flight.from.index()], &nodes[flight.to.index()]);
        !is_stale(from, to, &flight.message)
    });
    forget_lost_ballots(nodes, messages, config);
    for node in nodes {
        settle(node, messages);
    }
}

/// Whether a message between these nodes changes nothing any more.
fn is_stale(from: &Paxos, to: &Paxos, message: &Talk) -> bool {
    match message {
        Talk::Prepare(n) => to.acceptor.promised >= Some(*n) && !from.is_at(*n),
        Talk::Accept(n, _) => to.acceptor.promised > Some(*n) && !from.is_at(*n),
        Talk::Promise(n, _) => {
            !matches!(to.proposer, Proposer::Preparing { ballot, .. } if ballot == *n)
        }
        Talk::Accepted(..) => to.decided,
        Talk::Nack(n, _) => !to.is_at(*n),
    }
}

/// A learner need not count the votes of a ballot for which too few have voted, are about to be heard of, or may still
/// vote: whoever has promised more does not.
fn forget_lost_ballots(nodes: &mut [Paxos], messages: &mut Vec<UnderWay<Talk>>, config: &Config) {
    let (all, flights): (&[Paxos], &[UnderWay<Talk>]) = (nodes, messages);
    let may_vote = |ballot: Ballot| {
        let acceptors = config.acceptors();
        acceptors.filter(move |a| all[a.index()].acceptor.promised <= Some(ballot))
    };
    let under_way = |to: NodeId, ballot: Ballot| {
        let votes = flights.iter().filter(move |flight| {
            flight.to == to && matches!(flight.message, Talk::Accepted(n, _) if n == ballot)
        });
        votes.map(|flight| flight.from)
    };
    let is_lost = |learner: &Paxos, ballot: Ballot| {
        let voted = learner.votes.voters(ballot).iter();
        let heard = voted.chain(under_way(learner.id, ballot));
        heard.chain(may_vote(ballot)).collect::<Nodes>().len() < config.quorum()
    };
    let kept: Vec<bool> = flights
        .iter()
        .map(|flight| match flight.message {
            Talk::Accepted(ballot, _) => !is_lost(&all[flight.to.index()], ballot),
            _ => true,
        })
        .collect();
    let votes: Vec<_> = all
        .iter()
        .map(|learner| {
            let mut votes = learner.votes.clone();
            votes.keep(|ballot| !is_lost(learner, ballot));
            votes
        })
        .collect();
    for (node, votes) in nodes.iter_mut().zip(votes) {
        node.votes = votes;
    }
    let mut kept = kept.into_iter();
    messages.retain(|_| kept.next().unwrap_or(true));
}

/// A proposer to which nothing of its ballot can come back only waits for its timer, as if it had been refused. Who knows
/// the decision does not propose again.
fn settle(node: &mut Paxos, messages: &[UnderWay<Talk>]) {
    if node.decided {
        node.round = None;
    }
    let Proposer::Proposing { own, ballot } = node.proposer else {
        return;
    };
    let matters = |flight: &UnderWay<Talk>| match flight.message {
        Talk::Prepare(n) | Talk::Accept(n, _) => flight.from == node.id && n == ballot,
        Talk::Nack(n, _) => flight.to == node.id && n == ballot,
        Talk::Promise(..) | Talk::Accepted(..) => false,
    };
    if !messages.iter().any(matters) {
        node.proposer = Proposer::Refused { own };
    }
}
