//! Groups for the program that embeds the node. Deliveries come as [`SessionEvent::Group`].
//!
//! [`SessionEvent::Group`]: crate::SessionEvent::Group

use std::sync::Arc;

use testigo_core::{
    Body, Change, GroupJoined, GroupOrder, GroupRecord, GroupUsing, Index, Name, Outcome, Refusal,
};

use crate::embedded::{Session, submit};
use crate::node::Node;

impl Node {
    /// A group with its members, as in the log. `None` if it has no members.
    pub fn group(&self, group: &str) -> Option<GroupRecord> {
        self.shared
            .enter(|house| house.replicated().group(group).cloned())
    }
}

impl Session {
    /// Joins a group, or comes back to it behind message number `after`. Blocks until that is durable; from then on messages
    /// are delivered to this session. Only an opened session can be a member.
    pub fn join_group(
        &self,
        group: &str,
        order: Option<GroupOrder>,
        using: Option<GroupUsing>,
        after: Option<u64>,
    ) -> Result<GroupJoined, Refusal> {
        let group = Name::new(group)?;
        let session = self.id();
        let join = |home| Change::JoinGroup {
            group,
            session,
            home,
            order,
            using,
            after,
        };
        match self.as_member(join)? {
            Outcome::GroupJoined(joined) => Ok(*joined),
            other => unreachable!("joining a group gave {other:?}"),
        }
    }

    /// Sends to all members, this one included; returns the message's number. Blocks until the message is durable or, if an
    /// algorithm orders the group, until every node has it.
    pub fn send_to_group(&self, group: &str, body: &[u8]) -> Result<u64, Refusal> {
        let (group, body) = (Name::new(group)?, Body::from(body));
        let session = self.id();
        let send = |home| Change::SendToGroup {
            group,
            session,
            home,
            body,
        };
        match self.as_member(send)? {
            Outcome::GroupSent { number } => Ok(number),
            other => unreachable!("sending to a group gave {other:?}"),
        }
    }

    /// Leaves a group. Blocks until that is durable.
    pub fn leave_group(&self, group: &str) -> Result<(), Refusal> {
        let group = Name::new(group)?;
        let session = self.id();
        let leave = |home| Change::LeaveGroup {
            group,
            session,
            home,
        };
        self.as_member(leave).map(drop)
    }

    fn as_member(&self, change: impl FnOnce(Index) -> Change) -> Result<Outcome, Refusal> {
        let submitted = self.shared.enter(|house| {
            let home = house.member_home(self.id())?;
            submit(house, change(home), Some(Arc::clone(&self.mailbox)))
        })?;
        submitted.wait()
    }
}
