//! Groups and decisions in the state: what the log says, the same at every node.

use std::ops::Bound;

use serde::Serialize;
use testigo_core::{GroupMessage, GroupRecord, GroupUsing, Matcher, Name};

use super::elections::shown;
use super::state::ROWS_MAX;
use crate::house::{House, Slice};
use crate::users::User;

/// Cap on shown messages of a group.
const DELIVERIES_MAX: usize = 20;

#[derive(Serialize)]
pub(super) struct Group {
    name: String,
    order: &'static str,
    using: &'static str,
    /// The number of the last message.
    last: u64,
    /// How many messages are kept.
    kept: usize,
    members: Vec<Member>,
    members_more: usize,
    /// Newest first.
    deliveries: Vec<Delivery>,
}

#[derive(Serialize)]
struct Member {
    session: u64,
    label: Option<String>,
    /// The node of its home.
    node: Option<u64>,
    /// `None` if an algorithm orders the group.
    joined_after: Option<u64>,
}

#[derive(Serialize)]
struct Delivery {
    number: u64,
    session: u64,
    label: Option<String>,
    body: String,
}

#[derive(Serialize)]
pub(super) struct Decision {
    name: String,
    value: String,
}

/// The groups and decisions that a user may see and whose names match, each kind up to a cap.
#[derive(Default)]
pub(super) struct AgreedMaker {
    pub(super) groups: Vec<Group>,
    pub(super) groups_more: usize,
    pub(super) decisions: Vec<Decision>,
    pub(super) decisions_more: usize,
    /// The last group and the last decision that were looked at.
    group_at: Option<Name>,
    decision_at: Option<Name>,
}

impl AgreedMaker {
    /// Continues; true when all are there.
    pub(super) fn slice(
        &mut self,
        house: &House,
        slice: &mut Slice,
        pattern: &Matcher,
        user: &User,
    ) -> bool {
        let (group_at, decision_at) = (self.group_at.clone(), self.decision_at.clone());
        for (name, record) in house.replicated().groups_after(after(group_at.as_ref())) {
            if !slice.has_room() {
                return false;
            }
            slice.spend(pattern.weight());
            if user.sees(name, pattern) {
                match self.groups.len() < ROWS_MAX {
                    true => self.groups.push(Group::of(house, name, record, slice)),
                    false => self.groups_more += 1,
                }
            }
            self.group_at = Some(name.clone());
        }
        for (name, value) in house
            .replicated()
            .decisions_after(after(decision_at.as_ref()))
        {
            if !slice.has_room() {
                return false;
            }
            slice.spend(pattern.weight());
            if user.sees(name, pattern) {
                match self.decisions.len() < ROWS_MAX {
                    true => self.decisions.push(Decision {
                        name: name.as_str().to_owned(),
                        value: shown(value),
                    }),
                    false => self.decisions_more += 1,
                }
            }
            self.decision_at = Some(name.clone());
        }
        true
    }
}

fn after(name: Option<&Name>) -> Bound<&Name> {
    name.map_or(Bound::Unbounded, Bound::Excluded)
}

impl Group {
    fn of(house: &House, name: &Name, record: &GroupRecord, slice: &mut Slice) -> Group {
        let label = |session| house.replicated().session(session)?.label.clone();
        let members = record.members.iter().take(ROWS_MAX);
        let members: Vec<Member> = members
            .map(|(session, joined)| Member {
                session: session.number(),
                label: label(*session),
                node: house
                    .replicated()
                    .session(*session)
                    .map(|known| known.home.node.0),
                joined_after: (record.using == GroupUsing::Log).then_some(*joined),
            })
            .collect();
        let (last, kept) = house.group_told(name, record);
        let deliveries = house.group_latest(name, record).take(DELIVERIES_MAX);
        let delivery = |message: &GroupMessage| Delivery {
            number: message.number,
            session: message.from.number(),
            label: label(message.from),
            body: shown(&message.body),
        };
        let deliveries: Vec<Delivery> = deliveries.map(delivery).collect();
        slice.spend(members.len() + deliveries.len());
        Group {
            name: name.as_str().to_owned(),
            order: record.order.word(),
            using: record.using.name(),
            last,
            kept,
            members_more: record.members.len() - members.len(),
            members,
            deliveries,
        }
    }
}
