//! The clean stop: all clients are sent away, the log finishes what was submitted, and the image of holders and waiters is
//! left for the next start.

use std::sync::Arc;

use testigo_core::{Settled, WaitEnd, Word};
use testigo_engine::FlushError;

use super::entry::written;
use super::{ClientId, House, Waiter};
use crate::wire::refuse;

impl House {
    /// From now on nothing new is accepted. A member first leaves its cluster.
    pub(crate) fn begin_stop(&mut self) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        self.end_sharing();
        if !self.begin_leaving() {
            self.send_everybody_away();
        }
    }

    /// Closes every connection after sending its answers.
    pub(crate) fn send_everybody_away(&mut self) {
        self.drop_long_work();
        // The holders of jobs did not die: the node leaves them.
        self.services.lay_down();
        let clients: Vec<ClientId> = self.connections.ids().collect();
        for client in clients {
            self.connections.dismiss(client);
        }
    }

    /// Nothing can be committed any more, not even the end of a session whose holder has died: its locks would be stuck as
    /// long as the node went on. So the node ends. A member that only lacks room leaves the rest to the others, and begins
    /// its next start when there is room.
    pub(super) fn disk_failed(&mut self, error: &FlushError) {
        let waits = self.member.is_some() && error.0.is_full();
        if self.submissions.fail(error, waits) {
            // The others may let somebody in only when its lease is over: a client that loses its connection here may still
            // believe that it is inside.
            self.act_no_more();
            match waits {
                true => {
                    log::error!("{error}; the node goes on when there is room");
                    self.start_anew("the disk was full");
                }
                false => {
                    log::error!("{error}; the node ends");
                    self.begin_stop();
                }
            }
        }
    }

    /// Ends this start of a member, so that the next one can begin.
    pub(crate) fn end_start(&mut self) -> Result<(), FlushError> {
        let checker = self.checker.take();
        let ended = self.end();
        self.checker = checker;
        ended
    }

    /// Goes on as the house of the next start, for whoever comes from now on.
    pub(crate) fn go_on_as(&mut self, mut next: House) {
        next.users = Arc::clone(&self.users);
        next.checker = self.checker.take();
        next.counters = self.counters;
        next.connections.count_on_from(&self.connections);
        let now = self.clock.now();
        next.services
            .inherit_desk(now, next.own, &mut self.services);
        *self = next;
    }

    /// Ends the log with an image of everything that the log does not know. What the log has not answered has an unknown
    /// outcome.
    pub(crate) fn end(&mut self) -> Result<(), FlushError> {
        let why = "the node has stopped; whether it was done shows in the cluster";
        let unknown = refuse(Word::Unknown, why);
        for (tag, lost) in self.submissions.take_all() {
            let outcome = Err(unknown.clone());
            self.answer(tag, lost.answers, &lost.entry.change, outcome);
        }
        self.end_deletes(&unknown);
        self.end_chapters();
        let sessions: Vec<_> = self.seats.keys().copied().collect();
        for session in sessions {
            self.stand_up(session);
        }
        self.pass_on();
        self.checker = None;
        for (_, waiter) in self.tickets.drain() {
            match waiter {
                Waiter::Embedded(completion) => {
                    completion.give(Settled::Ended(WaitEnd::SessionEnded));
                }
                Waiter::EmbeddedAsking(completion) => {
                    let why = "the node has stopped; whether it was done is not known";
                    completion.give(Err(refuse(Word::Unknown, why)));
                }
                Waiter::EmbeddedSlots(completion) => completion.give(Vec::new()),
                Waiter::Blocked(_) | Waiter::Asking(..) | Waiter::Pushed(_) => {}
            }
        }
        self.now = self.clock.now();
        self.touches = None;
        let image = self.services.image(self.now);
        let image = image.filter(|_| self.submissions.failed().is_none());
        match self.submissions.end() {
            Some(log) => log.close(image.map(|image| written(&image))),
            None => Ok(()),
        }
    }
}
