//! Events for an embedded session, kept until its program reads them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use testigo_core::{Fence, GroupEvent, Loss, Name};

/// Something that happened to a session's holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// Others wait for what the session holds. Sent once per hold.
    Wanted {
        /// What it holds.
        gate: Name,
        /// The hold's fence.
        fence: Fence,
    },
    /// The session is no longer inside.
    Lost {
        /// What it held.
        gate: Name,
        /// The hold's fence.
        fence: Fence,
        /// Why.
        loss: Loss,
    },
    /// The session no longer leads: after a crash, a later leader's claim overruled it.
    Deposed {
        /// The election.
        election: String,
        /// The term in which it led.
        term: Fence,
    },
    /// The node does not know whether it is still in its cluster: what the session holds may be lost. The session can be
    /// resumed at another node.
    Suspect,
    /// Something happened in a group that the session has joined here. Message numbers are consecutive: a program that reads
    /// so seldom that it sees a gap should join again after the last number that it has.
    Group(GroupEvent),
    /// The session has ended, and everything it had is given back.
    Ended,
}

impl SessionEvent {
    /// A lost hold of an election is a lost leadership.
    pub(crate) fn of_election(self) -> SessionEvent {
        match self {
            SessionEvent::Lost { gate, fence, loss } => match gate.as_election() {
                Some(election) => SessionEvent::Deposed {
                    election: election.to_owned(),
                    term: fence,
                },
                None => SessionEvent::Lost { gate, fence, loss },
            },
            event => event,
        }
    }
}

/// Cap on events that wait for a program that does not read them; beyond it the oldest are dropped.
const EVENTS_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    events: Mutex<VecDeque<SessionEvent>>,
    arrived: Condvar,
}

impl Mailbox {
    pub(crate) fn put(&self, event: SessionEvent) {
        let mut events = self.lock();
        if events.len() == EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(event);
        drop(events);
        self.arrived.notify_all();
    }

    pub(crate) fn take(&self) -> Option<SessionEvent> {
        self.lock().pop_front()
    }

    /// Blocks until there is an event.
    pub(crate) fn wait(&self) -> SessionEvent {
        let mut events = self.lock();
        loop {
            if let Some(event) = events.pop_front() {
                return event;
            }
            events = self
                .arrived
                .wait(events)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No code panics while it holds the lock, so a poisoned one is intact.
    fn lock(&self) -> MutexGuard<'_, VecDeque<SessionEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
