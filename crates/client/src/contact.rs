//! How long a session certainly lives, on the client's own monotonic clock. A node counts a session's silence from the moment
//! it heard a command. The client knows only that this was not before it sent the command, so it counts from there, and only
//! once the command is answered.

use std::time::{Duration, Instant};

/// The contact with a session that has a TTL.
#[derive(Clone, Debug)]
pub(crate) struct Contact {
    ttl: Duration,
    confirmed: Instant,
}

impl Contact {
    /// A session that was requested at `sent`, and that the node has granted since.
    pub(crate) fn new(ttl: Duration, sent: Instant) -> Contact {
        Contact {
            ttl,
            confirmed: sent,
        }
    }

    /// A command that was sent at `sent` is answered: the node heard it then or later.
    pub(crate) fn confirm(&mut self, sent: Instant) {
        self.confirmed = self.confirmed.max(sent);
    }

    /// The node has heard the session at this time or later.
    pub(crate) fn confirmed(&self) -> Instant {
        self.confirmed
    }

    /// From this time on the node may have ended the session.
    pub(crate) fn deadline(&self) -> Instant {
        self.confirmed + certain(self.ttl)
    }

    /// When the next sign of life is due, if nothing else is sent before.
    pub(crate) fn renew_at(&self) -> Instant {
        self.confirmed + self.ttl / 4
    }

    /// How long an answer may take before the connection counts as broken: early enough to resume over another one.
    pub(crate) fn patience(&self) -> Duration {
        self.ttl / 3
    }

    /// How long the answer to `SESSION RESUME` may take. A node other than the session's last one answers when that one has
    /// reported or is certainly out, which takes more than a node lease.
    pub(crate) fn resume_patience(&self) -> Duration {
        self.ttl / 2
    }
}

/// The part of a time span on the node's clock that certainly has not passed there while it has not passed here: clock rates
/// differ by up to 10 %, so the node's span may be over after 10/11 of it on this clock.
pub(crate) fn certain(span: Duration) -> Duration {
    span / 10 * 9
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    #[test]
    fn the_deadline_counts_from_sending_not_from_hearing() {
        let start = Instant::now();
        let mut contact = Contact::new(TTL, start);
        assert_eq!(contact.deadline(), start + Duration::from_secs(9));
        contact.confirm(start + Duration::from_secs(2));
        assert_eq!(contact.deadline(), start + Duration::from_secs(11));
    }

    #[test]
    fn a_late_answer_to_an_early_command_takes_nothing_back() {
        let start = Instant::now();
        let mut contact = Contact::new(TTL, start);
        contact.confirm(start + Duration::from_secs(4));
        contact.confirm(start + Duration::from_secs(1));
        assert_eq!(contact.deadline(), start + Duration::from_secs(13));
    }

    #[test]
    fn a_node_whose_clock_runs_a_tenth_faster_has_not_ended_the_session() {
        let start = Instant::now();
        let contact = Contact::new(TTL, start);
        let ended_there = start + TTL.mul_f64(1.0 / 1.1);
        assert!(contact.deadline() < ended_there);
    }

    #[test]
    fn signs_of_life_come_before_doubt_and_doubt_before_the_end() {
        let contact = Contact::new(TTL, Instant::now());
        let doubt = contact.renew_at() + contact.patience();
        assert!(doubt + TTL / 4 < contact.deadline());
    }
}
