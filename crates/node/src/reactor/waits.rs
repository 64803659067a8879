//! How the reactor waits for sockets, for how long, and up to when it has heard everybody.

use std::io;
use std::time::{Duration, Instant};

use mio::Events;

use super::{EVENTS, LISTENERS_MAX, Reactor};
use crate::linger::LINGER;

/// If no client has said anything for this long, all who have something for the next flush were heard, and a thread that
/// waits for the disk keeps nobody waiting.
const QUIET: Duration = Duration::from_micros(15);
/// If it does not get quiet within this time, the log's own thread flushes.
const GATHER_MAX: Duration = Duration::from_millis(1);

/// What was sent by a certain time and is being read.
#[derive(Debug)]
pub(super) struct Hearing {
    since: u64,
    /// How many events that has taken so far.
    events: usize,
    /// Once all of them are there: the last connection that must have been served.
    served: Option<u64>,
}

impl Hearing {
    fn since(since: u64) -> Hearing {
        Hearing {
            since,
            events: 0,
            served: None,
        }
    }
}

impl Reactor {
    /// Up to when everything sent has been read, if this turn's events were the last of those ready by then. The system
    /// reports events in the order in which they became ready.
    pub(super) fn heard_until(&mut self, events: &Events) -> Option<u64> {
        let mut hearing = self.hearing.take()?;
        if hearing.served.is_none() {
            let now = events.iter().count();
            hearing.events += now;
            if now < EVENTS || hearing.events > LISTENERS_MAX + self.sockets.len() {
                hearing.served = Some(self.ready.last());
            }
        }
        // Whoever is served is heard: it need not come to the end of what it has sent.
        if hearing
            .served
            .is_some_and(|last| self.ready.served_until(last))
        {
            return Some(hearing.since);
        }
        self.hearing = Some(hearing);
        None
    }

    /// Waits for sockets, or says that it is time to flush.
    pub(super) fn gather_or_wait(&mut self, events: &mut Events) -> io::Result<bool> {
        self.hearing
            .get_or_insert_with(|| Hearing::since(self.clock.now()));
        let Some(since) = self.gathering else {
            let timeout = self.sleep();
            return self.wait(events, timeout).map(|()| false);
        };
        let start = Instant::now();
        while start.elapsed() < QUIET {
            self.poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() || !self.ready.is_empty() {
                if start.duration_since(since) > GATHER_MAX {
                    self.gathering = None;
                    self.shared.house().submissions.begin_flush();
                }
                return Ok(false);
            }
        }
        self.gathering = None;
        self.worked = true;
        Ok(self.shared.house().submissions.take_unbegun())
    }

    /// Waits for sockets. After a turn with work it polls for a moment before it sleeps, without yielding: the scheduler
    /// takes a yield as giving up a whole time slice, and on a busy machine the node would starve.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        let hurries = timeout == Some(Duration::ZERO);
        if std::mem::take(&mut self.worked) && !hurries && self.linger.is_worth_it() {
            let start = Instant::now();
            while start.elapsed() < LINGER {
                self.poll.poll(events, Some(Duration::ZERO))?;
                if !events.is_empty() {
                    self.linger.paid();
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            self.linger.missed();
        }
        self.poll.poll(events, timeout)
    }

    /// How long to sleep. The house is told under the same lock, so that a thread that sets an earlier deadline wakes the
    /// reactor.
    fn sleep(&self) -> Option<Duration> {
        let mut house = self.shared.house();
        if !self.ready.is_empty() || !house.connections.are_told() {
            return Some(Duration::ZERO);
        }
        let long_work = house.long_work_due_ms().map(Duration::from_millis);
        let deadline = house.next_deadline();
        house.sleep_until(deadline);
        let due = deadline.map(|deadline| house.clock().until(deadline));
        let nap = house.sleep_ms_max().map(Duration::from_millis);
        let greeting = self.greeting.front().map(|(due, ..)| *due);
        let doors = [self.accept_again, greeting, self.anew_at];
        let doors = doors.into_iter().flatten().min();
        let doors = doors.map(|due| due.saturating_duration_since(Instant::now()));
        [due, long_work, nap, doors].into_iter().flatten().min()
    }
}
