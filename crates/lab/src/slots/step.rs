//! One step of a group, in words. Random runs record steps, and counterexamples consist of them.

use testigo_protocol::NodeId;
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{Change, Delivery, Letter, Sharer, SlotsMessage, SlotsPlan};

use super::{SlotsFault, SlotsWorld};

/// Something that happens to a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SlotsStep {
    Take { member: NodeId },
    Give { member: NodeId, slot: u32 },
    Want { member: NodeId, wanted: u32 },
    Retire { by: NodeId, member: NodeId },
    Deliver { member: NodeId },
    Strike(SlotsFault),
}

impl SlotsWorld {
    /// Carries out a step; for a delivery, returns what the member then multicast.
    pub fn step(&mut self, step: &SlotsStep, plan: &SlotsPlan) -> Vec<Letter> {
        match *step {
            SlotsStep::Deliver { member } => return self.deliver(member, plan),
            SlotsStep::Take { member } => {
                self.take(member, plan);
            }
            SlotsStep::Give { member, slot } => {
                self.give(member, slot, plan);
            }
            SlotsStep::Want { member, wanted } => self.want(member, wanted, plan),
            SlotsStep::Retire { by, member } => self.retire(by, member),
            SlotsStep::Strike(ref fault) => self.strike(fault, plan),
        }
        Vec::new()
    }

    /// The step in words.
    pub fn describe(&self, step: &SlotsStep) -> String {
        match step {
            SlotsStep::Take { member } => {
                let slot = self
                    .sharer(*member)
                    .and_then(|sharer| sharer.free().first());
                match slot {
                    Some(slot) => format!("p{member} takes slot {slot}"),
                    None => format!("p{member} finds no free slot"),
                }
            }
            SlotsStep::Give { member, slot } => format!("p{member} gives slot {slot} back"),
            SlotsStep::Want { member, wanted } => format!("p{member}'s users wait for {wanted}"),
            SlotsStep::Retire { by, member } => {
                format!("an operator tells p{by} that p{member} is gone for good")
            }
            SlotsStep::Deliver { member } => {
                let sharer = self.sharer(*member);
                let heard = self.next(*member).map(|delivery| heard(delivery, sharer));
                format!("p{member} {}", heard.as_deref().unwrap_or("hears nothing"))
            }
            SlotsStep::Strike(fault) => self.describe_fault(fault),
        }
    }

    fn describe_fault(&self, fault: &SlotsFault) -> String {
        let losing = |lost: u32| match lost {
            0 => String::new(),
            lost => format!(", losing at most {lost} of the last messages"),
        };
        match fault {
            SlotsFault::Join { member, founder } => match founder {
                true => format!("p{member} starts as the founder"),
                false => format!("p{member} starts"),
            },
            SlotsFault::Depart { member } => format!("p{member}'s process ends"),
            SlotsFault::Crash { member, lost } => {
                let rest = self.component_of(*member).without(member.index());
                format!("p{member}'s machine stops: {rest} stays{}", losing(*lost))
            }
            SlotsFault::Part { away, lost } => {
                let all = away.iter().next().map_or(NodeSet::EMPTY, |first| {
                    self.component_of(NodeId(first as u32))
                });
                let stays = all.minus(*away);
                let (one, other) = (losing(lost[0]), losing(lost[1]));
                format!("{away} parts{one}; {stays} stays{other}")
            }
            SlotsFault::Merge { one, other } => {
                let (one, other) = (self.component_of(*one), self.component_of(*other));
                format!("{one} and {other} reach each other")
            }
        }
    }
}

fn heard(delivery: &Delivery, sharer: Option<&Sharer>) -> String {
    match delivery {
        Delivery::View { group, change } => {
            let members = group.members;
            match change {
                Change::Joined(member) => format!("sees {members}: p{member} has joined"),
                Change::Departed(member) => format!("sees {members}: p{member} has ended"),
                Change::Parted => format!("sees {members}: the others are out of reach"),
                Change::Merged => format!("sees {members}: others are in reach"),
                Change::Returned(member) => format!("sees {members}: p{member} is back"),
                Change::Restarted(member) => format!("sees {members}: p{member} began anew"),
                Change::Raised(number) => format!("sees {members}: numbers begin at {number}"),
            }
        }
        Delivery::Letter { from, letter } => {
            let late = sharer.is_some_and(|sharer| sharer.group().view != letter.view);
            let late = if late { ", sent in another view" } else { "" };
            format!("hears that p{from} {}{late}", said(&letter.message))
        }
    }
}

fn said(message: &SlotsMessage) -> String {
    match message {
        SlotsMessage::Request { wanted, .. } => format!("asks for {wanted}"),
        SlotsMessage::Donate { to, slots, .. } => match slots.len() {
            0 => format!("has nothing for p{to}"),
            _ => format!("donates {slots:?} to p{to}"),
        },
        SlotsMessage::Tell => "says how many free slots it has".to_owned(),
        SlotsMessage::Wish { label, wanted, .. } => format!("wishes for {wanted} of label {label}"),
        SlotsMessage::Withdraw => "waits no longer".to_owned(),
        SlotsMessage::Pass { wanted } => format!("lets others go first, and lacks {wanted}"),
        SlotsMessage::Status { newcomers, .. } => format!("tells {newcomers} who owns what"),
        SlotsMessage::MergeStatus { state } => match state.initialised.is_empty() {
            true => "owns nothing".to_owned(),
            false => format!("says what {} owns", state.component),
        },
        SlotsMessage::Retire { member } => format!("was told to retire p{member}"),
    }
}
