//! What an embedded session is told without having asked: kept until its program looks.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use testigo_core::{Fence, GroupEvent, Loss, Name};

/// Something that happened to a session's holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// Others wait for what the session holds. Told once a hold.
    Wanted {
        /// What it holds.
        gate: Name,
        /// With which fence.
        fence: Fence,
    },
    /// The session is no longer inside.
    Lost {
        /// What it held.
        gate: Name,
        /// With which fence.
        fence: Fence,
        /// Why.
        loss: Loss,
    },
    /// The session leads no longer: a later leader's claim overrules it, after a crash.
    Deposed {
        /// Which election.
        election: String,
        /// In which term it led.
        term: Fence,
    },
    /// The node does not know whether it is still in its cluster: what the session holds may be lost. It can be resumed at
    /// another node.
    Suspect,
    /// Something happened in a group that the session has joined here. Numbers of messages follow each other: whoever looks so
    /// seldom that there is a gap joins again after the last number that it has.
    Group(GroupEvent),
    /// The session is over and everything of it given back.
    Ended,
}

impl SessionEvent {
    /// What is lost of an election is a leadership.
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

/// So many events wait for a program that does not look; the oldest are dropped then.
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

    /// Nothing panics while it holds the lock, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, VecDeque<SessionEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
