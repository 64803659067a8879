//! The clean stop of a member: it hands over what it owns, lets another node lead, makes sure that everybody has its reports,
//! and gives its lease back; then nobody need wait for it. It does not wait for nodes that do not answer in time: they then
//! act as after a crash.

use std::collections::BTreeSet;

use testigo_core::estate::Peer;

use super::super::letters::Letter;
use super::super::{Answers, House};
use super::Member;

/// How far a member has come in leaving.
#[derive(Debug)]
pub(super) struct Leaving {
    stage: Stage,
    /// When the stage ends, whether or not it has succeeded.
    over: u64,
    /// When to check the progress again.
    again: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// It hands over what it owns, and still serves clients.
    HandsOver,
    /// It serves nobody any more, and waits until these have heard its reports.
    Reports(BTreeSet<Peer>),
    /// It no longer acts, and waits for a view without it.
    GaveBack,
    /// There is nothing more to wait for.
    Over,
}

/// How long each stage may take.
const STAGE_MS: u64 = 2_000;
/// How often shards that could not be handed over are tried again.
const AGAIN_MS: u64 = 50;

impl Leaving {
    pub(super) fn due(&self) -> u64 {
        self.over.min(self.again)
    }
}

impl Member {
    /// Whether the lease was given back: from then on none is asked for.
    pub(in crate::house) fn gave_back(&self) -> bool {
        let leaving = self.leaving.as_ref();
        leaving.is_some_and(|leaving| matches!(leaving.stage, Stage::GaveBack | Stage::Over))
    }
}

impl House {
    /// Begins to leave the cluster. Says whether anything must be done before the house ends.
    pub(crate) fn begin_leaving(&mut self) -> bool {
        let acts = self.acts() && self.submissions.failed().is_none();
        let others = self.services.estate().map(|estate| estate.others().count());
        let Some(member) = &self.member else {
            return false;
        };
        if !acts || others == Some(0) || member.anew.is_some() {
            return false;
        }
        if member.leaving.is_none() {
            self.leave_to(Stage::HandsOver);
            self.hand_over_all();
        }
        true
    }

    /// Whether the house is still leaving, and must not end yet.
    pub(crate) fn is_leaving(&self) -> bool {
        let leaving = self.member().and_then(|member| member.leaving.as_ref());
        leaving.is_some_and(|leaving| leaving.stage != Stage::Over)
    }

    /// Gives everything that this node owns to the others, and lets one of them lead.
    fn hand_over_all(&mut self) {
        for change in self.services.hand_over_all(self.now) {
            let _ = self.submit(change, Answers::Nobody);
        }
        if let Some(member) = &self.member
            && member.standing.leads
        {
            // A node that is absent could not lead, and nothing would be decided while everybody waits for it.
            let voters = &member.standing.members.voters;
            let present = self.services.estate().into_iter().flat_map(|e| e.others());
            let present = present.map(|peer| peer.0.0).collect::<BTreeSet<u64>>();
            let next = voters.iter().find(|node| present.contains(node));
            if let Some(next) = next.copied() {
                self.submissions.lead(next);
            }
        }
    }

    pub(super) fn go_on_leaving(&mut self) {
        let now = self.now;
        let Some(leaving) = self.member().and_then(|member| member.leaving.as_ref()) else {
            return;
        };
        let (late, again) = (now >= leaving.over, now >= leaving.again);
        if let Some(leaving) = self.member.as_mut().and_then(|m| m.leaving.as_mut())
            && again
        {
            leaving.again = now + AGAIN_MS;
        }
        let Some(leaving) = self.member().and_then(|member| member.leaving.as_ref()) else {
            return;
        };
        match &leaving.stage {
            Stage::HandsOver => {
                let leads = self.member().is_some_and(|member| member.standing.leads);
                match late || self.services.owns_nothing() && !leads {
                    true => self.report_and_wait(),
                    false if again => self.hand_over_all(),
                    false => {}
                }
            }
            Stage::Reports(missing) if late || missing.is_empty() => self.give_back_lease(),
            Stage::GaveBack => {
                let is_in = self.services.estate().is_some_and(|estate| estate.is_in());
                if late || !is_in {
                    self.leave_to(Stage::Over);
                }
            }
            Stage::Reports(_) | Stage::Over => {}
        }
    }

    fn leave_to(&mut self, stage: Stage) {
        log::debug!("leaving the cluster: {stage:?}");
        let (over, again) = (self.now + STAGE_MS, self.now + AGAIN_MS);
        if let Some(member) = &mut self.member {
            member.leaving = Some(Leaving { stage, over, again });
        }
    }

    /// Sends all clients away, and asks the others whether they have heard everything.
    fn report_and_wait(&mut self) {
        if let Some(estate) = self.services.estate_mut() {
            estate.close_doors();
        }
        self.send_everybody_away();
        let estate = self.services.estate().expect("a member has an estate");
        let others: BTreeSet<Peer> = estate.others().collect();
        for peer in &others {
            self.say(*peer, &Letter::Leaving);
        }
        self.leave_to(Stage::Reports(others));
    }

    /// A member has heard everything up to [`Letter::Leaving`].
    pub(super) fn heard_by(&mut self, from: Peer) {
        let leaving = self.member.as_mut().and_then(|m| m.leaving.as_mut());
        if let Some(Leaving {
            stage: Stage::Reports(missing),
            ..
        }) = leaving
        {
            missing.remove(&from);
        }
    }

    /// Ends the lease of this start for good.
    pub(in crate::house) fn act_no_more(&mut self) {
        if let Some(estate) = self.services.estate_mut() {
            estate.lease().end();
            // Without a lease, this tells clients what they must hear.
            self.services.expire(self.now);
        }
    }

    /// From here on this node does not act, so nobody need wait for its lease.
    fn give_back_lease(&mut self) {
        self.act_no_more();
        let leader = self.member().and_then(|member| member.standing.leader);
        let estate = self.services.estate().expect("a member has an estate");
        let leader = estate.others().find(|peer| Some(peer.0.0) == leader);
        self.leave_to(Stage::GaveBack);
        if let Some(leader) = leader {
            self.say(leader, &Letter::GivesBack);
        }
        self.pass_on();
    }
}
