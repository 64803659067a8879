//! How groups are delivered: every node publishes to its listeners what the log or the group's algorithm delivers, so all
//! channels of one group carry the same messages in the same order.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use testigo_core::{GroupEvent, GroupJoined, Name, SessionId};

use super::{ClientId, House, Seat};
use crate::mailbox::{Mailbox, SessionEvent};
use crate::wire::Protocol;

/// Callers in this process that listen to groups, by group.
#[derive(Debug, Default)]
pub(super) struct GroupListeners(BTreeMap<Name, Vec<(SessionId, Weak<Mailbox>)>>);

impl House {
    /// Tells listeners what the last entry of the log means to groups.
    pub(super) fn publish_deliveries(&mut self) {
        for mut event in self.services.replicated().group_events().to_vec() {
            // The log does not know the numbers that an algorithm assigns: the place is the one that this node has reached.
            if let GroupEvent::Joined(group, _, last) | GroupEvent::Left(group, _, last) =
                &mut event
                && let Some(told) = self.chapters.last_told(group)
            {
                *last = told;
            }
            self.publish_group_event(event);
        }
    }

    /// Tells listeners what has happened in a group.
    pub(super) fn publish_group_event(&mut self, event: GroupEvent) {
        self.tell_listeners(&event);
        match event {
            #[cfg(any(test, debug_assertions))]
            GroupEvent::Delivered(_, message) if self.skips_delivery(message.number) => {}
            GroupEvent::Delivered(group, message) => {
                let head = format!("delivered {} {} ", message.number, message.from);
                self.publish_to_group(&group, &[head.as_bytes(), &message.body].concat());
            }
            GroupEvent::Joined(group, session, last) => {
                let line = format!("joined {last} {session}");
                self.publish_to_group(&group, line.as_bytes());
            }
            GroupEvent::Left(group, session, last) => {
                let line = format!("left {last} {session}");
                self.publish_to_group(&group, line.as_bytes());
            }
        }
    }

    fn publish_to_group(&mut self, group: &Name, line: &[u8]) {
        if self.connections.channels.any() {
            self.publish_on(&channel(group), group, line);
        }
    }

    /// Tells the callers in this process. A caller that has dropped its session, or whose session was resumed elsewhere,
    /// stops listening.
    fn tell_listeners(&mut self, event: &GroupEvent) {
        let (GroupEvent::Delivered(group, _)
        | GroupEvent::Joined(group, ..)
        | GroupEvent::Left(group, ..)) = event;
        let Some(listeners) = self.group_listeners.0.get_mut(group) else {
            return;
        };
        let seats = &self.seats;
        listeners.retain(|(session, mailbox)| {
            let Some(mailbox) = mailbox.upgrade() else {
                return false;
            };
            let seat = seats.get(session);
            if !matches!(seat, Some(Seat::Embedded(there)) if Arc::ptr_eq(there, &mailbox)) {
                return false;
            }
            mailbox.put(SessionEvent::Group(event.clone()));
            !matches!(event, GroupEvent::Left(_, left, _) if left == session)
        });
        if listeners.is_empty() {
            self.group_listeners.0.remove(group);
        }
    }

    /// Lets a caller in this process listen whose session has joined.
    pub(super) fn listen_to_group_here(
        &mut self,
        group: &Name,
        session: SessionId,
        mailbox: &Arc<Mailbox>,
    ) {
        let listeners = self.group_listeners.0.entry(group.clone());
        let listeners = listeners.or_default();
        listeners.retain(|(other, _)| *other != session);
        listeners.push((session, Arc::downgrade(mailbox)));
    }

    /// Lets a connection listen whose session has joined: the first line pushed to it is the one behind its answer. Version 2
    /// cannot mix pushes with answers, so there a separate connection listens.
    pub(super) fn listen_to_group(&mut self, id: ClientId, joined: &GroupJoined) {
        let channel = channel(&joined.group);
        let client = self.connections.client_mut(id);
        let Some(client) = client.filter(|client| client.protocol == Protocol::Resp3) else {
            return;
        };
        client.channels.insert(channel.as_str().into());
        self.connections.channels.join(&channel, id);
        self.observe();
    }

    /// A connection whose session has left a group stops listening.
    pub(super) fn leave_group_channel(&mut self, id: ClientId, group: &Name) {
        let channel = channel(group);
        if let Some(client) = self.connections.client_mut(id) {
            client.channels.remove(channel.as_str());
            self.connections.channels.leave(&channel, id);
            self.observe();
        }
    }
}

fn channel(group: &Name) -> String {
    format!("group:{group}")
}
